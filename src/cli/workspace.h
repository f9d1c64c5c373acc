/* What `pale diff`, `apply` and `discard` share: finding the run, its overlays, and the paths in
 * them. */
#pragma once

#include "cli/cli.h"
#include "files/kept.h"
#include "files/review.h"

extern const struct cli_command cli_diff_command, cli_apply_command, cli_discard_command;

struct workspace {
	struct kept kept;
	char **operands; /* paths as they were typed; borrowed */
	size_t noperands;
	bool *matched; /* one an operand */
};

#define WORKSPACE_NONE ((struct workspace){.kept = KEPT_NONE})

/* Operands: [RUN] [PATH...]. The first is a run if it reads like one (last, @, @N, or at least four
 * characters of an id) and there is one; "./" before a path prevents it. */
int workspace_open(int argc, char **argv, struct workspace *ret, struct pale_err *err) _must_check_;
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

/* A hostile name on stdout: quoted and escaped if it has to be, so that it can't be taken for
 * something else. */
void cli_print_name(const char *s);

/* One entry as a JSON object, appended to b. written: VERDICT_APPLY means that it was applied, not
 * that it can be. */
int overlay_entry_json(struct buf *b, const struct change *c, const struct review_item *item,
		       bool written) _must_check_;
