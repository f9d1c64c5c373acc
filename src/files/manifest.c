/* The manifest of an overlay's changes: see manifest.h.
 *
 * Written in the confined child, read by `pale diff`, `apply` and `discard` with the caller's
 * privileges. It is hostile: the child that wrote it read a hostile tree. So every field is checked
 * for its type and range here, once, and paths can't leave the tree by their text. */
#include "files/manifest.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define META_MAX    65536
#define ENTRIES_MAX ((size_t)1 << 24)

const char *const change_kind_names[CHANGE_KINDS] = {
	[CHANGE_ADDED] = "added",     [CHANGE_MODIFIED] = "modified", [CHANGE_MODE] = "mode",
	[CHANGE_TOUCHED] = "touched", [CHANGE_DELETED] = "deleted",   [CHANGE_REFUSED] = "refused",
};
const char *const change_type_names[TYPES] = {
	[TYPE_NONE] = "none",	    [TYPE_FILE] = "file",   [TYPE_DIR] = "dir",
	[TYPE_SYMLINK] = "symlink", [TYPE_OTHER] = "other",
};

void change_done(struct change *c)
{
	free(c->path);
	free(c->target);
	free(c->links);
	free(c->why);
	*c = (struct change){0};
}

enum change_type change_type_of(mode_t mode)
{
	return S_ISREG(mode)   ? TYPE_FILE
	       : S_ISDIR(mode) ? TYPE_DIR
	       : S_ISLNK(mode) ? TYPE_SYMLINK
			       : TYPE_OTHER;
}

void change_base_from_stat(struct change_base *b, const struct stat *st)
{
	*b = (struct change_base){
		.type = change_type_of(st->st_mode),
		.mode = st->st_mode & 07777,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = clock_ns_of(&st->st_mtim),
		.ctime_ns = clock_ns_of(&st->st_ctim),
	};
}

bool manifest_path_ok(const char *p, size_t len)
{
	size_t from = 0;

	if (len == 0 || len > WALK_PATH_MAX || memchr(p, '\0', len))
		return false;
	for (size_t i = 0; i <= len; i++) {
		size_t n = i - from;

		if (i < len && p[i] != '/')
			continue;
		if (n == 0 || n > 255 || (n == 1 && p[from] == '.') ||
		    (n == 2 && p[from] == '.' && p[from + 1] == '.'))
			return false;
		from = i + 1;
	}
	return true;
}

int manifest_format_bytes(struct buf *b, const char *key, const char *s, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	char *to;

	if (str_utf8_prefix(s, len) < len) {
		buf_addf(b, "\"%s_hex\":\"", key);
		to = buf_room(b, len * 2);
		for (size_t i = 0; to && i < len; i++) {
			to[2 * i] = hex[(unsigned char)s[i] >> 4];
			to[2 * i + 1] = hex[(unsigned char)s[i] & 15];
		}
		if (to)
			b->len += len * 2;
		buf_add(b, "\"", 1);
		return b->failed ? -ENOSPC : 0;
	}
	buf_addf(b, "\"%s\":\"", key);
	for (size_t i = 0, from = 0; i <= len; i++) {
		if (i < len && (unsigned char)s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' &&
		    s[i] != 0x7f)
			continue;
		buf_add(b, s + from, i - from);
		if (i < len)
			buf_addf(b, "\\u%04x", (unsigned char)s[i]);
		from = i + 1;
	}
	buf_add(b, "\"", 1);
	return b->failed ? -ENOSPC : 0;
}

