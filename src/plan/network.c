/* The plan's part in the network: see network.h. In the supervisor while it plans. */
#include "plan/network.h"

#include "plan/reach.h"
#include "plan/trust.h"
#include "policy/network.h"

/* May the broker have to open TLS? Exactly that is asked for each name, when it is known. */
static bool may_intercept(const struct policy_network *n)
{
	if (n->nsecrets)
		return true;
	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if ((r->protocols & NETWORK_TLS) && (r->intercept || r->methods || r->paths))
			return true;
	}
	return false;
}

int network_plan(struct plan *p, const struct policy *policy, struct pale_err *err)
{
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
	p->intercepts = may_intercept(p->network);
	return trust_find(p, err);
}
