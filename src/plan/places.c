/* Follows paths as the kernel would, and collects the mounts and links without which they would
 * lead nowhere inside.
 *
 * Runs in the supervisor while it plans, with the caller's privileges. The caller's words (command,
 * PATH, HOME) are trusted; links, and names read from files, may be the work of untrusted code in a
 * workspace, which would like to have ~/.ssh mounted. Against that: a directory is mounted only if
 * it has the marks of a toolchain, never if it is a home directory, a directory of the system, or
 * one that the caller works in; and toolchain.c mounts single files only if they are programs.
 *
 * Everything appears inside at the path it has on the host, for interpreters are full of absolute
 * paths. Links are made as links, not as mounts of what they point to: npm, Python and many scripts
 * find their libraries from where the link leads. */
#include "places.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

#define MAX_HOPS 40 /* as in the kernel */

/* There from the start: the host image, and of /etc what etc.c binds and programs lead through. */
static const char *const image[] = {"/usr",   "/bin",	"/sbin",   "/lib",
				    "/lib32", "/lib64", "/libx32", "/etc/alternatives"};

/* In every box's PATH. */
static const char *const usual[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
				    "/usr/bin",	       "/sbin",		 "/bin"};

/* Never mounted as a whole, wherever the marks of a toolchain turn up. */
static const char *const never[] = {"/",     "/home",  "/root",	   "/etc",     "/var",
				    "/tmp",  "/run",   "/proc",	   "/sys",     "/dev",
				    "/boot", "/mnt",   "/srv",	   "/opt",     "/nix",
				    "/gnu",  "/media", "/var/lib", "/var/tmp", "/usr"};

/* The same below a home directory. */
static const char *const never_home[] = {".local", ".local/share", ".config", ".cache", ".ssh",
					 ".gnupg", ".aws",	   ".kube",   ".docker"};

/* Programs are not taken from these at all. */
static const char *const unseen[] = {"/proc", "/sys", "/dev", "/etc", "/boot"};

bool path_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

