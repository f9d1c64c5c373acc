/* The kernel channel, from the supervisor's side: whole messages both ways over the socket that the
 * kernel has as descriptor 3. */
#pragma once

#include <event2/event.h>

#include "base/err.h"
#include "session/frame.h"

#define KERNEL_SEND_MAX	   (16u << 20) /* bytes of data in a message to the kernel */
#define KERNEL_RECEIVE_MAX (8u << 20)  /* and from it; of a longer one only its length is told */

struct kernel;

struct kernel_config {
	struct event_base *base; /* borrowed */
	int fd;			 /* taken over */
	/* A message. Its texts are gone when this returns; it may call kernel_send(). */
	void (*message)(void *arg, const struct frame *f);
	/* Before a packet is looked at: what was printed before it was sent is in the pipes. */
	void (*before)(void *arg);
	/* The other end is closed, or what came makes no sense (then why says what). Said once. */
	void (*ended)(void *arg, const char *why);
	void *arg;
};

int kernel_new(const struct kernel_config *config, struct kernel **ret,
	       struct pale_err *err) _must_check_;
void kernel_free(struct kernel *k);

/* Sends a message, or queues what does not fit now; f's key and data are copied, and the data may
 * be longer than a packet. */
int kernel_send(struct kernel *k, const struct frame *f, struct pale_err *err) _must_check_;
/* Takes what has come, now: a process of the box is about to write to a stream, and what it sent
 * before that comes before it. */
void kernel_drain(struct kernel *k);
