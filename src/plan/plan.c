/* The plan: see plan.h. In the supervisor, before anything is made; what it looks at on the host it
 * only looks at. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>
#include <sha256.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "confine/seccomp.h"
#include "plan/command.h"
#include "plan/kernel.h"
#include "plan/layout.h"
#include "plan/network.h"
#include "plan/promise.h"
#include "plan/sidechannel.h"

#define STAGE "plan"

const char *const axis_names[] = {"files", "network", "kernel", "resources"};

static const char *const step_names[] = {
	[STEP_ROOT] = "root",	    [STEP_DATA] = "data",	  [STEP_DIR] = "dir",
	[STEP_FILE] = "file",	    [STEP_SYMLINK] = "symlink",	  [STEP_BIND] = "bind",
	[STEP_SOURCE] = "source",   [STEP_SKELETON] = "skeleton", [STEP_VIEW] = "view",
	[STEP_OVERLAY] = "overlay", [STEP_WRITABLE] = "writable", [STEP_TMPFS] = "tmpfs",
	[STEP_HIDE] = "hide",	    [STEP_PROC] = "proc",	  [STEP_DEVPTS] = "devpts",
	[STEP_COVER] = "cover",	    [STEP_READONLY] = "readonly", [STEP_SOCKET] = "socket",
};

const char *step_name(enum step_type type)
{
	return step_names[type];
}

static void free_strings(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nsteps; i++) {
		free(p->steps[i].source);
		free(p->steps[i].target);
		free(p->steps[i].content);
	}
	for (size_t i = 0; i < p->ncollect; i++) {
		free(p->collect[i].path);
		free(p->collect[i].name);
		free(p->collect[i].dest);
		for (char **m = p->collect[i].mounts; m && *m; m++)
			free(*m);
		free(p->collect[i].mounts);
	}
	for (size_t i = 0; i < p->noverlays; i++) {
		free(p->overlays[i].path);
		free(p->overlays[i].root);
	}
	for (size_t i = 0; i < p->nrules; i++)
		free(p->rules[i].path);
	for (size_t i = 0; i < p->nfiles; i++) {
		free(p->files[i].path);
		free(p->files[i].content);
	}
	free(p->files);
	free(p->steps);
	free(p->promises);
	free(p->collect);
	free(p->overlays);
	free(p->rules);
	free(p->command.program);
	free_strings(p->command.argv);
	free_strings(p->command.env);
	free(p->command.cwd);
	free(p->command.code);
	if (p->network)
		network_done(p->network);
	free(p->network);
	free(p->network_text);
	free(p->known_hosts);
	free(p->agent_socket);
	free(p->ca_bundle);
	free(p->java_store);
	free(p->user);
	free(p->home);
	free(p);
}

/* Who runs inside. Root's boxes have a range of ids to choose from; a user's have the user's own
 * id, under the same number, so that owners show unchanged. */
static int set_identity(struct plan *p, const struct policy *policy, struct pale_err *err)
{
	bool wants_root = strcmp(policy->user, "root") == 0;

	p->user_range = p->host.root;
	p->user = strdup(policy->user);
	if (!p->user || asprintf(&p->home, wants_root ? "/root" : "/home/%s", policy->user) < 0) {
		p->home = NULL;
		return err_nomem(err, STAGE);
	}
	if (wants_root)
		p->uid = p->gid = 0;
	else if (p->user_range)
		p->uid = p->gid = 1000;
	else
		p->uid = p->host.uid, p->gid = p->host.gid;
	return 0;
}

static void set_limits(struct plan *p, const struct policy *policy)
{
	const struct cgroup_host *g = &p->host.cgroup;

	p->limits = policy->limits;
	p->use_cgroup = g->kind != CGROUP_NONE;
	p->join_cgroup = g->kind == CGROUP_V1;
	if (p->use_cgroup && g->memory)
		p->cgroup_limits.memory_bytes = p->limits.memory_bytes;
	if (p->use_cgroup && g->pids)
		p->cgroup_limits.processes =
			p->limits.processes + 1; /* and the box's first process */
	if (p->use_cgroup && g->cpu)
		p->cgroup_limits.cpus_milli = p->limits.cpus_milli;
	p->sample_memory = !p->cgroup_limits.memory_bytes;
	p->sample_cpu = !(p->use_cgroup && g->cputime);
	/* With a quota the processors may be more than the share; without, they are the limit. */
	p->affinity = (unsigned)(p->cgroup_limits.cpus_milli ? (p->limits.cpus_milli + 999) / 1000
							     : p->limits.cpus_milli / 1000);
	if (p->affinity == 0)
		p->affinity = 1;
	if (p->affinity > p->host.processors)
		p->affinity = p->host.processors;
}

