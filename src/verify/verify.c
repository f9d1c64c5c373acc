/* Verifying a policy on this host: see pale.h. In the caller's process, which must have a single
 * thread: the environment is changed meanwhile. Each box has a supervisor of its own. */
#include <string.h>
#include <sys/syscall.h>

#include "api/api.h"
#include "base/str.h"
#include "verify/boxes.h"
#include "verify/judge.h"
#include "verify/policy.h"
#include "verify/report.h"
#include "verify/scratch.h"

#define STAGE		    "verify"
#define KEYCTL_JOIN_SESSION 1
#define GROUPS		    4 /* boxes that harmless attacks share */

struct verifying {
	const struct pale_policy *policy;
	struct pale_verify_options options;
	struct corpus corpus;
	struct host_side host;
	struct scratch scratch;
	struct promised promised;
	json_t *own;
	struct jobs jobs;
	char *canary; /* what $CANARY was, if anything */
	bool canary_set;
};

static void done(struct verifying *v)
{
	for (size_t i = 0; i < v->jobs.n; i++) {
		pale_policy_free(v->jobs.list[i].policy);
		free(v->jobs.list[i].attempts);
	}
	free(v->jobs.list);
	host_done(&v->host);
	corpus_done(&v->corpus);
	scratch_done(&v->scratch);
	if (v->canary)
		setenv("CANARY", v->canary, 1);
	else if (v->canary_set)
		unsetenv("CANARY");
	free(v->canary);
	json_decref(v->promised.promises);
	json_decref(v->own);
}
#define _cleanup_verifying_ _cleanup_(done)

/* The promises of a policy's plan. */
static int get_promises(const struct pale_policy *policy, const char *cwd, json_t **ret,
			struct pale_err *err)
{
	static const char *const argv[] = {"true", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv, .cwd = cwd};
	_cleanup_free_ char *text = NULL;
	struct pale_plan *plan;
	json_t *all;
	int r = pale_plan_new(policy, &command, &plan, err);

	if (r < 0)
		return r;
	r = pale_plan_json(plan, &text, err);
	pale_plan_free(plan);
	if (r < 0)
		return r;
	all = json_loads(text, JSON_ALLOW_NUL, NULL);
	*ret = json_incref(json_object_get(all, "promises"));
	json_decref(all);
	return *ret ? 0 : err_nomem(err, STAGE);
}

static int find_promises(struct verifying *v, struct pale_err *err)
{
	const struct policy *model = v->policy->model;
	struct pale_policy *policy;
	int r = get_promises(v->policy, NULL, &v->own, err);

	if (r == 0)
		r = verify_policy(v->policy, v->corpus.program, v->scratch.path, true, &policy,
				  err);
	if (r < 0)
		return r;
	/* What it says about limits is the given policy's. */
	policy->model->limits = model->limits;
	r = get_promises(policy, v->scratch.path, &v->promised.promises, err);
	pale_policy_free(policy);
	v->promised.quota = judge_as_asked(&v->promised, "resources", "cpus");
	v->promised.network = network_wanted(&model->network);
	v->promised.nested = model->profile == PROFILE_NESTED;
	v->promised.strict = model->profile == PROFILE_STRICT;
	v->promised.watch_all = model->watch_files == WATCH_ALL;
	v->promised.watch_writes = model->watch_files == WATCH_WRITES;
	return r;
}

/* The length of the first name of "a,b,c", and what comes behind it. */
static size_t first_name(const char *list, const char **ret_rest)
{
	size_t len = strcspn(list, ",");

	*ret_rest = list + len + (list[len] == ',');
	return len;
}

static bool in_list(const char *list, const char *name)
{
	const char *rest;

	for (; *list; list = rest)
		if (first_name(list, &rest) == strlen(name) &&
		    strncmp(list, name, strlen(name)) == 0)
			return true;
	return false;
}

static bool wanted(const struct verifying *v, const struct attempt *a)
{
	return (!v->options.axis || strcmp(v->options.axis, a->axis) == 0) &&
	       (!v->options.attacks || in_list(v->options.attacks, a->name));
}

