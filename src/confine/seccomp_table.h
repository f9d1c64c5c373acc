/* What each system call may do, per profile: the one list from which the filters, the errnos of
 * refusals and the names in events come. Used by the build-time generator, by the supervisor (which
 * answers refused calls) and by the tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "confine/seccomp.h"

enum seccomp_action {
	SECCOMP_REFUSE, /* fails with the given errno; reported where there is a listener */
	SECCOMP_ALLOW,
	SECCOMP_SILENT, /* fails with the given errno, never reported: ordinary programs try it
			   often */
	SECCOMP_PEEK, /* the same, unless the supervisor finds in the caller's memory that it is no
		       * ordinary use: then it is reported */
	SECCOMP_REPORT, /* reported, then goes on; plainly allowed where there is no listener */
};

/* The sets of enum seccomp_watch bits, and which of them stands for a given one: a program is made
 * only for those that stand for themselves. */
#define SECCOMP_WATCH_VARIANTS 32
static inline unsigned seccomp_watch_variant(unsigned watch)
{
	if (watch & SECCOMP_NO_LISTENER)
		return SECCOMP_NO_LISTENER | (watch & SECCOMP_ONE_USER);
	if (watch & SECCOMP_WATCH_FILES)
		return watch | SECCOMP_WATCH_FILE_WRITES;
	return watch;
}

/* Bits of seccomp_case.profiles. */
#define SECCOMP_P_DEFAULT (1u << PROFILE_DEFAULT)
#define SECCOMP_P_STRICT  (1u << PROFILE_STRICT)
#define SECCOMP_P_NESTED  (1u << PROFILE_NESTED)
#define SECCOMP_PROFILES  3

enum seccomp_op {
	SECCOMP_EQ,	 /* (low 32 bits of the argument & mask) == value */
	SECCOMP_NE,	 /* (low 32 bits of the argument & mask) != value */
	SECCOMP_POINTER, /* the 64-bit argument is not NULL */
};

/* The kernel itself takes only the low half of every argument tested with EQ and NE (they are
 * ints), so garbage in the upper half changes nothing. */
struct seccomp_test {
	uint8_t arg;
	uint8_t op;
	uint32_t mask, value;
};

/* Cases are looked through in order; the first whose profile, watch bits and tests all match
 * decides, and if none does the row's own action for the profile. */
struct seccomp_case {
	uint8_t profiles; /* 0 ends the list */
	uint8_t watch;	  /* enum seccomp_watch bits, any of which must be asked for; 0: always */
	uint8_t action;
	uint8_t ntests;
	uint16_t error;
	struct seccomp_test tests[3];
};

struct seccomp_row {
	char name[24]; /* in place, not a pointer: nothing to relocate when a static program starts
			*/
	uint8_t action[SECCOMP_PROFILES];
	uint8_t cases; /* enum seccomp_cases; 0: none */
	uint16_t error;
};

extern const struct seccomp_row seccomp_rows[];
extern const size_t seccomp_nrows;
/* The errno of calls that the table does not name; they are reported. */
#define SECCOMP_UNKNOWN_ERRNO ENOSYS

const struct seccomp_case *seccomp_row_cases(const struct seccomp_row *row);

/* Calls that the build machine's libseccomp may be too old to know: the number is the same on every
 * architecture from 424 on. */
struct seccomp_number {
	char name[24];
	int x86_64, aarch64; /* -1: not there */
};
extern const struct seccomp_number seccomp_numbers[];
extern const size_t seccomp_nnumbers;

struct seccomp_verdict {
	enum seccomp_action action;
	int error; /* of REFUSE, SILENT and PEEK; positive */
};

/* What the row (NULL: an unknown call) says for these arguments. */
struct seccomp_verdict seccomp_row_verdict(const struct seccomp_row *row,
					   enum policy_profile profile, unsigned watch,
					   const uint64_t args[6]);

/* The same for a call number of this machine's architecture. */
struct seccomp_verdict seccomp_verdict(enum policy_profile profile, unsigned watch, int nr,
				       const uint64_t args[6]);
