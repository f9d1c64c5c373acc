/* The policy flags (-p, --ro, --memory ...) that `pale run`, `pale explain` and `pale policy show`
 * share. They compile to the same model as a policy file. Input: the caller's own command line. */
#include "cli/options.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"

enum {
	FLAG_POLICY = CLI_POLICY_IDS,
	FLAG_RO,
	FLAG_RW,
	FLAG_OVERLAY,
	FLAG_HIDE,
	FLAG_ENV,
	FLAG_ALLOW,
	FLAG_DENY,
	FLAG_SECRET,
	FLAG_PUBLISH,
	FLAG_SET,
	FLAG_KEY, /* and further: the keys of the policy that have a flag, by index */
};

static const struct cli_option own_options[] = {
	{FLAG_POLICY, 'p', "policy", "FILE",
	 "load a policy: a file (YAML, or JSON if its name ends in .json; - is standard input), or "
	 "the "
	 "name of a shipped one; may be repeated",
	 "policy"},
	{FLAG_RO, 0, "ro", "PATH[:TARGET]",
	 "show the host's PATH read-only, in the box at TARGET or at the same place", "file"},
	{FLAG_RW, 0, "rw", "PATH[:TARGET][:SIZE]",
	 "an empty writable directory of at most SIZE, copied to the host's PATH at the end",
	 "dir"},
	{FLAG_OVERLAY, 0, "overlay", "DIR[:TARGET]",
	 "show the host's DIR, copy on write: changes are kept for `pale diff` and `pale apply`",
	 "dir"},
	{FLAG_HIDE, 0, "hide", "PATH", "hide PATH, which lies in something shown", "file"},
	{FLAG_ENV, 0, "env", "NAME[=VALUE]", "set a variable; NAME alone copies the caller's value",
	 NULL},
	{FLAG_ALLOW, 0, "allow", "RULE",
	 "allow a host: [METHODS ][PROTOCOL://]HOST[=ADDRESS][:PORT][/PATH-GLOB] or preset:NAME, "
	 "such as "
	 "api.example.com, *.example.org:80, tcp://db.example.com:5432, \"GET "
	 "api.example.com/v1/**\"; ADDRESS, or a range, for a host that is not on the internet",
	 NULL},
	{FLAG_DENY, 0, "deny", "RULE", "refuse a host, even if it is allowed elsewhere: as --allow",
	 NULL},
	{FLAG_SECRET, 0, "secret", "NAME[=SOURCE]@HOST",
	 "give the code a placeholder in the variable NAME for a secret that only HOST is sent (in "
	 "the header authorization; append ,header=NAME or ,query=NAME or ,basic); SOURCE is "
	 "env:NAME (if left out the caller's NAME), file:PATH, command:LINE or fd:N",
	 NULL},
	{FLAG_PUBLISH, 0, "publish", "[HOSTPORT:]PORT|PATH:PORT",
	 "let the host reach a server in the box: its PORT at HOSTPORT of loopback (if left out "
	 "any "
	 "free one, which is told), or at the Unix socket PATH",
	 NULL},
	{FLAG_SET, 0, "set", "KEY=VALUE", "set any key of the policy: --set limits.inodes=1000",
	 NULL},
};

const struct cli_option *cli_policy_options(void)
{
	enum { OWN = ARRAY_SIZE(own_options), MAX = OWN + 24 };
	static struct cli_option all[MAX + 1];
	static struct pale_policy_key keys[24];
	static char help[24][256];
	size_t n = 0, m = 0;

	if (all[0].name)
		return all;
	for (int i = 0; m < ARRAY_SIZE(keys) && pale_policy_key((size_t)i, &keys[m]); i++) {
		const struct pale_policy_key *k = &keys[m];
		const char *end = strpbrk(k->doc, ".;");

		if (!k->flag)
			continue;
		/* The first sentence of the key's documentation, and the default. */
		snprintf(help[m], sizeof(help[m]), "%.*s%s%s%s",
			 (int)(end ? end - k->doc : (long)strlen(k->doc)), k->doc,
			 k->fallback ? " (default: " : "", k->fallback ? k->fallback : "",
			 k->fallback ? ")" : "");
		if (help[m][0] >= 'A' && help[m][0] <= 'Z')
			help[m][0] = (char)(help[m][0] - 'A' + 'a');
		all[OWN + m] = (struct cli_option){
			FLAG_KEY + i, 0, k->flag, k->value, help[m], *k->words ? k->words : NULL};
		m++;
	}
	for (n = 0; n < OWN; n++)
		all[n] = own_options[n];
	return all;
}

