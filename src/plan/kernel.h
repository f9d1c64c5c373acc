/* Which program the kernel of a session is, and what of ours runs in it: a driver, a text that the
 * interpreter loads, or a small static program of ours that holds the interpreter as its child.
 * docs/kernel-protocol.md says what they speak. */
#pragma once

#include "plan/plan.h"

/* Where drivers are in the box: nothing of the policy's can be mounted there. */
#define KERNEL_DIR "/etc/pale"

/* Sets p->kernel and p->session from the policy. */
int kernel_plan(struct plan *p, const struct policy *policy, struct pale_err *err) _must_check_;
/* "python": for people, and at the door. */
const char *kernel_name(const struct plan_kernel *k);
/* Code that changes nothing. */
const char *kernel_warm_up(const struct plan_kernel *k);
/* The interpreter, to be found like any command of the user's. */
const char *kernel_program(const struct plan_kernel *k);
/* The driver's text and its path in the box; NULL: it has none. */
const char *kernel_driver(const struct plan_kernel *k, const char **ret_path);
/* The program of ours that is executed instead of the interpreter; NULL: there is none. */
const void *kernel_host(const struct plan_kernel *k, size_t *ret_size);
/* Can its driver serve forks of itself (isolation/zygote.h)? */
bool kernel_serves(const struct plan_kernel *k);
/* Can it hold the state before an execution, and go back to it? */
bool kernel_holds(const struct plan_kernel *k);
/* Its arguments, NULL-terminated, for the caller to free; program: the interpreter, as it was
 * found. NULL and err. */
char **kernel_argv(const struct plan_kernel *k, const char *program, const struct policy *policy,
		   struct pale_err *err) _must_check_;
