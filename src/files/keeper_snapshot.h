/* What was in the writable places of a box at one moment: names, and of files, links and
 * directories what tells whether they changed; with contents, as far as they are kept. In the
 * keeper (keeper.h), which is the only one that has any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "files/keeper.h"

#define SNAPSHOT_NAMES (4u << 20) /* bytes of paths */
#define SNAPSHOT_HOLES (1u << 20) /* bytes of files in which they have no memory */

/* The content of a file, or the target of a link; shared by the snapshots in which it is the same.
 */
struct content {
	unsigned refs;
	size_t len;
	char data[];
};

struct entry {
	uint32_t path; /* in names; relative to its place, "" is the place itself */
	uint16_t place;
	bool whiteout; /* an overlay's: what lies under it is deleted */
	bool opaque;   /* an overlay's directory: nothing of what lies under it is seen */
	bool closed;   /* a directory that could not be read */
	bool racy;     /* it had changed so shortly before that it may change without a trace */
	uint32_t mode;
	uint64_t ino, size;
	uint64_t memory; /* that it takes up */
	int64_t mtime_ns, ctime_ns;
	struct content *content; /* or NULL: not kept, or there is none */
};

struct snapshot {
	struct entry *entries; /* a directory stands before what is in it */
	size_t n, cap;
	struct buf names;
	uint32_t *index; /* open addressing, number + 1 */
	size_t index_cap;
	int why; /* an errno: it is not all; 0: it is */
};

void snapshot_done(struct snapshot *s);
static inline const char *snapshot_path(const struct snapshot *s, const struct entry *e)
{
	return s->names.data + e->path;
}
/* Looks at all places. s is empty. */
void snapshot_take(struct snapshot *s, const struct keeper_place *places, size_t nplaces);
/* len bytes of path; NULL: it has none. */
const struct entry *snapshot_find(const struct snapshot *s, unsigned place, const char *path,
				  size_t len);
/* Is it certainly the same as it was, as far as can be seen? */
bool entry_same(const struct entry *a, const struct entry *b);
/* Takes over the contents that another has of what has not changed since. */
void snapshot_share(struct snapshot *s, const struct snapshot *from);
/* Reads the rest, as long as all contents that there are, in whichever snapshots, are no more than
 * so many bytes. Nobody pays for them, so what the box does not pay for either, holes, counts as if
 * it were there, and only little of it is kept. 0, or an errno that says why not all is. */
int snapshot_keep(struct snapshot *s, const struct keeper_place *places, uint64_t budget);
/* Has the file still this content? */
bool content_is(const struct keeper_place *p, const char *path, const struct content *c);