/* PATH[:TARGET][:SIZE]. TARGET begins with "/", SIZE is what reads as one; what is not either
 * belongs to PATH, and so does everything before a final colon, so that each path can be written.
 * Cuts value at the colons; *ret_size points into it, or is NULL. */
static void split(char *value, bool takes_size, char **ret_target, char **ret_size)
{
	char *colon = strrchr(value, ':');
	uint64_t size;

	*ret_target = *ret_size = NULL;
	if (takes_size && colon && num_parse_size(colon + 1, &size) == 0) {
		*ret_size = colon + 1;
		*colon = '\0';
		colon = strrchr(value, ':');
	}
	if (colon && colon[1] == '\0') {
		*colon = '\0';
		return;
	}
	/* The last ":/": a host's path holds one more often than a target does. */
	for (; colon; colon = memrchr(value, ':', (size_t)(colon - value))) {
		if (colon[1] != '/')
			continue;
		*colon = '\0';
		*ret_target = colon + 1;
		break;
	}
}

static int add_file(struct pale_policy *p, int id, const char *text, struct pale_err *err)
{
	_cleanup_free_ char *value = strdup(text);
	uint64_t size_bytes = 0;
	char *target, *size;

	if (!value)
		return err_nomem(err, "policy");
	if (id == FLAG_HIDE)
		return pale_policy_hide(p, text, err);
	split(value, id == FLAG_RW, &target, &size);
	switch (id) {
	case FLAG_RO: return pale_policy_read(p, value, target, err);
	case FLAG_OVERLAY: return pale_policy_overlay(p, value, target, err);
	default: break;
	}
	/* It read as one in split(). */
	if (size && num_parse_size(size, &size_bytes) == 0 && size_bytes == 0)
		return err_set(err, PALE_E_USAGE, "policy", 0, "--rw %s: a size of 0 is too little",
			       QUOTED(text));
	return pale_policy_write(p, target, value, size_bytes, err);
}

static int add_env(struct pale_policy *p, const char *text, struct pale_err *err)
{
	const char *equals = strchr(text, '=');
	_cleanup_free_ char *name = strndup(text, equals ? (size_t)(equals - text) : strlen(text));
	const char *value = equals ? equals + 1 : NULL;

	if (!name)
		return err_nomem(err, "policy");
	if (!value)
		value = getenv(name);
	if (!value)
		return err_set(err, PALE_E_USAGE, "policy", 0,
			       "--env %s: there is no such variable to copy; give it a value with "
			       "NAME=VALUE",
			       QUOTED(name));
	return pale_policy_env(p, name, value, err);
}

static int set_any(struct pale_policy *p, const char *text, struct pale_err *err)
{
	const char *equals = strchr(text, '=');
	_cleanup_free_ char *key = equals ? strndup(text, (size_t)(equals - text)) : NULL;

	if (!equals)
		return err_set(err, PALE_E_USAGE, "policy", 0,
			       "--set %s: expected KEY=VALUE, such as limits.memory=1GiB",
			       QUOTED(text));
	if (!key)
		return err_nomem(err, "policy");
	return pale_policy_set(p, key, equals + 1, err);
}

