/* Which changes are held back: see held.h and the table in held_table.c.
 *
 * Runs in `pale apply` and `pale diff` with the caller's rights; paths and contents are hostile.
 * Names are compared the way the most generous file system would: upper and lower case alike,
 * characters that some ignore left out, so that ".GIT" or ".g<zero-width joiner>it" on such a file
 * system is what it is there. A name held back wrongly costs one argument; one let through may cost
 * the host. */
#include "files/held.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/links.h"

#define CONTENT_MAX \
	((size_t)1 << 20) /* of a package file that is looked into; larger ones are held */

/* ---------------------------------------------------------------- names */

/* The code point at s and its length; bytes that are no UTF-8 stand for themselves. */
static uint32_t code_point(const unsigned char *s, size_t *ret_len)
{
	size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 1;
	uint32_t c = s[0] & (n == 1 ? 0x7fu : 0x7fu >> n);

	if (n == 1 || str_utf8_prefix((const char *)s, strnlen((const char *)s, n)) < n) {
		*ret_len = 1;
		return s[0] < 0x80 ? s[0] : 0xffff;
	}
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	*ret_len = n;
	return c;
}

/* Left out of names by file systems that fold case as Unicode says. */
static bool ignorable(uint32_t c)
{
	return c == 0xad || c == 0x34f || c == 0x61c || (c >= 0x115f && c <= 0x1160) ||
	       (c >= 0x17b4 && c <= 0x17b5) || (c >= 0x180b && c <= 0x180f) ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0x3164 || (c >= 0xfe00 && c <= 0xfe0f) ||
	       c == 0xfeff || c == 0xffa0 || (c >= 0xfff0 && c <= 0xfff8) ||
	       (c >= 0x1bca0 && c <= 0x1bca3) || (c >= 0x1d173 && c <= 0x1d17a) ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

/* Appends path folded, each component preceded by a slash. */
static int fold(struct buf *b, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/"), start;

		if (n == 0) {
			path++;
			continue;
		}
		buf_add(b, "/", 1);
		start = b->len;
		for (size_t i = 0; i < n;) {
			size_t len;
			uint32_t c = code_point((const unsigned char *)path + i, &len);
			char folded = c >= 'A' && c <= 'Z' ? (char)(c + 32)
				      : c == 0x17f	   ? 's'
				      : c == 0x212a	   ? 'k'
							   : 0;

			if (folded)
				buf_add(b, &folded, 1);
			else if (!ignorable(c))
				buf_add(b, path + i, len);
			i += len;
		}
		/* Windows file systems drop them. */
		if (!b->failed && b->len == start)
			buf_add(b, "?", 1); /* a component stays one */
		while (!b->failed && b->len > start + 1 &&
		       (b->data[b->len - 1] == ' ' || b->data[b->len - 1] == '.'))
			b->data[--b->len] = '\0';
		if (!b->failed && strcmp(b->data + start, "git~1") == 0) {
			b->len = start;
			buf_adds(b, ".git");
		}
		path += n;
	}
	return b->failed ? -ENOMEM : 0;
}

/* ---------------------------------------------------------------- patterns */

/* Matches one component of the pattern with one of the path (both up to their slash or end). */
static bool component_matches(const char *pattern, size_t pattern_len, const char *name,
			      size_t name_len)
{
	char p[128], n[256];

	if (pattern_len >= sizeof(p) || name_len >= sizeof(n))
		return false;
	memcpy(p, pattern, pattern_len);
	p[pattern_len] = '\0';
	memcpy(n, name, name_len);
	n[name_len] = '\0';
	return fnmatch(p, n, 0) == 0;
}

/* Whether the pattern fits the folded path from `at` (which is a slash) to its end. own is where
 * the part of the path below the overlaid directory begins: the pattern's own components must reach
 * the last component before it at least, so that a workspace that lies in ~/.claude/worktrees/ is
 * not held back as a whole. prefix: the path is not a directory, and may stand for one (a symbolic
 * link): then it fits too if it is the beginning of what the pattern names. */
