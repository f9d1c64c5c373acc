/* pale session cp: copies files between the host and a session. Runs with the caller's rights
 * outside any box. Hostile: all that comes out of the box. On the host it is written beneath the
 * destination only, by descriptors: no link is followed there, none is made that may lead out of
 * what is copied, and what else is no file and no directory is left out. Trusted: the command line,
 * and the host's files. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/session_files.h"
#include "base/links.h"

#define STAGE "cli"
#define DEEP  200 /* directories within one another: each has a descriptor */

enum { OPT_RECURSIVE = 1 };
static const struct cli_option options[] = {
	{OPT_RECURSIVE, 'r', "recursive", NULL, "directories, too, with all that is in them"},
	{0},
};

struct copy {
	struct pale_session *s;
	bool recursive;
	int status; /* 1: something was left out */
	mode_t mask;
	unsigned depth;
	size_t top; /* out: the length of the path of the directory that is copied */
};

static int nothing_more(struct copy *c, const struct pale_err *err)
{
	/* Without memory, or a supervisor that answers, there is nothing to go on with. */
	if (err->code == PALE_E_NOMEM ||
	    (err->code == PALE_E_SYSTEM && !err->sys && strcmp(err->stage, "files") != 0))
		return -(int)err->code;
	cli_say(err);
	c->status = 1;
	return 0;
}

static void leave_out(struct copy *c, const char *path, const char *why)
{
	fprintf(stderr, "pale: left out: %s: %s\n", QUOTED(path), why);
	c->status = 1;
}

static char *join(const char *path, const char *name)
{
	char *joined;
	size_t len = strlen(path);

	if (asprintf(&joined, "%s%s%s", path, len && path[len - 1] == '/' ? "" : "/", name) < 0)
		return NULL;
	return joined;
}

static const char *last_part(const char *path)
{
	const char *slash;
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	slash = memrchr(path, '/', len);
	return slash && slash[1] ? slash + 1 : path;
}

/* ---- out of the box ---- */

static bool is_zero(const char *data, size_t len)
{
	return len && !data[0] && memcmp(data, data + 1, len - 1) == 0;
}

/* Holes stay holes: a file that says it is endless fills no disk. */
static int write_piece(int fd, const char *data, size_t len, uint64_t at)
{
	if (fd != STDOUT_FILENO && is_zero(data, len))
		return ftruncate(fd, (off_t)(at + len)) < 0 ||
				       lseek(fd, (off_t)(at + len), SEEK_SET) < 0
			       ? -errno
			       : 0;
	return fd_write_all(fd, data, len);
}

static int read_into(struct copy *c, const char *path, int fd, struct pale_err *err)
{
	uint64_t at = 0;
	bool more = true;

	while (more) {
		_cleanup_free_ char *data = NULL;
		size_t len = 0;
		int r = box_read(c->s, path, at, &data, &len, &more, err);

		if (r < 0)
			return r;
		r = write_piece(fd, data, len, at);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot write what is in %s",
				       QUOTED(path));
		at += len;
	}
	return 0;
}

static int file_out(struct copy *c, const char *path, const struct box_entry *e, int dir,
		    const char *name, struct pale_err *err)
{
	char temporary[48];
	_cleanup_close_ int fd = -1;
	int r;

	snprintf(temporary, sizeof(temporary), ".pale-%d.%u", getpid(), c->depth);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s", QUOTED(name));
	r = read_into(c, path, fd, err);
	if (r == 0 &&
	    (fchmod(fd, e->mode & ~c->mask) < 0 || renameat(dir, temporary, dir, name) < 0))
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s", QUOTED(name));
	if (r < 0)
		unlinkat(dir, temporary, 0);
	return r;
}

/* As it is, if it leads to what is copied, too. The host follows it, one day: what it leads to is
 * not the box's to say. */