static int apply(struct pale_policy *p, const struct cli_flag *f, struct pale_err *err)
{
	struct pale_policy_key key = {0};
	char origin[64];
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(own_options); i++)
		if (own_options[i].id == f->id)
			key.flag = own_options[i].name;
	if (f->id >= FLAG_KEY && !pale_policy_key((size_t)(f->id - FLAG_KEY), &key))
		return err_set(err, PALE_E_USAGE, "policy", 0, "an unknown flag");
	snprintf(origin, sizeof(origin), "--%s", key.flag);
	pale_policy_origin(p, origin);
	switch (f->id) {
	case FLAG_RO:
	case FLAG_RW:
	case FLAG_OVERLAY:
	case FLAG_HIDE: r = add_file(p, f->id, f->value, err); break;
	case FLAG_ALLOW: r = pale_policy_allow(p, f->value, err); break;
	case FLAG_DENY: r = pale_policy_deny(p, f->value, err); break;
	case FLAG_SECRET: r = pale_policy_secret(p, f->value, err); break;
	case FLAG_PUBLISH: r = pale_policy_publish(p, f->value, err); break;
	case FLAG_ENV: r = add_env(p, f->value, err); break;
	case FLAG_SET: r = set_any(p, f->value, err); break;
	default: r = pale_policy_set(p, key.key, f->value, err); break;
	}
	pale_policy_origin(p, NULL);
	return r;
}

int cli_policy_over(const struct cli_args *args, const struct pale_policy *over,
		    struct pale_policy **ret_file, struct pale_policy **ret, struct pale_err *err)
{
	_cleanup_policy_ struct pale_policy *file = NULL, *p = NULL;
	int r = pale_policy_copy(&file, over, err);

	for (size_t i = 0; r >= 0 && i < args->nflags; i++)
		if (args->flags[i].id == FLAG_POLICY)
			r = pale_policy_load(file, args->flags[i].value, err);
	if (r >= 0)
		r = pale_policy_copy(&p, file, err);
	for (size_t i = 0; r >= 0 && i < args->nflags; i++)
		if (args->flags[i].id != FLAG_POLICY)
			r = apply(p, &args->flags[i], err);
	if (r < 0)
		return r;
	if (ret_file)
		*ret_file = take_ptr(file);
	*ret = take_ptr(p);
	return 0;
}

int cli_policy(const struct cli_args *args, struct pale_policy **ret_file, struct pale_policy **ret,
	       struct pale_err *err)
{
	_cleanup_policy_ struct pale_policy *defaults = NULL;
	int r = pale_policy_new(&defaults, err);

	return r < 0 ? r : cli_policy_over(args, defaults, ret_file, ret, err);
}

bool cli_names_policy(const struct cli_args *args)
{
	for (size_t i = 0; i < args->nflags; i++)
		if (args->flags[i].id == FLAG_POLICY)
			return true;
	return false;
}

static const char *flag_name(int id)
{
	for (const struct cli_option *o = cli_policy_options(); o->name; o++)
		if (o->id == id)
			return o->name;
	return "";
}

/* A name without slash and dot is that of a shipped policy. */
static int absolute_policy(const char *value, char **ret, struct pale_err *err)
{
	if (strcmp(value, "-") == 0)
		return err_set(err, PALE_E_USAGE, "policy", 0,
			       "-p -: a policy that is read now is gone later; name a file");
	*ret = strpbrk(value, "/.") ? realpath(value, NULL) : strdup(value);
	if (*ret)
		return 0;
	return errno == ENOMEM ? err_nomem(err, "policy")
			       : err_set(err, PALE_E_NOTFOUND, "policy", errno, "the policy %s",
					 QUOTED(value));
}

int cli_policy_words(const struct cli_args *args, char ***ret, struct pale_err *err)
{
	char **words = calloc(args->nflags + 1, sizeof(*words));
	int r = words ? 0 : err_nomem(err, "policy");

	for (size_t i = 0; r == 0 && i < args->nflags; i++) {
		const struct cli_flag *f = &args->flags[i];
		_cleanup_free_ char *policy = NULL;

		if (f->id == FLAG_POLICY)
			r = absolute_policy(f->value, &policy, err);
		if (r == 0 && asprintf(&words[i], "--%s=%s", flag_name(f->id),
				       policy ? policy : f->value) < 0) {
			words[i] = NULL;
			r = err_nomem(err, "policy");
		}
	}
	*ret = words;
	return r;
}
