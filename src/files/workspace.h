/* Looking at, applying and discarding the changes of a run (pale.h has the contract of the three),
 * and what they share: finding the run, its overlays, and the paths in them. */
#pragma once

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "files/kept.h"
#include "files/review.h"

int workspace_diff(const char *run, const struct pale_workspace_options *options, FILE *out,
		   struct pale_workspace_totals *ret, struct pale_err *err) _must_check_;
int workspace_apply(const char *run, const struct pale_workspace_options *options, FILE *out,
		    struct pale_workspace_totals *ret, struct pale_err *err) _must_check_;
int workspace_discard(const char *run, struct pale_err *err) _must_check_;

struct workspace {
	struct kept kept;
	const char *const *operands; /* paths as they were typed; borrowed */
	size_t noperands;
	bool *matched; /* one an operand */
};

#define WORKSPACE_NONE ((struct workspace){.kept = KEPT_NONE})

/* run as audit_find() takes it, or NULL for the last. */
int workspace_open(const char *run, const char *const *paths, size_t npaths, struct workspace *ret,
		   struct pale_err *err) _must_check_;
void workspace_done(struct workspace *w);
#define _cleanup_workspace_ _cleanup_(workspace_done)

/* One overlay of it. */
struct overlay {
	unsigned n;
	int dir_fd;  /* changes/<n>/ */
	int root_fd; /* the host's directory */
	struct manifest manifest;
	char **paths; /* of the operands, relative to the host's directory */
	size_t npaths;
	bool wanted; /* no operands, or some of them are here */
	struct review_item *items;
};

#define OVERLAY_NONE \
	((struct overlay){.dir_fd = -1, .root_fd = -1, .manifest = {.contents_fd = -1}})

/* Loads overlay number i (0 ... kept.count - 1). */
int overlay_open(struct workspace *w, size_t i, struct overlay *ret,
		 struct pale_err *err) _must_check_;
void overlay_done(struct overlay *o);
#define _cleanup_overlay_ _cleanup_(overlay_done)

/* Reviews it; o->paths and the home directory are filled in by this call. */
int overlay_review(struct overlay *o, const struct review_options *options,
		   struct pale_err *err) _must_check_;

/* The first operand that was in no overlay, or NULL; after all were opened. */
const char *workspace_unmatched(const struct workspace *w);

/* "A", "M", "D", "m" (mode), "t" (time), "!" */
char change_letter(const struct change *c);

/* A hostile name: quoted and escaped if it has to be, so that it can't be taken for
 * something else. */
void print_name(FILE *out, const char *s);

/* One entry as a JSON object, appended to b. written: VERDICT_APPLY means that it was applied, not
 * that it can be. */
int overlay_entry_json(struct buf *b, const struct change *c, const struct review_item *item,
		       bool written) _must_check_;
