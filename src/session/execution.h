/* One execution of a session: what was asked, what it printed and showed, how it ended. Kept by the
 * supervisor for whoever asks later: bounded, the middle of a flood left out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "session/frame.h"

enum execution_state { EXECUTION_QUEUED, EXECUTION_RUNNING, EXECUTION_DONE };
enum execution_stream { EXECUTION_STDOUT, EXECUTION_STDERR };

#define SESSION_WHY	    160		/* bytes of a reason that is told */
#define EXECUTION_SHOWN_MAX (32u << 20) /* bytes that are kept of what it displays */

struct execution_item;

struct execution {
	TAILQ_ENTRY(execution) entry; /* the session's */
	uint32_t id;
	enum execution_state state;
	char *code; /* until it has ended; then its first line */
	size_t code_len;
	uint64_t timeout_ms;	     /* 0: none */
	bool rollback;		     /* wanted */
	bool armed;		     /* the state before it can come back */
	int32_t pid;		     /* in the box: leader of its process group; 0: not started */
	char why[SESSION_WHY];	     /* not armed, although wanted */
	bool kept;		     /* so can the files */
	char why_files[SESSION_WHY]; /* not kept, although wanted */
	uint64_t files_bytes;	     /* what the list of those that it changed takes */
	uint64_t queued_us, started_us, ended_us, cpu_us; /* cpu_us: at the start, then used */

	TAILQ_HEAD(execution_items, execution_item) items;
	uint64_t next;	       /* number of the next item */
	uint64_t half;	       /* bytes of output that are kept from the head, and the tail */
	uint64_t head, tail;   /* kept */
	unsigned nhead, ntail; /* items of these */
	uint64_t shown;	       /* bytes of displays, errors and notes that are kept */
	unsigned nother;       /* items that are neither output nor display */
	uint64_t output_bytes[2], display_bytes, omitted_bytes;

	char name[64];	/* of the error, if there was one */
	json_t *result; /* once it has ended */
};

/* half: see above. */
struct execution *execution_new(uint32_t id, uint64_t half);
void execution_free(struct execution *x);

/* Each takes hostile bytes; 0, or PALE_E_NOMEM. */
int execution_print(struct execution *x, enum execution_stream stream, const char *data, size_t len,
		    struct pale_err *err) _must_check_;
/* A part of a display: its MIME type is f's key. */
int execution_show(struct execution *x, const struct frame *f, struct pale_err *err) _must_check_;
int execution_fail(struct execution *x, const struct frame *f, struct pale_err *err) _must_check_;
/* Any other event, with about so many bytes; stolen. A flood of them is left out, and counted. */
int execution_add(struct execution *x, json_t *event, size_t bytes,
		  struct pale_err *err) _must_check_;

/* Appends events from number *from on to the array, about at_most bytes of them, and sets *from to
 * what comes next. 1: there is more; 0; or PALE_E_NOMEM. */
int execution_read(struct execution *x, uint64_t *from, size_t at_most, json_t *events,
		   struct pale_err *err) _must_check_;
/* Gives up what was printed and shown; the result stays. */
void execution_forget(struct execution *x);
/* Bytes that are kept. */
uint64_t execution_size(const struct execution *x);

/* Text as JSON: what is not UTF-8 is replaced by U+FFFD. NULL: no memory. */
json_t *execution_text(const char *data, size_t len);
