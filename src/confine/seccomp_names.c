/* See seccomp_names.h. Build time and tests; no hostile input. */
#include "confine/seccomp_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <seccomp.h>

int seccomp_names_number(bool aarch64, const char *name)
{
	return seccomp_syscall_resolve_name_arch(aarch64 ? SCMP_ARCH_AARCH64 : SCMP_ARCH_X86_64,
						 name);
}

void seccomp_names_name(bool aarch64, int nr, char *ret, size_t size)
{
	char *name = seccomp_syscall_resolve_num_arch(
		aarch64 ? SCMP_ARCH_AARCH64 : SCMP_ARCH_X86_64, nr);

	snprintf(ret, size, "%s", name ? name : "");
	free(name);
}
