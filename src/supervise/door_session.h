/* The commands of the control protocol for sessions: session.* and what stops a box for a while. */
#pragma once

#include "supervise/door.h"

int door_pool_claim(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_exec(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_output(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_interrupt(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_undo(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_restart(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_complete(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_inspect(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_input(struct door_call *call, json_t **ret, struct pale_err *err);
int door_session_show(struct door_call *call, json_t **ret, struct pale_err *err);
int door_freeze(struct door_call *call, json_t **ret, struct pale_err *err);
int door_thaw(struct door_call *call, json_t **ret, struct pale_err *err);
