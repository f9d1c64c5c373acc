/* The host keys that the caller's known_hosts has for the hosts of network.ssh_agent. Private to
 * src/plan. */
#pragma once

#include "base/err.h"
#include "policy/network.h"

/* Reads ~/.ssh/known_hosts (home may be NULL) and /etc/ssh/ssh_known_hosts, and the second ones of
 * each, as ssh does: plain, wildcard and hashed names; no key that a @revoked line has; lines with
 * @cert-authority are passed over. *ret: lines "NAME TYPE BASE64", NAME being the host, or
 * "[HOST]:PORT" for a tcp rule's other ports; owned by the caller. PALE_E_POLICY: there is no key
 * for one of the hosts. */
int known_hosts_find(const struct policy_network *n, const char *home, char **ret,
		     struct pale_err *err) _must_check_;

/* Does the first field of a line cover the name (of lower case)? For tests. */
bool known_hosts_covers(const char *field, size_t len, const char *name);
