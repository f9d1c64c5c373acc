/* The keeper's requests: see keeper.h. In the worker in the box, with its rights.
 *
 * It has two snapshots: that of before the execution that runs or ran last, and, when that has been
 * looked at, the one of its end, whose contents are read ahead, while nobody waits: the next
 * execution usually finds nothing else. Even so the places are looked at when it begins: something
 * in the background, or the owner, may have changed them.
 *
 * In an overlay only the upper directory is looked at, which has what the box wrote; what a path
 * was before it was first written there lies under it, on the host.
 *
 * Hostile: what the snapshots hold (keeper_snapshot.h). Requests are the supervisor's. */
#include "files/keeper.h"

#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/inside_tree.h"
#include "files/keeper_impl.h"

static const struct keeper_place *places;
static size_t nplaces;
static struct snapshot before, ahead;
static bool have_before;
static int why_not;	/* an errno: before has not all contents */
static uint64_t budget; /* of contents */

void keeper_begin(const struct keeper_place *p, size_t n)
{
	places = p;
	nplaces = n;
}

/* --- what is at a path -------------------------------------------------------------------------
 */

/* Nothing above it hides what lies under the overlay. */
static bool shines_through(const struct snapshot *s, unsigned place, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct entry *e = snapshot_find(s, place, path, (size_t)(slash - path));

		if (e && (e->whiteout || e->opaque || !S_ISDIR(e->mode)))
			return false;
	}
	return true;
}

struct state keeper_state(const struct keeper_place *p, const struct snapshot *s, unsigned place,
			  const char *path, const struct entry *e)
{
	struct state none = {0};
	struct stat st;

	if (e && e->whiteout)
		return none;
	if (e)
		return (struct state){
			.mode = e->mode, .size = e->size, .mtime_ns = e->mtime_ns, .entry = e};
	if (p->lower_fd < 0 || !shines_through(s, place, path))
		return none;

	_cleanup_close_ int fd =
		tree_open(p->lower_fd, *path ? path : ".", O_PATH | O_NOFOLLOW, 0, TREE_BENEATH);

	if (fd < 0 || fstat(fd, &st) < 0)
		return none;
	return (struct state){
		.mode = st.st_mode,
		.size = (uint64_t)st.st_size,
		.mtime_ns = clock_ns_of(&st.st_mtim),
	};
}

/* --- what has changed --------------------------------------------------------------------------
 */

/* Would somebody who looks at the box say so? */
static bool differs(const struct keeper_change *c, const struct state *was, const struct state *is)
{
	if ((was->mode ^ is->mode) & (S_IFMT | 07777))
		return true;
	if (S_ISDIR(is->mode))
		return false;
	if (was->size != is->size || was->mtime_ns != is->mtime_ns)
		return true;
	/* An overlay's copy of what was only opened. */
	if (!was->entry || !is->entry)
		return false;
	if (!S_ISREG(is->mode) || !c->was->content)
		return !entry_same(c->was, c->is);
	return !content_is(&places[c->place], c->path, c->was->content);
}

static void tell_kind(struct keeper_change *c, const struct snapshot *now)
{
	const struct keeper_place *p = &places[c->place];
	struct state was = keeper_state(p, &before, c->place, c->path, c->was),
		     is = keeper_state(p, now, c->place, c->path, c->is), *shown = &is;

	if (!was.mode && is.mode) {
		c->kind = INSIDE_ADDED;
	} else if (was.mode && !is.mode) {
		c->kind = INSIDE_DELETED;
		shown = &was;
	} else if (was.mode && (differs(c, &was, &is) || (!c->was && c->is->opaque))) {
		/* Or a directory that took the place of one that lies under the overlay. */
		c->kind = INSIDE_CHANGED;
	}
	c->mode = shown->mode;
	c->size = S_ISDIR(shown->mode) ? 0 : shown->size;
}

/* Nothing can be said of what is in a directory that is closed now. */
static bool in_closed(const struct snapshot *s, unsigned place, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct entry *e = snapshot_find(s, place, path, (size_t)(slash - path));

		if (e && e->closed)
			return true;
	}
	return false;
}

static bool unchanged(const struct entry *was, const struct entry *is, const char *path)
{
	if (!was || !entry_same(was, is))
		return false;
	return !was->racy || !was->content || !S_ISREG(was->mode) ||
	       content_is(&places[is->place], path, was->content);
}

static int compare_changes(const void *a, const void *b)
{
	const struct keeper_change *x = a, *y = b;

	return x->place != y->place ? (x->place > y->place) - (x->place < y->place)
				    : strcmp(x->path, y->path);
}

