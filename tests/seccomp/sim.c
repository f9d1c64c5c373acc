/* Runs a filter as the kernel would: see sim.h. In the tests only. */
#include "sim.h"

#include <string.h>

static uint32_t run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data,
		    bool constant)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &insns[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k % 4 || i->k + 4 > sizeof(*data))
				return SIM_BAD;
			if (constant && i->k >= offsetof(struct seccomp_data, instruction_pointer))
				return SIM_BAD;
			memcpy(&a, (const char *)data + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K: a &= i->k; break;
		case BPF_JMP | BPF_JA: pc += i->k; break;
		case BPF_JMP | BPF_JEQ | BPF_K: pc += a == i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JGE | BPF_K: pc += a >= i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JGT | BPF_K: pc += a > i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JSET | BPF_K: pc += a & i->k ? i->jt : i->jf; break;
		case BPF_RET | BPF_K: return i->k;
		default: return SIM_BAD;
		}
	}
	return SIM_BAD;
}

uint32_t sim_run(const struct sock_filter *insns, size_t n, const struct seccomp_data *data)
{
	return run(insns, n, data, false);
}

bool sim_const_allow(const struct sock_filter *insns, size_t n, const struct seccomp_data *data)
{
	return run(insns, n, data, true) == SECCOMP_RET_ALLOW;
}
