/* What the supervisor tells the broker before anything else: EGRESS_CONFIG, a sealed memfd with one
 * JSON object.
 *
 *   "network"      object   the policy's `network`, canonical (policy_to_json()); required
 *   "places"       array    for each rule of "network", then each secret, in order, a text: where
 *                           the caller asked for it; for refusals
 *   "mode"         string   "tproxy" or "redirect": how TCP comes to the broker; required
 *   "landlock"     boolean  false: the policy's best_effort lets Landlock be missing
 *   "uid", "gid"   integer  whom to become; required if the broker is started by root, and not 0
 *   "secrets"      array    for each of network.secrets, in order:
 *                           {"placeholder": "...", "value": "..."}; UTF-8 without controls
 *   "known_hosts"  string   the host keys of network.ssh_agent.hosts, if there are any: lines
 *                           "HOST TYPE BASE64"
 *
 * EGRESS_RULES has the same object again, with "network" and "places" only.
 *
 * What the host knows of names is read by the broker itself, as the caller and before it locks
 * itself in: /etc/resolv.conf, /etc/hosts and, if a rule intercepts, the trust store and the
 * policy's extra_ca. Later changes of those files do not reach a running broker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "egress/wire.h"
#include "policy/policy.h"
#include "policy/network.h"

#define CONFIG_MAX_BYTES (4u << 20)

struct config_secret {
	char *placeholder;
	char *value; /* wiped by config_free() */
};

struct config {
	struct policy *policy;		      /* holds `network` and nothing else of interest */
	const struct policy_network *network; /* of policy; changes with EGRESS_RULES */
	enum egress_mode mode;
	uid_t uid; /* 0: none given */
	gid_t gid;
	bool no_landlock;	       /* may be missing */
	struct config_secret *secrets; /* as many as network->nsecrets at the start; EGRESS_RULES
					  can't add any */
	size_t nsecrets;
	char *known_hosts;	   /* or NULL */
	char *resolv_conf, *hosts; /* texts, NUL-terminated; may be empty */
	char *trust;		   /* PEM: the host's trust store and extra_ca; NULL if nothing
				      intercepts */
	size_t trust_len;
};

/* Reads the memfd (borrowed). Everything that needs files comes from config_read_host(). */
int config_read(int memfd, struct config **ret, struct pale_err *err) _must_check_;
int config_read_host(struct config *c, struct pale_err *err) _must_check_;
/* The rules of an EGRESS_RULES memfd, as a policy of their own. */
int config_read_rules(int memfd, struct policy **ret, struct pale_err *err) _must_check_;
void config_free(struct config *c);
static inline void config_freep(struct config **c)
{
	config_free(*c);
}
#define _cleanup_config_ _cleanup_(config_freep)
