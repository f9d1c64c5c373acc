/* The files of a session's executions: what each of them changed, and bringing that back, by the
 * keeper in the box (src/files/keeper.h). In the supervisor; nothing here waits.
 *
 * While nothing was written in the box since it started, which one system call tells, there is no
 * keeper, and nothing to ask it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "files/inside_wire.h"
#include "session/execution.h"

struct run;

struct session_files {
	bool countable;	       /* the data tmpfs is all that is writable, and was empty */
	uint64_t free0;	       /* its free inodes, then */
	bool nothing;	       /* nothing was there when the execution began */
	bool looked;	       /* the keeper has seen how the last one ended */
	bool since;	       /* and nothing was kept for this one: it is compared with that */
	uint64_t budget;       /* of contents that the keeper keeps */
	char why[SESSION_WHY]; /* why the files of before it cannot come back; "": they can */
	uint32_t waiting;      /* enum inside_op that was asked for; 0: none */
	bool undo;	       /* it is session.undo that waits */
};

/* The box stands at its gate. */
void session_files_start(struct run *run);
/* What session_ops promises. */
int session_files_begin(struct run *run, bool rollback, bool *ret_kept, char *ret_why);
int session_files_settle(struct run *run, bool back, json_t *result);
int session_files_back(struct run *run, json_t **ret);
/* What the keeper's answer comes to, as keys of a result; err: there is none. */
json_t *session_files_result(const struct inside_request *q, const struct inside_answer *a,
			     const char *data, const struct pale_err *err);
/* inside_config.kept */
void session_files_kept(void *arg, const struct inside_request *q, const struct inside_answer *a,
			const char *data, const struct pale_err *err);
