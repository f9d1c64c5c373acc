/* Resolves what pyenv (rbenv, nodenv, goenv, plenv), rustup and Volta put into $PATH.
 *
 * Runs in the supervisor while it plans. Versions come from the caller's environment, the command
 * line and the manager's own files, never from .python-version, rust-toolchain.toml, package.json
 * and the like in the working directory: in a workspace those are an agent's words, and what is
 * mounted into a box is not the agent's choice. Whoever wants such a version sets the environment
 * variable (PYENV_VERSION, RUSTUP_TOOLCHAIN), which is the caller's. */
#include "shims.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"

#define MAX_FILE (64 * 1024)

static int read_small(const char *path, struct buf *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return -errno;
	r = buf_read_fd(ret, fd);
	return r < 0 ? r : buf_add(ret, "", 0);
}

/* A version is one name: a slash would lead anywhere (CVE-2022-35861). */
static bool is_name(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

/* The directory's entry that is newest (as strverscmp(3) orders) among those that start with prefix
 * and continue with `next`. */
static bool newest(const char *dir, const char *prefix, char next, char ret[static NAME_MAX + 1])
{
	DIR *d = opendir(dir);
	size_t n = strlen(prefix);
	bool found = false;
	struct dirent *e;

	for (int i = 0; d && i < 10000 && (e = readdir(d)); i++) {
		if (strncmp(e->d_name, prefix, n) != 0 || e->d_name[n] != next ||
		    (found && strverscmp(e->d_name, ret) < 0))
			continue;
		memcpy(ret, e->d_name, strlen(e->d_name) + 1);
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}

static int too_long(struct places *p)
{
	return places_unusable(p, "%s: a path of its version manager is too long",
			       QUOTED(p->req->command));
}

/* The pyenv family: all have ROOT/shims, ROOT/versions/V/bin and ROOT/version. */
static const struct family {
	const char *name, *variable, *prefix;
} families[] = {
	{"pyenv", "PYENV_VERSION", "python-"}, {"rbenv", "RBENV_VERSION", "ruby-"},
	{"nodenv", "NODENV_VERSION", "node-"}, {"goenv", "GOENV_VERSION", "go-"},
	{"plenv", "PLENV_VERSION", "perl-"},
};

/* The directory of one version, by exact name, without "python-", or the newest "3.12.*". */
static bool find_version(const char *versions, const struct family *f, const char *name,
			 char ret[static PATH_MAX])
{
	char found[NAME_MAX + 1];

	if (str_starts(name, f->prefix) && !path_exists(versions, name))
		name += strlen(f->prefix);
	if (!is_name(name))
		return false;
	if (path_exists(versions, name))
		return path_join(ret, versions, name) == 0;
	return newest(versions, name, '.', found) && path_join(ret, versions, found) == 0;
}

/* The versions that do have the program, for the message. */
static void list_versions(const char *versions, const char *program, char *ret, size_t size)
{
	DIR *d = opendir(versions);
	struct dirent *e;
	size_t used = 0;

	ret[0] = '\0';
	for (int i = 0; d && i < 200 && (e = readdir(d)); i++) {
		char bin[PATH_MAX];
		int n;

		if (*e->d_name == '.' || path_join(bin, versions, e->d_name) < 0 ||
		    strlen(bin) + 5 > sizeof(bin))
			continue;
		memcpy(bin + strlen(bin), "/bin", 5);
		if (!path_exists(bin, program))
			continue;
		n = snprintf(ret + used, size - used, "%s%s", used ? ", " : "", e->d_name);
		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
	if (d)
		closedir(d);
}

static int resolve_family(struct places *p, const struct family *f, const char *root,
			  const char *program, char ret[static PATH_MAX])
{
	_cleanup_buf_ struct buf file = BUF_INIT(MAX_FILE);
	char versions[PATH_MAX], path[PATH_MAX], have[160], words[1024] = "system";
	const char *set = places_getenv(p, f->variable);
	char *save = NULL;

	if (path_join(versions, root, "versions") < 0 || path_join(path, root, "version") < 0)
		return too_long(p);
	if (!set && read_small(path, &file) == 0)
		set = file.data;
	if (set && snprintf(words, sizeof(words), "%s", set) >= (int)sizeof(words))
		return places_unusable(p, "the version that %s is set to is too long", f->name);
	for (char *w = strtok_r(words, ": \t\r\n", &save); w;
	     w = strtok_r(NULL, ": \t\r\n", &save)) {
		char dir[PATH_MAX], bin[PATH_MAX];

		if (strcmp(w, "system") == 0)
			return 2;
		if (find_version(versions, f, w, dir) && path_join(bin, dir, "bin") == 0 &&
		    path_join(ret, bin, program) == 0 && access(ret, X_OK) == 0)
			return 1;
	}
	list_versions(versions, program, have, sizeof(have));
	places_missing(p, "%s: %s has no such command in its version (%s or %s)", QUOTED(program),
		       f->name, f->variable, QUOTED(path));
	if (*have)
		err_add(p->err, "; there is one in %s: set %s", have, f->variable);
	return -PALE_E_NOTFOUND;
}

/* ROOT/shims/NAME, a shell script. 0 if it is none. */
static int family_shim(struct places *p, const struct walked *at, char ret[static PATH_MAX])
{
	_cleanup_buf_ struct buf text = BUF_INIT(MAX_FILE);
	char dir[PATH_MAX], root[PATH_MAX];

	path_dir(at->path, dir);
	if (strcmp(path_base(dir), "shims") != 0)
		return 0;
	path_dir(dir, root);
	if (strcmp(path_base(at->real), "mise") == 0)
		return places_unusable(
			p,
			"%s is a mise shim, which cannot run inside; name the program "
			"itself: $(mise which %s)",
			QUOTED(at->path), path_base(at->path));
	if (read_small(at->real, &text) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(families) && path_exists(root, "versions"); i++) {
		char word[32];

		snprintf(word, sizeof(word), "/%s\" exec ", families[i].name);
		if (strstr(text.data, word))
			return resolve_family(p, &families[i], root, path_base(at->path), ret);
	}
	if (strstr(text.data, "asdf exec") || strstr(text.data, "asdf\" exec"))
		return places_unusable(
			p,
			"%s is an asdf shim, which cannot run inside; name the program "
			"itself: $(asdf which %s)",
			QUOTED(at->path), path_base(at->path));
	return 0;
}

/* What rustup installs under other names. */
static const char *const proxies[] = {
	"cargo",	"rustc",	 "rustdoc",	  "rustfmt",  "cargo-fmt",
	"cargo-clippy", "cargo-miri",	 "clippy-driver", "rust-gdb", "rust-gdbgui",
	"rust-lldb",	"rust-analyzer", "rls",
};

/* `key = "value"` */
static bool toml_string(char *line, const char **ret_key, const char **ret_value)
{
	char *eq = strstr(line, " = \""), *end;

	if (!eq)
		return false;
	end = strrchr(eq + 4, '"');
	if (!end)
		return false;
	*eq = *end = '\0';
	*ret_value = eq + 4;
	if (*line == '"' && eq > line + 1) {
		eq[-1] = '\0';
		line++;
	}
	*ret_key = line;
	return true;
}

/* Of settings.toml: the directory override that is nearest to the working directory, or the
 * default. */
static void rustup_setting(struct places *p, const char *rustup_home, char ret[static NAME_MAX + 1])
{
	_cleanup_buf_ struct buf file = BUF_INIT(MAX_FILE);
	bool overrides = false;
	size_t best = 0;
	char path[PATH_MAX], *save = NULL;

	ret[0] = '\0';
	if (path_join(path, rustup_home, "settings.toml") < 0 || read_small(path, &file) < 0)
		return;
	for (char *line = strtok_r(file.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *key, *value;

		if (*line == '[') {
			overrides = strcmp(line, "[overrides]") == 0;
			continue;
		}
		if (!toml_string(line, &key, &value) || strlen(value) > NAME_MAX)
			continue;
		if (overrides
			    ? *key == '/' && path_beneath(places_cwd(p), key) && strlen(key) > best
			    : strcmp(key, "default_toolchain") == 0 && best == 0) {
			memcpy(ret, value, strlen(value) + 1);
			best = overrides ? strlen(key) : 0;
		}
	}
}

static int rustup_shim(struct places *p, const struct walked *at, char ret[static PATH_MAX])
{
	const char *program = path_base(at->path), *home = places_getenv(p, "RUSTUP_HOME");
	const char *name, *first = p->req->first_arg;
	char own[PATH_MAX], toolchains[PATH_MAX], dir[PATH_MAX], found[NAME_MAX + 1],
		set[NAME_MAX + 1];
	bool proxy = false;
	struct stat a, b;

	for (size_t i = 0; i < ARRAY_SIZE(proxies) && !proxy; i++)
		proxy = strcmp(program, proxies[i]) == 0;
	if (!proxy)
		return 0;
	/* A link to rustup, or a hard link beside it as older versions made them. */
	if (strcmp(path_base(at->real), "rustup") != 0) {
		path_dir(at->real, dir);
		if (path_join(own, dir, "rustup") < 0 || stat(own, &a) < 0 ||
		    stat(at->real, &b) < 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
			return 0;
	}
	if (!home) {
		if (!*places_home(p) || path_join(own, places_home(p), ".rustup") < 0)
			return places_missing(
				p, "%s is rustup's, and neither RUSTUP_HOME nor HOME is set",
				QUOTED(at->path));
		home = own;
	}
	if (path_join(toolchains, home, "toolchains") < 0)
		return too_long(p);
	name = places_getenv(p, "RUSTUP_TOOLCHAIN");
	if (first && *first == '+' && strcmp(path_base(p->req->command), program) == 0) {
		name = first + 1;
		p->out->drop_args = 1;
	}
	if (!name) {
		rustup_setting(p, home, set);
		name = set;
	}
	if (*name == '/' && name != set) {
		if (path_join(dir, name, "bin") < 0)
			return too_long(p);
	} else {
		char root[PATH_MAX];

		if (!is_name(name) ||
		    (!path_exists(toolchains, name) && !newest(toolchains, name, '-', found)))
			return places_missing(p, "%s: rustup has no toolchain %s in %s",
					      QUOTED(program), QUOTED(name), QUOTED(toolchains));
		if (path_join(root, toolchains, path_exists(toolchains, name) ? name : found) < 0 ||
		    path_join(dir, root, "bin") < 0)
			return too_long(p);
	}
	if (path_join(ret, dir, program) < 0 || access(ret, X_OK) < 0)
		return places_missing(
			p, "%s is no part of the Rust toolchain in %s: rustup component add",
			QUOTED(program), QUOTED(dir));
	return 1;
}

static const char *json_path(json_t *root, const char *a, const char *b)
{
	const char *s = json_string_value(json_object_get(json_object_get(root, a), b));

	return s && is_name(s) ? s : NULL;
}

static json_t *load_json(const char *home, const char *dir, const char *name)
{
	_cleanup_buf_ struct buf file = BUF_INIT(MAX_FILE);
	char a[PATH_MAX], b[PATH_MAX];

	if (path_join(a, home, dir) < 0 || path_join(b, a, name) < 0 || read_small(b, &file) < 0)
		return NULL;
	return json_loadb(file.data, file.len, 0, NULL);
}

static void free_json(json_t **j)
{
	json_decref(*j);
}

static int volta_shim(struct places *p, const struct walked *at, char ret[static PATH_MAX])
{
	const char *program = path_base(at->path), *home = places_getenv(p, "VOLTA_HOME");
	_cleanup_(free_json) json_t *platform = NULL, *bin = NULL;
	const char *tool = program, *version = NULL;
	char own[PATH_MAX], name[NAME_MAX + 1];
	int n;

	if (strcmp(path_base(at->real), "volta-shim") != 0)
		return 0;
	if (!home) {
		if (!*places_home(p) || path_join(own, places_home(p), ".volta") < 0)
			return places_missing(
				p, "%s is Volta's, and neither VOLTA_HOME nor HOME is set",
				QUOTED(at->path));
		home = own;
	}
	platform = load_json(home, "tools/user", "platform.json");
	if (strcmp(tool, "npx") == 0)
		tool = "npm";
	if (strcmp(tool, "node") != 0 && strcmp(tool, "npm") != 0 && strcmp(tool, "yarn") != 0 &&
	    strcmp(tool, "pnpm") != 0) {
		snprintf(name, sizeof(name), "%.200s.json", program);
		bin = load_json(home, "tools/user/bins", name);
		version = json_string_value(json_object_get(bin, "package"));
		if (version && !strstr(version, ".."))
			n = snprintf(ret, PATH_MAX, "%s/tools/image/packages/%s/bin/%s", home,
				     version, program);
		else
			n = PATH_MAX;
	} else {
		if (strcmp(tool, "npm") == 0)
			version = json_path(platform, "node", "npm");
		else if (strcmp(tool, "node") != 0)
			version = json_string_value(json_object_get(platform, tool));
		if (!version && (strcmp(tool, "npm") == 0 || strcmp(tool, "node") == 0)) {
			tool = "node";
			version = json_path(platform, "node", "runtime");
		}
		n = version && is_name(version)
			    ? snprintf(ret, PATH_MAX, "%s/tools/image/%s/%s/bin/%s", home, tool,
				       version, program)
			    : PATH_MAX;
	}
	if (n < 0 || n >= PATH_MAX || access(ret, X_OK) < 0)
		return places_missing(
			p, "%s: Volta has no version of it by default (volta install %s)",
			QUOTED(at->path), program);
	return 1;
}

int shims_resolve(struct places *p, const struct walked *at, char ret[static PATH_MAX])
{
	int r = family_shim(p, at, ret);

	if (r == 0)
		r = rustup_shim(p, at, ret);
	if (r == 0)
		r = volta_shim(p, at, ret);
	if (r == 0 && (str_starts(at->path, "/snap/bin/") ||
		       str_starts(at->path, "/var/lib/snapd/snap/bin/")))
		return places_unusable(p, "%s is a snap, which only snapd can start",
				       QUOTED(at->path));
	return r;
}
