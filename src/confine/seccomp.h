/* The seccomp filter: ready-made BPF, generated at build time from the tables in seccomp_table.c.
 *
 * What the filter does not allow is refused. A refused call that the table names gives the errno
 * the caller expects; where a listener is installed it is reported first (SECCOMP_RET_USER_NOTIF)
 * and the supervisor answers with that errno. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>

#include "base/err.h"
#include "policy/policy.h"

/* What else is reported to the listener before it goes on as usual: bits. */
enum seccomp_watch {
	SECCOMP_WATCH_OUTPUT = 1, /* writes to descriptors 1 and 2, so that what came before can be
				     drained first */
	SECCOMP_WATCH_FILE_WRITES =
		2,		 /* opens for writing, and calls that create or change a name */
	SECCOMP_WATCH_FILES = 4, /* every open; implies the one before */
	SECCOMP_NO_LISTENER = 8, /* nothing is reported: refusals are plain errnos */
	/* Not reported, but refused: the box's user is the only one in its namespace, and neither
	 * root nor nobody. */
	SECCOMP_ONE_USER = 16,
};

/* The program for this machine's architecture; static memory. Never NULL for valid arguments. */
const struct sock_fprog *seccomp_program(enum policy_profile profile, unsigned watch);

/* Installs it on the calling thread (no_new_privs must be set). With a listener, its descriptor is
 * stored in *ret_listener, and from now on sendmsg(), connect() and every refused call of this
 * thread waits for an answer: to hand the listener to another process use seccomp_install_send().
 * Async-signal-safe. 0 or a negative errno; -EBUSY: an outer filter has
 * a listener already. */
int seccomp_install(enum policy_profile profile, unsigned watch, int *ret_listener) _must_check_;

/* The same, and sends one message (data, len) with the listener over sock, then closes it: the way
 * to hand it over, because under the filter sendmsg() itself waits for the supervisor's answer. A
 * second process that shares this one's memory does the sending; it is gone on return. Not with
 * SECCOMP_NO_LISTENER: then nothing is sent. Async-signal-safe. 0 or a negative errno. */
int seccomp_install_send(enum policy_profile profile, unsigned watch, int sock, const void *data,
			 size_t len) _must_check_;

/* Both with a program that the caller has; listens: with a listener. */
int seccomp_install_program(const struct sock_fprog *prog, bool listens,
			    int *ret_listener) _must_check_;
int seccomp_install_program_send(const struct sock_fprog *prog, bool listens, int sock,
				 const void *data, size_t len) _must_check_;

/* Whether a filter with a listener can be installed here: there is at most one listener over a
 * process. Tries it in a child. */
int seccomp_can_listen(bool *ret) _must_check_;

/* What the table says of one call: its name ("keyctl"; NULL if unknown) and the errno of a refusal.
 */
const char *seccomp_call_name(int nr);
int seccomp_call_errno(int nr);

/* SHA-256 (hex) of the programs and tables in force, part of the plan's digest. */
const char *seccomp_version(void);
