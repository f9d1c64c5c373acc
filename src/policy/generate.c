/* Texts for people, from the options table: docs/policy.md and the policy that `pale policy init`
 * writes. No input but the table. */
#include "policy/policy.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/options.h"

#define TEXT_MAX (256u << 10)

static int finish(struct buf *b, char **ret, struct pale_err *err)
{
	if (b->failed)
		return err_nomem(err, "policy");
	*ret = take_ptr(b->data);
	return 0;
}

/* What a value looks like, in a cell of a table. */
static void describe_type(struct buf *b, const struct policy_option *o)
{
	switch (o->type) {
	case OPTION_SIZE: buf_adds(b, "size"); break;
	case OPTION_TIME: buf_adds(b, o->never ? "time, or `never`" : "time"); break;
	case OPTION_MILLI: buf_adds(b, "number"); break;
	case OPTION_COUNT: buf_adds(b, "whole number"); break;
	case OPTION_VERSION: buf_adds(b, "`1`"); break;
	case OPTION_PATH: buf_adds(b, "path"); break;
	case OPTION_GROUP: buf_adds(b, "mapping"); break;
	case OPTION_ENV: buf_adds(b, "mapping of names to texts"); break;
	case OPTION_LIST: buf_adds(b, "list of entries"); break;
	case OPTION_BOOL: buf_adds(b, "`true`, `false`"); break;
	case OPTION_TEXTS: buf_adds(b, "text, or list of texts"); break;
	case OPTION_PATHS: buf_adds(b, "path, or list of paths"); break;
	case OPTION_TEXT:
		if (!o->words) {
			buf_adds(b, "text");
			break;
		}
		__attribute__((fallthrough));
	case OPTION_WORD:
	case OPTION_WORDS:
		if (o->type == OPTION_WORDS)
			buf_adds(b, o->single ? "one or a list of " : "list of ");
		for (const struct option_word *w = o->words; w->word; w++)
			buf_addf(b, "%s`%s`", w == o->words ? "" : ", ", w->word);
	}
}

static void describe_row(struct buf *b, const struct policy_option *o)
{
	buf_addf(b, "| `%s` | ", option_name(o));
	describe_type(b, o);
	buf_adds(b, " | ");
	if (o->def)
		buf_addf(b, "`%s`", o->def);
	buf_adds(b, " | ");
	if (o->min && o->max)
		buf_addf(b, "%s to %s", o->min, o->max);
	buf_adds(b, " | ");
	if (o->flag)
		buf_addf(b, "`--%s`", o->flag);
	buf_addf(b, " | %s", o->doc);
	if (o->expected)
		buf_addf(b, " Expected: %s.", o->expected);
	if (o->item)
		buf_addf(b, " `best_effort` may name it: `%s`.",
			 option_word_of(option_find("best_effort")->words, o->item));
	buf_adds(b, " |\n");
}

static void describe_words(struct buf *b, const struct policy_option *o)
{
	/* A single word is explained by its key already. */
	if (!o->words || !o->words[0].word || !o->words[1].word)
		return;
	buf_addf(b, "\n`%s`:\n\n", option_name(o));
	for (const struct option_word *w = o->words; w->word; w++)
		buf_addf(b, "- `%s`: %s\n", w->word, w->doc);
}

static void describe_group(struct buf *b, const char *group)
{
	buf_adds(b,
		 "\n| key | value | default | range | flag | what |\n|---|---|---|---|---|---|\n");
	for (const struct policy_option *o = policy_options; o->key; o++)
		if (option_in_group(o, group))
			describe_row(b, o);
	for (const struct policy_option *o = policy_options; o->key; o++)
		if (option_in_group(o, group))
			describe_words(b, o);
}