static int set_rlimits(struct plan *p, struct pale_err *err)
{
	const struct rlimits_mode mode = {
		.memory = p->sample_memory,
		/* The box's first process; where there is a group it is the one to refuse and to
		   count that. */
		.processes_extra = p->cgroup_limits.processes ? 16 : 1,
	};

	return rlimits_plan(&p->limits, &mode, &p->rlimits, err);
}

/* What was asked for and cannot be kept here stops the launch, unless the policy lets it be weaker.
 */
static int check_enforceable(struct plan *p, struct pale_err *err)
{
	if (!p->cgroup_limits.cpus_milli && p->limits.cpus_milli < 1000 &&
	    !(p->best_effort & ITEM_CPUS))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "limits.cpus: less than one processor needs a cgroup (%s); ask for "
			       "1, or allow it with "
			       "best_effort: [cpus]",
			       p->host.cgroup.why[0] ? p->host.cgroup.why : "none can be made");
	if (p->host.owns_settings && p->profile == PROFILE_NESTED)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "kernel.profile nested: this user is the host's root by another "
			       "name, so that /proc has to be read-only, and a sandbox in the box "
			       "could not write to its own: run it as root outside of this user "
			       "namespace, or as an ordinary user");
	if (!p->events && !(p->best_effort & ITEM_EVENTS))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "an outer sandbox already listens for refused calls, so that this "
			       "box's refusals could not "
			       "be logged; allow it with best_effort: [events]");
	if (!p->host.landlock.abi && !(p->best_effort & ITEM_LANDLOCK))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "this kernel offers no Landlock, the second lock on files and the "
			       "only one on signals "
			       "and abstract sockets: boot with lsm=landlock,..., use Linux 5.13 "
			       "or later, or allow it "
			       "with best_effort: [landlock]");
	return 0;
}

/* Root's id, or nobody's. */
static bool is_common(unsigned id)
{
	return id == 0 || id == 65534;
}

static void set_confinement(struct plan *p, const struct policy *policy,
			    const struct plan_request *req)
{
	p->profile = policy->profile;
	p->watch_files = policy->watch_files;
	p->best_effort = policy->best_effort;
	for (size_t i = 0; i < policy->nfiles; i++)
		p->counts[policy->files[i].access]++;
	p->landlock = p->host.landlock.abi > 0;
	p->events = p->host.listener;
	if (!p->events)
		p->seccomp_watch = SECCOMP_NO_LISTENER;
	if (p->events && p->watch_files == WATCH_WRITES)
		p->seccomp_watch |= SECCOMP_WATCH_FILE_WRITES;
	if (p->events && p->watch_files == WATCH_ALL)
		p->seccomp_watch |= SECCOMP_WATCH_FILES;
	/* A range of ids for root's boxes has those of root and nobody. */
	if (!p->user_range && !is_common(p->uid) && !is_common(p->gid))
		p->seccomp_watch |= SECCOMP_ONE_USER;
	if (p->events && req->ordered && !req->tty)
		p->seccomp_watch |= SECCOMP_WATCH_OUTPUT;
}

