/* Finds what a command needs to run inside: see toolchain.h.
 *
 * Runs in the supervisor while it plans, with the caller's privileges. Follows what the kernel, the
 * shell and the loader would do: $PATH, links, #! lines (also of interpreters, and through env),
 * the loader and libraries of an ELF program, the installation behind a virtual environment.
 * Programs in /usr, the usual case, cost a dozen system calls and yield nothing.
 *
 * Hostile: the content of every file that untrusted code may have written (places.h, `tainted`).
 * Its aim would be to have something of the caller's mounted: a #! line that names
 * ~/.ssh/id_ed25519, a RUNPATH of ~/private, a link. So a single file is mounted only if it is an
 * executable program or, for the loader, a shared library near the program, and a directory only
 * with a toolchain's marks. */
#include "toolchain.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "plan/elf.h"
#include "plan/places.h"
#include "plan/shims.h"

#define MAX_DEPTH 8   /* interpreters of interpreters, shims; the kernel allows five */
#define LINE_MAX_ 255 /* of a #! line, as in the kernel */
#define MAX_LIBS  64

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int resolve(struct places *p, const char *path, bool named, const char *user, int depth,
		   char ret[static PATH_MAX]);

/* "interpreter of /x/y", for the plan. */
static const char *purpose(char out[static 192], const char *user)
{
	if (user) {
		char name[160];

		snprintf(out, 192, "needed by %s",
			 str_escape_into(name, sizeof(name), user, strlen(user)));
	} else {
		snprintf(out, 192, "the command");
	}
	return out;
}

/* Looks a name up as execvp(3) does: the directories that will stand first in the box's PATH, then
 * the caller's. Relative entries count from the working directory. */
static int search(struct places *p, const char *name, const char *user, int depth,
		  char ret[static PATH_MAX])
{
	const char *at = p->req->path_env ? p->req->path_env : DEFAULT_PATH;
	char dir[PATH_MAX], path[PATH_MAX], refused[PATH_MAX] = "";
	size_t front = 0;

	while (front < p->out->npath_dirs || at) {
		struct stat st;
		int r;

		if (front < p->out->npath_dirs) {
			r = path_join(path, p->out->path_dirs[front++], name);
		} else {
			size_t n = strcspn(at, ":");

			r = *at == '/' ? snprintf(dir, sizeof(dir), "%.*s", (int)n, at)
				       : snprintf(dir, sizeof(dir), "%s/%.*s", places_cwd(p),
						  (int)n, at);
			r = r < 0 || r >= (int)sizeof(dir) ? -ENAMETOOLONG
							   : path_join(path, dir, name);
			at = at[n] ? at + n + 1 : NULL;
		}
		if (r < 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (access(path, X_OK) < 0) {
			memcpy(refused, path, strlen(path) + 1);
			continue;
		}
		r = resolve(p, path, true, user, depth, ret);
		if (r != 2)
			return r;
	}
	if (*refused)
		return places_unusable(p, "%s is not executable (chmod +x)", QUOTED(refused));
	if (user)
		return places_missing(p, "%s wants %s, which is not in $PATH", QUOTED(user),
				      QUOTED(name));
	places_missing(p, "command not found: %s is not in $PATH", QUOTED(name));
	if (path_exists(places_cwd(p), name))
		err_add(p->err, "; for the file in the working directory say ./%s",
			path_base(name));
	else if (strchr(name, '.'))
		err_add(p->err, ", and there is no such file in %s", QUOTED(places_cwd(p)));
	return -PALE_E_NOTFOUND;
}

/* The interpreter of "#!/usr/bin/env [-S] [-i] [NAME=value] NAME ...". */
static int env_interpreter(struct places *p, const char *args, const char *user, int depth)
{
	char word[LINE_MAX_ + 1], found[PATH_MAX];
	bool split = false;

	for (const char *at = args; *at;) {
		size_t n;

		at += strspn(at, " \t\"'");
		n = strcspn(at, " \t\"'");
		if (n == 0)
			break;
		memcpy(word, at, n);
		word[n] = '\0';
		at += n;
		if (str_starts(word, "-S") || str_starts(word, "-vS")) {
			/* -Sname is one word. */
			split = true;
			at -= n - (word[1] == 'v' ? 3 : 2);
		} else if (str_starts(word, "--split-string=")) {
			split = true;
			at -= n - strlen("--split-string=");
		} else if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0) {
			at += strspn(at, " \t");
			at += strcspn(at, " \t");
		} else if (*word != '-' && !strchr(word, '=')) {
			if (*word == '/')
				return resolve(p, word, false, user, depth, found);
			if (strchr(word, '/'))
				return places_unusable(p, "%s: a relative interpreter, %s",
						       QUOTED(user), QUOTED(word));
			/* Without -S the kernel hands the rest of the line over as one word. */
			if (!split && at[strspn(at, " \t")])
				return places_missing(
					p,
					"%s: env is asked for a program called %s; it takes env -S",
					QUOTED(user), QUOTED(args));
			return search(p, word, user, depth, found);
		}
	}
	return 0; /* env alone: prints the environment */
}

