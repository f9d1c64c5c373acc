/* No HTTP engine is built in: a policy that needs one is refused when the broker starts. */
#include "egress/http/http.h"

static int refuse(const struct policy_network *n, struct pale_err *err)
{
	for (size_t i = 0; i < n->nrules; i++)
		if (!n->rules[i].deny &&
		    (n->rules[i].intercept || (n->rules[i].protocols & NETWORK_HTTP)))
			return err_set(
				err, PALE_E_HOST, "egress", 0,
				"%s: this build has no HTTP engine: only rules for tls, tcp "
				"and udp, without methods, paths and interception, can be kept",
				n->rules[i].where);
	return n->nsecrets ? err_set(err, PALE_E_HOST, "egress", 0,
				     "this build has no HTTP engine: secrets cannot be put in")
			   : 0;
}

int http_new(struct egress *e, struct http **ret, struct pale_err *err)
{
	*ret = NULL;
	return refuse(e->config->network, err);
}

void http_free(struct http *h)
{
	(void)h;
}

void http_take(struct flow *f)
{
	flow_refuse(f, f->rule, "this build has no HTTP engine");
}

int http_rules(struct egress *e, struct pale_err *err)
{
	return refuse(e->config->network, err);
}
