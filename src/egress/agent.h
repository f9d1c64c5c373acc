/* The caller's ssh agent, for logins to the hosts of network.ssh_agent and nothing else. */
#pragma once

#include "egress/egress.h"

struct agent;

/* Host keys as config->known_hosts has them: lines "HOST TYPE BASE64". */
int agent_new(struct egress *e, struct agent **ret) _must_check_;
void agent_free(struct agent *a);

/* EGRESS_AGENT: takes the listener of the socket in the box, and a connection to the caller's
 * agent. 0 or a negative errno. */
int agent_listen(struct agent *a, int listener, int upstream) _must_check_;