static int compare(const struct snapshot *now, struct keeper_change **ret, size_t *ret_n)
{
	struct keeper_change *list = calloc(before.n + now->n + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < now->n; i++) {
		const struct entry *is = &now->entries[i];
		const char *path = snapshot_path(now, is);
		const struct entry *was = snapshot_find(&before, is->place, path, strlen(path));

		/* Of what was there when nothing was the places themselves are not known. */
		if (unchanged(was, is, path) || (!was && !*path))
			continue;
		list[n] = (struct keeper_change){
			.place = is->place, .path = path, .was = was, .is = is};
		tell_kind(&list[n++], now);
	}
	for (size_t i = 0; i < before.n; i++) {
		const struct entry *was = &before.entries[i];
		const char *path = snapshot_path(&before, was);

		if (snapshot_find(now, was->place, path, strlen(path)))
			continue;
		list[n] = (struct keeper_change){.place = was->place, .path = path, .was = was};
		if (!in_closed(now, was->place, path))
			tell_kind(&list[n], now);
		n++;
	}
	qsort(list, n, sizeof(*list), compare_changes);
	*ret = list;
	*ret_n = n;
	return 0;
}

static void list_changes(const struct keeper_change *list, size_t n, struct inside_answer *a,
			 char *data)
{
	for (size_t i = 0; i < n; i++) {
		const struct keeper_change *c = &list[i];
		const char *top = places[c->place].path;
		size_t top_len = strlen(top), len = strlen(c->path), slash = len > 0;
		struct inside_change r = {
			.kind = c->kind,
			.error = (uint16_t)c->error,
			.mode = c->mode,
			.size = c->size,
			.path_len = (uint32_t)(top_len + slash + len),
		};

		if (!c->kind)
			continue;
		a->total++;
		if (a->count == INSIDE_CHANGES_MAX ||
		    a->length + sizeof(r) + r.path_len > INSIDE_DATA_MAX)
			continue;
		memcpy(data + a->length, &r, sizeof(r));
		a->length += (uint32_t)sizeof(r);
		memcpy(data + a->length, top, top_len);
		memcpy(data + a->length + top_len, "/", slash);
		memcpy(data + a->length + top_len + slash, c->path, len);
		a->length += r.path_len;
		a->count++;
	}
}

/* --- requests ----------------------------------------------------------------------------------
 */

static int keep(const struct inside_request *q, struct inside_answer *a)
{
	struct snapshot now;
	int why;

	snapshot_take(&now, places, nplaces);
	budget = q->offset;
	if (budget) {
		snapshot_share(&now, &ahead);
		snapshot_share(&now, &before);
	}
	/* Their contents would count, too. */
	snapshot_done(&before);
	snapshot_done(&ahead);
	why = budget ? snapshot_keep(&now, places, budget) : now.why;
	before = now;
	have_before = true;
	why_not = budget ? why : ECANCELED;
	a->why = (uint32_t)why;
	return 0;
}

/* An errno that means that there is more than was looked at. */
static bool is_partial(int why)
{
	return why && why != EACCES && why != EPERM;
}

static int look(const struct inside_request *q, struct inside_answer *a, char *data)
{
	struct keeper_change *list;
	size_t n;
	int r;

	if (q->flags & INSIDE_NOTHING) {
		snapshot_done(&before);
		have_before = true;
		why_not = 0;
		budget = q->offset;
	}
	if (q->flags & INSIDE_SINCE && ahead.n) {
		snapshot_done(&before);
		before = ahead;
		ahead = (struct snapshot){0};
		why_not = ECANCELED;
	}
	if (!have_before)
		return -ENODATA;
	if (is_partial(before.why))
		return -before.why;
	snapshot_done(&ahead);
	snapshot_take(&ahead, places, nplaces);
	if (is_partial(ahead.why))
		return -ahead.why;
	r = compare(&ahead, &list, &n);
	if (r < 0)
		return r;
	a->why = (uint32_t)why_not;
	if (q->op == INSIDE_BACK && !why_not) {
		struct back b = {
			.places = places,
			.was = &before,
			.is = &ahead,
			.changes = list,
			.n = n,
			.room = q->room,
		};

		a->why = (uint32_t)keeper_bring_back(&b);
		a->failed = b.failed;
	}
	list_changes(list, n, a, data);
	if (q->op == INSIDE_BACK && !a->why) {
		a->back = a->total;
		for (size_t i = 0; i < n; i++)
			a->back -= list[i].kind && list[i].error;
	}
	free(list);
	return 0;
}

int keeper_handle(const struct inside_request *q, struct inside_answer *a, char *data)
{
	return q->op == INSIDE_KEEP ? keep(q, a) : look(q, a, data);
}

void keeper_after(const struct inside_request *q)
{
	if (q->op != INSIDE_LOOK || !budget || is_partial(ahead.why))
		return;
	snapshot_share(&ahead, &before);
	(void)!snapshot_keep(&ahead, places, budget);
}
