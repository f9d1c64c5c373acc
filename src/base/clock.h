/* Time: monotonic for measuring, wall clock for the log. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_mono_us(void);

/* A time of a file as one number, and what utimensat() is told to give it back: the time of its
 * last change; that of access stays. */
int64_t clock_ns_of(const struct timespec *t);
void clock_mtime_of(int64_t ns, struct timespec ret[static 2]);

/* "2026-01-31T12:00:00.123456Z" */
#define CLOCK_TEXT 28
const char *clock_wall_text(char out[static CLOCK_TEXT]);
/* The local form of such a time: "2026-01-31 15:04:05"; what is no time is escaped. */
#define CLOCK_LOCAL 24
const char *clock_local_text(const char *wall_text, char out[static CLOCK_LOCAL]);
