/* pale-patch: turns contents into the text of a patch, as `git apply` takes it.
 *
 * A program of its own, started by `pale diff` with a socket as descriptor 0 and nothing else. It
 * parses hostile bytes with a large library (libgit2), so it has nothing to lose: before the first
 * byte is read it allows itself only memory, reading, writing and the end (worker_lock_compute()).
 * Names and modes of the patch are written here; libgit2 sees contents only. */
#include <git2.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/fd.h"
#include "files/patch_wire.h"
#include "files/worker.h"

/* As git quotes names: C escapes, octal for bytes beyond ASCII; only if there is a need. */
static void add_name(struct buf *b, const char *prefix, const char *name, bool tab)
{
	static const char named[] = "\aa\bb\tt\nn\vv\ff\rr\"\"\\\\";
	bool quote = false;

	for (const char *s = name; *s; s++)
		quote |= (unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f || *s == '"' ||
			 *s == '\\' ||
			 /* Unlike git: its apply loses blanks at the edges of unquoted names. */
			 (*s == ' ' && (s == name || s[-1] == '/' || s[1] == '/' || !s[1]));
	if (!quote) {
		buf_adds(b, prefix);
		buf_adds(b, name);
		/* Without it a name that ends in blanks would be cut. */
		if (tab && strchr(name, ' '))
			buf_adds(b, "\t");
		return;
	}
	buf_addf(b, "\"%s", prefix);
	for (const char *s = name; *s; s++) {
		const char *k = NULL;

		for (size_t i = 0; i + 1 < sizeof(named) - 1; i += 2)
			if (named[i] == *s)
				k = &named[i + 1];
		if (k)
			buf_addf(b, "\\%c", *k);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
			buf_addf(b, "\\%03o", (unsigned char)*s);
		else
			buf_add(b, s, 1);
	}
	buf_adds(b, "\"");
}

static int add_header(struct buf *b, const struct patch_request *q, const char *path,
		      const char *old, const char *new, bool differ)
{
	char old_id[GIT_OID_HEXSZ + 1] = {0}, new_id[GIT_OID_HEXSZ + 1] = {0};
	git_oid oid;

	buf_adds(b, "diff --git ");
	add_name(b, "a/", path, false);
	buf_adds(b, " ");
	add_name(b, "b/", path, false);
	buf_adds(b, "\n");
	if (!q->old_mode)
		buf_addf(b, "new file mode %o\n", q->new_mode);
	else if (!q->new_mode)
		buf_addf(b, "deleted file mode %o\n", q->old_mode);
	else if (q->old_mode != q->new_mode)
		buf_addf(b, "old mode %o\nnew mode %o\n", q->old_mode, q->new_mode);
	if (!differ && q->old_mode && q->new_mode)
		return 0;
	memset(&oid, 0, sizeof(oid));
	if (q->old_mode && git_odb_hash(&oid, old, (size_t)q->old_len, GIT_OBJECT_BLOB) < 0)
		return -1;
	git_oid_nfmt(old_id, sizeof(old_id), &oid);
	memset(&oid, 0, sizeof(oid));
	if (q->new_mode && git_odb_hash(&oid, new, (size_t)q->new_len, GIT_OBJECT_BLOB) < 0)
		return -1;
	git_oid_nfmt(new_id, sizeof(new_id), &oid);
	buf_addf(b, "index %.40s..%.40s", old_id, new_id);
	if (q->old_mode && q->old_mode == q->new_mode)
		buf_addf(b, " %o", q->new_mode);
	buf_adds(b, "\n");
	return 0;
}

static void add_file_lines(struct buf *b, const struct patch_request *q, const char *path)
{
	buf_adds(b, "--- ");
	if (q->old_mode)
		add_name(b, "a/", path, true);
	else
		buf_adds(b, "/dev/null");
	buf_adds(b, "\n+++ ");
	if (q->new_mode)
		add_name(b, "b/", path, true);
	else
		buf_adds(b, "/dev/null");
	buf_adds(b, "\n");
}

static int add_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
		    const git_diff_line *line, void *arg)
{
	struct buf *b = arg;

	(void)delta;
	(void)hunk;
	if (line->origin == GIT_DIFF_LINE_FILE_HDR)
		return 0;
	if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
	    line->origin == GIT_DIFF_LINE_DELETION)
		buf_add(b, &line->origin, 1);
	buf_add(b, line->content, line->content_len);
	return b->failed ? -1 : 0;
}

