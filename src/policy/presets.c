/* Presets: named sets of rules, in files that can be replaced. A preset is a policy that says
 * network.allow and nothing else. One is looked for in the caller's configuration, then the
 * machine's, then among those that are part of the program; the first that is found is the one.
 *
 * Runs where policies are read, with the caller's rights. A file that somebody else could write to
 * is refused: it would give the box what the caller did not mean. */
#include "policy/rules.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "policy/node.h"
#include "policy/paths.h"
#include "policy/presets.h"

static bool is_name(const char *text)
{
	static const char set[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

	return *text && strlen(text) <= 64 && text[strspn(text, set)] == '\0';
}

/* The whole of a file. 0, 1 if it is not there, or an error. */
static int read_file(const char *path, bool configured, struct buf *ret, struct pale_err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && configured)
		return 1;
	if (fd < 0)
		return err_set(err, PALE_E_POLICY, "policy", errno, "cannot open the preset %s",
			       QUOTED(path));
	if (fstat(fd, &st) < 0)
		return err_set(err, PALE_E_POLICY, "policy", errno, "cannot examine %s",
			       QUOTED(path));
	if (configured && ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 022)))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "the preset %s can be written to by somebody else: chown it to "
			       "yourself and chmod go-w",
			       QUOTED(path));
	r = buf_read_fd(ret, fd);
	if (r < 0)
		return err_set(err, PALE_E_POLICY, "policy", -r, "cannot read the preset %s",
			       QUOTED(path));
	return 0;
}

/* "$XDG_CONFIG_HOME/pale/presets/NAME.yaml" or its like; NULL: there is no such place. */
static int config_path(size_t place, const char *name, char **ret)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = 0;

	*ret = NULL;
	if (place == 1)
		n = asprintf(ret, "/etc/pale/presets/%s.yaml", name);
	else if (config && *config == '/')
		n = asprintf(ret, "%s/pale/presets/%s.yaml", config, name);
	else if (home && *home == '/')
		n = asprintf(ret, "%s/.config/pale/presets/%s.yaml", home, name);
	if (n >= 0)
		return 0;
	*ret = NULL;
	return -ENOMEM;
}

static int not_found(const char *name, struct pale_err *err)
{
	const char *best = NULL;
	size_t distance = strlen(name) < 4 ? 2 : 3;

	err_set(err, PALE_E_POLICY, "policy", 0, "there is no preset %s", QUOTED(name));
	for (const struct policy_shipped *s = policy_presets; s->name; s++) {
		size_t d = str_distance(name, s->name, distance);

		if (d < distance) {
			distance = d;
			best = s->name;
		}
	}
	if (best) {
		err_add(err, ": did you mean %s?", best);
	} else {
		for (const struct policy_shipped *s = policy_presets; s->name; s++)
			err_add(err, "%s %s", s == policy_presets ? "; there are" : ",", s->name);
		err_add(err, "; a file's name has a slash in it, as ./NAME.yaml");
	}
	return -PALE_E_POLICY;
}

int preset_text(const char *name, const char *base, char **ret, char **ret_from,
		struct pale_err *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT(NODE_MAX_BYTES);
	_cleanup_free_ char *path = NULL;
	int r = 1;

	if (strpbrk(name, "/.")) {
		r = path_absolute(&path, name, base, true, err);
		if (r >= 0)
			r = read_file(path, false, &text, err);
		if (r < 0)
			return r;
	} else if (!is_name(name)) {
		return not_found(name, err);
	}
	for (size_t place = 0; r > 0 && place < 2; place++) {
		free(path);
		if (config_path(place, name, &path) < 0)
			return err_nomem(err, "policy");
		r = path ? read_file(path, true, &text, err) : 1;
		if (r < 0)
			return r;
	}
	if (r == 0) {
		*ret = text.data ? take_ptr(text.data) : strdup("");
		*ret_from = take_ptr(path);
		return *ret ? 0 : err_nomem(err, "policy");
	}
	for (const struct policy_shipped *s = policy_presets; s->name; s++) {
		if (strcmp(name, s->name) != 0)
			continue;
		*ret = strdup(s->text);
		*ret_from = NULL;
		return *ret ? 0 : err_nomem(err, "policy");
	}
	return not_found(name, err);
}

int preset_load(struct policy *p, const char *name, const char *base, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL, *from = NULL;
	int r = preset_text(name, base, &text, &from, err);

	return r < 0 ? r : policy_load_preset(p, text, strlen(text), from ? from : name, base, err);
}

/* ---- what there is ---- */

/* {name, file}; a new reference, or NULL. A file's name need not be UTF-8. */
static json_t *describe(const char *name, const char *from)
{
	char safe[4096];

	if (from && str_utf8_prefix(from, strlen(from)) != strlen(from))
		from = str_escape_into(safe, sizeof(safe), from, strlen(from));
	return json_pack("{s:s,s:s?}", "name", name, "file", from);
}

