/* The policy flags (-p, --ro, --memory ...) that `pale run`, `pale explain` and `pale policy show`
 * share. They compile to the same model as a policy file. Input: the caller's own command line. */
#include "cli/options.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/options.h"

enum {
	FLAG_POLICY = CLI_POLICY_IDS,
	FLAG_RO,
	FLAG_RW,
	FLAG_OVERLAY,
	FLAG_HIDE,
	FLAG_ENV,
	FLAG_SET,
	FLAG_KEY, /* and further: the rows of the options table that have a flag, by index */
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
	{FLAG_SET, 0, "set", "KEY=VALUE", "set any key of the policy: --set limits.inodes=1000",
	 NULL},
};

static const char *argument_of(const struct policy_option *o)
{
	switch (o->type) {
	case OPTION_SIZE: return "SIZE";
	case OPTION_TIME: return "TIME";
	case OPTION_MILLI:
	case OPTION_COUNT: return "COUNT";
	case OPTION_WORDS: return "ITEM";
	default: return "NAME";
	}
}

/* The words of a row as a shell's completion takes them: "a|b|c". */
static const char *words_of(const struct policy_option *o, char *out, size_t size)
{
	size_t used = 0;

	for (const struct option_word *w = o->words; w && w->word && used < size; w++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "|" : "", w->word);
	return o->words ? out : NULL;
}

const struct cli_option *cli_policy_options(void)
{
	enum { OWN = ARRAY_SIZE(own_options), MAX = OWN + 24 };
	static struct cli_option all[MAX + 1];
	static char words[24][96], help[24][256];
	size_t n = 0, m = 0;

	if (all[0].name)
		return all;
	for (const struct policy_option *o = policy_options; o->key; o++) {
		const char *fall;

		if (!o->flag || m >= ARRAY_SIZE(words))
			continue;
		/* The first sentence of the row's documentation, and the default. */
		fall = strpbrk(o->doc, ".;");
		snprintf(help[m], sizeof(help[m]), "%.*s%s%s%s",
			 (int)(fall ? fall - o->doc : (long)strlen(o->doc)), o->doc,
			 o->def ? " (default: " : "", o->def ? o->def : "", o->def ? ")" : "");
		if (help[m][0] >= 'A' && help[m][0] <= 'Z')
			help[m][0] = (char)(help[m][0] - 'A' + 'a');
		all[OWN + m] = (struct cli_option){
			FLAG_KEY + (int)(o - policy_options),	0, o->flag, argument_of(o), help[m],
			words_of(o, words[m], sizeof(words[m]))};
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

static int add_file(struct policy *p, int id, const char *text, struct pale_err *err)
{
	static const enum policy_access access[] = {
		[FLAG_RO - FLAG_RO] = ACCESS_READ,
		[FLAG_RW - FLAG_RO] = ACCESS_WRITE,
		[FLAG_OVERLAY - FLAG_RO] = ACCESS_OVERLAY,
		[FLAG_HIDE - FLAG_RO] = ACCESS_HIDE,
	};
	static const char *const where[] = {"--ro", "--rw", "--overlay", "--hide"};
	_cleanup_free_ char *value = strdup(text);
	struct policy_file entry = {0};
	char *target, *size;
	int which = id - FLAG_RO;

	if (!value)
		return err_nomem(err, "policy");
	if (id == FLAG_HIDE)
		return policy_add_file(p, ACCESS_HIDE, text, NULL, NULL, 0, where[which], err);
	split(value, id == FLAG_RW, &target, &size);
	/* Once more, for its bounds. */
	if (size && option_parse(option_find("files[].size"), size, &entry, err) < 0) {
		err_add(err, " (--rw %s)", QUOTED(text));
		return -PALE_E_POLICY;
	}
	return policy_add_file(p, access[which], target, id == FLAG_RW ? NULL : value,
			       id == FLAG_RW ? value : NULL, entry.size_bytes, where[which], err);
}

static int add_env(struct policy *p, const char *text, struct pale_err *err)
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
	return policy_add_env(p, name, value, err);
}

static int set_any(struct policy *p, const char *text, struct pale_err *err)
{
	const char *equals = strchr(text, '=');
	_cleanup_free_ char *key = equals ? strndup(text, (size_t)(equals - text)) : NULL;

	if (!equals)
		return err_set(err, PALE_E_USAGE, "policy", 0,
			       "--set %s: expected KEY=VALUE, such as limits.memory=1GiB",
			       QUOTED(text));
	if (!key)
		return err_nomem(err, "policy");
	return policy_set(p, key, equals + 1, "--set", err);
}

static int apply(struct policy *p, const struct cli_flag *f, struct pale_err *err)
{
	const struct policy_option *o;
	char where[64];

	switch (f->id) {
	case FLAG_RO:
	case FLAG_RW:
	case FLAG_OVERLAY:
	case FLAG_HIDE: return add_file(p, f->id, f->value, err);
	case FLAG_ENV: return add_env(p, f->value, err);
	case FLAG_SET: return set_any(p, f->value, err);
	default: break;
	}
	o = &policy_options[f->id - FLAG_KEY];
	snprintf(where, sizeof(where), "--%s", o->flag);
	return policy_set(p, o->key, f->value, where, err);
}

int cli_policy(const struct cli_args *args, struct policy **ret_file, struct policy **ret,
	       struct pale_err *err)
{
	_cleanup_policy_ struct policy *file = NULL, *p = NULL;
	int r = policy_new(&file, err);

	for (size_t i = 0; r >= 0 && i < args->nflags; i++)
		if (args->flags[i].id == FLAG_POLICY)
			r = policy_load(file, args->flags[i].value, err);
	if (r >= 0)
		r = policy_copy(&p, file, err);
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