/* `'''exec' "/long/path/python" "$0" "$@"`: what pip and others write after #!/bin/sh where the
 * path of the interpreter is too long for a #! line, or has a blank. */
static int shell_exec_line(struct places *p, const char *line, const char *user, int depth)
{
	static const char mark[] = "'''exec' ";
	char path[PATH_MAX], found[PATH_MAX];
	const char *end;

	if (!str_starts(line, mark))
		return 0;
	line += strlen(mark);
	end = *line == '"' ? strchr(line + 1, '"') : line + strcspn(line, " \n");
	if (*line == '"')
		line++;
	if (!end || *line != '/' || (size_t)(end - line) >= sizeof(path))
		return 0;
	memcpy(path, line, (size_t)(end - line));
	path[end - line] = '\0';
	return resolve(p, path, false, user, depth, found);
}

static int shebang(struct places *p, const char *head, const char *user, int depth)
{
	char line[LINE_MAX_ + 1], found[PATH_MAX];
	const char *args, *next = strchr(head, '\n');
	size_t n = strcspn(head, "\n");
	char *at;
	int r;

	if (n > LINE_MAX_)
		return places_unusable(p, "%s: its #! line is longer than %d bytes", QUOTED(user),
				       LINE_MAX_);
	memcpy(line, head, n);
	line[n] = '\0';
	while (n > 2 && strchr(" \t", line[n - 1]))
		line[--n] = '\0';
	/* A script with Windows line ends asks for an interpreter whose name ends in \r. */
	if (n > 2 && line[n - 1] == '\r')
		return places_missing(
			p, "%s: its #! line ends in a carriage return (Windows line ends)",
			QUOTED(user));
	at = line + 2;
	at += strspn(at, " \t");
	n = strcspn(at, " \t");
	args = at[n] ? at + n + 1 : "";
	args += strspn(args, " \t");
	at[n] = '\0';
	if (*at != '/')
		return places_unusable(p, "%s: its #! line has no absolute path", QUOTED(user));
	r = resolve(p, at, false, user, depth, found);
	if (r < 0)
		return r;
	if (strcmp(path_base(at), "env") == 0)
		return env_interpreter(p, args, user, depth);
	if (next && strcmp(path_base(at), "sh") == 0)
		return shell_exec_line(p, next + 1, user, depth);
	return 0;
}

/* A library may be shown if untrusted code could not have pointed us at it, or if it lies near the
 * program: beside it, in a directory next to that, or below the working directory. */