static const char docs_head[] =
	"# The policy\n\n"
	"<!-- Made by `pale policy docs` from the options table in src/policy/options.c. -->\n\n"
	"A policy says what a box may touch. What is absent is denied, or limited by a default. It "
	"is "
	"YAML, or JSON if the file's name ends in `.json`; both are the same model. Unknown keys, "
	"duplicate keys, anchors, aliases and tags are errors, told with line and column; a policy "
	"with an error is refused whole.\n\n"
	"```yaml\n"
	"pale: 1\n"
	"files:\n"
	"  - {path: /data/sales.xlsx, from: ./sales.xlsx, access: read}\n"
	"  - {path: /out, access: write, size: 64MiB, collect: ./out}\n"
	"network: {allow: [{preset: pypi}, {host: api.example.com, methods: [GET]}]}\n"
	"limits: {wall: 2m, memory: 1GiB, cpus: 2}\n"
	"env: {LANG: C.UTF-8}\n"
	"```\n\n"
	"```\n"
	"pale policy init -o policy.yaml     # a policy with every key, to start from\n"
	"pale policy check policy.yaml       # every error, with line and column\n"
	"pale explain -p policy.yaml         # what enforces each promise on this host\n"
	"pale run -p policy.yaml script.py\n"
	"```\n\n"
	"A policy is loaded only when it is named with `-p`: never because it lies in a directory "
	"that "
	"the code can write to. Several may be given: single values of a later one replace those "
	"of an earlier one, entries of lists and of `env` are added. Flags come "
	"last, "
	"in the order given; a flag that allows more than the files do is in the audit log.\n\n"
	"## Values\n\n"
	"- A size is a number with one of the units B, KiB, MiB, GiB, TiB (powers of 1024; K, M, "
	"G, T "
	"are short for them) or kB, MB, GB, TB (powers of 1000); without a unit it counts bytes.\n"
	"- A time is a number with one of the units ms, s, m (or min), h; without a unit it counts "
	"seconds.\n"
	"- A text that a YAML reader could take for a boolean (`no`, `on`, `true`) needs quotes "
	"where "
	"a name is expected: `user: \"no\"`. Values of `env` are taken as they are written: "
	"`{X: 1}` is the text `1`.\n"
	"- A path that is not UTF-8 is written as the bytes of the name in hex: `path: {hex: "
	"2f746d702fff}`.\n";

static const char docs_flags[] =
	"\n## Flags\n\n"
	"| flag | the same as |\n|---|---|\n"
	"| `-p FILE`, `--policy FILE` | loads FILE, or a shipped policy by its name |\n"
	"| `--ro PATH[:TARGET]` | `{path: TARGET, from: PATH, access: read}` |\n"
	"| `--rw PATH[:TARGET][:SIZE]` | `{path: TARGET, access: write, size: SIZE, collect: "
	"PATH}` |\n"
	"| `--overlay DIR[:TARGET]` | `{path: TARGET, from: DIR, access: overlay}` |\n"
	"| `--hide PATH` | `{path: PATH, access: hide}` |\n"
	"| `--allow RULE` | an entry of `network.allow`: `[METHODS "
	"][PROTOCOL://]HOST[=ADDRESS][:PORT]"
	"[/PATH-GLOB]`, or `preset:NAME` |\n"
	"| `--deny RULE` | an entry of `network.deny`, written likewise |\n"
	"| `--secret NAME[=SOURCE]@HOST` | `{env: NAME, value_from: SOURCE, hosts: [HOST], header: "
	"authorization}`; further hosts and the place follow after commas: `,header=NAME`, "
	"`,query=NAME`, `,basic` |\n"
	"| `--publish [HOSTPORT:]PORT`, `--publish PATH:PORT` | an entry of `network.publish` |\n"
	"| `--env NAME=VALUE` | `env: {NAME: VALUE}`; `--env NAME` copies the caller's value |\n"
	"| `--set KEY=VALUE` | any key with a single value: `--set limits.inodes=1000` |\n\n"
	"HOST of a RULE may be an address or a range (`10.1.0.0/16`, of IPv6 in brackets: "
	"`[2001:db8::1]:443`); `https://` is `tls://`. HOST`=`ADDRESS is for a server that is not "
	"on the internet: `--allow http://wiki.corp.example=10.0.0.0/8:8080`. `--allow "
	"api.example.com`, `--allow "
	"'*.example.org:80'`, `--allow tcp://db.example.com:5432`, `--allow 'GET,HEAD "
	"api.example.com/v1/**'`, `--allow preset:pypi`. A SOURCE that is left out is the caller's "
	"variable NAME: `--secret API_KEY@api.example.com`.\n\n"
	"TARGET begins with `/`, and is the host's absolute path where it is left out. A PATH that "
	"itself ends in what looks like a TARGET or a SIZE is written with a final colon: "
	"`--ro 'a:/b:'`.\n";

static void describe_shipped(struct buf *b)
{
	buf_adds(b, "\n## Shipped policies\n\nBy name: `pale run -p NAME`. `pale policy init NAME` "
		    "writes one to start from.\n\n");
	for (const struct policy_shipped *s = policy_shipped; s->name; s++)
		buf_addf(b, "### %s\n\n```yaml\n%s```\n\n", s->name, s->text);
}

