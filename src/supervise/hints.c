/* Hints: see hints.h. In the supervisor, when the box has ended. What the box wrote is hostile: it
 * can call a hint up and choose the path that is quoted in one, nothing else; a hint states what
 * the policy says, which is so whatever the box wrote. */
#include "supervise/hints.h"

#include <sched.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "confine/seccomp.h"
#include "confine/seccomp_table.h"

#define MAX_PATH_SHOWN 128
#define MAX_CALL       1024

void hints_add(struct hints_tail *t, const char *data, size_t len)
{
	if (len >= HINTS_TAIL) {
		memcpy(t->data, data + len - HINTS_TAIL, HINTS_TAIL);
		t->len = HINTS_TAIL;
		return;
	}
	if (t->len + len > sizeof(t->data)) {
		memmove(t->data, t->data + t->len - HINTS_TAIL, HINTS_TAIL);
		t->len = HINTS_TAIL;
	}
	memcpy(t->data + t->len, data, len);
	t->len += len;
}

static const struct {
	const char *rule, *text;
} of_limits[LIMIT_COUNT] = {
	[LIMIT_WALL] = {"limits.wall", "it had no more time: --timeout gives more"},
	[LIMIT_CPU] = {"limits.cpu", "it had no more processor time: --cpu-time gives more"},
	[LIMIT_MEMORY] = {"limits.memory", "it had no more memory: --memory gives more"},
	[LIMIT_PROCESSES] = {"limits.processes",
			     "no more processes and threads at a time: --processes allows more"},
	[LIMIT_DISK] = {"limits.disk", "HOME, /tmp and overlays were full: --disk gives more"},
	[LIMIT_INODES] = {"limits.inodes", "no more files and directories in HOME, /tmp and "
					   "overlays: --set limits.inodes=NUMBER allows more"},
	[LIMIT_FILE_SIZE] = {"limits.file_size",
			     "no larger files: --set limits.file_size=SIZE allows them"},
	[LIMIT_OUTPUT] = {"limits.output_total",
			  "no more output: --set limits.output_total=SIZE allows more"},
};

static const char open_files[] =
	"no more open files of one process: --set limits.open_files=NUMBER allows more";
static const char read_only[] = "/usr, /etc and what --ro shows are read-only: write to HOME or "
				"/tmp; --overlay DIR makes a "
				"directory writable for review, --rw DIR one that is copied back";

/* What programs say when the kernel refused them, in the words of the C library, of errno, and of
 * interpreters. */
static const struct {
	const char *sign;
	int limit; /* enum limit; -1: the rule and text below */
	const char *rule, *text;
	bool at_limit; /* others say that, too: only where as many processes were there */
} signs[] = {
	{"MemoryError", LIMIT_MEMORY},
	{"Cannot allocate memory", LIMIT_MEMORY},
	{"std::bad_alloc", LIMIT_MEMORY},
	{"heap out of memory", LIMIT_MEMORY},
	{"ENOMEM", LIMIT_MEMORY},
	{"can't start new thread", LIMIT_PROCESSES},
	{"_fork_exec(", LIMIT_PROCESSES},
	{"annot fork", LIMIT_PROCESSES},
	{"fork: retry", LIMIT_PROCESSES},
	{"spawn EAGAIN", LIMIT_PROCESSES},
	{"Resource temporarily unavailable", LIMIT_PROCESSES, .at_limit = true},
	{"EAGAIN", LIMIT_PROCESSES, .at_limit = true},
	{"File too large", LIMIT_FILE_SIZE},
	{"File size limit exceeded", LIMIT_FILE_SIZE},
	{"EFBIG", LIMIT_FILE_SIZE},
	{"Too many open files", -1, "limits.open_files", open_files},
	{"EMFILE", -1, "limits.open_files", open_files},
	{"Read-only file system", -1, "files", read_only},
	{"EROFS", -1, "files", read_only},
};

static const char *find(const struct hints_tail *t, const char *sign)
{
	return memmem(t->data, t->len, sign, strlen(sign));
}

static void add(json_t *a, const char *rule, const char *text)
{
	json_t *o;
	size_t i;

	json_array_foreach(a, i, o) if (strcmp(json_string_value(json_object_get(o, "rule")),
					       rule) == 0) return;
	json_array_append_new(a, json_pack("{ss ss}", "rule", rule, "text", text));
}

/* Is the path beneath something that is mounted or made in the box, other than the root? Then it is
 * missing there as it would be outside. */
static bool is_shown(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->nsteps; i++) {
		const struct step *s = &plan->steps[i];
		const char *target = s->target;
		size_t n;

		if (!target || s->type == STEP_ROOT || s->type == STEP_DATA ||
		    s->type == STEP_SOURCE || s->type == STEP_SKELETON || s->type == STEP_DIR)
			continue;
		while (*target == '/')
			target++;
		n = strlen(target);
		if (n && strncmp(path + 1, target, n) == 0 &&
		    (path[1 + n] == '/' || path[1 + n] == '\0'))
			return true;
	}
	return false;
}

