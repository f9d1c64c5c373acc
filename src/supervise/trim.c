/* Giving memory back: see trim.h. In a supervisor of its own, once its box has run for a while. */
#include "trim.h"

#include <link.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The program's own segments that nothing writes to. What is relocated is in a writable one, and
 * stays. */
static int drop_segments(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)arg;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + p->p_vaddr + page - 1) & ~(page - 1);
		uintptr_t to = (info->dlpi_addr + p->p_vaddr + p->p_filesz) & ~(page - 1);

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && to > from)
			(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 1; /* the first is the program; libraries are shared with others anyway */
}

/* What deeper calls left below the stack's end of today. */
static void drop_stack(void)
{
	enum { KEEP = 16384, MOST = 1 << 20 };
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t to = ((uintptr_t)__builtin_frame_address(0) - KEEP) & ~(page - 1);

	/* It reaches beyond the stack's mapping, which ends the call with ENOMEM when all else is
	 * done. */
	(void)madvise((void *)(to - MOST), MOST, MADV_DONTNEED);
}

void trim_memory(void)
{
	malloc_trim(0);
	drop_stack();
	dl_iterate_phdr(drop_segments, NULL);
}