static bool fits_at(const char *pattern, const char *path, size_t at, size_t own, bool prefix)
{
	size_t last_parent = own;

	while (last_parent > 0 && path[last_parent - 1] != '/')
		last_parent--;
	for (;;) {
		size_t pn = strcspn(pattern, "/"), n;

		if (pn == 2 && memcmp(pattern, "**", 2) == 0)
			return at >= last_parent && path[at] == '/';
		if (path[at] != '/')
			return false;
		n = strcspn(path + at + 1, "/");
		if (!component_matches(pattern, pn, path + at + 1, n))
			return false;
		at += 1 + n;
		pattern += pn;
		if (*pattern == '/')
			pattern++;
		if (!*pattern)
			return path[at] == '\0';
		if (path[at] == '\0')
			return prefix;
	}
}

static bool fits(const char *pattern, const char *path, size_t own, const char *home, bool prefix)
{
	if (str_starts(pattern, "~/"))
		return home && *home && str_starts(path, home) &&
		       fits_at(pattern + 2, path, strlen(home), own, prefix);
	for (size_t at = 0; path[at]; at++)
		if (path[at] == '/' && (pattern[0] == '*' || pattern[0] == path[at + 1]) &&
		    fits_at(pattern, path, at, own, prefix))
			return true;
	return false;
}

/* ---------------------------------------------------------------- git's own directories */

static const struct held_rule in_git = {
	".git/**", "git",
	"git runs or obeys it (only objects, refs, logs and the like are let through)", 0};
static const struct held_rule git_file = {".git", "git",
					  "git takes its configuration from where it points", 0};
static const struct held_rule leads_out = {
	"", "link", "it is a link that may lead out of the directory; programs follow it", 0};

/* What may change in a git directory without git running or obeying it. */
static const char *const git_data[] = {
	"objects/**",	    "refs/**",	   "logs/**",	 "head",	 "orig_head",
	"fetch_head",	    "merge_head",  "merge_msg",	 "merge_mode",	 "auto_merge",
	"cherry_pick_head", "revert_head", "squash_msg", "packed-refs",	 "index",
	"commit_editmsg",   "description", "shallow",	 "info/exclude", "info/refs",
	"gc.log",	    NULL,
};

/* rest: the folded path below a git directory, beginning with a slash. */
static bool git_data_only(const char *rest, const struct change *c)
{
	if (c->type == TYPE_SYMLINK)
		return false;
	if (strcmp(rest, "/objects/info/alternates") == 0 ||
	    strcmp(rest, "/objects/info/http-alternates") == 0)
		return false;
	if (c->type == TYPE_DIR)
		return true; /* empty: it is made only if something in it is let through */
	for (size_t i = 0; git_data[i]; i++)
		if (fits_at(git_data[i], rest, 0, 0, false))
			return true;
	return false;
}

/* Whether the path will exist when the changes are applied. */
static bool will_exist(const struct held *h, const char *dir, size_t len, const char *name)
{
	_cleanup_buf_ struct buf b = BUF_INIT(WALK_PATH_MAX + 64);
	const struct change *c;
	_cleanup_close_ int fd = -1;

	buf_add(&b, dir, len);
	if (len)
		buf_add(&b, "/", 1);
	buf_adds(&b, name);
	if (b.failed)
		return true;
	c = manifest_find(h->manifest, b.data);
	if (c)
		return c->kind != CHANGE_DELETED && c->kind != CHANGE_REFUSED;
	fd = h->root_fd < 0
		     ? -1
		     : fd_openat2(h->root_fd, b.data, O_PATH | O_NOFOLLOW, 0, RESOLVE_BENEATH);
	return fd >= 0;
}

/* A directory of any name that git would take for a repository when it is used inside it. */
static bool looks_like_git_dir(const struct held *h, const char *dir, size_t len)
{
	return will_exist(h, dir, len, "HEAD") &&
	       ((will_exist(h, dir, len, "objects") && will_exist(h, dir, len, "refs")) ||
		will_exist(h, dir, len, "commondir"));
}

