/* A BPF map, the first step to a BPF program. */
#include "../attack.h"

#include <linux/bpf.h>

ATTACK(KERNEL, "calls", .gain = "a program in the kernel, whose verifier has been wrong",
       .source = "CVE-2021-3490", .event = "call.denied", .with = "call=bpf", .works = AS_ROOT)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}