void path_dir(const char *path, char ret[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (n == 0)
		n = 1;
	memcpy(ret, path, n);
	ret[n] = '\0';
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int path_join(char ret[static PATH_MAX], const char *a, const char *b)
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(a, "/") == 0 ? "" : a, b);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

bool path_exists(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return path_join(path, dir, name) == 0 && access(path, F_OK) == 0;
}

const char *places_home(struct places *p)
{
	if (!p->have_home) {
		/* HOME=/ is a service's way to say that it has none. */
		if (!p->req->home || *p->req->home != '/' || !realpath(p->req->home, p->home) ||
		    strcmp(p->home, "/") == 0)
			p->home[0] = '\0';
		p->have_home = true;
	}
	return p->home;
}

const char *places_cwd(struct places *p)
{
	if (!p->have_cwd) {
		/* Gone, or not to be read: then nothing lies in it. */
		if (!realpath(p->req->cwd, p->cwd))
			memcpy(p->cwd, "/", 2);
		p->have_cwd = true;
	}
	return p->cwd;
}

_printf_(3, 0) static int fail(struct places *p, int sys, const char *fmt, va_list ap)
{
	char text[sizeof(p->err->message)];

	vsnprintf(text, sizeof(text), fmt, ap);
	err_set(p->err, PALE_E_NOTFOUND, "plan", 0, "%s", text);
	if (p->err)
		p->err->sys = sys;
	return -PALE_E_NOTFOUND;
}

int places_missing(struct places *p, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = fail(p, ENOENT, fmt, ap);
	va_end(ap);
	return r;
}

int places_unusable(struct places *p, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = fail(p, EACCES, fmt, ap);
	va_end(ap);
	return r;
}

const char *places_getenv(struct places *p, const char *name)
{
	size_t n = strlen(name);

	for (char *const *e = p->req->env; e && *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return (*e)[n + 1] ? *e + n + 1 : NULL;
	return NULL;
}

int places_add_dir(struct places *p, const char *dir)
{
	struct toolchain *t = p->out;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (strcmp(dir, usual[i]) == 0)
			return 0;
	for (size_t i = 0; i < t->npath_dirs; i++)
		if (strcmp(t->path_dirs[i], dir) == 0)
			return 0;
	/* A colon would make two entries of it, and the second could be anything. */
	if (t->npath_dirs == TOOLCHAIN_MAX_DIRS || strchr(dir, ':'))
		return 0;
	t->path_dirs[t->npath_dirs] = strdup(dir);
	if (!t->path_dirs[t->npath_dirs])
		return err_nomem(p->err, "plan");
	t->npath_dirs++;
	return 0;
}

int places_add_env(struct places *p, const char *name, const char *value)
{
	struct toolchain *t = p->out;

	for (size_t i = 0; i < t->nenv; i++)
		if (strcmp(t->env[i].name, name) == 0)
			return 0;
	if (t->nenv == TOOLCHAIN_MAX_ENV)
		return 0;
	t->env[t->nenv].name = strdup(name);
	t->env[t->nenv].value = strdup(value);
	if (!t->env[t->nenv].name || !t->env[t->nenv].value) {
		free(t->env[t->nenv].name);
		free(t->env[t->nenv].value);
		return err_nomem(p->err, "plan");
	}
	t->nenv++;
	return 0;
}

bool places_in_image(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(image); i++)
		if (path_beneath(path, image[i]))
			return true;
	return false;
}

bool places_visible(struct places *p, const char *path)
{
	if (places_in_image(path))
		return true;
	for (size_t i = 0; i < p->req->nvisible; i++)
		if (path_beneath(path, p->req->visible[i]))
			return true;
	for (size_t i = 0; i < p->out->nitems; i++) {
		const struct toolchain_item *it = &p->out->items[i];

		if (strcmp(path, it->path) == 0 || (it->directory && path_beneath(path, it->path)))
			return true;
	}
	return false;
}

bool places_hostile(struct places *p, const char *path)
{
	struct stat st;

	if (path_beneath(path, places_cwd(p)) && strcmp(places_cwd(p), "/") != 0)
		return true;
	for (size_t i = 0; i < p->req->nvisible; i++)
		if (path_beneath(path, p->req->visible[i]))
			return true;
	/* Somebody else's, wherever it lies. */
	return lstat(path, &st) < 0 || (st.st_uid != 0 && st.st_uid != geteuid());
}

static int add_item(struct places *p, enum toolchain_type type, bool directory, const char *path,
		    const char *data, const char *why)
{
	struct toolchain *t = p->out;
	struct toolchain_item *it = &t->items[t->nitems];

	if (places_visible(p, path))
		return 0;
	if (t->nitems == TOOLCHAIN_MAX_ITEMS)
		return err_set(p->err, PALE_E_HOST, "plan", 0,
			       "%s needs more than %d mounts; mount its directory with --ro DIR",
			       QUOTED(p->req->command), TOOLCHAIN_MAX_ITEMS);
	*it = (struct toolchain_item){type, directory, strdup(path), strdup(data), strdup(why)};
	t->nitems++; /* also when incomplete, so that toolchain_done() releases it */
	return it->path && it->data && it->why ? 0 : err_nomem(p->err, "plan");
}

static bool never_whole(struct places *p, const char *dir)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (strcmp(dir, never[i]) == 0)
			return true;
	/* Somebody's home, also when it is not the caller's. */
	if (str_starts(dir, "/home/") && !strchr(dir + 6, '/'))
		return true;
	if (*places_home(p)) {
		if (path_beneath(places_home(p), dir))
			return true;
		for (size_t i = 0; i < ARRAY_SIZE(never_home); i++)
			if (path_join(path, places_home(p), never_home[i]) == 0 &&
			    strcmp(path, dir) == 0)
				return true;
	}
	/* Where the caller works lies the caller's work: shown only if the policy says so. */
	return path_beneath(places_cwd(p), dir);
}

/* A toolchain's directory, by what lies in it. All of up to three names must be there. */
static const struct kind {
	const char *name;
	const char *marks[3];
} kinds[] = {
	{"Python virtual environment", {"pyvenv.cfg", "bin"}},
	{"conda environment", {"conda-meta/history"}},
	{"Rust toolchain", {"bin/rustc", "lib/rustlib"}},
	{"Node.js", {"bin/node", "lib/node_modules"}},
	{"Java", {"bin/java", "release", "lib"}},
	{"Go", {"bin/go", "src/runtime"}},
	{"Ruby", {"bin/ruby", "lib/ruby"}},
	{"Perl", {"bin/perl", "lib/perl5"}},
};