static bool library_allowed(struct places *p, const char *program, const char *lib)
{
	char dir[PATH_MAX], up[PATH_MAX], root[PATH_MAX];

	if (!p->tainted || places_visible(p, lib) || places_root(p, lib, root))
		return true;
	path_dir(program, dir);
	if (strcmp(dir, "/") != 0 && path_beneath(lib, dir))
		return true;
	path_dir(dir, up);
	if (path_beneath(lib, up) && strcmp(up, "/") != 0 && strcmp(up, "/home") != 0 &&
	    !(*places_home(p) && path_beneath(places_home(p), up)) && !path_beneath("/tmp", up) &&
	    !path_beneath("/var/tmp", up))
		return true;
	return path_beneath(lib, places_cwd(p)) &&
	       !(*places_home(p) && path_beneath(places_home(p), places_cwd(p))) &&
	       strcmp(places_cwd(p), "/") != 0;
}

/* Opens an ELF file. A descriptor, or negative. */
static int open_elf(const char *path, struct elf_info *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	r = elf_read(fd, ret);
	return r < 0 ? r : take_fd(&fd);
}

/* One directory of a RUNPATH, with $ORIGIN replaced. */
static bool search_dir(const char *word, size_t len, const char *origin, char ret[static PATH_MAX])
{
	static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (len >= n && strncmp(word, names[i], n) == 0 && !memchr(word + n, '$', len - n))
			return snprintf(ret, PATH_MAX, "%s%.*s", origin, (int)(len - n), word + n) <
			       PATH_MAX;
	}
	return len && *word == '/' && !memchr(word, '$', len) &&
	       snprintf(ret, PATH_MAX, "%.*s", (int)len, word) < PATH_MAX;
}

/* Finds one needed library along a search path. 1: found and not visible yet, its path stored;
 * 0: found in the image, or not at all (the loader's own directories lie in the image). */
static int find_library(struct places *p, const char *program, const char *name, const char *paths,
			const char *origin, char ret[static PATH_MAX])
{
	for (const char *at = paths; at && *at;) {
		size_t n = strcspn(at, ":");
		char dir[PATH_MAX], path[PATH_MAX];
		struct walked where;
		struct elf_info info;
		int fd, r;

		if (search_dir(at, n, origin, dir) && path_join(path, dir, name) == 0 &&
		    access(path, F_OK) == 0) {
			if (!realpath(path, where.real))
				return 0;
			if (!library_allowed(p, program, where.real)) {
				snprintf(p->out->hint, sizeof(p->out->hint),
					 "a library of the program is not mounted: %s; mount its "
					 "directory "
					 "with --ro",
					 QUOTED(path));
				return 0;
			}
			fd = open_elf(where.real, &info);
			if (fd >= 0)
				close(fd);
			if (fd >= 0 && info.native && info.type == ET_DYN) {
				bool known = places_visible(p, where.real);
				char why[192];

				r = places_walk(p, path, false, purpose(why, program), &where);
				if (r == 0)
					r = places_show(p, where.real, purpose(why, program));
				else if (r != -ECANCELED)
					return 0;
				if (r < 0)
					return p->err->code ? -(int)p->err->code : -PALE_E_SYSTEM;
				memcpy(ret, where.real, strlen(where.real) + 1);
				return !known;
			}
		}
		at = at[n] ? at + n + 1 : NULL;
	}
	return 0;
}

/* Shows the libraries that lie outside the image, and theirs. */
static int libraries(struct places *p, const char *program, const struct elf_info *first)
{
	char *queue[MAX_LIBS] = {NULL};
	size_t head = 0, tail = 0;
	struct elf_info info = *first;
	char path[PATH_MAX], found[PATH_MAX];
	int r = 0;

	memcpy(path, program, strlen(program) + 1);
	for (;;) {
		char origin[PATH_MAX];

		path_dir(path, origin);
		for (size_t i = 0; i < info.nneeded && r >= 0; i++) {
			if (strchr(info.needed[i], '/'))
				continue;
			r = find_library(p, program, info.needed[i], info.search, origin, found);
			/* A DT_RPATH of the program counts for its libraries too. */
			if (r == 0 && !first->has_runpath && head)
				r = find_library(p, program, info.needed[i], first->search, origin,
						 found);
			if (r == 1 && tail < MAX_LIBS) {
				queue[tail] = strdup(found);
				r = queue[tail++] ? 0 : err_nomem(p->err, "plan");
			}
		}
		if (r < 0 || head == tail)
			break;
		memcpy(path, queue[head], strlen(queue[head]) + 1);
		free(queue[head++]);
		int fd = open_elf(path, &info);

		if (fd < 0)
			info.nneeded = 0;
		else
			close(fd);
	}
	for (; head < tail; head++)
		free(queue[head]);
	return r < 0 ? r : 0;
}

