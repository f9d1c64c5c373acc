/* The keeper: the worker in a session's box (inside_worker.h) that knows what was in its writable
 * places before an execution, tells what that changed, and brings it back. In a process of its own,
 * like its siblings with the rights of the box and no more; it only reads, until it is asked to
 * bring back. The supervisor asks by inside.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "files/inside_wire.h"

#define KEEPER_ENTRIES	8192 /* that are looked at, in all places together */
#define KEEPER_PATH_MAX 4096 /* of what is in a place, with its NUL */
#define KEEPER_PLACES	64
#define KEEPER_MEMORY	(128u << 20) /* of contents, names and all else, at most */

/* A place of the box that is writable: an overlay, or a directory of its own. */
struct keeper_place {
	const char *path; /* in the box */
	int scan_fd;  /* what was written there: an overlay's upper directory, or itself; only read
		       */
	int write_fd; /* as the box sees it, O_PATH; -1: it is not where it was */
	int lower_fd; /* what lies under an overlay, O_PATH; -1: it is none */
};

/* Once, with the places. */
void keeper_begin(const struct keeper_place *places, size_t n);
/* Answers a request; data (INSIDE_DATA_MAX bytes) takes the changes. 0 or a negative errno. */
int keeper_handle(const struct inside_request *q, struct inside_answer *a, char *data);
/* After the answer to it: what need not be waited for. */
void keeper_after(const struct inside_request *q);
