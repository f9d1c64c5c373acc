/* Shared by the notify_*.c files only. */
#pragma once

#include <stddef.h>
#include <linux/seccomp.h>

#include "supervise/notify.h"

struct notify_mounts;

/* One stopped call, while it is looked at. */
struct notify_call {
	struct notify *n;
	const struct seccomp_notif *req;
	pid_t pid;
	const uint64_t *args;
	int nr;
	bool answered; /* with success, without going on */
};

/* notify_read.c: all of it is the box's memory or chosen by it. */

/* Reads exactly len bytes. 0 or a negative errno. */
int notify_read(pid_t pid, uint64_t address, void *ret, size_t len) _must_check_;
/* Reads a string, cut at size - 1; *ret_cut tells. Its length or a negative errno. */
ssize_t notify_read_string(pid_t pid, uint64_t address, char *ret, size_t size,
			   bool *ret_cut) _must_check_;
void notify_read_program(pid_t pid, struct notify_event *ev);
/* "tcp", "udp", "icmp", or "" for any other, of the process's descriptor. */
const char *notify_read_protocol(pid_t pid, int fd);
/* Reads a link of /proc/<pid>/ as a string; its length or a negative errno. */
ssize_t notify_read_link(pid_t pid, const char *name, char *ret, size_t size) _must_check_;

/* notify_net.c and notify_file.c: call notify_report() for what is worth an event. */
/* The errno to answer with, or 0: let it go on. refuse: at once what no rule covers. */
int notify_net(struct notify_call *call, const struct policy_network *network, bool refuse);
void notify_file(struct notify_call *call, int root, const struct notify_mounts *mounts);
bool notify_is_net(int nr);
bool notify_is_output(int nr);

/* notify_mounts.c: the host's mounts */
int notify_mounts_new(struct notify_mounts **ret) _must_check_;
void notify_mounts_free(struct notify_mounts *m);
/* Is there something at the absolute path, as far as can be said without waiting? Tidies the path.
 */
bool notify_mounts_have(const struct notify_mounts *m, char *path);

/* notify_sysinfo.c: answers with the box's size. 0, -ENOSYS (let it go on) or -EFAULT. */
int notify_sysinfo(struct notify_call *call, uint64_t memory_bytes) _must_check_;

/* notify_detail.c */
void notify_detail(int nr, const uint64_t args[6], char *ret, size_t size);

/* notify.c: fills in call and program, and counts and tells the event. Not if the process has gone
 * since: what was read may then be another's. */
void notify_report(struct notify_call *call, struct notify_event *ev);
/* This process is about to connect with its descriptor fd. */
void notify_connects(const struct notify_call *call, int fd);
/* This process is about to ask the box's resolver for a name. */
void notify_resolver(const struct notify_call *call);
/* Whether the process still waits for the answer, so that its number is its own. */
bool notify_still_there(const struct notify_call *call);
/* The scratch event, empty. */
struct notify_event *notify_scratch(struct notify *n);

/* notify_rate.c */
struct notify_rate;
struct notify_rate *notify_rate_new(void);
void notify_rate_free(struct notify_rate *r);
/* Counts the event; true if it is to be told singly. */
bool notify_rate_count(struct notify_rate *r, struct notify_event *ev, unsigned singly);
void notify_rate_flush(struct notify_rate *r, notify_sink *sink, void *arg,
		       struct notify_event *scratch);
