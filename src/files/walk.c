/* Walking hostile trees: see walk.h. Runs in the confined child of capture and collection, and in
 * the command when it looks at the host's side. Raw getdents64 rather than readdir: no hidden
 * state, and names are taken as they are. */
#include "files/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int walk_read_names(int fd, struct buf *names, const char ***ret_sorted, size_t *ret_count)
{
	_cleanup_free_ const char **sorted = NULL;
	_Alignas(struct dirent_raw) char raw[32768];
	size_t count = 0, i = 0;

	for (;;) {
		long n = syscall(SYS_getdents64, fd, raw, sizeof(raw));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (long at = 0; at < n;) {
			const struct dirent_raw *d = (const struct dirent_raw *)(raw + at);

			at += d->reclen;
			if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
				continue;
			if (buf_add(names, d->name, strlen(d->name) + 1) < 0)
				return -ENOMEM;
			count++;
		}
	}
	sorted = calloc(count + 1, sizeof(sorted[0]));
	if (!sorted)
		return -ENOMEM;
	for (const char *s = names->data; i < count; s += strlen(s) + 1)
		sorted[i++] = s;
	qsort(sorted, count, sizeof(sorted[0]), compare_names);
	*ret_count = count;
	*ret_sorted = take_ptr(sorted);
	return 0;
}

int walk_enter(struct walk *w, int fd, int other, unsigned flags, const struct stat *st)
{
	struct walk_level *l;
	int r;

	if (walk_too_long(w)) {
		close_fd(&fd);
		close_fd(&other);
		return -ENAMETOOLONG;
	}
	if (w->depth == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 16;

		l = reallocarray(w->levels, cap, sizeof(*l));
		if (!l) {
			close_fd(&fd);
			close_fd(&other);
			return -ENOMEM;
		}
		w->levels = l;
		w->cap = cap;
	}
	l = &w->levels[w->depth++];
	*l = (struct walk_level){.fd = fd,
				 .other = other,
				 .names = BUF_INIT(WALK_NAMES_MAX),
				 .path_len = w->path_len,
				 .flags = flags,
				 .st = *st};
	r = walk_read_names(fd, &l->names, &l->sorted, &l->count);
	if (r < 0)
		walk_leave(w);
	return r;
}

int walk_next(struct walk *w, struct walk_level **ret_level)
{
	struct walk_level *l = &w->levels[w->depth - 1];
	size_t len, at = l->path_len;

	*ret_level = l;
	w->path_len = at;
	w->path[at] = '\0';
	if (l->next == l->count)
		return 0;
	w->name = l->sorted[l->next++];
	len = strlen(w->name);
	if (at)
		w->path[at++] = '/';
	memcpy(w->path + at, w->name, len + 1);
	w->path_len = at + len;
	return 1;
}

bool walk_leave(struct walk *w)
{
	struct walk_level *l = &w->levels[--w->depth];

	w->path_len = l->path_len;
	w->path[w->path_len] = '\0';
	close_fd(&l->fd);
	close_fd(&l->other);
	free(l->sorted);
	buf_done(&l->names);
	return w->depth > 0;
}

bool walk_has(const struct walk_level *l, const char *name)
{
	return bsearch(&name, l->sorted, l->count, sizeof(l->sorted[0]), compare_names);
}

void walk_done(struct walk *w)
{
	while (w->depth)
		walk_leave(w);
	free(w->levels);
	*w = (struct walk){0};
}
