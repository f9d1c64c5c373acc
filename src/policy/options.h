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
	OPTION_FILES,	/* the list `files`; its keys are the rows "files[].NAME" */
	OPTION_ENV,	/* a mapping from names to texts */
};

/* What makes a flag's value allow more than the file's. */
enum option_widens {
	WIDENS_NOT,    /* no value allows more than another */
	WIDENS_MORE,   /* a larger number, or a later word of `words` */
	WIDENS_CHANGE, /* any other value: they cannot be compared */
};

struct option_word {
	const char *word;
	unsigned value;
	const char *doc;
};

struct policy_option {
	const char *key; /* dotted; "files[].path" for the keys of a list's entries */
	enum option_type type;
	size_t offset; /* of the value in struct policy, or in struct policy_file for "files[]." */
	const char *def; /* the default as people write it; NULL: none */
	const char *min; /* the least and the most, likewise; NULL: no bound */
	const char *max;
	const struct option_word *words; /* up to a row without a word; the tightest comes first */
	const char *pattern;		 /* OPTION_TEXT: a regular expression, for the schema ... */
	bool (*valid)(const char *text); /* ... and the same as code */
	const char *expected; /* OPTION_TEXT: what a valid one is, for messages and docs */
	const char *doc;      /* one or two sentences */
	const char *example;  /* as it stands in a policy, without `pale: 1` */
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

#define OPTION_TEXT_MAX 256

const struct policy_option *option_find(const char *key);
/* The key's name within its group ("memory" of "limits.memory"), and whether its group is `group`
 * ("" at the top, "limits", "files[]"). */
const char *option_name(const struct policy_option *o);
bool option_in_group(const struct policy_option *o, const char *group);
/* Is it an option of entries of `files`, and given in this one? */
bool option_in_entry(const struct policy_option *o, const struct policy_file *f);

/* Reads a scalar's text into base (the struct that o->offset belongs to). The message names the key
 * and what was expected, but not the place. For OPTION_WORDS the word is added. */
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
