/* Side channels: see sidechannel.h. In the supervisor, before anything is made; nothing hostile is
 * read. */
#include "plan/sidechannel.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "plan/promise.h"
#include "policy/options.h"

#define STAGE	 "plan"
#define STRICT	 (1u << SPECULATION_STORE_BYPASS | 1u << SPECULATION_INDIRECT_BRANCH)
#define L1D_ONLY (1u << SPECULATION_L1D_FLUSH)

/* Those of the controls that are asked for and in this state, by name; NULL: none. */
static const char *named(const struct plan_sidechannel *side, unsigned of,
			 enum speculation_state state, char out[static 64])
{
	*out = '\0';
	for (int c = 0; c < SPECULATION_CONTROLS; c++)
		if (side->asked & of & 1u << c && side->speculation_host.state[c] == state)
			snprintf(out + strlen(out), 64 - strlen(out), "%s%s", *out ? ", " : "",
				 speculation_name((enum speculation_control)c));
	return *out ? out : NULL;
}

static int check_speculation(struct plan *p, struct pale_err *err)
{
	struct plan_sidechannel *side = &p->side;
	int r = speculation_probe(&side->speculation_host, err);

	if (r < 0)
		return r;
	for (int c = 0; c < SPECULATION_CONTROLS; c++) {
		bool l1d = c == SPECULATION_L1D_FLUSH;

		if (!(side->asked & 1u << c))
			continue;
		if (side->speculation_host.state[c] == SPECULATION_BY_PROCESS)
			side->speculation |= 1u << c;
		if (side->speculation_host.state[c] == SPECULATION_ABSENT &&
		    !(p->best_effort & (l1d ? ITEM_L1D_FLUSH : ITEM_SPECULATION)))
			return err_set(
				err, PALE_E_HOST, STAGE, 0,
				"kernel.%s: this host cannot do \"%s\": %s; or allow the box to be "
				"without: best_effort: [%s]",
				l1d ? "l1d_flush" : "speculation",
				speculation_name((enum speculation_control)c),
				speculation_remedy((enum speculation_control)c),
				l1d ? "l1d_flush" : "speculation");
	}
	return 0;
}

static int check_core(struct plan *p, struct pale_err *err)
{
	int r = core_sched_probe(&p->side.core_host, err);

	if (r < 0)
		return r;
	p->side.core_sched = p->side.core_host == CORE_SCHED_OFFERED;
	if (p->side.core_host == CORE_SCHED_ABSENT && !(p->best_effort & ITEM_CORE_SCHEDULING))
		return err_set(
			err, PALE_E_HOST, STAGE, 0,
			"kernel.core_scheduling: this kernel lacks it (CONFIG_SCHED_CORE, "
			"Linux 5.14 or later), and two threads run on a core at a time; "
			"turn those off (echo off > /sys/devices/system/cpu/smt/control), or "
			"allow the box to be without: best_effort: [core_scheduling]");
	return 0;
}

int sidechannel_plan(struct plan *p, const struct policy *policy, struct pale_err *err)
{
	int r = 0;

	if (policy->speculation == SPECULATION_STRICT)
		p->side.asked |= STRICT;
	if (policy->l1d_flush == BOOL_TRUE)
		p->side.asked |= L1D_ONLY;
	p->side.core_asked = policy->core_scheduling == BOOL_TRUE;
	if (p->side.asked)
		r = check_speculation(p, err);
	if (r == 0 && p->side.core_asked)
		r = check_core(p, err);
	return r;
}

/* ---- in words ---- */

static void say_mechanism(struct plan *p, struct promise *it, unsigned of)
{
	static const struct {
		enum speculation_state state;
		const char *how;
	} ways[] = {
		{SPECULATION_BY_PROCESS, "PR_SET_SPECULATION_CTRL"},
		{SPECULATION_BY_HOST, "the host, for every process"},
		{SPECULATION_UNAFFECTED, "the processor is not affected"},
	};
	char names[64];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		size_t len = strlen(it->mechanism);

		if (named(&p->side, of, ways[i].state, names))
			snprintf(it->mechanism + len, sizeof(it->mechanism) - len, "%s%s: %s",
				 len ? "; " : "", ways[i].how, names);
	}
	if (!*it->mechanism)
		SAY(it->mechanism, "none");
	if (named(&p->side, of, SPECULATION_ABSENT, names)) {
		SAY(it->fallback, "this host cannot do: %s", names);
		SAY(it->uncovered, "the processor is affected");
		it->best_effort = true;
	}
}

static void promise_core(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_KERNEL, "core_scheduling");

	SAY(it->what, "while the box runs on a core of the processor, nothing else does");
	switch (p->side.core_host) {
	case CORE_SCHED_OFFERED:
		SAY(it->mechanism, "a core scheduling cookie (PR_SCHED_CORE)");
		SAY(it->uncovered,
		    "the kernel itself, working for others on the core's other threads; a virtual "
		    "machine's hypervisor, which may put others there");
		break;
	case CORE_SCHED_NO_THREADS:
		SAY(it->mechanism, "no core here runs two threads at a time");
		SAY(it->uncovered,
		    "threads that are turned on later; a virtual machine's hypervisor, which may "
		    "run two of its processors on one core");
		break;
	case CORE_SCHED_ABSENT:
		SAY(it->mechanism, "none");
		SAY(it->fallback, "no core scheduling in this kernel (CONFIG_SCHED_CORE)");
		SAY(it->uncovered, "others run on the same core at the same time");
		it->best_effort = true;
		break;
	}
}

void promise_sidechannel(struct plan *p)
{
	struct promise *it;

	if (p->side.asked & STRICT) {
		it = promise_add(p, AXIS_KERNEL, "speculation");
		SAY(it->what,
		    "no speculation past stores, and by indirect branches none that others have "
		    "trained, or that is left for others; for good");
		say_mechanism(p, it, STRICT);
	}
	if (p->side.asked & L1D_ONLY) {
		it = promise_add(p, AXIS_KERNEL, "l1d_flush");
		SAY(it->what, "who runs next on the processor finds nothing of the box's in its "
			      "first cache");
		say_mechanism(p, it, L1D_ONLY);
	}
	if (p->side.core_asked)
		promise_core(p);
}