/* The first absolute path in the line that ends or begins with what was found: "cat: /root/x: No
 * such file", "[Errno 2] No such file or directory: '/root/x'". */
static bool path_near(const struct hints_tail *t, const char *found, char *ret, size_t size)
{
	static const char stops[] = "'\"`: \t,;)>";
	const char *from = memrchr(t->data, '\n', (size_t)(found - t->data)),
		   *end = t->data + t->len, *to = memchr(found, '\n', (size_t)(end - found));
	size_t n = 0;

	from = from ? from + 1 : t->data;
	to = to ? to : end;
	for (; from < to; from++)
		if (*from == '/' && (from == t->data || strchr("'\"`: \t\n(<", from[-1])))
			break;
	while (from + n < to && n < size - 1 && !strchr(stops, from[n]))
		n++;
	if (n < 2)
		return false;
	memcpy(ret, from, n);
	ret[n] = '\0';
	return true;
}

/* A file of the host that is not in the box. Whether the host has it is not looked at: the answer
 * would be for the box to read, where its standard error goes back to a model. */
static void add_missing(json_t *a, const struct plan *plan, const struct hints_tail *t)
{
	static const char *const words[] = {"No such file or directory", "ENOENT"};
	char path[MAX_PATH_SHOWN];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *found = find(t, words[i]);
		_cleanup_buf_ struct buf text = BUF_INIT(2048);

		if (!found || !path_near(t, found, path, sizeof(path)) || is_shown(plan, path))
			continue;
		buf_adds(&text, "\"");
		str_escape(&text, path, strlen(path));
		buf_adds(&text,
			 "\" is not in the box, whether or not the host has it: nothing of the "
			 "host is but /usr and what the policy names; --ro PATH shows more");
		if (!text.data)
			return;
		add(a, "files", text.data);
		return;
	}
}

/* Would another profile let the call through? Where the arguments decide, only that of namespaces
 * is known here. */
static bool allows(enum policy_profile profile, const char *call)
{
	const uint64_t namespaces[6] = {CLONE_NEWUSER | CLONE_NEWNS};

	for (int nr = 0; nr < MAX_CALL; nr++) {
		const char *name = seccomp_call_name(nr);
		struct seccomp_verdict v;

		if (!name || strcmp(name, call) != 0)
			continue;
		v = seccomp_verdict(profile, 0, nr, namespaces);
		return v.action == SECCOMP_ALLOW || v.action == SECCOMP_REPORT;
	}
	return false;
}

/* The first system call that was refused: the filter is one rule. */
static void add_call(json_t *a, const struct result *r, const struct plan *plan)
{
	json_t *o;
	size_t i;

	json_array_foreach(r->blocked, i, o)
	{
		const char *kind = json_string_value(json_object_get(o, "kind")),
			   *call = json_string_value(json_object_get(o, "call")), *with = NULL;
		char text[256];
		bool detail;

		if (!kind || strcmp(kind, "call") != 0 || !call || !*call)
			continue;
		detail = json_object_get(o, "detail") && strcmp(call, "unshare") != 0 &&
			 strcmp(call, "clone") != 0;
		if (plan->profile == PROFILE_STRICT && (detail || allows(PROFILE_DEFAULT, call)))
			with = "default";
		else if (plan->profile != PROFILE_NESTED && !detail && allows(PROFILE_NESTED, call))
			with = "nested";
		if (with)
			snprintf(text, sizeof(text),
				 "it refuses the system call %s: --set kernel.profile=%s allows it",
				 QUOTED(call), with);
		else
			snprintf(text, sizeof(text),
				 "the system call %s is refused, or is with these arguments, in "
				 "every profile",
				 QUOTED(call));
		add(a, "kernel.profile", text);
		return;
	}
}

json_t *hints_make(const struct result *r, const struct plan *plan, const struct hints_tail *t)
{
	json_t *a = json_array();

	if (!a)
		return NULL;
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (r->limits[i].hit)
			add(a, of_limits[i].rule, of_limits[i].text);
	if (r->outcome != OUTCOME_EXIT || r->status == 0)
		return a;
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
		int limit = signs[i].limit;

		if (!find(t, signs[i].sign) || (signs[i].at_limit && r->processes_peak &&
						r->processes_peak + 2 < plan->limits.processes))
			continue;
		add(a, limit < 0 ? signs[i].rule : of_limits[limit].rule,
		    limit < 0 ? signs[i].text : of_limits[limit].text);
	}
	add_missing(a, plan, t);
	add_call(a, r, plan);
	return a;
}
