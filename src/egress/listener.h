/* A listening socket on the loop, which leaves off for a moment when descriptors run out. */
#pragma once

#include <event2/event.h>

#include "base/cleanup.h"

struct listener;

/* fd is borrowed and non-blocking. taken() owns the descriptor it is given (non-blocking). NULL: no
 * memory. */
struct listener *listener_new(struct event_base *base, int fd, void (*taken)(int client, void *arg),
			      void *arg);
void listener_free(struct listener *l);