int manifest_format(struct buf *b, const struct change *c)
{
	buf_add(b, "{", 1);
	if (manifest_format_bytes(b, "path", c->path, strlen(c->path)) < 0)
		return -ENOSPC;
	buf_addf(b, ",\"kind\":\"%s\",\"type\":\"%s\"", change_kind_names[c->kind],
		 change_type_names[c->type]);
	if (c->kind != CHANGE_DELETED)
		buf_addf(b, ",\"mode\":%" PRIu32 ",\"mtime_ns\":%" PRId64, c->mode, c->mtime_ns);
	if (c->type == TYPE_FILE && (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED))
		buf_addf(b, ",\"size\":%" PRIu64 ",\"offset\":%" PRIu64, c->size, c->offset);
	if (c->has_sha256)
		buf_addf(b, ",\"sha256\":\"%s\"", c->sha256);
	if (c->target) {
		buf_add(b, ",", 1);
		if (manifest_format_bytes(b, "target", c->target, strlen(c->target)) < 0)
			return -ENOSPC;
	}
	if (c->links) {
		buf_add(b, ",", 1);
		if (manifest_format_bytes(b, "links", c->links, strlen(c->links)) < 0)
			return -ENOSPC;
	}
	if (c->why) {
		buf_add(b, ",", 1);
		if (manifest_format_bytes(b, "why", c->why, strlen(c->why)) < 0)
			return -ENOSPC;
	}
	if (c->base.type != TYPE_NONE)
		buf_addf(b,
			 ",\"base\":{\"type\":\"%s\",\"mode\":%" PRIu32 ",\"dev\":%" PRId64
			 ",\"ino\":%" PRId64 ",\"size\":%" PRIu64 ",\"mtime_ns\":%" PRId64
			 ",\"ctime_ns\":%" PRId64 "}",
			 change_type_names[c->base.type], c->base.mode, (int64_t)c->base.dev,
			 (int64_t)c->base.ino, c->base.size, c->base.mtime_ns, c->base.ctime_ns);
	buf_add(b, "}\n", 2);
	return b->failed ? -ENOSPC : 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A string of bytes under key or key_hex, without NUL, owned by the caller. 0, -ENOENT, -EINVAL. */
static int get_bytes(const json_t *o, const char *key, size_t max, char **ret)
{
	char hex_key[32];
	const json_t *v = json_object_get(o, key);
	const char *s;
	size_t len;
	char *out;

	if (v) {
		s = json_string_value(v);
		len = json_string_length(v);
		if (!s || len > max || memchr(s, '\0', len))
			return -EINVAL;
		*ret = strdup(s);
		return *ret ? 0 : -ENOMEM;
	}
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	v = json_object_get(o, hex_key);
	if (!v)
		return -ENOENT;
	s = json_string_value(v);
	len = json_string_length(v);
	if (!s || len % 2 || len / 2 > max)
		return -EINVAL;
	out = malloc(len / 2 + 1);
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < len / 2; i++) {
		int high = hex_digit(s[2 * i]), low = hex_digit(s[2 * i + 1]);

		if (high < 0 || low < 0 || (high == 0 && low == 0)) {
			free(out);
			return -EINVAL;
		}
		out[i] = (char)(high << 4 | low);
	}
	out[len / 2] = '\0';
	*ret = out;
	return 0;
}

int manifest_get_path(const json_t *o, char **ret)
{
	char *path = NULL;
	int r = get_bytes(o, "path", WALK_PATH_MAX, &path);

	if (r == 0 && !manifest_path_ok(path, strlen(path)))
		r = -EINVAL;
	if (r < 0)
		free(path);
	else
		*ret = path;
	return r;
}