/* Checks a program and shows its loader and libraries. */
static int elf_program(struct places *p, const char *real)
{
	struct elf_info info, loader;
	struct walked at;
	char why[192];
	int fd = open_elf(real, &info), r;

	if (fd < 0)
		return places_unusable(p, "%s is a damaged program", QUOTED(real));
	close(fd);
	if (info.is_32bit)
		return places_unusable(p, "%s is a 32-bit program; a box runs 64-bit programs only",
				       QUOTED(real));
	if (!info.native)
		return places_unusable(p, "%s is a program for another processor", QUOTED(real));
	if (info.type != ET_EXEC && info.type != ET_DYN)
		return places_unusable(p, "%s is an object file, not a program", QUOTED(real));
	if (*info.interp && !places_in_image(info.interp)) {
		r = places_walk(p, info.interp, false, purpose(why, real), &at);
		if (r == -ECANCELED)
			return -(int)p->err->code;
		fd = r < 0 ? r : open_elf(at.real, &loader);
		if (fd < 0)
			return places_missing(p, "%s needs the loader %s, which is not there",
					      QUOTED(real), QUOTED(info.interp));
		close(fd);
		if (!loader.native || loader.type != ET_DYN)
			return places_unusable(p, "%s: %s is no loader", QUOTED(real),
					       QUOTED(info.interp));
		r = places_show(p, at.real, purpose(why, real));
		if (r < 0)
			return r;
	} else if (*info.interp && access(info.interp, F_OK) < 0) {
		return places_missing(
			p,
			"%s needs the loader %s, which this host does not have: it was built for "
			"another distribution",
			QUOTED(real), QUOTED(info.interp));
	}
	return libraries(p, real, &info);
}