static int add_job(struct verifying *v, struct attempt **attempts, size_t n, bool files,
		   struct pale_err *err)
{
	struct job *job = &v->jobs.list[v->jobs.n];
	int r;

	*job = (struct job){.n = n, .files = files};
	job->attempts = calloc(n, sizeof(*attempts));
	if (!job->attempts)
		return err_nomem(err, STAGE);
	memcpy(job->attempts, attempts, n * sizeof(*attempts));
	v->jobs.n++;
	r = verify_policy(v->policy, v->corpus.program, v->scratch.path, files, &job->policy, err);
	if (r == 0 && n == 1 && attempts[0]->limit)
		r = verify_limit(v->policy, attempts[0], v->promised.quota, job->policy, &job->max,
				 err);
	if (r == 0 && n == 1 && strcmp(attempts[0]->promise, "caps") == 0)
		job->max = verify_connections(attempts[0], job->policy);
	return r;
}

/* Nothing would hold for ever, too. */
static int keep_wanted(struct verifying *v, struct pale_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < v->corpus.n; i++)
		if (wanted(v, &v->corpus.list[i]))
			v->corpus.list[n++] = v->corpus.list[i];
	v->corpus.n = n;
	if (n)
		return 0;
	return err_set(err, PALE_E_USAGE, STAGE, 0,
		       "no attack is selected: name some, of that axis (pale verify --list has "
		       "them)");
}

/* Those that are alone first, of which some take seconds. */
static int make_jobs(struct verifying *v, struct pale_err *err)
{
	static const char *const axes[GROUPS] = {"files", "network", "kernel", "resources"};
	_cleanup_free_ struct attempt **group = calloc(v->corpus.n + 1, sizeof(*group));
	int r = 0;

	v->jobs.list = calloc(v->corpus.n + GROUPS, sizeof(*v->jobs.list));
	if (!group || !v->jobs.list)
		return err_nomem(err, STAGE);
	for (size_t i = 0; r == 0 && i < v->corpus.n; i++) {
		struct attempt *a = &v->corpus.list[i];

		if (!judge_promised(&v->promised, a))
			a->verdict = VERDICT_UNPROMISED;
		else if (a->flags & ATTACK_ALONE)
			r = add_job(v, &a, 1, false, err);
	}
	for (size_t k = 0; r == 0 && k < GROUPS; k++) {
		size_t n = 0;

		for (size_t i = 0; i < v->corpus.n; i++)
			if (v->corpus.list[i].verdict != VERDICT_UNPROMISED &&
			    !(v->corpus.list[i].flags & ATTACK_ALONE) &&
			    strcmp(v->corpus.list[i].axis, axes[k]) == 0)
				group[n++] = &v->corpus.list[i];
		if (n)
			r = add_job(v, group, n, k == 0, err);
	}
	return r;
}

static int start_host(struct verifying *v, struct pale_err *err)
{
	const char *canary = getenv("CANARY");
	char dir[600];
	int r;

	snprintf(dir, sizeof(dir), "%s/host", v->scratch.path);
	r = scratch_dir(&v->scratch, "host", 0755, err);
	if (r < 0)
		return r;
	/* A keyring and a variable of ours, as the caller's own would be handed over. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION, NULL);
	r = host_start(&v->host, v->corpus.program, dir, err);
	if (r < 0)
		return r;
	v->canary = canary ? strdup(canary) : NULL;
	if ((canary && !v->canary) || setenv("CANARY", "pale-canary-environment", 1) < 0)
		return err_nomem(err, STAGE);
	v->canary_set = true;
	return 0;
}

/* An axis or an attack that there is not would hold for ever. */
static int check_options(const struct verifying *v, struct pale_err *err)
{
	const char *list = v->options.attacks, *rest;
	bool axis = false;

	for (size_t i = 0; i < v->corpus.n; i++)
		axis |= v->options.axis && strcmp(v->options.axis, v->corpus.list[i].axis) == 0;
	if (v->options.axis && !axis)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "there is no axis %s: files, network, kernel, resources",
			       QUOTED(v->options.axis));
	for (; list && *list; list = rest) {
		size_t len = first_name(list, &rest);
		bool found = false;
		char name[64];

		for (size_t i = 0; i < v->corpus.n; i++)
			found |= strlen(v->corpus.list[i].name) == len &&
				 strncmp(list, v->corpus.list[i].name, len) == 0;
		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		if (!found)
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "there is no attack %s: pale verify --list has them",
				       QUOTED(name));
	}
	return 0;
}

