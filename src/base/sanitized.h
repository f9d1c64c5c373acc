/* Is this a build with AddressSanitizer? It needs memory without bound, has something to say on
 * descriptor 2, and keeps locals of the running thread in a place that two processes with the same
 * memory must not use at the same time. */
#pragma once

#include <sched.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* clone(2)'s flags for a process beside us in our memory: with a sanitizer, we stand still
 * meanwhile. */
#define CLONE_BESIDE (CLONE_VM | (SANITIZED ? CLONE_VFORK : 0))