/* home = in pyvenv.cfg, beside a Python or one directory up: where its standard library lies. */
static int virtual_env(struct places *p, const char *python, bool named, int depth)
{
	_cleanup_buf_ struct buf file = BUF_INIT(64 * 1024);
	_cleanup_close_ int fd = -1;
	char dir[PATH_MAX], cfg[PATH_MAX], found[PATH_MAX], up[PATH_MAX], *save = NULL;
	const char *home = NULL;

	path_dir(python, up);
	if (path_exists(up, "pyvenv.cfg"))
		memcpy(dir, up, strlen(up) + 1);
	else
		path_dir(up, dir);
	if (path_join(cfg, dir, "pyvenv.cfg") < 0)
		return 0;
	fd = open(cfg, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	if (buf_read_fd(&file, fd) < 0)
		return places_unusable(p, "cannot read %s", QUOTED(cfg));
	if (places_hostile(p, cfg))
		p->tainted = true;
	for (char *l = file.data ? strtok_r(file.data, "\r\n", &save) : NULL; l && !home;
	     l = strtok_r(NULL, "\r\n", &save)) {
		l += strspn(l, " \t");
		if (strncasecmp(l, "home", 4) != 0)
			continue;
		l += 4;
		l += strspn(l, " \t");
		if (*l == '=')
			home = l + 1 + strspn(l + 1, " \t");
	}
	if (places_show(p, python, "Python virtual environment") < 0 ||
	    (named && places_add_env(p, "VIRTUAL_ENV", dir) < 0))
		return -(int)p->err->code;
	if (!home || *home != '/' || places_in_image(home))
		return 0;
	const char *names[] = {path_base(python), "python3", "python"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char base[PATH_MAX];

		if (path_join(base, home, names[i]) == 0 && access(base, X_OK) == 0 &&
		    strcmp(base, python) != 0)
			return resolve(p, base, false, python, depth, found);
	}
	return places_missing(
		p,
		"the virtual environment %s was made from the Python in %s, which is gone; "
		"make it again",
		QUOTED(dir), QUOTED(home));
}

static void free_item(struct toolchain_item *it)
{
	free(it->path);
	free(it->data);
	free(it->why);
}

/* What a file is, by its first bytes: 's'cript, 'e'lf, '?' (not readable), 0 (neither). */
static char look(const char *real, char head[static 1024])
{
	_cleanup_close_ int fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return '?';
	n = fd_read_full(fd, head, 1023);
	if (n < 0)
		return '?';
	head[n] = '\0';
	if (n >= 2 && memcmp(head, "#!", 2) == 0)
		return 's';
	return n >= 4 && memcmp(head, ELFMAG, SELFMAG) == 0 ? 'e' : 0;
}

static int walk_failed(struct places *p, const char *path, const char *user, int r)
{
	if (r == -ECANCELED)
		return -(int)p->err->code;
	if (r == -EACCES)
		return places_unusable(p, "%s: permission denied", QUOTED(path));
	if (r != -ENOENT && r != -ENOTDIR)
		return places_unusable(p, "%s: %s", QUOTED(path), strerror(-r));
	if (user)
		return places_missing(p, "%s needs %s, which does not exist", QUOTED(user),
				      QUOTED(path));
	return places_missing(p, "command not found: there is no %s", QUOTED(path));
}

/* Makes a program and all it needs visible; the path to execute it by is stored. user is the file
 * that asked for it, or NULL for the command itself. 0, 2 (a version manager says: look further),
 * or a negative code. */
static int resolve(struct places *p, const char *path, bool named, const char *user, int depth,
		   char ret[static PATH_MAX])
{
	char head[1024], why[192], real_program[PATH_MAX], dir[PATH_MAX];
	size_t before = p->out->nitems;
	struct walked at;
	struct stat st;
	char kind;
	int r;

	if (depth > MAX_DEPTH)
		return places_unusable(p, "%s: too many interpreters of interpreters",
				       QUOTED(p->req->command));
	r = places_walk(p, path, named, purpose(why, user), &at);
	if (r < 0)
		return walk_failed(p, path, user, r);
	if (stat(at.real, &st) < 0)
		return walk_failed(p, path, user, -errno);
	if (S_ISDIR(st.st_mode))
		return places_unusable(p, "%s is a directory", QUOTED(path));
	if (!S_ISREG(st.st_mode))
		return places_unusable(p, "%s is no regular file", QUOTED(path));
	if (access(at.real, X_OK) < 0)
		return places_unusable(p, "%s is not executable (chmod +x)", QUOTED(path));

	r = shims_resolve(p, &at, real_program);
	/* The way to a shim need not exist inside. */
	while (r > 0 && p->out->nitems > before)
		free_item(&p->out->items[--p->out->nitems]);
	if (r == 1)
		return resolve(p, real_program, true, user, depth + 1, ret);
	if (r != 0)
		return r;

	/* From here on its content has a say. */
	if (!places_in_image(at.real) && places_hostile(p, at.real))
		p->tainted = true;
	kind = look(at.real, head);
	if (kind == 0)
		return places_unusable(
			p,
			"%s is neither a program nor a script with a #! line; to have a shell "
			"read it: sh %s",
			QUOTED(path), path_base(path));
	if (kind == '?' && p->tainted)
		return places_unusable(p, "%s cannot be read", QUOTED(path));
	if (named) {
		path_dir(at.path, dir);
		r = places_add_dir(p, dir);
		if (r < 0)
			return r;
	}
	/* Before places_show(): a copied python of an environment must not be mounted alone. */
	if (str_starts(path_base(at.path), "python") || str_starts(path_base(at.path), "pypy")) {
		r = places_in_image(at.path) ? 0 : virtual_env(p, at.path, named, depth + 1);
		if (r < 0)
			return r;
	}
	r = places_show(p, at.real, purpose(why, user));
	if (r < 0)
		return r;
	if (!places_in_image(at.path)) {
		const char *root_kind = places_root(p, at.path, dir);

		if (root_kind && strcmp(root_kind, "conda environment") == 0 &&
		    places_add_env(p, "CONDA_PREFIX", dir) < 0)
			return -(int)p->err->code;
	}
	memcpy(ret, at.path, strlen(at.path) + 1);
	if (kind == 's')
		return shebang(p, head, at.path, depth + 1);
	return kind == 'e' && !places_in_image(at.real) ? elf_program(p, at.real) : 0;
}

/* Build tools that start java by JAVA_HOME, which is set where Java lies elsewhere than in /usr. */
static int java_home(struct places *p)
{
	static const char *const tools[] = {"mvn",    "mvnDebug", "gradle", "ant",    "sbt",
					    "kotlin", "kotlinc",  "scala",  "scalac", "groovy",
					    "jruby",  "lein",	  "clojure"};
	const char *home = places_getenv(p, "JAVA_HOME");
	char java[PATH_MAX], found[PATH_MAX], dir[PATH_MAX], up[PATH_MAX];
	bool wanted = false;

	for (size_t i = 0; i < ARRAY_SIZE(tools) && home && !wanted; i++)
		wanted = strcmp(path_base(p->req->command), tools[i]) == 0;
	if (!wanted || *home != '/' || path_join(java, home, "bin/java") < 0 ||
	    access(java, X_OK) < 0)
		return 0;
	if (resolve(p, java, true, p->req->command, 1, found) < 0)
		return -(int)p->err->code;
	path_dir(found, dir);
	path_dir(dir, up);
	return places_add_env(p, "JAVA_HOME", up);
}

/* What `pip install --user` installed beside a script in ~/.local/bin: HOME is another one inside,
 * so that Python would not find it. */
static int user_site(struct places *p, const char *program)
{
	char dir[PATH_MAX], local[PATH_MAX], lib[PATH_MAX], site[PATH_MAX], head[1024], *at;
	unsigned minor;
	struct stat st;

	path_dir(program, dir);
	path_dir(dir, local);
	if (!*places_home(p) || strcmp(path_base(local), ".local") != 0 ||
	    !path_beneath(local, places_home(p)) || look(program, head) != 's')
		return 0;
	/* #!/usr/bin/python3.11, or python3, of which /usr has one. */
	head[strcspn(head, "\n")] = '\0';
	at = strstr(head, "/python3");
	if (!at)
		return 0;
	if (sscanf(at, "/python3.%3u", &minor) != 1) {
		char real[PATH_MAX];

		if (!realpath("/usr/bin/python3", real) ||
		    sscanf(path_base(real), "python3.%3u", &minor) != 1)
			return 0;
	}
	snprintf(head, sizeof(head), "lib/python3.%u/site-packages", minor);
	if (path_join(lib, local, head) < 0 || !realpath(lib, site) || stat(site, &st) < 0 ||
	    !S_ISDIR(st.st_mode) || strcmp(site, lib) != 0)
		return 0;
	if (places_show_dir(p, site, "packages installed with pip --user") < 0 ||
	    places_add_env(p, "PYTHONPATH", site) < 0)
		return -(int)p->err->code;
	return 0;
}

static int find_script(struct places *p)
{
	const char *script = p->req->script;
	char path[PATH_MAX], why[] = "the script";
	bool was_tainted = p->tainted;
	struct walked at;
	struct stat st;
	int r;

	r = *script == '/' ? snprintf(path, sizeof(path), "%s", script)
			   : snprintf(path, sizeof(path), "%s/%s", places_cwd(p), script);
	if (r < 0 || r >= (int)sizeof(path))
		return places_unusable(p, "the script's path is too long");
	p->tainted = false;
	r = places_walk(p, path, true, why, &at);
	if (r == -ECANCELED)
		return -(int)p->err->code;
	if (r < 0 || stat(at.real, &st) < 0)
		return places_missing(p, "cannot find the script %s: %s", QUOTED(script),
				      strerror(r < 0 ? -r : errno));
	if (!S_ISREG(st.st_mode))
		return places_unusable(p, "the script %s is no regular file", QUOTED(script));
	if (access(at.real, R_OK) < 0)
		return places_unusable(p, "the script %s cannot be read", QUOTED(script));
	/* A link in a workspace is an agent's word, and the interpreter would print what it points
	 * to. */
	if (p->tainted && !places_visible(p, at.real) && !path_beneath(at.real, places_cwd(p)))
		return err_set(
			p->err, PALE_E_HOST, "plan", 0,
			"the script %s is a link that leads out of the workspace; name %s itself",
			QUOTED(script), QUOTED(at.real));
	p->tainted |= was_tainted;
	if (!places_visible(p, at.real) && places_show_file(p, at.real, why) < 0)
		return -(int)p->err->code;
	p->out->script = strdup(at.path);
	return p->out->script ? 0 : err_nomem(p->err, "plan");
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct toolchain_item *)a)->path,
		      ((const struct toolchain_item *)b)->path);
}