/* The answer to one request; the text goes into out. */
static int diff(const struct patch_request *q, const char *path, const char *old, const char *new,
		struct patch_answer *a, struct buf *out)
{
	git_diff_options o = GIT_DIFF_OPTIONS_INIT;
	bool differ = q->old_len != q->new_len || memcmp(old, new, (size_t)q->old_len) != 0;
	bool binary = q->old_len > PATCH_TEXT_MAX || q->new_len > PATCH_TEXT_MAX ||
		      memchr(old, 0, (size_t)q->old_len) || memchr(new, 0, (size_t)q->new_len);
	git_patch *patch = NULL;
	size_t added = 0, removed = 0;
	int r = 0;

	o.flags = GIT_DIFF_SHOW_BINARY | (binary ? GIT_DIFF_FORCE_BINARY : GIT_DIFF_FORCE_TEXT);
	a->binary = binary;
	if (q->want == PATCH_WANT_TEXT && add_header(out, q, path, old, new, differ) < 0)
		return -1;
	if (!differ || (binary && q->want == PATCH_WANT_STAT))
		return 0;
	/* An empty buffer, not NULL: that would be "no file" to libgit2, and /dev/null in its
	 * names. */
	if (git_patch_from_buffers(&patch, old, (size_t)q->old_len, "file", new, (size_t)q->new_len,
				   "file", &o) < 0)
		return -1;
	if (!binary && git_patch_line_stats(NULL, &added, &removed, patch) < 0)
		r = -1;
	a->added = added;
	a->removed = removed;
	if (r == 0 && q->want == PATCH_WANT_TEXT) {
		if (!binary)
			add_file_lines(out, q, path);
		r = git_patch_print(patch, add_line, out);
	}
	git_patch_free(patch);
	return r < 0 || out->failed ? -1 : 0;
}

/* len bytes and a NUL; NULL if they don't come. */
static char *read_block(uint64_t len)
{
	char *data = malloc((size_t)len + 1);

	if (!data)
		return NULL;
	if (fd_read_full(0, data, (size_t)len) != (ssize_t)len) {
		free(data);
		return NULL;
	}
	data[len] = '\0';
	return data;
}

static int serve(const struct patch_request *q)
{
	_cleanup_free_ char *path = read_block(q->path_len),
			    *old = path ? read_block(q->old_len) : NULL;
	_cleanup_free_ char *new = old ? read_block(q->new_len) : NULL;
	_cleanup_buf_ struct buf out = BUF_INIT(PATCH_OUT_MAX);
	struct patch_answer a = {.magic = PATCH_MAGIC};

	if (!new || diff(q, path, old, new, &a, &out) < 0)
		return -1;
	a.len = out.len;
	if (fd_write_all(0, &a, sizeof(a)) < 0)
		return -1;
	return out.len && fd_write_all(0, out.data, out.len) < 0 ? -1 : 0;
}

int main(void)
{
	struct rlimit cpu = {600, 600};
	struct patch_request q;
	int r;

	if (git_libgit2_init() < 0 || setrlimit(RLIMIT_CPU, &cpu) < 0)
		return 1;
	r = worker_lock_compute();
	if (r < 0) {
		fprintf(stderr, "pale-patch: confining itself: %s\n", strerror(-r));
		return 1;
	}
	for (;;) {
		ssize_t n = fd_read_full(0, &q, sizeof(q));

		if (n == 0)
			return 0;
		if (n != (ssize_t)sizeof(q) || q.magic != PATCH_MAGIC ||
		    q.path_len > PATCH_PATH_MAX || q.old_len > PATCH_SIDE_MAX ||
		    q.new_len > PATCH_SIDE_MAX)
			return 1;
		if (serve(&q) < 0)
			return 1;
	}
}
