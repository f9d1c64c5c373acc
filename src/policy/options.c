/* The options table (see options.h) and what reads and writes one scalar by its row. Runs wherever
 * a policy is read, with the caller's rights; the texts may be hostile. */
#include "policy/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

static bool valid_user(const char *s)
{
	/* `nobody` is the name of what belongs to no user of the box. */
	if (((*s < 'a' || *s > 'z') && *s != '_') || strcmp(s, "nobody") == 0)
		return false;
	return strlen(s) <= 31 && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bool valid_image(const char *s)
{
	return strcmp(s, "host") == 0 || (*s == '/' && s[1]);
}

static const struct option_word isolation_words[] = {
	{"process", 0, "namespaces, seccomp, Landlock and cgroups of this kernel"},
	{0},
};
static const struct option_word access_words[] = {
	{"hide", ACCESS_HIDE, "a path inside another entry that must not be seen"},
	{"read", ACCESS_READ, "a read-only view of the host's file or directory"},
	{"overlay", ACCESS_OVERLAY,
	 "copy on write: the host's directory stays as it is, the changes are kept for `pale diff` "
	 "and `pale apply`"},
	{"write", ACCESS_WRITE, "a fresh, empty, writable directory"},
	{0},
};
static const struct option_word profile_words[] = {
	{"strict", PROFILE_STRICT, "what computing needs, and no more"},
	{"default", PROFILE_DEFAULT, "what ordinary programs need: compilers, interpreters, git"},
	{"nested", PROFILE_NESTED, "also user namespaces and mounts, for a sandbox in the box"},
	{0},
};
static const struct option_word watch_words[] = {
	{"all", WATCH_ALL, "every open that was refused"},
	{"writes", WATCH_WRITES, "opens for writing that were refused"},
	{"off", WATCH_OFF, "only what the kernel reports by itself"},
	{0},
};
static const struct option_word item_words[] = {
	{"cpus", ITEM_CPUS, "the share of the processors"},
	{"cpu", ITEM_CPU, "the limit on processor time"},
	{"memory", ITEM_MEMORY, "the limit on memory"},
	{"processes", ITEM_PROCESSES, "the limit on processes"},
	{"landlock", ITEM_LANDLOCK, "the second lock on files, where the kernel has none"},
	{"events", ITEM_EVENTS, "events of denied calls and blocked network attempts"},
	{0},
};

#define P(member) offsetof(struct policy, member)
#define F(member) offsetof(struct policy_file, member)

/* clang-format off */
const struct policy_option policy_options[] = {
	{.key = "pale", .type = OPTION_VERSION, .def = "1",
	 .doc = "The format of the policy: always 1. Must be there, so that a policy is never taken "
		"for one of another format.",
	 .example = "pale: 1", .also = "version apiVersion"},
	{.key = "isolation", .type = OPTION_TEXT, .offset = P(isolation), .def = "process",
	 .words = isolation_words, .widens = WIDENS_CHANGE,
	 .doc = "What makes the box. A list is an order of preference: the first that this host can "
		"do is taken.",
	 .example = "isolation: process", .also = "backend runtime"},
	{.key = "image", .type = OPTION_TEXT, .offset = P(image), .def = "host",
	 .pattern = "^(host|/.+)$", .valid = valid_image, .widens = WIDENS_CHANGE,
	 .expected = "`host` or the absolute path of a directory that holds a root file system",
	 .doc = "Where programs come from: the host's /usr, read-only, or a directory that holds a "
		"root file system, of which /usr is taken.",
	 .example = "image: host", .also = "rootfs root"},
	{.key = "user", .type = OPTION_TEXT, .offset = P(user), .def = "agent",
	 .pattern = "^(?!nobody$)[a-z_][a-z0-9_-]{0,30}$", .valid = valid_user, .widens = WIDENS_CHANGE,
	 .expected = "a user name, other than nobody: lower-case letters, digits, `_` and `-`, at most "
		     "31",
	 .doc = "The user's name inside. `root` is root of the box's own user namespace only, "
		"without capabilities.",
	 .example = "user: agent", .also = "username uid"},

	{.key = "files", .type = OPTION_FILES,
	 .doc = "What of the host is there, besides the host's programs in /usr, and what is "
		"writable, besides HOME and /tmp. Nothing else of the host's files is there. Entries "
		"may lie in one another, in any order.",
	 .example = "files:\n  - {path: /data/sales.xlsx, from: ./sales.xlsx, access: read}\n"
		    "  - {path: /out, access: write, size: 64MiB, collect: ./out}\n"
		    "  - {path: ., access: overlay}\n  - {path: ./.env, access: hide}",
	 .also = "mounts filesystem fs paths volumes"},
	{.key = "files[].path", .type = OPTION_PATH, .offset = F(path),
	 .doc = "Where it is in the box. A relative path means the same absolute path as on the "
		"host, counted from the policy's directory; left out, it is that of `from`, or of "
		"`collect`.",
	 .also = "target destination dest to mount"},
	{.key = "files[].from", .type = OPTION_PATH, .offset = F(from),
	 .doc = "The file or directory on the host (`read` and `overlay`); relative to the policy's "
		"directory. Left out, it is `path`. It must exist.",
	 .also = "source src host"},
	{.key = "files[].access", .type = OPTION_WORD, .offset = F(access), .def = "read",
	 .words = access_words, .doc = "What the code may do there.", .also = "mode permission type"},
	{.key = "files[].size", .type = OPTION_SIZE, .offset = F(size_bytes), .min = "64KiB",
	 .max = "16TiB",
	 .doc = "`write` only: what fits in. Left out, the directory shares limits.disk with HOME "
		"and /tmp.",
	 .also = "limit max quota"},
	{.key = "files[].collect", .type = OPTION_PATH, .offset = F(collect),
	 .doc = "`write` only: the host's directory to which the contents are copied when the run "
		"has ended; relative to the policy's directory.",
	 .also = "copy_to save output"},

	{.key = "limits", .type = OPTION_GROUP,
	 .doc = "Each of them is always in force; there is no `unlimited`. When one is hit, the "
		"result names it, with the figures.",
	 .example = "limits: {wall: 2m, memory: 1GiB, cpus: 0.5}", .also = "resources limit"},
	{.key = "limits.wall", .type = OPTION_TIME, .offset = P(limits.wall_ms), .def = "30s",
	 .min = "10ms", .max = "1000h", .widens = WIDENS_MORE, .flag = "timeout",
	 .doc = "Wall-clock time of the run; at its end the box is destroyed.",
	 .example = "limits: {wall: 10m}", .also = "timeout time walltime duration deadline"},
	{.key = "limits.cpu", .type = OPTION_TIME, .offset = P(limits.cpu_ms), .def = "30s",
	 .min = "10ms", .max = "10000h", .widens = WIDENS_MORE, .item = ITEM_CPU, .flag = "cpu-time",
	 .doc = "Processor time of all processes together; at its end the box is destroyed.",
	 .example = "limits: {cpu: 1m}", .also = "cpu_time cputime cpu-time"},
	{.key = "limits.cpus", .type = OPTION_MILLI, .offset = P(limits.cpus_milli), .def = "1",
	 .min = "0.01", .max = "4096", .widens = WIDENS_MORE, .item = ITEM_CPUS, .flag = "cpus",
	 .doc = "Processors that may be busy at a time; fractions are shares of one. The code sees "
		"as many.",
	 .example = "limits: {cpus: 1.5}", .also = "cores nproc cpu_count"},
	{.key = "limits.memory", .type = OPTION_SIZE, .offset = P(limits.memory_bytes),
	 .def = "512MiB", .min = "4MiB", .max = "64TiB", .widens = WIDENS_MORE, .item = ITEM_MEMORY,
	 .flag = "memory",
	 .doc = "Memory of the whole box, what it wrote to memory-backed directories included; "
		"there is no swap.",
	 .example = "limits: {memory: 2GiB}", .also = "mem ram memory_mb"},
	{.key = "limits.processes", .type = OPTION_COUNT, .offset = P(limits.processes),
	 .def = "128", .min = "1", .max = "4194304", .widens = WIDENS_MORE, .item = ITEM_PROCESSES,
	 .flag = "processes", .doc = "Processes and threads at a time.",
	 .example = "limits: {processes: 64}", .also = "pids nproc procs threads max_processes"},
	{.key = "limits.open_files", .type = OPTION_COUNT, .offset = P(limits.open_files),
	 .def = "1024", .min = "16", .max = "1048576", .widens = WIDENS_MORE,
	 .doc = "Open files of one process.", .example = "limits: {open_files: 256}",
	 .also = "nofile fds openfiles files descriptors"},
	{.key = "limits.file_size", .type = OPTION_SIZE, .offset = P(limits.file_size_bytes),
	 .def = "256MiB", .min = "4KiB", .max = "16TiB", .widens = WIDENS_MORE,
	 .doc = "The largest file that can be written.", .example = "limits: {file_size: 16MiB}",
	 .also = "fsize filesize max_file_size"},
	{.key = "limits.disk", .type = OPTION_SIZE, .offset = P(limits.disk_bytes), .def = "256MiB",
	 .min = "1MiB", .max = "16TiB", .widens = WIDENS_MORE, .flag = "disk",
	 .doc = "All writable places together: HOME, /tmp, /dev/shm, the changes of overlays, and "
		"`write` entries without a size of their own.",
	 .example = "limits: {disk: 1GiB}", .also = "storage space tmp disk_size"},
	{.key = "limits.inodes", .type = OPTION_COUNT, .offset = P(limits.inodes), .def = "65536",
	 .min = "256", .max = "1000000000", .widens = WIDENS_MORE,
	 .doc = "Files and directories in all writable places together.",
	 .example = "limits: {inodes: 10000}", .also = "nr_inodes file_count"},
	{.key = "limits.output", .type = OPTION_SIZE, .offset = P(limits.output_bytes),
	 .def = "1MiB", .min = "1KiB", .max = "1GiB", .widens = WIDENS_MORE, .flag = "output",
	 .doc = "What is kept of standard output and standard error each, for the result: half from "
		"the head, half from the tail, where the errors are.",
	 .example = "limits: {output: 64KiB}", .also = "stdout output_size"},
	{.key = "limits.output_total", .type = OPTION_SIZE, .offset = P(limits.output_total_bytes),
	 .def = "64MiB", .min = "1KiB", .max = "16TiB", .widens = WIDENS_MORE,
	 .doc = "Output of the whole run; at this many bytes it is ended.",
	 .example = "limits: {output_total: 1GiB}", .also = "max_output total_output"},

	{.key = "kernel", .type = OPTION_GROUP, .doc = "What of the kernel is within reach.",
	 .example = "kernel: {profile: strict}", .also = "seccomp syscalls"},
	{.key = "kernel.profile", .type = OPTION_WORD, .offset = P(profile), .def = "default",
	 .words = profile_words, .widens = WIDENS_MORE, .flag = "profile",
	 .doc = "Which system calls work. The others fail with an ordinary errno, and are in the "
		"audit log by name.",
	 .example = "kernel: {profile: strict}", .also = "seccomp syscalls"},

	{.key = "audit", .type = OPTION_GROUP, .doc = "What is recorded besides what always is.",
	 .example = "audit: {files: all}", .also = "log logging events"},
	{.key = "audit.files", .type = OPTION_WORD, .offset = P(watch_files), .def = "off",
	 .words = watch_words, .widens = WIDENS_MORE,
	 .doc = "Which refused accesses to files are events in the audit log. Watching costs a few "
		"microseconds for each open.",
	 .example = "audit: {files: writes}", .also = "watch file_access opens"},

	{.key = "best_effort", .type = OPTION_WORDS, .offset = P(best_effort), .words = item_words,
	 .widens = WIDENS_MORE, .flag = "best-effort",
	 .doc = "Items that may be weaker than asked where this host cannot enforce them; without it, "
		"the launch is refused. Each use is in the audit log and in the result.",
	 .example = "best_effort: [memory, cpus]", .also = "optional fallback besteffort"},
	{.key = "env", .type = OPTION_ENV,
	 .doc = "Environment variables, besides PATH, HOME, USER and the like. Nothing is inherited "
		"from the caller. Names beginning with PALE_ are Pale's own.",
	 .example = "env: {LANG: C.UTF-8, SEED: 1}", .also = "environment environ variables envs"},
	{0},
};

const struct option_reserved policy_reserved[] = {
	{"network", "until then no box has a network: leave it out"},
	{"egress", "until then no box has a network: leave it out"},
	{"secrets", "until then no secret can be given to a box"},
	{"approve", "until then nothing waits for a person"},
	{"approvals", "until then nothing waits for a person"},
	{"session", "until then each run is a box of its own"},
	{"tools", "until then a box has no tools of the caller's"},
	{0},
};
/* clang-format on */

const struct policy_option *option_find(const char *key)
{
	for (const struct policy_option *o = policy_options; o->key; o++)
		if (strcmp(o->key, key) == 0)
			return o;
	return NULL;
}

const char *option_name(const struct policy_option *o)
{
	const char *dot = strrchr(o->key, '.');

	return dot ? dot + 1 : o->key;
}

bool option_in_group(const struct policy_option *o, const char *group)
{
	const char *name = option_name(o);
	size_t len = strlen(group);

	if (name == o->key)
		return len == 0;
	return (size_t)(name - o->key) == len + 1 && memcmp(o->key, group, len) == 0;
}

bool option_in_entry(const struct policy_option *o, const struct policy_file *f)
{
	const char *text = "";

	if (!option_in_group(o, "files[]"))
		return false;
	if (o->type == OPTION_PATH)
		memcpy(&text, (const char *)f + o->offset, sizeof(text));
	return text && (o->type != OPTION_SIZE || option_number(o, f) != 0);
}

const char *option_word_of(const struct option_word *words, unsigned value)
{
	for (; words->word; words++)
		if (words->value == value)
			return words->word;
	return "?";
}

const char *option_expected(const struct policy_option *o)
{
	switch (o->type) {
	case OPTION_SIZE: return "a size such as 64MiB, 1.5GiB or 500kB";
	case OPTION_TIME: return "a time such as 30s, 1.5s, 250ms, 2m or 1h";
	case OPTION_MILLI: return "a number such as 1, 0.5 or 2.25, with at most three decimals";
	case OPTION_COUNT: return "a whole number";
	case OPTION_VERSION: return "1";
	case OPTION_PATH: return "a path";
	case OPTION_TEXT: return o->expected ? o->expected : "one of";
	case OPTION_WORD: return "one of";
	case OPTION_WORDS: return "a list of";
	case OPTION_GROUP: return "a mapping of keys, {key: value}";
	case OPTION_ENV: return "a mapping of variables, {NAME: value}";
	case OPTION_FILES: return "a list of entries, [{path: ..., access: ...}]";
	}
	return "a value";
}

uint64_t option_number(const struct policy_option *o, const void *base)
{
	const char *at = (const char *)base + o->offset;
	uint64_t number = 0;
	unsigned word = 0;

	if (o->type == OPTION_WORD || o->type == OPTION_WORDS)
		memcpy(&word, at, sizeof(word));
	else
		memcpy(&number, at, sizeof(number));
	return o->type == OPTION_WORD || o->type == OPTION_WORDS ? word : number;
}

static int parse_number(enum option_type type, const char *text, uint64_t *ret)
{
	switch (type) {
	case OPTION_SIZE: return num_parse_size(text, ret);
	case OPTION_TIME: return num_parse_duration(text, ret);
	case OPTION_MILLI: return num_parse_milli(text, ret);
	default: return num_parse_u64(text, UINT64_MAX, ret);
	}
}

/* Units as people write them, in lower case, and what is meant. A factor goes into the number. */
static const struct {
	enum option_type type;
	const char *written, *unit;
	unsigned factor, divisor;
} unit_slips[] = {
	{OPTION_SIZE, "b", "B", 1, 1},		{OPTION_SIZE, "byte", "B", 1, 1},
	{OPTION_SIZE, "bytes", "B", 1, 1},	{OPTION_SIZE, "ki", "KiB", 1, 1},
	{OPTION_SIZE, "kib", "KiB", 1, 1},	{OPTION_SIZE, "kb", "kB", 1, 1},
	{OPTION_SIZE, "kilobytes", "kB", 1, 1}, {OPTION_SIZE, "m", "MiB", 1, 1},
	{OPTION_SIZE, "mi", "MiB", 1, 1},	{OPTION_SIZE, "mib", "MiB", 1, 1},
	{OPTION_SIZE, "mb", "MB", 1, 1},	{OPTION_SIZE, "megabytes", "MB", 1, 1},
	{OPTION_SIZE, "meg", "MiB", 1, 1},	{OPTION_SIZE, "g", "GiB", 1, 1},
	{OPTION_SIZE, "gi", "GiB", 1, 1},	{OPTION_SIZE, "gib", "GiB", 1, 1},
	{OPTION_SIZE, "gb", "GB", 1, 1},	{OPTION_SIZE, "gigabytes", "GB", 1, 1},
	{OPTION_SIZE, "gig", "GiB", 1, 1},	{OPTION_SIZE, "t", "TiB", 1, 1},
	{OPTION_SIZE, "ti", "TiB", 1, 1},	{OPTION_SIZE, "tib", "TiB", 1, 1},
	{OPTION_SIZE, "tb", "TB", 1, 1},	{OPTION_TIME, "msec", "ms", 1, 1},
	{OPTION_TIME, "millis", "ms", 1, 1},	{OPTION_TIME, "milliseconds", "ms", 1, 1},
	{OPTION_TIME, "s", "s", 1, 1},		{OPTION_TIME, "sec", "s", 1, 1},
	{OPTION_TIME, "secs", "s", 1, 1},	{OPTION_TIME, "second", "s", 1, 1},
	{OPTION_TIME, "seconds", "s", 1, 1},	{OPTION_TIME, "m", "m", 1, 1},
	{OPTION_TIME, "mins", "m", 1, 1},	{OPTION_TIME, "minute", "m", 1, 1},
	{OPTION_TIME, "minutes", "m", 1, 1},	{OPTION_TIME, "h", "h", 1, 1},
	{OPTION_TIME, "hr", "h", 1, 1},		{OPTION_TIME, "hrs", "h", 1, 1},
	{OPTION_TIME, "hour", "h", 1, 1},	{OPTION_TIME, "hours", "h", 1, 1},
	{OPTION_TIME, "d", "h", 24, 1},		{OPTION_TIME, "day", "h", 24, 1},
	{OPTION_TIME, "days", "h", 24, 1},	{OPTION_MILLI, "m", "", 1, 1000},
	{OPTION_MILLI, "%", "", 1, 100},	{OPTION_MILLI, "cpu", "", 1, 1},
	{OPTION_MILLI, "cpus", "", 1, 1},	{OPTION_MILLI, "core", "", 1, 1},
	{OPTION_MILLI, "cores", "", 1, 1},
};

/* Appends ": did you mean 512MiB?" where the text is a number with a misspelt unit. */
static void suggest_unit(const struct policy_option *o, const char *text, struct pale_err *err)
{
	size_t n = strspn(text, "0123456789."), used = 0;
	char number[24], unit[16] = "";
	uint64_t milli;

	if (n == 0 || n >= sizeof(number))
		return;
	memcpy(number, text, n);
	number[n] = '\0';
	for (const char *p = text + n; *p; p++) {
		if (*p == ' ' || *p == '_')
			continue;
		if (used + 1 >= sizeof(unit))
			return;
		unit[used++] = (char)tolower((unsigned char)*p);
	}
	for (size_t i = 0; i < ARRAY_SIZE(unit_slips); i++) {
		char fixed[64], plain[NUM_TEXT];

		if (unit_slips[i].type != o->type || strcmp(unit_slips[i].written, unit) != 0)
			continue;
		if (unit_slips[i].factor == 1 && unit_slips[i].divisor == 1) {
			snprintf(fixed, sizeof(fixed), "%s%s", number, unit_slips[i].unit);
		} else if (num_parse_milli(number, &milli) == 0 && milli < UINT32_MAX) {
			milli = milli * unit_slips[i].factor / unit_slips[i].divisor;
			snprintf(fixed, sizeof(fixed), "%s%s", num_format_milli(plain, milli),
				 unit_slips[i].unit);
		} else {
			return;
		}
		if (parse_number(o->type, fixed, &milli) == 0)
			err_add(err, ": did you mean %s?", fixed);
		return;
	}
}

static bool means_unlimited(const char *text)
{
	static const char *const words[] = {"unlimited", "infinity", "inf", "none",
					    "max",	 "-1",	     "off", "no"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

static int parse_scalar_number(const struct policy_option *o, const char *text, char *at,
			       struct pale_err *err)
{
	uint64_t value = 0, bound;
	int r = parse_number(o->type, text, &value);

	if (r == -ERANGE) {
		value = UINT64_MAX; /* and so over every maximum */
	} else if (r < 0) {
		err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s, not %s", o->key,
			option_expected(o), QUOTED(text));
		if (o->max && means_unlimited(text))
			err_add(err, ": there is always a limit; the most is %s", o->max);
		else
			suggest_unit(o, text, err);
		return -PALE_E_POLICY;
	}
	if (o->min && parse_number(o->type, o->min, &bound) == 0 && value < bound)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: %s is too little: the least is %s", o->key, QUOTED(text),
			       o->min);
	if (o->max && parse_number(o->type, o->max, &bound) == 0 && value > bound)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: %s is too much: the most is %s", o->key, QUOTED(text), o->max);
	memcpy(at, &value, sizeof(value));
	return 0;
}

/* The word's row, or NULL with the message set. */
static const struct option_word *parse_word(const struct policy_option *o, const char *text,
					    struct pale_err *err)
{
	const char *best = NULL;
	size_t distance = strlen(text) < 4 ? 2 : 3;

	for (const struct option_word *w = o->words; w->word; w++)
		if (strcmp(w->word, text) == 0)
			return w;
	err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s", o->key,
		o->words[1].word ? "one of " : "");
	for (const struct option_word *w = o->words; w->word; w++) {
		size_t d = str_distance(text, w->word, distance);

		err_add(err, "%s%s", w == o->words ? "" : ", ", w->word);
		if (d < distance) {
			distance = d;
			best = w->word;
		}
	}
	err_add(err, "; not %s", QUOTED(text));
	if (best)
		err_add(err, ": did you mean %s?", best);
	return NULL;
}