static int get_name(const json_t *o, const char *key, const char *const *names, int count, int *ret)
{
	const char *s = json_string_value(json_object_get(o, key));

	for (int i = 0; s && i < count; i++)
		if (strcmp(s, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

/* An absent number is 0. */
static int get_i64(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret)
{
	const json_t *v = json_object_get(o, key);

	*ret = 0;
	if (!v)
		return 0;
	if (!json_is_integer(v))
		return -EINVAL;
	*ret = (int64_t)json_integer_value(v);
	return *ret < min || *ret > max ? -EINVAL : 0;
}

static int get_mode(const json_t *o, uint32_t *ret)
{
	int64_t v;
	int r = get_i64(o, "mode", 0, 07777, &v);

	*ret = (uint32_t)v;
	return r;
}

static int parse_base(const json_t *o, struct change_base *b)
{
	int64_t dev, ino, size;
	int type;

	if (!json_is_object(o) || get_name(o, "type", change_type_names, TYPES, &type) < 0 ||
	    get_mode(o, &b->mode) < 0 || get_i64(o, "dev", INT64_MIN, INT64_MAX, &dev) < 0 ||
	    get_i64(o, "ino", INT64_MIN, INT64_MAX, &ino) < 0 ||
	    get_i64(o, "size", 0, INT64_MAX, &size) < 0 ||
	    get_i64(o, "mtime_ns", INT64_MIN, INT64_MAX, &b->mtime_ns) < 0 ||
	    get_i64(o, "ctime_ns", INT64_MIN, INT64_MAX, &b->ctime_ns) < 0)
		return -EINVAL;
	b->type = (enum change_type)type;
	b->dev = (uint64_t)dev;
	b->ino = (uint64_t)ino;
	b->size = (uint64_t)size;
	return 0;
}

static int parse_sha256(const json_t *o, struct change *c)
{
	const json_t *v = json_object_get(o, "sha256");
	const char *s = json_string_value(v);

	if (!v)
		return 0;
	if (!s || strlen(s) != 64 || strspn(s, "0123456789abcdef") != 64)
		return -EINVAL;
	memcpy(c->sha256, s, 65);
	c->has_sha256 = true;
	return 0;
}

/* Fields one by one; the name of the first that is wrong, or NULL. */
static const char *parse_fields(const json_t *o, struct change *c, int *ret)
{
	int64_t size, offset;
	int kind, type, r;
	const json_t *base = json_object_get(o, "base");

	*ret = -EINVAL;
	r = manifest_get_path(o, &c->path);
	if (r < 0) {
		*ret = r == -ENOMEM ? r : -EINVAL;
		return "path";
	}
	if (get_name(o, "kind", change_kind_names, CHANGE_KINDS, &kind) < 0)
		return "kind";
	if (get_name(o, "type", change_type_names, TYPES, &type) < 0)
		return "type";
	c->kind = (enum change_kind)kind;
	c->type = (enum change_type)type;
	if (c->type == TYPE_NONE ||
	    (c->type == TYPE_OTHER && c->kind != CHANGE_REFUSED && c->kind != CHANGE_DELETED))
		return "type";
	if (get_mode(o, &c->mode) < 0)
		return "mode";
	if (get_i64(o, "mtime_ns", INT64_MIN, INT64_MAX, &c->mtime_ns) < 0)
		return "mtime_ns";
	if (get_i64(o, "size", 0, INT64_MAX, &size) < 0)
		return "size";
	if (get_i64(o, "offset", 0, INT64_MAX, &offset) < 0 || size > INT64_MAX - offset)
		return "offset";
	c->size = (uint64_t)size;
	c->offset = (uint64_t)offset;
	if (parse_sha256(o, c) < 0)
		return "sha256";
	r = get_bytes(o, "target", MANIFEST_TARGET_MAX, &c->target);
	if ((r < 0 && r != -ENOENT) || (c->target && !*c->target) ||
	    (!c->target && c->type == TYPE_SYMLINK &&
	     (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED)))
		return "target";
	r = get_bytes(o, "links", WALK_PATH_MAX, &c->links);
	if (r < 0 && r != -ENOENT)
		return "links";
	r = get_bytes(o, "why", 512, &c->why);
	if (r < 0 && r != -ENOENT)
		return "why";
	if (base && parse_base(base, &c->base) < 0)
		return "base";
	if (c->kind == CHANGE_DELETED && c->base.type == TYPE_NONE)
		return "base";
	*ret = 0;
	return NULL;
}

int manifest_parse(const char *line, size_t len, struct change *ret, struct pale_err *err)
{
	json_error_t error;
	json_t *o;
	const char *wrong;
	int r;

	*ret = (struct change){0};
	if (len > MANIFEST_LINE_MAX)
		return err_set(err, PALE_E_SYSTEM, "files", 0,
			       "a line of the manifest is too long");
	o = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(o)) {
		json_decref(o);
		return err_set(err, PALE_E_SYSTEM, "files", 0,
			       "a line of the manifest is not JSON");
	}
	wrong = parse_fields(o, ret, &r);
	json_decref(o);
	if (!wrong)
		return 0;
	change_done(ret);
	if (r == -ENOMEM)
		return err_nomem(err, "files");
	return err_set(err, PALE_E_SYSTEM, "files", 0, "a line of the manifest has a wrong \"%s\"",
		       wrong);
}

static int add_entry(struct manifest *m, struct change *c)
{
	if (m->count == ENTRIES_MAX)
		return -ENOSPC;
	if (m->count == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 64;
		struct change *grown = reallocarray(m->entries, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->entries = grown;
		m->cap = cap;
	}
	m->entries[m->count++] = *c;
	*c = (struct change){0};
	return 0;
}

/* By path, a directory before what is in it: '/' sorts before every other byte. */
static int compare_paths(const char *a, const char *b)
{
	for (;; a++, b++) {
		unsigned char x = (unsigned char)*a, y = (unsigned char)*b;

		if (x == y && x)
			continue;
		if (x == y)
			return 0;
		if (!x || !y)
			return x ? 1 : -1;
		if (x == '/' || y == '/')
			return x == '/' ? -1 : 1;
		return x < y ? -1 : 1;
	}
}

static int compare_entries(const void *a, const void *b)
{
	return compare_paths(((const struct change *)a)->path, ((const struct change *)b)->path);
}

struct change *manifest_find(const struct manifest *m, const char *path)
{
	struct change key = {.path = (char *)(uintptr_t)path};

	return m->count ? bsearch(&key, m->entries, m->count, sizeof(key), compare_entries) : NULL;
}

static int load_meta(int dir_fd, struct manifest *m, struct pale_err *err)
{
	_cleanup_close_ int fd = fd_open_beneath(dir_fd, "meta.json", O_RDONLY, 0);
	_cleanup_buf_ struct buf b = BUF_INIT(META_MAX);
	int64_t dev, ino;
	json_t *o;
	int r;

	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -fd, "opening the changes' meta.json");
	r = buf_read_fd(&b, fd);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r, "reading the changes' meta.json");
	o = json_loadb(b.data ? b.data : "", b.len, JSON_REJECT_DUPLICATES, NULL);
	r = !json_is_object(o) || get_bytes(o, "root", META_MAX, &m->root) < 0 ||
	    m->root[0] != '/' || get_bytes(o, "path", META_MAX, &m->path) < 0 ||
	    get_i64(o, "dev", INT64_MIN, INT64_MAX, &dev) < 0 ||
	    get_i64(o, "ino", INT64_MIN, INT64_MAX, &ino) < 0 ||
	    get_i64(o, "started_ns", INT64_MIN, INT64_MAX, &m->started_ns) < 0;
	json_decref(o);
	if (r)
		return err_set(err, PALE_E_SYSTEM, "files", 0, "the changes' meta.json is damaged");
	m->root_dev = (uint64_t)dev;
	m->root_ino = (uint64_t)ino;
	return 0;
}

static int load_lines(FILE *f, struct manifest *m, struct pale_err *err)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int r;

	while ((n = getline(&line, &room, f)) > 0) {
		struct change c;

		if (line[n - 1] != '\n')
			return err_set(err, PALE_E_SYSTEM, "files", 0, "the manifest is cut short");
		r = manifest_parse(line, (size_t)n - 1, &c, err);
		if (r < 0)
			return r;
		if (add_entry(m, &c) < 0) {
			change_done(&c);
			return err_nomem(err, "files");
		}
	}
	return ferror(f) ? err_set(err, PALE_E_SYSTEM, "files", errno, "reading the manifest") : 0;
}