int plan_make(const struct plan_request *req, struct plan **ret, struct pale_err *err)
{
	_cleanup_plan_ struct plan *p = calloc(1, sizeof(*p));
	_cleanup_free_ struct toolchain *toolchain = calloc(1, sizeof(*toolchain));
	int r;

	if (!p || !toolchain)
		return err_nomem(err, STAGE);
	r = host_probe(&p->host, err);
	if (r == 0)
		r = policy_check(req->policy, err);
	if (r == 0)
		r = policy_check_whole(req->policy, err);
	if (r == 0)
		r = set_identity(p, req->policy, err);
	if (r < 0)
		return r;
	set_confinement(p, req->policy, req);
	set_limits(p, req->policy);
	r = check_enforceable(p, err);
	if (r == 0)
		r = sidechannel_plan(p, req->policy, err);
	if (r == 0)
		r = network_plan(p, req, err);
	if (r == 0)
		r = set_rlimits(p, err);
	if (r == 0 && req->session)
		r = kernel_plan(p, req->policy, err);
	p->cgroup_limits.freezer = p->kernel && p->use_cgroup && p->host.cgroup.freeze;
	if (r == 0)
		r = command_make(p, req, toolchain, err);
	if (r == 0)
		r = layout_make(p, req, toolchain, err);
	toolchain_done(toolchain);
	if (r < 0)
		return r;
	*ret = take_ptr(p);
	return 0;
}

/* Fields one after the other, each ended by a NUL and each list by an empty one, so that no two
 * plans give the same bytes. */
static void put(struct buf *b, const char *s)
{
	buf_add(b, s ? s : "", s ? strlen(s) + 1 : 1);
}

static void put_list(struct buf *b, char *const *list)
{
	for (; list && *list; list++)
		put(b, *list);
	put(b, NULL);
}

static void put_numbers(struct buf *b, const uint64_t *numbers, size_t n)
{
	buf_add(b, numbers, n * sizeof(*numbers));
}

int plan_digest(const struct plan *p, char ret[static 65], struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	const uint64_t whole[] = {p->uid,
				  p->gid,
				  p->user_range,
				  p->profile,
				  p->seccomp_watch,
				  p->affinity,
				  p->command.tty,
				  p->cgroup_limits.memory_bytes,
				  p->cgroup_limits.processes,
				  p->cgroup_limits.cpus_milli,
				  p->cgroup_limits.freezer,
				  p->side.speculation,
				  p->side.core_sched};

	if (p->digest[0]) {
		memcpy(ret, p->digest, sizeof(p->digest));
		return 0;
	}
	put(&b, "pale plan 1");
	put(&b, p->host.release);
	put(&b, seccomp_version());
	put_numbers(&b, whole, ARRAY_SIZE(whole));
	buf_add(&b, &p->limits, sizeof(p->limits));
	for (size_t i = 0; i < p->nsteps; i++) {
		const struct step *s = &p->steps[i];
		const uint64_t numbers[] = {
			s->type,
			s->given,
			s->size_bytes,
			s->inodes,
			s->index,
			s->mode,
			(uint64_t)s->own | (uint64_t)s->device << 1 | (uint64_t)s->is_file << 2 |
				(uint64_t)s->nested << 3 | (uint64_t)s->swap_owner << 4 |
				(uint64_t)s->real << 5 | (uint64_t)s->secret << 6};

		put_numbers(&b, numbers, ARRAY_SIZE(numbers));
		put(&b, s->source);
		put(&b, s->target);
		put(&b, s->content);
	}
	for (size_t i = 0; i < p->nrules; i++) {
		const uint64_t access = p->rules[i].access;

		put(&b, p->rules[i].path);
		put_numbers(&b, &access, 1);
	}
	for (size_t i = 0; i < p->npromises; i++) {
		put(&b, p->promises[i].what);
		put(&b, p->promises[i].mechanism);
		put(&b, p->promises[i].fallback);
	}
	for (size_t i = 0; i < p->ncollect; i++)
		put(&b, p->collect[i].dest);
	put(&b, p->command.program);
	put_list(&b, p->command.argv);
	put_list(&b, p->command.env);
	if (p->network) {
		put(&b, nft_set_name(p->nft));
		put(&b, p->network_text);
	}
	put(&b, p->command.cwd);
	if (b.failed)
		return err_nomem(err, STAGE);
	SHA256Data((const uint8_t *)b.data, b.len, ret);
	return 0;
}

int plan_promise(struct plan *p, struct pale_err *err)
{
	return p->promises ? 0 : promise_make(p, err);
}

int plan_settle(struct plan *p, struct pale_err *err)
{
	char digest[sizeof(p->digest)];
	int r = plan_promise(p, err);

	if (r == 0)
		r = plan_digest(p, digest, err);
	if (r == 0)
		memcpy(p->digest, digest, sizeof(digest));
	return r;
}
