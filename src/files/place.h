/* One object of a change set into its place on the host: made under a temporary name beside it,
 * given its name by one rename, and what the rename took out compared with what was there before.
 */
#pragma once

#include "files/host.h"
#include "files/journal.h"

#define PLACE_TEMPORARY 40 /* room for a temporary name */

struct place {
	const struct manifest *m;
	bool force; /* over files and links that are not what the run started from */
	struct host_dir dir;
	struct journal journal;
	struct journal_record rec; /* what the journal says */
};

/* All return 0 or a negative errno; -ESTALE: the host changed. i is the entry, parent and name its
 * place. */

/* Makes the object under its temporary name; sync: brought to disk. */
int place_make(struct place *p, size_t i, int parent, const char *name, bool sync) _must_check_;
/* Gives it its name. */
int place_install(struct place *p, size_t i, int parent, const char *name) _must_check_;
/* After a failure of either: removes what was made; what is the host's own gets its place back. */
int place_undo(struct place *p, size_t i, int parent, const char *name) _must_check_;
/* Removes a file, link or empty directory, if it is what the run started from. */
int place_remove(struct place *p, size_t i, int parent, const char *name) _must_check_;

/* Nothing has a temporary name any more: remembered, and written with the next step. */
static inline void place_forget(struct place *p)
{
	p->rec.from = p->rec.to = 0;
}
/* The same, and written at once. */
int place_settle(struct place *p) _must_check_;
/* Undoes what the journal says that a killed apply was at. */
int place_clean(struct place *p) _must_check_;
void place_done(struct place *p);