int policy_docs_markdown(char **ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);

	buf_adds(&b, docs_head);
	buf_adds(&b, "\n## Keys\n");
	describe_group(&b, "");
	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (o->type != OPTION_GROUP && o->type != OPTION_LIST)
			continue;
		buf_addf(&b, "\n### %s\n\n%s\n", o->key, o->doc);
		/* Lists of the same entries: the first explains them. */
		if (o->type == OPTION_GROUP || str_starts(o->list->entries, o->key))
			describe_group(&b, o->type == OPTION_GROUP ? o->key : o->list->entries);
		buf_addf(&b, "\n```yaml\npale: 1\n%s\n```\n", o->example);
	}
	buf_adds(&b, docs_flags);
	buf_adds(&b, "\n## Keys of later versions\n\n");
	for (const struct option_reserved *k = policy_reserved; k->key; k++)
		buf_addf(&b, "- `%s`: an error now; %s.\n", k->key, k->until);
	describe_shipped(&b);
	/* One newline at the end. */
	if (!b.failed && b.len > 1 && b.data[b.len - 2] == '\n')
		b.data[--b.len] = '\0';
	return finish(&b, ret, err);
}

/* Words of text as comment lines of at most 96 columns. */
static void comment(struct buf *b, const char *indent, const char *text)
{
	size_t column = 97;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column + n + 1 > 96) {
			buf_addf(b, "%s%s# ", b->len && b->data[b->len - 1] != '\n' ? "\n" : "",
				 indent);
			column = strlen(indent) + 2;
		} else {
			buf_adds(b, " ");
			column++;
		}
		buf_add(b, text, n);
		column += n;
		text += n + strspn(text + n, " ");
	}
	buf_adds(b, "\n");
}

/* Prose is "# text"; a key that can be had by deleting one character is "#key: value". */
static void init_key(struct buf *b, const struct policy_option *o)
{
	unsigned depth = option_depth(o);
	const char *indent = depth == 0 ? "" : depth == 1 ? "  " : "    ";

	comment(b, indent, o->doc);
	for (const struct option_word *w = o->words; w && w->word && o->words[1].word; w++)
		buf_addf(b, "%s#   %s: %s\n", indent, w->word, w->doc);
	if (o->type == OPTION_VERSION) {
		buf_addf(b, "%s: %s\n", o->key, o->def);
	} else if (o->def) {
		/* Some readers of YAML take an `off` without quotes for false. */
		const char *quote = strcmp(o->def, "off") == 0 ? "\"" : "";

		buf_addf(b, "#%s%s: %s%s%s\n", indent, option_name(o), quote, o->def, quote);
	} else if (o->example) {
		unsigned line = 0;

		/* Each line of the example on its own; the first ones of a nested one are the
		 * groups. */
		for (const char *p = o->example; *p; line++) {
			size_t n = strcspn(p, "\n");

			if (line >= depth)
				buf_addf(b, "#%.*s\n", (int)n, p);
			p += n + (p[n] == '\n');
		}
	}
}

static int init_starter(char **ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(TEXT_MAX);

	buf_adds(&b,
		 "# A policy of Pale: what untrusted code may touch. What is absent is denied, or "
		 "has "
		 "the\n# default that is shown. Delete the # before a key to change it; check the "
		 "result with\n# `pale policy check`. All of it is explained by `pale policy "
		 "docs`.\n\n");
	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (strchr(o->key, '['))
			continue;
		if (o->type == OPTION_GROUP) {
			comment(&b, option_depth(o) ? "  " : "", o->doc);
			buf_addf(&b, "#%s%s:\n", option_depth(o) ? "  " : "", option_name(o));
			continue;
		}
		init_key(&b, o);
		if (o->type == OPTION_LIST || !o[1].key || !strchr(o[1].key, '.'))
			buf_adds(&b, "\n");
	}
	while (!b.failed && b.len > 1 && b.data[b.len - 2] == '\n')
		b.data[--b.len] = '\0';
	return finish(&b, ret, err);
}

int policy_init_text(const char *name, char **ret, struct pale_err *err)
{
	if (!name)
		return init_starter(ret, err);
	for (const struct policy_shipped *s = policy_shipped; s->name; s++) {
		if (strcmp(name, s->name) != 0)
			continue;
		*ret = strdup(s->text);
		return *ret ? 0 : err_nomem(err, "policy");
	}
	err_set(err, PALE_E_NOTFOUND, "policy", 0, "no policy named %s is shipped; there are",
		QUOTED(name));
	for (const struct policy_shipped *s = policy_shipped; s->name; s++)
		err_add(err, "%s %s", s == policy_shipped ? "" : ",", s->name);
	if (strpbrk(name, "./"))
		err_add(err, "; a file to write to is named with -o");
	return -PALE_E_NOTFOUND;
}
