/* Chooses an interpreter: see interpreter.h. Runs in the supervisor before it plans. The caller's
 * words are trusted; of a script, only the suffix and the first line are looked at, and all they
 * can choose is a row of the table. Whether the interpreter exists is for toolchain_find() to say.
 */
#include "interpreter.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

static const struct row {
	const char *lang;
	const char *command;
	const char *code[2]; /* the options before code given as text */
	const char *input;   /* the argument for code on standard input, or NULL */
	const char *suffixes[4];
} rows[] = {
	{"python", "python3", {"-c"}, "-", {".py"}},
	{"node", "node", {"-e"}, "-", {".js", ".mjs", ".cjs"}},
	{"bash", "bash", {"-c"}, "-s", {".bash"}},
	{"sh", "sh", {"-c"}, "-s", {".sh"}},
	{"ruby", "ruby", {"-e"}, "-", {".rb"}},
	{"perl", "perl", {"-e"}, "-", {".pl"}},
	{"php", "php", {"-r"}, NULL, {".php"}},
	{"lua", "lua", {"-e"}, "-", {".lua"}},
	{"r", "Rscript", {"-e"}, "-", {".R", ".r"}},
	{"deno", "deno", {"eval"}, "-", {".ts"}},
};

/* Other names of the same. */
static const char *const aliases[][2] = {
	{"python3", "python"}, {"py", "python"}, {"javascript", "node"}, {"js", "node"},
	{"nodejs", "node"},    {"shell", "sh"},	 {"typescript", "deno"}, {"ts", "deno"},
	{"rscript", "r"},      {"R", "r"},
};

static const struct row *find_lang(const char *lang)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (strcmp(lang, aliases[i][0]) == 0)
			lang = aliases[i][1];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(lang, rows[i].lang) == 0)
			return &rows[i];
	return NULL;
}

const char *interpreter_langs(void)
{
	return "python, node, bash, sh, ruby, perl, php, lua, r, deno";
}

static void start(struct interpreter *ret, const char *name)
{
	memset(ret, 0, sizeof(*ret));
	ret->name = name;
}

static void push(struct interpreter *ret, const char *word)
{
	if (word && ret->argc < INTERPRETER_MAX_ARGS)
		ret->argv[ret->argc++] = word;
}

static int unknown(const char *lang, struct pale_err *err)
{
	const char *best = NULL;
	size_t least = 3;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t d = str_distance(lang, rows[i].lang, 2);

		if (d < least) {
			least = d;
			best = rows[i].lang;
		}
	}
	err_set(err, PALE_E_USAGE, "plan", 0, "unknown language %s (%s)", QUOTED(lang),
		interpreter_langs());
	if (best)
		err_add(err, "; did you mean %s?", best);
	return -PALE_E_USAGE;
}

int interpreter_for_code(const char *lang, const char *code, struct interpreter *ret,
			 struct pale_err *err)
{
	const struct row *row = find_lang(lang);

	if (!row)
		return unknown(lang, err);
	start(ret, row->lang);
	push(ret, row->command);
	push(ret, row->code[0]);
	push(ret, row->code[1]);
	push(ret, code);
	return 0;
}

int interpreter_for_stdin(const char *lang, struct interpreter *ret, struct pale_err *err)
{
	const struct row *row = find_lang(lang);

	if (!row)
		return unknown(lang, err);
	start(ret, row->lang);
	push(ret, row->command);
	if (strcmp(row->lang, "deno") == 0) {
		push(ret, "run");
		push(ret, "-");
	} else {
		push(ret, row->input);
	}
	return 0;
}

static const struct row *by_suffix(const char *script)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows[i].suffixes); k++)
			if (rows[i].suffixes[k] && str_ends(script, rows[i].suffixes[k]))
				return &rows[i];
	return NULL;
}

/* The language that a #! line names: the last part of "/usr/bin/python3.11" or "env -S node -x". */
static const struct row *by_first_line(char *line)
{
	char *save = NULL;

	for (char *w = strtok_r(line, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		const char *base = strrchr(w, '/') ? strrchr(w, '/') + 1 : w;

		if (strcmp(base, "env") == 0 || *w == '-' || strchr(w, '='))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			size_t n = strlen(rows[i].lang);

			if (strcmp(base, rows[i].command) == 0 ||
			    (strncmp(base, rows[i].lang, n) == 0 &&
			     base[n + strspn(base + n, "0123456789.")] == '\0'))
				return &rows[i];
		}
		return NULL;
	}
	return NULL;
}

int interpreter_for_script(const char *script, struct interpreter *ret, struct pale_err *err)
{
	_cleanup_close_ int fd = open(script, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const struct row *row = NULL;
	char head[256];
	bool runs, has_line, elf;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, PALE_E_NOTFOUND, "plan", errno, "cannot open the script %s",
			       QUOTED(script));
	if (!S_ISREG(st.st_mode))
		return err_set(err, PALE_E_NOTFOUND, "plan", 0, "the script %s is no regular file",
			       QUOTED(script));
	n = fd_read_full(fd, head, sizeof(head) - 1);
	if (n < 0)
		return err_set(err, PALE_E_SYSTEM, "plan", (int)-n, "cannot read the script %s",
			       QUOTED(script));
	head[n] = '\0';
	has_line = n > 2 && memcmp(head, "#!", 2) == 0;
	elf = n > 4 && memcmp(head, "\177ELF", 4) == 0;
	runs = access(script, X_OK) == 0;
	start(ret, "program");
	if (runs && (has_line || elf)) {
		/* Without a slash it would be looked up in $PATH: toolchain_find() is given
		 * ./script. */
		push(ret, script);
		return 0;
	}
	if (has_line) {
		head[strcspn(head, "\r\n")] = '\0';
		row = by_first_line(head + 2);
	}
	if (!row)
		row = by_suffix(script);
	/* As a shell says it: it is there, and cannot be run. */
	if (!row) {
		if (has_line)
			err_set(err, PALE_E_NOTFOUND, "plan", 0,
				"the script %s is not executable (chmod +x)", QUOTED(script));
		else
			err_set(err, PALE_E_NOTFOUND, "plan", 0,
				"nothing says how to run %s: it is not executable with a #! line, "
				"and its "
				"suffix is unknown; name its interpreter: bash FILE",
				QUOTED(script));
		if (err)
			err->sys = EACCES;
		return -PALE_E_NOTFOUND;
	}
	start(ret, row->lang);
	push(ret, row->command);
	if (strcmp(row->lang, "deno") == 0)
		push(ret, "run");
	push(ret, script);
	return 0;
}

bool interpreter_is_script(const char *word)
{
	struct stat st;

	return (strchr(word, '/') || by_suffix(word)) && stat(word, &st) == 0 &&
	       S_ISREG(st.st_mode);
}
