/* The architecture of this build, as system call filters name it. */
#pragma once

#include <linux/audit.h>

#if defined(__x86_64__)
#define ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_HERE AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this architecture"
#endif