/* lib/pythonX.Y/os.py */
static bool is_python(const char *dir)
{
	char path[PATH_MAX];
	DIR *d;
	bool found = false;
	struct dirent *e;

	if ((!path_exists(dir, "bin/python3") && !path_exists(dir, "bin/python")) ||
	    path_join(path, dir, "lib") < 0)
		return false;
	d = opendir(path);
	for (int i = 0; d && !found && i < 4096 && (e = readdir(d)); i++)
		if (str_starts(e->d_name, "python") || str_starts(e->d_name, "pypy")) {
			char os[PATH_MAX];

			found = path_join(os, path, e->d_name) == 0 && path_exists(os, "os.py");
		}
	if (d)
		closedir(d);
	return found;
}

/* bin/ beside lib/, libexec/ or share/: a package unpacked somewhere. */
static bool is_package(struct places *p, const char *dir, const char *path)
{
	char parent[PATH_MAX], up[PATH_MAX];

	path_dir(path, parent);
	path_dir(parent, up);
	if (strcmp(up, dir) != 0 || (strcmp(path_base(parent), "bin") != 0))
		return false;
	/* ~/.cargo, ~/.local, ~/.npm-global: places where many things, tokens among them, are kept.
	 */
	path_dir(dir, up);
	if (*places_home(p) && strcmp(up, places_home(p)) == 0 && *path_base(dir) == '.')
		return false;
	return path_exists(dir, "lib") || path_exists(dir, "libexec") || path_exists(dir, "share");
}

/* Stores that are only understood as a whole: the first n characters of path. */
static size_t outer_root(const char *path, const char **ret_kind)
{
	static const struct {
		const char *dir, *kind;
		bool package; /* one directory below it is mounted */
	} rows[] = {
		{"/nix/store", "Nix store", false},
		{"/gnu/store", "Guix store", false},
		{"/home/linuxbrew/.linuxbrew", "Homebrew", false},
		{"/opt", "package", true},
	};
	const char *at;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = strlen(rows[i].dir);

		if (!path_beneath(path, rows[i].dir) || path[n] != '/')
			continue;
		*ret_kind = rows[i].kind;
		if (!rows[i].package)
			return n;
		at = strchr(path + n + 1, '/');
		return at ? (size_t)(at - path) : 0;
	}
	at = strstr(path, "/node_modules/");
	*ret_kind = "Node.js packages";
	return at ? (size_t)(at - path) + strlen("/node_modules") : 0;
}

const char *places_root(struct places *p, const char *path, char ret_root[static PATH_MAX])
{
	const char *kind;
	size_t n = outer_root(path, &kind);

	if (n) {
		memcpy(ret_root, path, n);
		ret_root[n] = '\0';
		if (!never_whole(p, ret_root))
			return kind;
	}
	path_dir(path, ret_root);
	/* The innermost one: an environment inside the installation it was made from. */
	for (int depth = 0; depth < 16 && strcmp(ret_root, "/") != 0; depth++) {
		char up[PATH_MAX];

		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			bool all = true;

			for (size_t k = 0; k < ARRAY_SIZE(kinds[i].marks) && all; k++)
				all = !kinds[i].marks[k] ||
				      path_exists(ret_root, kinds[i].marks[k]);
			if (all)
				return kinds[i].name;
		}
		if (is_python(ret_root))
			return "Python";
		if (!p->tainted && !never_whole(p, ret_root) && is_package(p, ret_root, path))
			return "package";
		path_dir(ret_root, up);
		memcpy(ret_root, up, strlen(up) + 1);
	}
	return NULL;
}

/* One directory or link of a toolchain. */
static int show_part(struct places *p, const char *root, const char *name, const char *why)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (path_join(path, root, name) < 0 || lstat(path, &st) < 0)
		return 0;
	if (!S_ISLNK(st.st_mode))
		return S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)
			       ? add_item(p, TOOLCHAIN_BIND, S_ISDIR(st.st_mode), path, path, why)
			       : 0;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	return add_item(p, TOOLCHAIN_LINK, false, path, target, why);
}

/* Mounts the toolchain that path belongs to, if there is one; the caller looks whether path is
 * visible then. */
static int show_root(struct places *p, const char *path)
{
	static const char *const parts[] = {"bin",     "lib",	"lib64", "libexec",
					    "include", "share", "etc",	 "pyvenv.cfg"};
	char root[PATH_MAX];
	const char *kind = places_root(p, path, root);
	int r = 0;

	if (!kind)
		return 0;
	if (!never_whole(p, root))
		return add_item(p, TOOLCHAIN_BIND, true, root, root, kind);
	/* A virtual environment that is the working directory itself, or around it: its parts. A
	 * home directory or one of the system is not taken apart either. */
	if (path_beneath(places_cwd(p), root) && strchr(root + 1, '/') &&
	    !(*places_home(p) && path_beneath(places_home(p), root)))
		for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
			r = show_part(p, root, parts[i], kind);
	return r;
}

