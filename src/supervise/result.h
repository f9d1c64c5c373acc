/* What the caller gets: how a run ended, what it used, what it tried. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "audit/audit.h"
#include "base/err.h"

enum outcome {
	OUTCOME_EXIT,       /* the main process ended by itself */
	OUTCOME_SIGNAL,     /* a signal ended it */
	OUTCOME_WALL,       /* limits, each with its figures */
	OUTCOME_CPU,
	OUTCOME_MEMORY,
	OUTCOME_PROCESSES,
	OUTCOME_DISK,
	OUTCOME_OUTPUT,
	OUTCOME_INTERRUPTED, /* the caller interrupted it */
	OUTCOME_DESTROYED,   /* the caller killed it */
	OUTCOME_LOST,        /* the supervisor was lost; only ever read from a log */
	OUTCOME_FAILED,      /* Pale failed before the code ran */
};

const char *outcome_name(enum outcome o);
