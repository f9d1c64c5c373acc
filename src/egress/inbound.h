/* Published ports: from listeners on the host to servers in the box. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "egress/egress.h"

struct inbound;

int inbound_new(struct egress *e, struct inbound **ret) _must_check_;
void inbound_free(struct inbound *v);

/* EGRESS_PUBLISH: takes the listeners of network.publish[index] and accepts from them. 0 or a
 * negative errno; the descriptors are taken in either case. */
int inbound_listen(struct inbound *v, uint32_t index, const int *fds, size_t n) _must_check_;
/* EGRESS_CONNECTED: the answer to one of our EGRESS_CONNECT; takes fd (-1 with an error). */
void inbound_connected(struct inbound *v, uint32_t id, int error, int fd);
