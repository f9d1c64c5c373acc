/* Differences of contents as text, made by the confined helper pale-patch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "files/host.h"
#include "files/manifest.h"

struct patcher; /* a running helper */

int patcher_start(struct patcher **ret, struct pale_err *err) _must_check_;
void patcher_free(struct patcher *p);
static inline void patcher_freep(struct patcher **p)
{
	patcher_free(*p);
}
#define _cleanup_patcher_ _cleanup_(patcher_freep)

struct patch_stat {
	bool binary;
	bool too_large; /* the contents are beyond what a patch can hold: nothing was made */
	uint64_t added, removed; /* lines */
};

/* Takes the text piece by piece. 0, or negative to stop. */
typedef int patch_sink(void *arg, const char *text, size_t len);

/* The difference that c makes to the host's tree as it is now. With a sink its text as `git apply`
 * takes it, with NULL only the counts. Nothing comes of what a patch cannot say: directories and
 * times. */
int patcher_change(struct patcher *p, const struct manifest *m, struct host_dir *dir,
		   const struct change *c, patch_sink *sink, void *arg, struct patch_stat *ret,
		   struct pale_err *err) _must_check_;