/* Parents first, and nothing twice: what was added before the directory that contains it goes. */
static void tidy(struct toolchain *t)
{
	size_t kept = 0;

	qsort(t->items, t->nitems, sizeof(t->items[0]), by_path);
	for (size_t i = 0; i < t->nitems; i++) {
		bool covered = false;

		for (size_t k = 0; k < kept && !covered; k++)
			covered = t->items[k].directory &&
				  path_beneath(t->items[i].path, t->items[k].path);
		if (covered)
			free_item(&t->items[i]);
		else
			t->items[kept++] = t->items[i];
	}
	t->nitems = kept;
}

int toolchain_find(const struct toolchain_request *req, struct toolchain *ret, struct pale_err *err)
{
	struct pale_err own;
	struct places p = {.req = req, .out = ret, .err = err ? err : &own};
	char path[PATH_MAX], program[PATH_MAX];
	int r;

	memset(ret, 0, sizeof(*ret));
	*p.err = (struct pale_err){0};
	if (!req->command || !*req->command)
		return places_missing(&p, "the command is empty");
	if (strlen(req->command) >= PATH_MAX)
		return places_unusable(&p, "the command's name is too long");
	if (!req->cwd)
		return err_set(err, PALE_E_USAGE, "plan", 0,
			       "the working directory is gone: change to one that is there");
	if (*req->cwd != '/')
		return err_set(err, PALE_E_USAGE, "plan", 0,
			       "the working directory must be absolute");

	if (!req->is_file && !strchr(req->command, '/')) {
		r = search(&p, req->command, NULL, 0, program);
	} else {
		const char *name = req->command + (str_starts(req->command, "./") ? 2 : 0);

		r = *name == '/' ? snprintf(path, sizeof(path), "%s", name)
				 : snprintf(path, sizeof(path), "%s/%s", places_cwd(&p), name);
		r = r < 0 || r >= (int)sizeof(path)
			    ? places_unusable(&p, "the command's path is too long")
			    : resolve(&p, path, true, NULL, 0, program);
		/* A shim called by its path whose manager says "system". */
		if (r == 2)
			r = search(&p, path_base(req->command), NULL, 0, program);
	}
	if (r < 0)
		return r;
	ret->program = strdup(program);
	if (!ret->program)
		return err_nomem(err, "plan");
	r = places_in_image(program) ? 0 : user_site(&p, program);
	if (r == 0)
		r = java_home(&p);
	if (r == 0 && req->script)
		r = find_script(&p);
	if (r < 0)
		return r;
	tidy(ret);
	return 0;
}

void toolchain_done(struct toolchain *t)
{
	free(t->program);
	free(t->script);
	for (size_t i = 0; i < t->nitems; i++)
		free_item(&t->items[i]);
	for (size_t i = 0; i < t->npath_dirs; i++)
		free(t->path_dirs[i]);
	for (size_t i = 0; i < t->nenv; i++) {
		free(t->env[i].name);
		free(t->env[i].value);
	}
	memset(t, 0, sizeof(*t));
}