int preset_describe(const char *name, char **ret, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL, *from = NULL, *cwd = getcwd(NULL, 0), *canonical = NULL;
	_cleanup_policy_ struct policy *p = NULL;
	json_t *j, *policy, *rules;
	int r = cwd ? preset_text(name, cwd, &text, &from, err) : err_nomem(err, "policy");

	if (r >= 0)
		r = policy_new(&p, err);
	if (r >= 0)
		r = policy_load_preset(p, text, strlen(text), from ? from : name, cwd, err);
	if (r >= 0)
		r = policy_to_json(p, &canonical, err);
	if (r < 0)
		return r;
	j = describe(name, from);
	policy = json_loads(canonical, 0, NULL);
	rules = json_object_get(json_object_get(policy, "network"), "allow");
	/* It loaded, so that it is UTF-8. */
	if (json_object_set_new(j, "text", json_string(text)) == 0 &&
	    json_object_set(j, "rules", rules) == 0)
		*ret = json_dumps(j, JSON_INDENT(2));
	else
		*ret = NULL;
	json_decref(policy);
	json_decref(j);
	return *ret ? 0 : err_nomem(err, "policy");
}

static bool is_known(char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

/* The names of the files in one of the places. */
static int names_in(size_t place, char ***names)
{
	_cleanup_free_ char *path = NULL;
	DIR *dir;
	int r = config_path(place, "", &path);

	if (r < 0 || !path)
		return r;
	*strrchr(path, '/') = '\0';
	dir = opendir(path);
	for (struct dirent *e; dir && r >= 0 && (e = readdir(dir)) != NULL;) {
		char name[80];
		size_t n = strlen(e->d_name);

		if (n < 6 || n > sizeof(name) || !str_ends(e->d_name, ".yaml"))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)n - 5, e->d_name);
		if (is_name(name) && !is_known(*names, name))
			r = texts_add(names, name);
	}
	if (dir)
		closedir(dir);
	return r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One that cannot be read is in the list, too, with the error. */
static json_t *list_one(const char *name, const char *cwd)
{
	_cleanup_free_ char *text = NULL, *from = NULL;
	_cleanup_policy_ struct policy *p = NULL;
	json_t *j, *hosts = json_array();
	struct pale_err err;
	int r = preset_text(name, cwd, &text, &from, &err);

	if (r >= 0)
		r = policy_new(&p, &err);
	if (r >= 0)
		r = policy_load_preset(p, text, strlen(text), from ? from : name, cwd, &err);
	j = describe(name, from);
	for (size_t i = 0; r >= 0 && i < p->network.nrules; i++) {
		const char *host = p->network.rules[i].host;
		size_t n = json_array_size(hosts);

		/* A rule for each protocol: the host once. */
		if (!host ||
		    (n && strcmp(json_string_value(json_array_get(hosts, n - 1)), host) == 0))
			continue;
		json_array_append_new(hosts, json_string(host));
	}
	if (json_object_set_new(j, "hosts", hosts) < 0 ||
	    (r < 0 && json_object_set_new(j, "error", json_string(err.message)) < 0)) {
		json_decref(j);
		return NULL;
	}
	return j;
}

int preset_list(char **ret, struct pale_err *err)
{
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	json_t *list = json_array();
	char **names = NULL;
	size_t n = 0;
	int r = cwd ? 0 : -ENOMEM;

	for (const struct policy_shipped *s = policy_presets; r >= 0 && s->name; s++)
		r = texts_add(&names, s->name);
	for (size_t place = 0; r >= 0 && place < 2; place++)
		r = names_in(place, &names);
	while (names && names[n])
		n++;
	if (n)
		qsort(names, n, sizeof(*names), compare);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = json_array_append_new(list, list_one(names[i], cwd));
	texts_free(names);
	*ret = r < 0 ? NULL : json_dumps(list, JSON_INDENT(2));
	json_decref(list);
	return *ret ? 0 : err_nomem(err, "policy");
}

/* ---- use ---- */

static int replace_text(char **text, const char *with)
{
	char *copy = with ? strdup(with) : NULL;

	if (!with)
		return 0;
	free(*text);
	*text = copy;
	return copy ? 0 : -ENOMEM;
}

static int replace_texts(char ***texts, char *const *with)
{
	if (!with)
		return 0;
	texts_free(*texts);
	return texts_copy(texts, with);
}

/* What the entry says besides the preset's name narrows each of the rules. */
static int narrow(struct rule_row *rule, const struct rule_row *row)
{
	if (row->intercept)
		rule->intercept = row->intercept;
	if (row->rate_bytes)
		rule->rate_bytes = row->rate_bytes;
	if (row->total_bytes)
		rule->total_bytes = row->total_bytes;
	if (replace_text(&rule->reason, row->reason) < 0 ||
	    replace_text(&rule->preset, row->preset) < 0 ||
	    replace_texts(&rule->methods, row->methods) < 0)
		return -ENOMEM;
	return replace_texts(&rule->paths, row->paths);
}

int preset_append(struct policy *p, const struct rule_row *row, const struct option_place *at,
		  struct pale_err *err)
{
	_cleanup_policy_ struct policy *preset = NULL;
	int r;

	if (row->port || row->ports || row->protocols)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "ports and protocols are the preset's own: leave `%s` out",
			       row->port    ? "port"
			       : row->ports ? "ports"
					    : "protocol");
	r = policy_new(&preset, err);
	if (r >= 0)
		r = preset_load(preset, row->preset, at->base, err);
	for (size_t i = 0; r >= 0 && i < preset->network.nrules; i++) {
		struct rule_row rule = {0};

		if (rule_view(&preset->network.rules[i], &rule) < 0 || narrow(&rule, row) < 0)
			r = err_nomem(err, "policy");
		if (r >= 0)
			r = rule_append(p, &rule, false, at, err);
		option_row_done(&list_allow, &rule);
	}
	return r;
}
