/* The options table: one row a key of the policy. The loaders, the checks, the JSON Schema,
 * docs/policy.md, `pale policy init`, the canonical JSON, `--set` and the tests are all made from
 * these rows; there is no second list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "policy/policy.h"

enum option_type {
	OPTION_GROUP,	/* a mapping of further keys; no value of its own */
	OPTION_VERSION, /* must be the one format that this version knows; not stored */
	OPTION_TEXT,	/* char * */
	OPTION_WORD,	/* an enum of unsigned's size: one of `words` */
	OPTION_WORDS,	/* unsigned: a list of `words`, their values or'ed */
	OPTION_SIZE,	/* uint64_t, bytes: "512MiB" */
	OPTION_TIME,	/* uint64_t, milliseconds: "30s" */
	OPTION_MILLI,	/* uint64_t, thousandths: "0.5" */
	OPTION_COUNT,	/* uint64_t */
	OPTION_PATH,	/* char *: any bytes but NUL */
	OPTION_BOOL,	/* unsigned: enum option_bool */
	OPTION_TEXTS,	/* char **, NULL-terminated, or NULL: a list of texts, or a single one */
	OPTION_PATHS,	/* the same, of the host's paths, relative to the policy's directory */
	OPTION_LIST,	/* a list of entries; their keys are the rows of the group list->entries */
	OPTION_ENV,	/* a mapping from names to texts */
};

enum option_bool { BOOL_NOT_GIVEN, BOOL_FALSE, BOOL_TRUE };

/* What makes a flag's value allow more than the file's. */
enum option_widens {
	WIDENS_NOT,    /* no value allows more than another */
	WIDENS_MORE,   /* a larger number, a later word of `words`, or false */
	WIDENS_CHANGE, /* any other value: they cannot be compared */
};

struct option_word {
	const char *word;
	unsigned value;
	const char *doc;
};

#define OPTION_TEXT_MAX	 256
#define OPTION_TEXTS_MAX 256 /* members of a list */

/* How a list of the policy is read and written: an entry goes through a row, a struct that holds
 * the plain values of the entry's keys and owns them (option_row_done()). */
struct option_place {
	const char *base;  /* the directory that relative paths count from: absolute, no links */
	const char *where; /* for later messages: "policy.yaml:7:5", "--allow" */
	bool in_preset;	   /* a preset is being read: it does not name others */
};

struct option_list {
	const char *entries; /* the group of its entries' keys: "files[]" */
	size_t size;	     /* of a row */
	size_t (*count)(const struct policy *p);
	/* Copies an entry into a zeroed row. 0 or -ENOMEM. */
	int (*view)(const struct policy *p, size_t i, void *row);
	/* Checks the row as a whole and appends what it means. The message is without the place. */
	int (*append)(struct policy *p, const void *row, const struct option_place *at,
		      struct pale_err *err);
	const char *example; /* of one entry */
	const char *flags;   /* "--ro, --rw": how the command line adds to it */
	const char *one_of;  /* blank-separated keys of which an entry has at least one */
	const char *needs;   /* blank-separated keys that every entry has */
};

struct policy_option {
	const char *key; /* dotted; "files[].path" for the keys of a list's entries */
	enum option_type type;
	size_t offset;	 /* of the value in struct policy, or in the row of a list ("files[].") */
	const char *def; /* the default as people write it; NULL: none */
	const char *min; /* the least and the most, likewise; NULL: no bound */
	const char *max;
	const struct option_word *words; /* up to a row without a word; the tightest comes first */
	const char *pattern;		 /* of a text: a regular expression, for the schema ... */
	bool (*valid)(const char *text); /* ... and the same as code, or: */
	/* Checks a text and writes it in the form in which it is kept. 0 or -EINVAL. */
	int (*normal)(const char *text, char ret[static OPTION_TEXT_MAX]);
	/* Appends what was probably meant to the message about a text that is not valid. */
	void (*hint)(const char *text, struct pale_err *err);
	const char *expected; /* of a text or a list: what a valid one is, for messages and docs */
	bool single;	      /* OPTION_WORDS: a word that stands alone is a list of one */
	bool numbers;	      /* a text that can be a whole number: written without quotes */
	bool never;	      /* OPTION_TIME: `never` stands for no end, and is kept as 0 */
	bool hidden; /* never quoted in a message: it may be a secret that was put here by mistake
		      */
	const struct option_list *list; /* OPTION_LIST */
	const char *doc;		/* one or two sentences */
	const char *example;		/* as it stands in a policy, without `pale: 1` */
	enum option_widens widens;
	enum policy_item item; /* the word by which best_effort names it; 0: always enforced */
	const char *flag; /* the command line's own name for it, without dashes; NULL: --set only */
	const char *also; /* blank-separated words that people write instead: for suggestions */
};

extern const struct policy_option policy_options[]; /* up to a row without a key */

/* Keys that later versions will know and this one refuses, each with what holds until then. */
struct option_reserved {
	const char *key;
	const char *until;
};
extern const struct option_reserved policy_reserved[];

const struct policy_option *option_find(const char *key);
/* The key's name within its group ("memory" of "limits.memory"), and whether its group is `group`
 * ("" at the top, "limits", "files[]"). */
const char *option_name(const struct policy_option *o);
/* Has a group within another any value? It is left out if not. */
bool option_group_given(const struct policy_option *group, const void *base);
/* How deep it lies: 0 at the top. */
unsigned option_depth(const struct policy_option *o);
bool option_in_group(const struct policy_option *o, const char *group);
/* Is there a value, in the policy or in a list's row? (A size of 0 is none.) */
bool option_given(const struct policy_option *o, const void *base);
/* Is it written out: does it have a value, or say by its absence that there is none? */
bool option_shown(const struct policy_option *o, const void *base);
void option_row_done(const struct option_list *list, void *row);
/* Frees, and copies, a NULL-terminated list of texts; NULL is one without members. */
void texts_free(char **texts);
int texts_copy(char ***ret, char *const *texts) _must_check_;
bool texts_same(char *const *a, char *const *b);
int texts_add(char ***texts, const char *text) _must_check_;

/* Reads a scalar's text into base (the struct that o->offset belongs to). The message names the key
 * and what was expected, but not the place. For OPTION_WORDS and OPTION_TEXTS it is added. */
int option_parse(const struct policy_option *o, const char *text, void *base,
		 struct pale_err *err) _must_check_;
/* Appends the value as people write it; the caller checks buf's `failed`. */
void option_format(const struct policy_option *o, const void *base, struct buf *b);
uint64_t option_number(const struct policy_option *o, const void *base);
/* "expected a size such as 64MiB", for messages and docs. */
const char *option_expected(const struct policy_option *o);
const char *option_word_of(const struct option_word *words, unsigned value);
/* Appends ": did you mean NAME?" if the unknown key within a group is like a known one, or says
 * what is known of it. */
void option_suggest_key(const char *group, const char *name, struct pale_err *err);
