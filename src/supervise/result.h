/* What the caller gets: how a run ended, what it used, what it tried. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/err.h"
#include "supervise/output.h"

enum outcome {
	OUTCOME_EXIT,	/* the main process ended by itself */
	OUTCOME_SIGNAL, /* a signal ended it */
	OUTCOME_WALL,	/* limits that end a box, each with its figures */
	OUTCOME_CPU,
	OUTCOME_MEMORY,
	OUTCOME_FILE_SIZE,
	OUTCOME_OUTPUT,
	OUTCOME_INTERRUPTED, /* the caller interrupted it */
	OUTCOME_DESTROYED,   /* the caller killed it */
	OUTCOME_FAILED,	     /* Pale failed: before the code ran, or so that it had to be ended */
};

const char *outcome_name(enum outcome o);

/* Limits that were hit, whether or not that ended the box. */
enum limit {
	LIMIT_WALL,
	LIMIT_CPU,
	LIMIT_MEMORY,
	LIMIT_PROCESSES,
	LIMIT_DISK,
	LIMIT_INODES,
	LIMIT_FILE_SIZE,
	LIMIT_OUTPUT,
	LIMIT_COUNT
};

struct limit_hit {
	bool hit;
	bool ended; /* and that ended the box */
	uint64_t max, used;
};

struct result {
	enum outcome outcome;
	int status;	/* exit status, or signal number */
	int exec_error; /* errno of an exec that failed, or 0 */
	struct limit_hit limits[LIMIT_COUNT];
	uint64_t wall_ms, cpu_ms, setup_us;
	uint64_t throttled_ms; /* its processes waited because limits.cpus was used up */
	uint64_t memory_peak_bytes, processes_peak;
	uint64_t disk_bytes, disk_inodes;
	uint64_t leftover;     /* processes still alive when the main one ended; killed */
	uint64_t refused;      /* parts of what was to be collected that were not */
	bool lost;	       /* something could not be collected, captured or passed on at all */
	json_t *best_effort;   /* array: what is weaker than asked, and the policy let it be */
	json_t *blocked;       /* array: what was attempted and refused, with counts */
	json_t *hints;	       /* array: which rules stood in its way, and what changes them */
	json_t *network;       /* object: what of the network was used; NULL: there was none */
	json_t *published;     /* array: where ports of the box are on the host; or NULL */
	json_t *changes;       /* array: a summary an overlay */
	json_t *collected;     /* array: a report a collected directory */
	struct output *output; /* kept output, or NULL */
	uint64_t output_bytes[OUTPUT_STREAMS];
	char id[AUDIT_ID_SIZE];
	char head[AUDIT_HASH_SIZE];
};

void result_done(struct result *r);
/* "memory", with its unit: "bytes", "ms" or "". */
const char *limit_name(enum limit l);
const char *limit_unit(enum limit l);

/* The exit status of `pale run`: the command's, 128+n, 124, 125, 126, 127. */
int result_exit_status(const struct result *r);
/* The result for programs; NULL if out of memory. A new reference. */
json_t *result_to_json(const struct result *r);
/* One line for people: "ended by a limit: memory, 512MiB of 512MiB". */
const char *result_describe(const struct result *r, char *out, size_t size);
/* usage as an object, for the log and the result. */
json_t *result_usage_json(const struct result *r);
