/* What the files of the public library share: the objects behind the opaque names of pale.h. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "plan/plan.h"
#include "policy/policy.h"

struct pale_policy {
	struct policy *model;
	char name[128];	 /* the files that it was loaded from, for the log */
	char origin[64]; /* pale_policy_origin(); empty: the function's own word */
};

struct pale_plan {
	struct plan *model;
};

/* At the start of each public function: its caller may pass NULL for err, what it calls may not. */
#define NEED_ERR(err)                          \
	struct pale_err ignored_err_ = {0};    \
	do {                                   \
		if (!(err))                    \
			(err) = &ignored_err_; \
	} while (0)

/* Copies the part of a caller's struct that both know; -PALE_E_USAGE if its size makes no sense. */
int api_take(void *to, size_t to_size, const void *from, const char *what,
	     struct pale_err *err) _must_check_;
/* The command as the plan takes it. *ret_cwd is for the caller to free, and borrowed by ret. */
int api_request(const struct pale_policy *policy, const struct pale_command *command, bool ordered,
		struct plan_request *ret, char **ret_cwd, struct pale_err *err) _must_check_;

struct result; /* supervise/result.h */

#define API_COUNTS (PALE_COUNT_UNCHANGEABLE + 1)

struct pale_result {
	struct result *model; /* where this process supervised; NULL: it came from pale-box */
	int exit_status;
	char outcome[16];
	char summary[256];
	char id[32];
	uint64_t counts[API_COUNTS];
	char *output[2]; /* kept, NUL-terminated; or NULL */
	size_t output_len[2];
	char *json; /* made when asked for */
};

/* Fills it in from a run's result, which it then owns, also on failure. */
int api_result(struct result *model, struct pale_result **ret, struct pale_err *err) _must_check_;

/* Plans, runs and logs in this process. control and caller_pidfd as in struct supervise_request;
 * on_id (or NULL) is called with options->arg; session: of a session, or NULL. */
struct supervise_session;
int api_run_here(const struct pale_policy *policy, const struct plan_request *request,
		 const struct pale_run_options *options, const struct supervise_session *session,
		 int control, int caller_pidfd, void (*on_id)(void *arg, const char *id),
		 struct pale_result **ret, struct pale_err *err) _must_check_;
/* A program of ours: the one that the variable names, the one in libexec, or, in a build, the one
 * in the directory `beside` that of this program. */
const char *api_program(const char *variable, const char *name, const char *beside, char *out,
			size_t size);
/* pale_box_start(), also of a session (with a name, or NULL), or of a pool of so many. */
int api_box_start(const struct pale_policy *policy, const struct pale_command *command,
		  const struct pale_run_options *options, bool session, unsigned pool,
		  const char *name, struct pale_box **ret, struct pale_err *err) _must_check_;
/* Waits until the session is ready, and on its own: 1; 0: it ended before (pale_box_wait() has the
 * result); or a negative code. */
int api_box_ready(struct pale_box *box, struct pale_err *err) _must_check_;

/* Holds `size` sessions ready, in this process, until told to stop; ready() is called when they are
 * for the first time. 1: in one of its forks, whose box has ended. */
int api_pool_here(const struct pale_policy *policy, const struct plan_request *request,
		  const struct pale_run_options *options, unsigned size, void (*ready)(void *arg),
		  struct pale_err *err) _must_check_;

/* A connection to a box's door: a descriptor. */
int api_door_open(const char *id, struct pale_err *err) _must_check_;
/* What is looked at while an answer is waited for. */
struct api_wake {
	int fd;
	int (*fn)(void *arg); /* called while fd polls readable; not 0: enough */
	void *arg;
};
/* One request there; the answer may take timeout_s seconds. arguments are stolen; *ret is a new
 * reference. wake may be NULL. 1: wake->fn had enough; the connection is then of no use any more,
 * as after a failure of another code than the answer's. */
int api_door_ask(int fd, const char *id, const char *command, json_t *arguments, unsigned timeout_s,
		 const struct api_wake *wake, json_t **ret, struct pale_err *err) _must_check_;
/* The id that a reference means: of a session's name, too. */
int api_box_find(const char *ref, bool session, char ret[static PALE_ID_SIZE],
		 struct pale_err *err) _must_check_;

/* The caller's options; without any, no input and kept output. */
int api_options(const struct pale_run_options *options, struct pale_run_options *ret,
		struct pale_err *err) _must_check_;