static int link_out(struct copy *c, const char *path, const struct box_entry *e, int dir,
		    const char *name, struct pale_err *err)
{
	const char *below = path + c->top;
	char temporary[48];

	if (!c->depth || !e->target || !*e->target) {
		leave_out(c, path, "a link");
		return 0;
	}
	while (*below == '/')
		below++;
	if (link_leads_out(below, e->target)) {
		leave_out(c, path, "a link that may lead out of what is copied");
		return 0;
	}
	snprintf(temporary, sizeof(temporary), ".pale-%d.%u", getpid(), c->depth);
	if (symlinkat(e->target, dir, temporary) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s", QUOTED(name));
	if (renameat(dir, temporary, dir, name) < 0) {
		err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s", QUOTED(name));
		unlinkat(dir, temporary, 0);
		return -(int)err->code;
	}
	return 0;
}

static int any_out(struct copy *c, const char *path, const struct box_entry *e, int dir,
		   const char *name, struct pale_err *err);

struct out {
	struct copy *c;
	const char *path;
	int dir;
	struct pale_err *err;
};

static int child_out(void *arg, const char *name, const struct box_entry *e)
{
	struct out *o = arg;
	_cleanup_free_ char *path = join(o->path, name);
	int r = path ? any_out(o->c, path, e, o->dir, name, o->err) : err_nomem(o->err, STAGE);

	return r < 0 ? nothing_more(o->c, o->err) : 0;
}

static int directory_out(struct copy *c, const char *path, const struct box_entry *e, int dir,
			 const char *name, struct pale_err *err)
{
	_cleanup_close_ int fd = -1;
	struct out o = {.c = c, .path = path, .err = err};
	bool made = mkdirat(dir, name, 0700) == 0;
	int r;

	if (!made && errno != EEXIST)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make %s", QUOTED(name));
	o.dir = fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open %s", QUOTED(name));
	if (++c->depth > DEEP)
		r = err_set(err, PALE_E_CONFLICT, STAGE, 0, "%s lies too deep", QUOTED(path));
	else
		r = box_list(c->s, path, child_out, &o, err);
	c->depth--;
	if (r == 0 && made && fchmod(fd, (e->mode | 0700) & ~c->mask) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot change %s", QUOTED(name));
	return r;
}

static int any_out(struct copy *c, const char *path, const struct box_entry *e, int dir,
		   const char *name, struct pale_err *err)
{
	if (e->type == BOX_FILE)
		return file_out(c, path, e, dir, name, err);
	if (e->type == BOX_LINK)
		return link_out(c, path, e, dir, name, err);
	if (e->type == BOX_OTHER)
		leave_out(c, path, "neither a file nor a directory");
	else if (!c->recursive)
		leave_out(c, path, "a directory: --recursive copies it");
	else
		return directory_out(c, path, e, dir, name, err);
	return 0;
}

/* to: a directory, or the new name. */
static int copy_out(struct copy *c, const char *path, const char *to, struct pale_err *err)
{
	_cleanup_close_ int dir = -1;
	_cleanup_free_ char *parent = NULL;
	struct box_entry e;
	const char *name = last_part(to);
	int r = box_stat(c->s, path, true, &e, err);

	if (r < 0)
		return r;
	c->top = strlen(path);
	if (strcmp(to, "-") == 0) {
		if (e.type != BOX_FILE)
			return err_set(err, PALE_E_USAGE, STAGE, 0, "%s is no file", QUOTED(path));
		return read_into(c, path, STDOUT_FILENO, err);
	}
	dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		_cleanup_free_ char *base = strdup(last_part(path));

		if (!base)
			return err_nomem(err, STAGE);
		base[strcspn(base, "/")] = '\0';
		if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "%s has no name of its own: say what it is to be called",
				       QUOTED(path));
		return any_out(c, path, &e, dir, base, err);
	}
	parent = name > to ? strndup(to, (size_t)(name - to)) : strdup(".");
	if (!parent)
		return err_nomem(err, STAGE);
	dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, PALE_E_USAGE, STAGE, errno, "cannot open %s", QUOTED(parent));
	if (strchr(name, '/') && e.type != BOX_DIRECTORY)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "%s is no directory", QUOTED(to));
	return any_out(c, path, &e, dir, name, err);
}

/* ---- into the box ---- */

static int write_from(struct copy *c, int fd, const char *what, const char *path, mode_t mode,
		      struct pale_err *err)
{
	_cleanup_free_ char *data = malloc(BOX_CHUNK);
	bool first = true;
	ssize_t n;