/* Names that git obeys in a repository, wherever it lies. */
static const char *const git_obeyed[] = {
	"config*",   "hooks/**",    "info/**",	       "modules/**", "worktrees/**",
	"commondir", "rebase-*/**", "objects/info/**", NULL,
};

static bool git_obeys(const char *rest)
{
	for (size_t i = 0; git_obeyed[i]; i++)
		if (fits_at(git_obeyed[i], rest, 0, 0, true))
			return true;
	return false;
}

/* Looking into the directories above is quadratic in the depth; nobody's repository lies deeper. */
#define LOOK_DEPTH 64

/* own: where c->path begins in the folded path. */
static const struct held_rule *find_git(const struct held *h, const struct change *c,
					const char *folded, size_t own)
{
	const char *git = NULL, *rest = folded + own;
	size_t raw = 0;

	/* The innermost ".git" decides: .git/modules/x/.git is one too. */
	for (const char *s = folded; (s = strstr(s, "/.git")); s += 5)
		if (s[5] == '/' || !s[5])
			git = s;
	if (git && !git[5])
		return c->type == TYPE_DIR ? NULL : &git_file;
	if (git)
		return git_data_only(git + 5, c) ? NULL : &in_git;
	/* Bare repositories and the like: only what git would obey there, in any directory above.
	 * The components of the folded and of the raw path go in step. */
	for (size_t depth = 0; *rest; depth++) {
		if (git_obeys(rest) && !git_data_only(rest, c) &&
		    (depth > LOOK_DEPTH || looks_like_git_dir(h, c->path, raw)))
			return &in_git;
		rest += 1 + strcspn(rest + 1, "/");
		raw += raw > 0;
		raw += strcspn(c->path + raw, "/");
	}
	return NULL;
}

/* ---------------------------------------------------------------- package files */

/* Top-level keys of package.json and composer.json from which something is run. */
static const char *const script_keys[] = {
	"scripts",    "bin",	  "gypfile",  "husky",		"lint-staged", "simple-git-hooks",
	"pre-commit", "pre-push", "gitHooks", "packageManager", "pnpm",	       "plugins",
	"config",     "autoload", NULL,
};

/* The new content (of the change) or the old (of the host). 0, or negative if it can't be had. */
static int read_new(const struct held *h, const struct change *c, struct buf *b)
{
	char *to;

	if (c->size > CONTENT_MAX)
		return -EFBIG;
	to = buf_room(b, (size_t)c->size);
	if (!to || pread(h->manifest->contents_fd, to, (size_t)c->size, (off_t)c->offset) !=
			   (ssize_t)c->size)
		return -EIO;
	b->len = (size_t)c->size;
	b->data[b->len] = '\0';
	return 0;
}

static int read_old(const struct held *h, const struct change *c, struct buf *b)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (c->base.type != TYPE_FILE)
		return 0;
	fd = h->root_fd < 0 ? -1 : fd_open_beneath(h->root_fd, c->path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EIO;
	return buf_read_fd(b, fd);
}

static bool json_scripts_same(const struct buf *old, const struct buf *new)
{
	json_t *a = old->len ? json_loadb(old->data, old->len, 0, NULL) : json_object();
	json_t *b = json_loadb(new->data ? new->data : "", new->len, 0, NULL);
	bool same = json_is_object(a) && json_is_object(b);

	for (size_t i = 0; same && script_keys[i]; i++) {
		const json_t *x = json_object_get(a, script_keys[i]);
		const json_t *y = json_object_get(b, script_keys[i]);

		same = (!x && !y) || (x && y && json_equal(x, y));
	}
	json_decref(a);
	json_decref(b);
	return same;
}

