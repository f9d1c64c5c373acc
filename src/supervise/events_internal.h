/* Shared by the events*.c files only. */
#pragma once

#include "policy/remedy.h"
#include "supervise/events.h"

#define EVENTS_STAGE	"supervise"
/* Different attempts of a kind in the result; the log has them all, or their exact counts. */
#define EVENTS_MAX_LIST 128
/* Kinds of the result's list, each with a share of its own. */
enum { EVENTS_DNS = NOTIFY_KINDS, EVENTS_EGRESS, EVENTS_KINDS };

struct events {
	struct audit *log;
	json_t *blocked; /* array of objects; the key that makes them alike is "key" until the end
			  */
	json_t *keys;	 /* key -> index */
	json_t *lookups; /* a name and a type -> [name, type, times asked beyond the first] */
	json_t *asked;	 /* a key of names in the list -> times by type of record */
	uint64_t more_lookups;
	size_t listed[EVENTS_KINDS];
	uint64_t unlisted;
	uint64_t
		others[EVENTS_KINDS]; /* attempts of a kind, exactly, for which there was no line */
	json_t *used;		      /* what of the network was used: array */
	json_t *used_keys;	      /* key -> index */
	uint64_t connections, requests, bytes_out, bytes_in;
	struct pale_err error;
};

/* Takes body. */
void events_append(struct events *e, const char *stage, const char *name, json_t *body);
/* Sets a text of the box's, unless it is empty. */
void events_text(json_t *o, const char *key, const char *s, size_t max);
/* The rule that would have let it through, as `allow`; null where none would. */
void events_remedy(json_t *o, const struct policy_network *n, const struct network_attempt *a);
/* One line of the result's list, which is taken: count is all so far of its key. */
void events_list(struct events *e, int kind, const char *key, json_t *entry, uint64_t count);
/* How often a name was looked up, with `more` questions of this type: who wants both kinds of
 * address asks twice at once, so it is the type that was asked for most. */
uint64_t events_lookups(struct events *e, const char *key, unsigned type, uint64_t more);
/* What its key stands at so far. */
uint64_t events_listed(const struct events *e, const char *key);