	if (!data)
		return err_nomem(err, STAGE);
	do {
		int r;

		n = fd_read_full(fd, data, BOX_CHUNK);
		if (n < 0)
			return err_set(err, PALE_E_USAGE, STAGE, (int)-n, "cannot read %s",
				       QUOTED(what));
		if (!n && !first)
			break;
		r = box_write(c->s, path, first, mode, data, (size_t)n, err);
		if (r < 0)
			return r;
		first = false;
	} while (n == BOX_CHUNK);
	return 0;
}

static int any_in(struct copy *c, int dir, const char *name, const char *path, bool follow,
		  struct pale_err *err);

static int directory_in(struct copy *c, int fd, const char *path, mode_t mode, struct pale_err *err)
{
	int copied = dup(fd);
	DIR *d = copied < 0 ? NULL : fdopendir(copied);
	struct dirent *e;
	int r;

	if (!d) {
		close_fd(&copied);
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot read a directory");
	}
	r = ++c->depth > DEEP
		    ? err_set(err, PALE_E_CONFLICT, STAGE, 0, "%s lies too deep", QUOTED(path))
		    : box_mkdir(c->s, path, mode | 0700, err);
	while (r == 0 && (e = readdir(d))) {
		_cleanup_free_ char *inside = NULL;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		inside = join(path, e->d_name);
		r = inside ? any_in(c, fd, e->d_name, inside, false, err) : err_nomem(err, STAGE);
		if (r < 0)
			r = nothing_more(c, err);
	}
	c->depth--;
	closedir(d);
	return r;
}

static int link_in(struct copy *c, int dir, const char *name, const char *path,
		   struct pale_err *err)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return err_set(err, PALE_E_USAGE, STAGE, errno, "cannot read %s", QUOTED(name));
	target[n] = '\0';
	return box_link(c->s, path, target, err);
}

static int any_in(struct copy *c, int dir, const char *name, const char *path, bool follow,
		  struct pale_err *err)
{
	_cleanup_close_ int fd =
		openat(dir, name,
		       O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
	struct stat st;

	if (fd < 0 && errno == ELOOP && !follow)
		return link_in(c, dir, name, path, err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, PALE_E_USAGE, STAGE, errno, "cannot read %s", QUOTED(name));
	if (S_ISREG(st.st_mode))
		return write_from(c, fd, name, path, st.st_mode, err);
	if (!S_ISDIR(st.st_mode))
		leave_out(c, name, "neither a file nor a directory");
	else if (!c->recursive)
		leave_out(c, name, "a directory: --recursive copies it");
	else
		return directory_in(c, fd, path, st.st_mode, err);
	return 0;
}

/* path: a directory in the box, or the new name. */
static int copy_in(struct copy *c, const char *from, const char *path, struct pale_err *err)
{
	struct box_entry e;
	_cleanup_free_ char *inside = NULL;
	bool in = strcmp(from, "-") == 0, there;
	int r = box_stat(c->s, path, true, &e, err);

	there = r == 0 && e.type == BOX_DIRECTORY;
	if (r < 0 && err->code != PALE_E_NOTFOUND)
		return r;
	if (in && there)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "%s is a directory: say what the file is to be called",
			       QUOTED(path));
	if (in)
		return write_from(c, STDIN_FILENO, "standard input", path, 0644, err);
	if (there) {
		_cleanup_free_ char *base = strdup(last_part(from));

		if (base)
			base[strcspn(base, "/")] = '\0';
		if (base && (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0))
			/* What is in it, then. */
			inside = strdup(path);
		else
			inside = base ? join(path, base) : NULL;
	} else {
		inside = strdup(path);
	}
	return inside ? any_in(c, AT_FDCWD, from, inside, true, err) : err_nomem(err, STAGE);
}

/* ---- the line ---- */

/* "work:/out/x": the path in the session, and its name to *ret_session, for the caller to free. As
 * with scp, a colon behind a slash is the path's own. */
