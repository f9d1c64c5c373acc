/* The boxes: see boxes.h. In the caller's process, which holds each box by the public library; what
 * runs in them are our own attacks, but what they print and what the log says is read like anything
 * that comes out of a box: bounded, and not believed beyond its form. */
#include "boxes.h"

#include <poll.h>
#include <string.h>

#include "base/str.h"
#include "verify/judge.h"
#include "verify/policy.h"

#define STAGE	     "verify"
#define PARALLEL_MAX 8
#define KEPT_SLACK   4096 /* the mark between head and tail */

/* What they are told of where things are, in the box. */
struct arguments {
	const char **argv;
	char max[32], word[HOST_TARGETS][64];
};

static const char *target_of(const struct host_side *host, size_t i, const struct job *job,
			     char *word, size_t size)
{
	const char *text = host->targets[i];

	if (str_starts(text, "first="))
		return "first=1";
	if (!job->files)
		return text;
	if (str_starts(text, "read="))
		snprintf(word, size, "read=" VERIFY_READ);
	else if (str_starts(text, "overlay="))
		snprintf(word, size, "overlay=" VERIFY_OVERLAY);
	else if (str_starts(text, "collect="))
		snprintf(word, size, "collect=" VERIFY_COLLECT);
	else
		return text;
	return word;
}

static int make_arguments(const struct jobs *jobs, const struct job *job, struct arguments *a,
			  struct pale_err *err)
{
	size_t n = 0;

	a->argv = calloc(jobs->host->ntargets + job->n + 7, sizeof(*a->argv));
	if (!a->argv)
		return err_nomem(err, STAGE);
	a->argv[n++] = jobs->corpus->program;
	a->argv[n++] = "--run";
	for (size_t i = 0; i < jobs->host->ntargets; i++)
		a->argv[n++] = target_of(jobs->host, i, job, a->word[i], sizeof(a->word[i]));
	snprintf(a->max, sizeof(a->max), "max=%llu", (unsigned long long)job->max);
	a->argv[n++] = a->max;
	if (jobs->quota)
		a->argv[n++] = "widen=1";
	if (*jobs->allowed)
		a->argv[n++] = jobs->allowed;
	if (*jobs->denied)
		a->argv[n++] = jobs->denied;
	for (size_t i = 0; i < job->n; i++)
		a->argv[n++] = job->attempts[i]->name;
	return 0;
}

static int start(const struct jobs *jobs, const struct job *job, struct pale_box **ret,
		 struct pale_err *err)
{
	struct pale_run_options how = {.size = sizeof(how), .keep_output = true};
	struct pale_command command = {.size = sizeof(command), .cwd = jobs->dir};
	struct arguments a = {0};
	int r = make_arguments(jobs, job, &a, err);

	if (r == 0) {
		command.argv = a.argv;
		r = pale_box_start(job->policy, &command, &how, ret, err);
	}
	free(a.argv);
	return r;
}

/* "attack NAME VERDICT DETAIL" */
static void take_line(const struct job *job, char *line)
{
	char *rest = line, *word = strsep(&rest, " "), *name = strsep(&rest, " "),
	     *verdict = strsep(&rest, " ");

	if (!verdict || strcmp(word, "attack") != 0)
		return;
	for (size_t i = 0; i < job->n; i++) {
		struct attempt *a = job->attempts[i];

		if (strcmp(a->name, name) != 0)
			continue;
		str_escape_into(a->detail, sizeof(a->detail), rest ? rest : "",
				rest ? strlen(rest) : 0);
		if (strcmp(verdict, "denied") == 0)
			a->verdict = VERDICT_HELD;
		else if (strcmp(verdict, "absent") == 0)
			a->verdict = VERDICT_ABSENT;
		else if (strcmp(verdict, "succeeded") == 0)
			/* Unless only the host can tell. */
			a->verdict = a->broken ? VERDICT_HELD : VERDICT_BROKEN;
		return;
	}
}

static void take_output(const struct job *job, const struct pale_result *result)
{
	const char *text = pale_result_output(result, PALE_STDOUT, NULL);
	_cleanup_free_ char *copy = text ? strdup(text) : NULL;

	for (char *rest = copy, *line; rest && (line = strsep(&rest, "\n"));)
		take_line(job, line);
}

/* Of more output than is kept, no more is. */
static void take_kept(const struct job *job, const struct pale_result *result)
{
	struct attempt *a = job->n == 1 ? job->attempts[0] : NULL;
	size_t len = 0;

	if (!a || !a->limit || strcmp(a->limit, "output") != 0 || a->verdict == VERDICT_UNCLEAR)
		return;
	pale_result_output(result, PALE_STDOUT, &len);
	a->verdict = len <= job->max + KEPT_SLACK ? VERDICT_HELD : VERDICT_BROKEN;
	snprintf(a->detail, sizeof(a->detail), "%zu bytes were kept", len);
}

