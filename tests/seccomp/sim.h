/* A simulator of the BPF that seccomp filters use: what the kernel would return. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* SIM_BAD if the program is not one that the kernel accepts, or does not end in a return. */
#define SIM_BAD 0xdeadbeefu
uint32_t sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data);

/* What the kernel's bitmap finds out when the filter is installed (seccomp_is_const_allow()): the
 * call is allowed whatever its arguments. */
bool sim_const_allow(const struct sock_filter *insns, size_t n, const struct seccomp_data *data);
