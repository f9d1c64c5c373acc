/* From the table to BPF. Runs at build time and in tests, never in Pale. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

#include "confine/seccomp_table.h"

enum seccomp_arch { SECCOMP_X86_64, SECCOMP_AARCH64, SECCOMP_ARCHES };

#define SECCOMP_MAX_NR	  512 /* call numbers from here on are unknown ones */
#define SECCOMP_MAX_INSNS 2048

/* The rows by call number; NULL where the architecture has no such call, or the table no row. */
struct seccomp_map {
	const struct seccomp_row *row[SECCOMP_MAX_NR];
	char name[SECCOMP_MAX_NR][24]; /* every call that is known by name, with or without a row */
};

uint32_t seccomp_audit_arch(enum seccomp_arch arch);

/* Fills in the map; fails (with a message on stderr) if a row names a call that no architecture
 * has, or two rows name one. 0 or -1. */
int seccomp_map_fill(enum seccomp_arch arch, struct seccomp_map *ret) _must_check_;

/* The number of instructions, or -1 if they are too many. */
int seccomp_compile(enum seccomp_arch arch, const struct seccomp_map *map,
		    enum policy_profile profile, unsigned watch,
		    struct sock_filter ret[static SECCOMP_MAX_INSNS]) _must_check_;
