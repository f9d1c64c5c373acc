/* Ids of runs: ULIDs in lower case: 48 bits of milliseconds, 80 random bits, so that names sort by
 * time and cannot be guessed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/audit.h"

/* 0 or a negative errno. */
int ulid_make(char out[static AUDIT_ID_SIZE]) _must_check_;
bool ulid_valid(const char *s);
/* The time in an id, in milliseconds since 1970. */
uint64_t ulid_ms(const char *id);
/* The same as a time that compares with those in logs. */
const char *ulid_time(const char *id, char out[static 40]);
