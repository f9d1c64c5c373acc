/* What an ELF program asks the loader for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define ELF_MAX_NEEDED 64

struct elf_info {
	bool native; /* 64-bit, this machine's byte order and architecture; else nothing follows */
	uint16_t type;	  /* ET_EXEC, ET_DYN, ... */
	uint16_t machine; /* EM_X86_64, ... */
	bool is_32bit;
	bool has_runpath;  /* search is a DT_RUNPATH, which counts for this object's own needs only
			    */
	char interp[512];  /* PT_INTERP, or empty */
	char search[4096]; /* DT_RUNPATH or else DT_RPATH, or empty */
	size_t nneeded;
	const char *needed[ELF_MAX_NEEDED]; /* into names */
	char names[8192];
};

/* Reads fd, a file of hostile bytes: never more than about 200 KiB, wherever its offsets point.
 * 0; -ENOEXEC: no ELF file, or one that contradicts itself; or a negative errno from reading. */
int elf_read(int fd, struct elf_info *ret) _must_check_;