int manifest_load(int dir_fd, struct manifest *ret, struct pale_err *err)
{
	_cleanup_manifest_ struct manifest m = {.contents_fd = -1};
	_cleanup_file_ FILE *f = NULL;
	struct stat st;
	int r = load_meta(dir_fd, &m, err), fd;

	if (r < 0)
		return r;
	m.contents_fd = fd_open_beneath(dir_fd, "contents", O_RDONLY, 0);
	if (m.contents_fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -m.contents_fd,
			       "opening the changes' contents");
	fd = fd_open_beneath(dir_fd, "manifest.jsonl", O_RDONLY, 0);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -fd, "opening the changes' manifest");
	/* Also the bound on getline(), which takes what a line holds. */
	if (fstat(fd, &st) < 0 || st.st_size > (off_t)MANIFEST_BYTES_MAX) {
		close(fd);
		return err_set(err, PALE_E_SYSTEM, "files", 0, "the manifest is too large");
	}
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return err_nomem(err, "files");
	}
	r = load_lines(f, &m, err);
	if (r < 0)
		return r;
	if (m.count)
		qsort(m.entries, m.count, sizeof(m.entries[0]), compare_entries);
	for (size_t i = 1; i < m.count; i++)
		if (strcmp(m.entries[i - 1].path, m.entries[i].path) == 0)
			return err_set(err, PALE_E_SYSTEM, "files", 0,
				       "the manifest names %s twice", QUOTED(m.entries[i].path));
	*ret = m;
	m = (struct manifest){.contents_fd = -1};
	return 0;
}

void manifest_done(struct manifest *m)
{
	for (size_t i = 0; i < m->count; i++)
		change_done(&m->entries[i]);
	free(m->entries);
	free(m->root);
	free(m->path);
	close_fd(&m->contents_fd);
	*m = (struct manifest){.contents_fd = -1};
}

int manifest_write_meta(int dir_fd, const struct manifest *m, struct pale_err *err)
{
	_cleanup_close_ int fd =
		fd_open_beneath(dir_fd, "meta.json", O_WRONLY | O_CREAT | O_EXCL, 0600);
	_cleanup_buf_ struct buf b = BUF_INIT(META_MAX);
	int r;

	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -fd, "making the changes' meta.json");
	buf_add(&b, "{", 1);
	if (manifest_format_bytes(&b, "root", m->root, strlen(m->root)) < 0)
		return err_nomem(err, "files");
	buf_add(&b, ",", 1);
	if (manifest_format_bytes(&b, "path", m->path, strlen(m->path)) < 0)
		return err_nomem(err, "files");
	buf_addf(&b, ",\"dev\":%" PRId64 ",\"ino\":%" PRId64 ",\"started_ns\":%" PRId64 "}\n",
		 (int64_t)m->root_dev, (int64_t)m->root_ino, m->started_ns);
	if (b.failed)
		return err_nomem(err, "files");
	r = fd_write_all(fd, b.data, b.len);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r, "writing the changes' meta.json");
	return 0;
}
