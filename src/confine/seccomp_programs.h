/* What the generator writes for this machine's architecture. */
#pragma once

#include <stdint.h>
#include <linux/filter.h>

#include "confine/seccomp_table.h"

extern const struct sock_fprog seccomp_programs[SECCOMP_PROFILES][SECCOMP_WATCH_VARIANTS];
extern const char seccomp_names[512][24];
extern const uint16_t seccomp_row_of[512]; /* index into seccomp_rows plus 1; 0: no row */
extern const char seccomp_digest[65];