int places_show(struct places *p, const char *path, const char *why)
{
	struct stat st;
	int r;

	if (places_visible(p, path))
		return 0;
	r = show_root(p, path);
	if (r < 0 || places_visible(p, path))
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(unseen); i++)
		if (path_beneath(path, unseen[i]))
			return err_set(p->err, PALE_E_HOST, "plan", 0,
				       "%s lies in a directory of the host that a box does not "
				       "see; copy it "
				       "elsewhere",
				       QUOTED(path));
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(p->err, PALE_E_HOST, "plan", 0,
			       "%s is no regular file: it is not mounted into a box", QUOTED(path));
	return add_item(p, TOOLCHAIN_BIND, false, path, path, why);
}

int places_show_file(struct places *p, const char *path, const char *why)
{
	return add_item(p, TOOLCHAIN_BIND, false, path, path, why);
}

int places_show_dir(struct places *p, const char *path, const char *why)
{
	return add_item(p, TOOLCHAIN_BIND, true, path, path, why);
}

/* A link that must be there inside. */
static int show_link(struct places *p, const char *path, const char *target, const char *why)
{
	int r;

	if (places_visible(p, path))
		return 0;
	/* What these lead to depends on who looks. */
	if (path_beneath(path, "/proc") || path_beneath(path, "/sys") || path_beneath(path, "/dev"))
		return err_set(p->err, PALE_E_HOST, "plan", 0,
			       "%s is not followed: name what it points to", QUOTED(path));
	r = show_root(p, path);
	if (r < 0 || places_visible(p, path))
		return r;
	return add_item(p, TOOLCHAIN_LINK, false, path, target, why);
}

int places_walk(struct places *p, const char *path, bool named, const char *why, struct walked *ret)
{
	char rest[PATH_MAX * 2], cur[PATH_MAX] = "/";
	bool have_place = false;
	int hops = 0;

	if (*path != '/' || strlen(path) >= PATH_MAX)
		return *path == '/' ? -ENAMETOOLONG : -ENOENT;
	memcpy(rest, path, strlen(path) + 1);
	for (;;) {
		char *at = rest + strspn(rest, "/"), next[PATH_MAX], target[PATH_MAX];
		size_t n = strcspn(at, "/");
		const char *tail = at + n;
		bool last = tail[strspn(tail, "/")] == '\0';
		char name[NAME_MAX + 1];
		struct stat st;
		ssize_t len;

		if (n == 0)
			break;
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, at, n);
		name[n] = '\0';
		memmove(rest, tail, strlen(tail) + 1);
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			path_dir(cur, next);
			memcpy(cur, next, strlen(next) + 1);
			continue;
		}
		if (path_join(next, cur, name) < 0)
			return -ENAMETOOLONG;
		if (lstat(next, &st) < 0)
			return -errno;
		if (last && !have_place) {
			memcpy(ret->path, next, strlen(next) + 1);
			have_place = true;
		}
		if (!S_ISLNK(st.st_mode)) {
			if (!last && !S_ISDIR(st.st_mode))
				return -ENOTDIR;
			memcpy(cur, next, strlen(next) + 1);
			continue;
		}
		if (++hops > MAX_HOPS)
			return -ELOOP;
		len = readlink(next, target, sizeof(target) - 1);
		if (len <= 0)
			return len < 0 ? -errno : -ENOENT;
		target[len] = '\0';
		if (last || !named) {
			int r = show_link(p, next, target, why);

			if (r < 0)
				return -ECANCELED;
			if (places_hostile(p, next))
				p->tainted = true;
		}
		/* What a link says is no longer the caller's word. */
		if (last)
			named = false;
		if ((size_t)len + strlen(rest) + 2 > sizeof(rest) ||
		    (size_t)len + strlen(rest) + 2 > PATH_MAX)
			return -ENAMETOOLONG;
		memmove(rest + len + 1, rest, strlen(rest) + 1);
		memcpy(rest, target, (size_t)len);
		rest[len] = '/';
		if (*target == '/')
			memcpy(cur, "/", 2);
	}
	if (!have_place)
		memcpy(ret->path, cur, strlen(cur) + 1);
	memcpy(ret->real, cur, strlen(cur) + 1);
	return 0;
}
