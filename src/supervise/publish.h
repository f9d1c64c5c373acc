/* The host's side of published ports: the listeners that programs of the host connect to. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/network.h"

#define PUBLISH_LISTENERS 2 /* of one entry at most: 127.0.0.1 and ::1 */

struct publish; /* opaque; one box */

/* Opens a listener for each entry. A Unix socket is made with mode 0600; what stands in its place
 * is replaced only if it is a socket of the caller's that nobody listens on. The sockets are
 * removed by publish_free(), and also when this process is killed. n is borrowed. To be called by a
 * process with one thread: it forks. */
int publish_open(const struct policy_network *n, struct publish **ret,
		 struct pale_err *err) _must_check_;
void publish_free(struct publish *p);

/* The listeners of entry i (borrowed) and their count. */
size_t publish_listeners(const struct publish *p, size_t i, const int **ret_fds);
/* Closes them here: who was given them is now the only one that listens. */
void publish_handed_over(struct publish *p);
/* {port, host_port} or {port, path} an entry, for the log and the result. A new reference. */
json_t *publish_to_json(const struct publish *p);