static const char *in_session(const char *word, char **ret_session)
{
	const char *colon = strchr(word, ':');

	*ret_session = NULL;
	if (!colon || colon == word || memchr(word, '/', (size_t)(colon - word)))
		return NULL;
	*ret_session = strndup(word, (size_t)(colon - word));
	return colon[1] ? colon + 1 : ".";
}

/* Which session they all mean; 0, or the exit status, after it was told. */
static int which(char *const *words, size_t n, bool out, char **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *session = NULL;
		bool inside = in_session(words[i], &session), wanted = out == (i + 1 < n);

		if (inside && !session)
			return CLI_EXIT_PALE;
		if (inside != wanted)
			return cli_usage("session cp",
					 "%s: either what is copied or where it goes is in a "
					 "session, as SESSION:PATH",
					 QUOTED(words[i]));
		if (inside && *ret && strcmp(*ret, session) != 0)
			return cli_usage("session cp", "one session at a time: %s",
					 QUOTED(words[i]));
		if (inside && !*ret)
			*ret = take_ptr(session);
	}
	return 0;
}

static int copy_all(struct copy *c, char *const *words, size_t n, bool out)
{
	const char *to = words[n - 1];
	char *session = NULL;

	for (size_t i = 0; i + 1 < n; i++) {
		struct pale_err err = {0};
		const char *path = in_session(out ? words[i] : to, &session);
		int r = out ? copy_out(c, path, to, &err) : copy_in(c, words[i], path, &err);

		free(session);
		if (r < 0 && nothing_more(c, &err) < 0)
			return cli_fail(&err);
	}
	return c->status;
}

/* Of several, where they go has to be a directory. */
static int check_directory(struct copy *c, const char *to, bool out)
{
	_cleanup_free_ char *session = NULL;
	struct pale_err err = {0};
	struct box_entry e;
	struct stat st;

	if (out ? stat(to, &st) == 0 && S_ISDIR(st.st_mode)
		: box_stat(c->s, in_session(to, &session), true, &e, &err) == 0 &&
			    e.type == BOX_DIRECTORY)
		return 0;
	return cli_usage("session cp", "of several, %s has to be a directory", QUOTED(to));
}

static int copy(char *const *words, size_t n, bool recursive)
{
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_free_ char *ignored = NULL, *session = NULL;
	struct copy c = {.recursive = recursive};
	struct pale_err err = {0};
	bool out = !in_session(words[n - 1], &ignored);
	int status = which(words, n, out, &session);

	if (status)
		return status;
	if (pale_session_open(session, &s, &err) < 0)
		return cli_session_fail(&err);
	c.s = s;
	c.mask = umask(0);
	umask(c.mask);
	status = n > 2 ? check_directory(&c, words[n - 1], out) : 0;
	return status ? status : cli_flushed(copy_all(&c, words, n, out));
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_cp_command, argc, argv);
	bool recursive = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		recursive = true;
	if (id < 0)
		return args.status;
	if (args.argc < 2)
		return cli_usage("session cp", "what, and where to?");
	return copy(args.argv, (size_t)args.argc, recursive);
}

const struct cli_command cli_session_cp_command = {
	.name = "session cp",
	.summary = "copy files to or from a session",
	.usage = "[OPTION...] FILE... SESSION:PATH | SESSION:PATH... FILE",
	.help = "Copies files between the host and a session, contents and permissions. PATH is as "
		"the code sees\n"
		"it, absolute or from where it was started, and open to it: with its rights, what "
		"the policy\n"
		"shows read-only stays so. `-` is standard input or output.\n"
		"\n"
		"  pale session cp data.csv work:\n"
		"  pale session cp -r work:/tmp/results .\n"
		"  pale session cp work:plot.png - | viewer\n"
		"\n"
		"What comes out of a box is what the code made: look before you run or open it. "
		"Symbolic links in\n"
		"a directory are copied as links; out of the box only those that lead to what is "
		"copied, too.\n"
		"What else is no file and no directory is left out. A name with a colon is written "
		"./a:b.\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 1 if something was left out or could not be copied, which is "
		"told; "
		"2 for wrong\n"
		"usage; 125 if there is no such session, or Pale failed.\n",
	.options = options,
	.run = run,
};