int option_parse(const struct policy_option *o, const char *text, void *base, struct pale_err *err)
{
	char *at = (char *)base + o->offset, *copy, *old;
	const struct option_word *w = NULL;
	unsigned bits;

	if (o->words) {
		w = parse_word(o, text, err);
		if (!w)
			return -PALE_E_POLICY;
	}
	switch (o->type) {
	case OPTION_VERSION:
		if (strcmp(text, o->def) == 0)
			return 0;
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: expected 1, not %s: Pale %s knows policies of format 1 only",
			       o->key, QUOTED(text), PALE_VERSION);
	case OPTION_SIZE:
	case OPTION_TIME:
	case OPTION_MILLI:
	case OPTION_COUNT: return parse_scalar_number(o, text, at, err);
	case OPTION_WORD: memcpy(at, &w->value, sizeof(w->value)); return 0;
	case OPTION_WORDS:
		memcpy(&bits, at, sizeof(bits));
		bits |= w->value;
		memcpy(at, &bits, sizeof(bits));
		return 0;
	case OPTION_TEXT:
	case OPTION_PATH:
		if (strlen(text) >= (o->type == OPTION_PATH ? 4096 : OPTION_TEXT_MAX))
			return err_set(err, PALE_E_POLICY, "policy", 0, "%s: too long", o->key);
		if (!*text || (o->valid && !o->valid(text)))
			return err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s, not %s",
				       o->key, option_expected(o), QUOTED(text));
		copy = strdup(text);
		if (!copy)
			return err_nomem(err, "policy");
		memcpy(&old, at, sizeof(old));
		free(old);
		memcpy(at, &copy, sizeof(copy));
		return 0;
	case OPTION_GROUP:
	case OPTION_FILES:
	case OPTION_ENV: break;
	}
	return err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s, not %s", o->key,
		       option_expected(o), QUOTED(text));
}

