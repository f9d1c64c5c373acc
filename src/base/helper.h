/* A second process that shares our memory and descriptors, for one system call that takes long
 * while we go on: making a network namespace, waiting for a disk. Not a thread: it has credentials,
 * namespaces, a working directory and a filter of its own, and a process with one can still clone.
 *
 * What it runs may make system calls and write to what its argument points to, no more: it shares
 * what the C library keeps for a thread, so it must not allocate, and errno is everybody's. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct helper {
	pid_t pid; /* 0: none, or waited for */
	int (*run)(void *arg);
	void *arg;
	int result;
	int finished;
	char stack[49152] __attribute__((aligned(16)));
};

/* 0 or a negative errno. h must last until helper_wait(), or until the process ends. No SIGCHLD at
 * its end: the caller may be a program with children of its own. */
int helper_start(struct helper *h, int (*run)(void *arg), void *arg) _must_check_;
/* The same for one that waits for something that the caller does first: a sanitizer's build has it
 * run beside the caller, too, who must do nothing else until then. */
int helper_start_waiting(struct helper *h, int (*run)(void *arg), void *arg) _must_check_;
/* Has it run to its end? Then h->result is what it returned. */
bool helper_finished(const struct helper *h);
/* Waits for it; what it returned, or -EIO if it was killed. Once it was waited for, that again. */
int helper_wait(struct helper *h);