/* A limit that ended the box did what it is for, and the attack says nothing more. */
static void take_outcome(const struct job *job, struct pale_result *result)
{
	static const char *const outcomes[][2] = {{"wall", "wall time"},
						  {"cpu", "cpu time"},
						  {"memory", "memory"},
						  {"file_size", "file size"},
						  {"output_total", "output"}};
	struct attempt *a = job->n == 1 ? job->attempts[0] : NULL;

	if (a && a->limit && a->verdict == VERDICT_UNCLEAR)
		for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++)
			if (strcmp(outcomes[i][0], a->limit) == 0 &&
			    strcmp(outcomes[i][1], pale_result_outcome(result)) == 0)
				a->verdict = VERDICT_HELD, a->ended = true;
	for (size_t i = 0; i < job->n; i++)
		if (job->attempts[i]->verdict == VERDICT_UNCLEAR || (a && a->limit && !*a->detail))
			snprintf(job->attempts[i]->detail, sizeof(job->attempts[i]->detail), "%s",
				 pale_result_summary(result));
}

static bool is_measured(const struct job *job)
{
	const char *limit = job->n == 1 ? job->attempts[0]->limit : NULL;

	return limit && strcmp(limit, "cpus") == 0;
}

/* That it got no more than its limit says nothing where others wanted the processors too: then the
 * kernel must have let it wait for the limit's sake. */
static void take_throttled(const struct job *job, struct pale_result *result)
{
	struct attempt *a = is_measured(job) ? job->attempts[0] : NULL;
	_cleanup_free_ char *used = a ? strdup(a->detail) : NULL;
	json_int_t ms = 0;
	json_t *all;

	if (!used || a->verdict != VERDICT_HELD || !strstr(used, " denied EAGAIN"))
		return;
	all = json_loads(pale_result_json(result), JSON_ALLOW_NUL, NULL);
	ms = json_integer_value(json_object_get(json_object_get(all, "usage"), "throttled_ms"));
	json_decref(all);
	*strstr(used, " denied") = '\0';
	if (ms > 0) {
		snprintf(a->detail, sizeof(a->detail), "%.60s; held back for %lld ms", used,
			 (long long)ms);
		return;
	}
	a->verdict = VERDICT_UNCLEAR;
	snprintf(a->detail, sizeof(a->detail),
		 "%.60s: others kept the processors busy, and the limit was not met; try again",
		 used);
}

static int finish(const struct job *job, struct pale_box *box, struct pale_err *err)
{
	struct pale_result *result;
	int r = pale_box_wait(box, &result, err);

	if (r < 0)
		return r;
	take_output(job, result);
	take_kept(job, result);
	take_outcome(job, result);
	take_throttled(job, result);
	for (size_t i = 0; i < job->n; i++)
		snprintf(job->attempts[i]->run, sizeof(job->attempts[i]->run), "%s",
			 pale_result_audit_id(result));
	if (strcmp(pale_result_outcome(result), "failed") == 0)
		r = err_set(err, PALE_E_HOST, STAGE, 0, "a box failed: %s",
			    pale_result_summary(result));
	else
		r = judge_log(job->attempts, job->n, pale_result_audit_id(result), err);
	pale_result_free(result);
	return r;
}

/* What is said of a box that could not be made names the attack, where it has one to itself. */
static int explain(const struct job *job, int r, struct pale_err *err)
{
	if (r < 0 && job->n == 1)
		err_add(err, " (in the box of the attack %s)", job->attempts[0]->name);
	return r;
}

/* What the whole machine is needed for is measured with no other box beside it. */
static bool may_start(const struct job *next, const struct job *const *running,
		      struct pale_box *const *boxes, unsigned parallel)
{
	for (unsigned i = 0; i < parallel; i++)
		if (boxes[i] && (is_measured(next) || is_measured(running[i])))
			return false;
	return true;
}

int jobs_run(struct jobs *jobs, struct pale_err *err)
{
	struct pale_box *boxes[PARALLEL_MAX] = {NULL};
	const struct job *running[PARALLEL_MAX] = {NULL};
	unsigned parallel = jobs->parallel > PARALLEL_MAX ? PARALLEL_MAX : jobs->parallel;
	size_t next = 0, done = 0;
	int r = 0;

	while (r == 0 && done < jobs->n) {
		struct pollfd p[PARALLEL_MAX];

		for (unsigned i = 0; r == 0 && i < parallel; i++)
			if (!boxes[i] && next < jobs->n &&
			    may_start(&jobs->list[next], running, boxes, parallel)) {
				running[i] = &jobs->list[next++];
				r = explain(running[i], start(jobs, running[i], &boxes[i], err),
					    err);
			}
		for (unsigned i = 0; i < parallel; i++)
			p[i] = (struct pollfd){.fd = boxes[i] ? pale_box_fd(boxes[i]) : -1,
					       .events = POLLIN};
		if (r == 0 && poll(p, parallel, 1000) < 0 && errno != EINTR)
			r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot wait for boxes");
		for (unsigned i = 0; r == 0 && i < parallel; i++) {
			if (!boxes[i])
				continue;
			r = pale_box_dispatch(boxes[i], err);
			if (r == 0)
				continue;
			if (r > 0)
				r = finish(running[i], boxes[i], err);
			r = explain(running[i], r, err);
			pale_box_free(boxes[i]);
			boxes[i] = NULL;
			done++;
		}
		if (r == 0 && jobs->progress && jobs->progress(jobs->arg, done, jobs->n) != 0)
			r = err_set(err, PALE_E_USAGE, STAGE, 0, "it was interrupted");
	}
	for (unsigned i = 0; i < parallel; i++)
		pale_box_free(boxes[i]);
	return r;
}
