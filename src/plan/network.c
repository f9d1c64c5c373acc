/* The plan's part in the network: see network.h. In the supervisor while it plans. */
#include "plan/network.h"

#include <string.h>

#include "plan/known_hosts.h"
#include "plan/reach.h"
#include "plan/trust.h"
#include "policy/network.h"

static const char *variable(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* The caller's agent is asked for by a variable, as by every ssh client. */
static int plan_agent(struct plan *p, const struct plan_request *req, struct pale_err *err)
{
	const char *at = variable(req->env, "SSH_AUTH_SOCK");

	if (!p->network->ssh_agent_hosts)
		return 0;
	if (!at || *at != '/')
		return err_set(err, PALE_E_POLICY, "plan", 0,
			       "network.ssh_agent: there is no agent: SSH_AUTH_SOCK %s; start one "
			       "with ssh-agent, or leave ssh_agent out",
			       at ? "is not a path" : "is not set");
	p->agent_socket = strdup(at);
	if (!p->agent_socket)
		return err_nomem(err, "plan");
	return known_hosts_find(p->network, variable(req->env, "HOME"), &p->known_hosts, err);
}

int network_plan(struct plan *p, const struct plan_request *req, struct pale_err *err)
{
	const struct policy *policy = req->policy;
	int r;

	if (!network_wanted(&policy->network))
		return 0;
	r = reach_find(&p->nft, err);
	if (r == 0)
		r = policy_network_to_json(policy, &p->network_text, err);
	if (r < 0)
		return r;
	p->network = calloc(1, sizeof(*p->network));
	if (!p->network || network_copy(p->network, &policy->network) < 0)
		return err_nomem(err, "plan");
	p->intercepts = network_may_intercept(p->network);
	r = plan_agent(p, req, err);
	return r == 0 ? trust_find(p, err) : r;
}
