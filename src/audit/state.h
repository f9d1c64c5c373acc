/* The state directory and what lies in it, always by descriptor. */
#pragma once

#include "audit/audit.h"

struct audit_state {
	int dir, runs, active; /* descriptors, or -1 */
	char path[4096];
};

#define AUDIT_STATE_NONE ((struct audit_state){.dir = -1, .runs = -1, .active = -1})

/* Opens (and makes) all three. */
int audit_state_open(struct audit_state *ret, struct pale_err *err) _must_check_;
void audit_state_done(struct audit_state *s);
#define _cleanup_state_ _cleanup_(audit_state_done)

/* The log of one run, for reading. A descriptor or a negative code. */
int audit_state_open_log(const char *id, struct pale_err *err) _must_check_;
/* Opens runs/<id>/ and its log; either output may be NULL. PALE_E_NOTFOUND if there is no such run.
 * Nothing is followed: the log must be a regular file. */
int audit_state_run(const struct audit_state *s, const char *id, int flags, int *ret_dir,
		    int *ret_log, struct pale_err *err) _must_check_;

/* All ids of runs/ in order of time, oldest first; free *ret. */
int audit_state_list(const struct audit_state *s, char (**ret)[AUDIT_ID_SIZE], size_t *ret_n,
		     struct pale_err *err) _must_check_;
/* The same for those in active/. 0 or a negative errno. */
int audit_state_list_active(const struct audit_state *s, char (**ret)[AUDIT_ID_SIZE],
			    size_t *ret_n) _must_check_;

/* The write lock of a log (an open-file-description lock: it goes when its last holder does).
 * 0, -EAGAIN if another has it and wait is false, or a negative errno. */
int audit_lock(int log_fd, bool wait) _must_check_;
/* Whether another has it. */
bool audit_locked(int log_fd);