void option_format(const struct policy_option *o, const void *base, struct buf *b)
{
	uint64_t value = option_number(o, base);
	char text[NUM_TEXT];
	const char *string;

	switch (o->type) {
	case OPTION_SIZE: buf_adds(b, num_format_size(text, value)); break;
	case OPTION_TIME: buf_adds(b, num_format_duration(text, value)); break;
	case OPTION_MILLI: buf_adds(b, num_format_milli(text, value)); break;
	case OPTION_COUNT: buf_addf(b, "%" PRIu64, value); break;
	case OPTION_VERSION: buf_adds(b, o->def); break;
	case OPTION_WORD: buf_adds(b, option_word_of(o->words, (unsigned)value)); break;
	case OPTION_TEXT:
	case OPTION_PATH:
		memcpy(&string, (const char *)base + o->offset, sizeof(string));
		buf_adds(b, string ? string : "");
		break;
	case OPTION_WORDS:
		for (const struct option_word *w = o->words; w->word; w++)
			if (value & w->value)
				buf_addf(b, "%s%s", b->len ? ", " : "", w->word);
		break;
	case OPTION_GROUP:
	case OPTION_FILES:
	case OPTION_ENV: break;
	}
}

/* Whether word is among the blank-separated words. */
static bool listed(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (; words && *words; words += strcspn(words, " "), words += strspn(words, " "))
		if (strcspn(words, " ") == len && strncasecmp(words, word, len) == 0)
			return true;
	return false;
}

void option_suggest_key(const char *group, const char *name, struct pale_err *err)
{
	const struct policy_option *best = NULL;
	size_t distance = strlen(name) < 4 ? 2 : 3;

	for (const struct option_reserved *k = policy_reserved; !*group && k->key; k++) {
		if (strcmp(k->key, name) == 0) {
			err_add(err, ": a later version of Pale will know it; %s", k->until);
			return;
		}
	}
	for (const struct policy_option *o = policy_options; o->key; o++) {
		size_t d;

		if (!option_in_group(o, group))
			continue;
		d = listed(o->also, name) ? 0 : str_distance(name, option_name(o), distance);
		if (d < distance) {
			distance = d;
			best = o;
		}
	}
	if (best) {
		err_add(err, ": did you mean %s?", option_name(best));
		return;
	}
	/* Right, but in the wrong place: `memory` at the top. */
	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (strchr(o->key, '[') || !strchr(o->key, '.'))
			continue;
		if (strcmp(option_name(o), name) == 0 || listed(o->also, name)) {
			err_add(err, ": did you mean %s?", o->key);
			return;
		}
	}
}
