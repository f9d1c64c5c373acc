/* What a supervisor and a zygote say to each other. Both are trusted here: nothing of a box's has
 * run in either end; after its last word the fork is the box's.
 *
 * The zygote has two descriptors, named in its arguments: the request socket, of packets, at whose
 * other end are all supervisors, and the library that serve.c is built into, for it to load. Over
 * the request socket it says once that it is ready (or why not), and each request is one byte with
 * one descriptor: the box's own socket. In that lies ready what is only the fork's to know, so that
 * the zygote's memory, of which each fork has a copy, never holds anything of a box: one packet,
 * struct zygote_order with its descriptors. The fork answers there with struct setup_packet: its
 * process, the listener of its filter, and that it is done; it then waits for one byte. */
#pragma once

#include <linux/filter.h>
#include <sched.h>
#include <stdint.h>

#include "confine/cgroup.h"
#include "confine/rlimits.h"

#define ZYGOTE_ENV_BYTES (128u << 10)
#define ZYGOTE_CWD_BYTES 4096

enum zygote_fd {
	ZYGOTE_BOX,    /* a process descriptor of the box's first process */
	ZYGOTE_CONFIG, /* struct zygote_config and what follows it, in memory */
	ZYGOTE_CHANNEL,
	ZYGOTE_STDIO,			   /* three */
	ZYGOTE_RULESET = ZYGOTE_STDIO + 3, /* of Landlock; if there is none, something else */
	ZYGOTE_GROUP,			   /* as many as there are groups to join */
	ZYGOTE_FDS = ZYGOTE_GROUP + CGROUP_JOIN_MAX
};

struct zygote_order {
	uint32_t groups;
	uint32_t waits; /* it is put into its group from outside, and waits for a byte */
};

struct zygote_config {
	uint32_t user_range, uid, gid, attach, listens, landlock;
	uint32_t affinity;
	uint32_t speculation, core_sched; /* as in struct plan_sidechannel */
	cpu_set_t processors;
	struct rlimits rlimits; /* but for the names */
	char cwd[ZYGOTE_CWD_BYTES];
	uint32_t filter_len; /* instructions; they come first behind this */
	uint32_t env_bytes;  /* NAME=VALUE, each with its NUL; they come next */
};

/* The library's only function (serve.c), called by the driver when its imports are done. It returns
 * in each fork, which is then the kernel of its box, with its channel as descriptor 3: the length
 * of what was put into env (NAME=VALUE, each with its NUL). In the zygote it does not return. */
__attribute__((visibility("default"))) int pale_serve(int request_fd, char *env, size_t size);