/* The lines of a TOML text that belong to sections a build is steered by, one after the other. */
static void toml_build_lines(const struct buf *text, struct buf *out)
{
	bool inside = false;

	for (size_t i = 0; i < text->len;) {
		const char *line = text->data + i;
		const char *end = memchr(line, '\n', text->len - i);
		size_t n = end ? (size_t)(end - line) : text->len - i, blank = strspn(line, " \t");

		if (blank < n && line[blank] == '[') {
			const char *name = line + blank + strspn(line + blank, "[ \t\"'");

			inside = str_starts(name, "build-system") || memmem(line, n, "hook", 4) ||
				 memmem(line, n, "script", 6) || memmem(line, n, "build", 5) ||
				 memmem(line, n, "setuptools", 10);
		}
		/* Dotted keys at the top say the same as a section. */
		if (inside ||
		    (blank < n && (str_starts(line + blank, "build-system") ||
				   str_starts(line + blank, "tool.") || line[blank] == '"')))
			buf_add(out, line, n);
		i += n + 1;
	}
}

static bool toml_build_same(const struct buf *old, const struct buf *new)
{
	_cleanup_buf_ struct buf a = BUF_INIT(CONTENT_MAX), b = BUF_INIT(CONTENT_MAX);

	toml_build_lines(old, &a);
	toml_build_lines(new, &b);
	return !a.failed && !b.failed && a.len == b.len &&
	       (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

/* Whether the change of a file that a rule names is harmless after all. */
static bool harmless(const struct held *h, const struct held_rule *rule, const struct change *c)
{
	_cleanup_buf_ struct buf old = BUF_INIT(CONTENT_MAX), new = BUF_INIT(CONTENT_MAX);

	if (rule->check == HELD_ALWAYS || c->type != TYPE_FILE)
		return false;
	if (c->kind == CHANGE_MODE || c->kind == CHANGE_TOUCHED || c->kind == CHANGE_DELETED)
		return true;
	if (read_new(h, c, &new) < 0 || read_old(h, c, &old) < 0)
		return false;
	return rule->check == HELD_JSON_SCRIPTS ? json_scripts_same(&old, &new)
						: toml_build_same(&old, &new);
}

/* ---------------------------------------------------------------- all together */

/* root + "/" + path, folded; *ret_own is where path begins. */
static int folded_path(const struct held *h, const char *path, struct buf *b, size_t *ret_own)
{
	if (fold(b, h->manifest->root) < 0)
		return -ENOMEM;
	*ret_own = b->len;
	if (fold(b, path) < 0 || !b->data)
		return -ENOMEM;
	return 0;
}

const struct held_rule *held_find(const struct held *h, const struct change *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * WALK_PATH_MAX), home = BUF_INIT(WALK_PATH_MAX);
	bool stands_for_dir = c->type == TYPE_SYMLINK;
	const struct held_rule *git;
	size_t own;

	if (folded_path(h, c->path, &b, &own) < 0 || (h->home && fold(&home, h->home) < 0))
		return &in_git; /* out of memory: held back rather than let through */
	git = find_git(h, c, b.data, own);
	if (git)
		return git;
	/* A directory by itself is obeyed by nobody. */
	if (c->type == TYPE_DIR)
		return NULL;
	for (const struct held_rule *r = held_rules; r->pattern; r++)
		if (fits(r->pattern, b.data, own, home.data, stands_for_dir) && !harmless(h, r, c))
			return r;
	if (c->target && (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED) &&
	    link_leads_out(c->path, c->target))
		return &leads_out;
	return NULL;
}

bool held_names_directory(const struct held *h, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * WALK_PATH_MAX), home = BUF_INIT(WALK_PATH_MAX);
	size_t own;

	if (folded_path(h, path, &b, &own) < 0 || (h->home && fold(&home, h->home) < 0))
		return false;
	if (strstr(b.data + own, "/.git/"))
		return true;
	/* As if it held something: "x" fits "x/" + "**" then. */
	buf_adds(&b, "/");
	for (const struct held_rule *r = held_rules; r->pattern && !b.failed; r++)
		if (str_ends(r->pattern, "/**") && fits(r->pattern, b.data, own, home.data, false))
			return true;
	return false;
}
