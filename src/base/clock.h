/* Time: monotonic for measuring, wall clock for the log. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_mono_us(void);

/* "2026-01-31T12:00:00.123456Z" */
#define CLOCK_TEXT 28
const char *clock_wall_text(char out[static CLOCK_TEXT]);