/* A host of the rules, for attacks on what they say: one that is allowed, but not at every port,
 * and one that is denied whatever is asked. */
static void find_hosts(struct verifying *v)
{
	const struct policy_network *n = &v->policy->model->network;

	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];
		bool plain = r->host && *r->host != '*';

		if (!r->deny && plain && !*v->jobs.allowed && !network_rule_has_port(r, 1))
			snprintf(v->jobs.allowed, sizeof(v->jobs.allowed), "allowed=%s", r->host);
		if (r->deny && plain && !*v->jobs.denied && !r->methods && !r->paths &&
		    network_rule_has_port(r, 443) && r->protocols & NETWORK_TLS)
			snprintf(v->jobs.denied, sizeof(v->jobs.denied), "denied=%s", r->host);
	}
	/* Another rule may allow it there. */
	for (size_t i = 0; i < n->nrules && *v->jobs.allowed; i++)
		if (!n->rules[i].deny && network_rule_has_port(&n->rules[i], 1))
			*v->jobs.allowed = '\0';
}

static int run(struct verifying *v, struct pale_err *err)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int r;

	find_hosts(v);
	v->jobs.quota = v->promised.quota;
	v->jobs.corpus = &v->corpus;
	v->jobs.host = &v->host;
	v->jobs.dir = v->scratch.path;
	v->jobs.parallel = v->options.parallel ? v->options.parallel : (unsigned)processors;
	v->jobs.progress = v->options.progress;
	v->jobs.arg = v->options.arg;
	r = jobs_run(&v->jobs, err);
	if (r == 0)
		r = host_stop(&v->host, err);
	if (r == 0)
		judge_host(&v->corpus, &v->host, &v->promised);
	return r;
}

int pale_verify(const struct pale_policy *policy, const struct pale_verify_options *options,
		char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_verifying_ struct verifying v = {
		.policy = policy, .host = {.in = -1, .out = -1}, .scratch = {.dir = -1}};
	json_t *report;
	int r, state;

	*ret = NULL;
	r = api_take(&v.options, sizeof(v.options), options, "pale_verify_options", err);
	if (r == 0)
		r = corpus_load(&v.corpus, err);
	if (r == 0)
		r = check_options(&v, err);
	if (r == 0)
		r = keep_wanted(&v, err);
	if (r == 0)
		r = scratch_make(&v.scratch, policy->model, err);
	if (r == 0)
		r = start_host(&v, err);
	if (r == 0)
		r = find_promises(&v, err);
	if (r == 0)
		r = make_jobs(&v, err);
	if (r == 0)
		r = run(&v, err);
	if (r < 0)
		return r;
	report = report_json(&v.corpus, &v.promised, v.own, v.options.axis || v.options.attacks,
			     &state);
	json_object_set_new(report, "policy", json_string(pale_policy_name(policy)));
	*ret = json_dumps(report, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	json_decref(report);
	return *ret ? state : err_nomem(err, STAGE);
}

int pale_verify_attacks(char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_corpus_ struct corpus c = {0};
	int r = corpus_load(&c, err);
	json_t *about;
	size_t i;

	*ret = NULL;
	if (r < 0)
		return r;
	json_array_foreach(c.json, i, about) json_object_del(about, "flags");
	*ret = json_dumps(c.json, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	return *ret ? 0 : err_nomem(err, STAGE);
}
