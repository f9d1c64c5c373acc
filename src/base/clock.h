/* Time: monotonic for measuring, wall clock for the log. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_mono_us(void);

/* "2026-01-31T12:00:00.123456Z" */
#define CLOCK_TEXT 28
const char *clock_wall_text(char out[static CLOCK_TEXT]);
/* The local form of such a time: "2026-01-31 15:04:05"; what is no time is escaped. */
#define CLOCK_LOCAL 24
const char *clock_local_text(const char *wall_text, char out[static CLOCK_LOCAL]);
