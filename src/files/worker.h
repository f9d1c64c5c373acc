/* A child process that reads hostile trees and has nothing to lose: no network, no programs to
 * start, no descriptors but those it is given, no path but those beneath the directories it is
 * given. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define WORKER_DIRS    2
#define WORKER_FDS     8
#define WORKER_PAYLOAD 256

struct worker {
	int userns_fd; /* entered first by who may not read everything anyway; -1: none */
	int read_dirs[WORKER_DIRS]; /* trees that may be read; -1: none */
	int write_dir;		    /* a tree that may be written too; -1: none */
	int fds[WORKER_FDS];	    /* open descriptors that it keeps besides those; -1: none */

	/* The work, in the child. Returns 0 or a negative code with err set; what it leaves in
	 * payload (WORKER_PAYLOAD bytes) is handed to the parent. report_fd is for worker_note().
	 */
	int (*work)(void *arg, int report_fd, void *payload, struct pale_err *err);
	void *arg;

	/* In the parent, for each worker_note(); hostile bytes, NUL-terminated. May be NULL. */
	void (*note)(void *arg, const char *path, const char *why);
	void *note_arg;
};

/* Forks, confines and runs it, and waits for its end. */
int worker_run(const struct worker *w, void *ret_payload, struct pale_err *err) _must_check_;

/* In the child: tells the parent about one path. 0 or a negative errno. */
int worker_note(int report_fd, const char *path, const char *why) _must_check_;

/* In the child, whose own umask is 0: the caller's. */
mode_t worker_umask(void);

/* The locks alone, for a process that is already on its own (pale-patch): no new privileges,
 * limits, and a filter that leaves reading, writing and memory. 0 or a negative errno. */
int worker_lock_compute(void) _must_check_;
/* With the calls to read and change files; Landlock is the caller's matter. */
int worker_lock_files(void) _must_check_;
