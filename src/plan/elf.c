/* Reads what an ELF program asks the loader for: interpreter, libraries, where it looks for them.
 *
 * Runs in the supervisor while it plans, with the caller's privileges. The bytes are hostile (a
 * program in a workspace), so every offset, count and string is bounded before use, and a
 * contradiction is an error, never a guess. What is read decides only which files are looked at
 * next; whether those may be shown to the box is decided in toolchain.c. Format: elf(5). */
#include "elf.h"

#include <elf.h>
#include <endian.h>
#include <string.h>

#include "base/fd.h"

#define MAX_PHDRS   128
#define MAX_DYNAMIC 4096

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#elif defined(__riscv)
#define NATIVE_MACHINE EM_RISCV
#else
#error "name this machine's ELF number here"
#endif

struct reader {
	int fd;
	size_t nphdrs;
	Elf64_Phdr phdrs[MAX_PHDRS];
};

/* Exactly len bytes at offset, or -ENOEXEC where the file ends before. */
static int read_at(int fd, uint64_t offset, void *to, size_t len)
{
	uint64_t end;
	ssize_t n;

	if (__builtin_add_overflow(offset, len, &end) || end > INT64_MAX)
		return -ENOEXEC;
	n = fd_pread_full(fd, to, len, (int64_t)offset);
	return n < 0 ? (int)n : (size_t)n < len ? -ENOEXEC : 0;
}

/* A NUL-terminated string at offset, at most size - 1 bytes long. Its length, or a negative code.
 */
static ssize_t read_string(int fd, uint64_t offset, char *to, size_t size)
{
	size_t got = 0;

	if (offset > INT64_MAX - size)
		return -ENOEXEC;
	while (got < size) {
		ssize_t n = pread(fd, to + got, size - got, (off_t)(offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOEXEC;
		if (memchr(to + got, '\0', (size_t)n))
			return (ssize_t)strlen(to);
		got += (size_t)n;
	}
	return -ENOEXEC;
}

/* The file offset of a virtual address, by the loadable segments. */
static int file_offset(const struct reader *r, uint64_t addr, uint64_t *ret)
{
	for (size_t i = 0; i < r->nphdrs; i++) {
		const Elf64_Phdr *p = &r->phdrs[i];

		if (p->p_type == PT_LOAD && addr >= p->p_vaddr && addr - p->p_vaddr < p->p_filesz &&
		    !__builtin_add_overflow(p->p_offset, addr - p->p_vaddr, ret))
			return 0;
	}
	return -ENOEXEC;
}

static int read_dynamic(const struct reader *r, const Elf64_Phdr *dynamic, struct elf_info *ret)
{
	uint64_t needed[ELF_MAX_NEEDED], strings = 0, search = 0, at;
	size_t count = dynamic->p_filesz / sizeof(Elf64_Dyn), nneeded = 0, used = 0;
	bool has_strings = false, has_search = false, done = false;
	ssize_t n;
	int e;

	if (count > MAX_DYNAMIC)
		return -ENOEXEC;
	for (size_t first = 0; first < count && !done; first += 64) {
		Elf64_Dyn d[64];
		size_t k = count - first < 64 ? count - first : 64;

		e = read_at(r->fd, dynamic->p_offset + first * sizeof(*d), d, k * sizeof(*d));
		if (e < 0)
			return e;
		for (size_t i = 0; i < k && !done; i++) {
			switch (d[i].d_tag) {
			case DT_NULL: done = true; break;
			case DT_STRTAB:
				strings = d[i].d_un.d_ptr;
				has_strings = true;
				break;
			case DT_NEEDED:
				if (nneeded < ELF_MAX_NEEDED)
					needed[nneeded++] = d[i].d_un.d_val;
				break;
			case DT_RUNPATH:
				search = d[i].d_un.d_val;
				has_search = ret->has_runpath = true;
				break;
			case DT_RPATH:
				if (!ret->has_runpath)
					search = d[i].d_un.d_val;
				has_search = true;
				break;
			default: break;
			}
		}
	}
	if (!has_strings)
		return nneeded || has_search ? -ENOEXEC : 0;
	e = file_offset(r, strings, &at);
	if (e < 0)
		return nneeded || has_search ? e : 0;
	if (has_search) {
		if (search > UINT32_MAX)
			return -ENOEXEC;
		n = read_string(r->fd, at + search, ret->search, sizeof(ret->search));
		if (n < 0)
			return (int)n;
	}
	for (size_t i = 0; i < nneeded; i++) {
		if (needed[i] > UINT32_MAX || sizeof(ret->names) - used < 256)
			return -ENOEXEC;
		n = read_string(r->fd, at + needed[i], ret->names + used, 256);
		if (n < 0)
			return (int)n;
		ret->needed[ret->nneeded++] = ret->names + used;
		used += (size_t)n + 1;
	}
	return 0;
}

int elf_read(int fd, struct elf_info *ret)
{
	struct reader r = {.fd = fd};
	Elf64_Ehdr h;
	int e;

	/* names and search are only meaningful where something was read into them. */
	ret->native = ret->is_32bit = ret->has_runpath = false;
	ret->type = ret->machine = 0;
	ret->interp[0] = ret->search[0] = '\0';
	ret->nneeded = 0;

	/* The fields up to e_machine lie at the same offsets in both classes. */
	e = read_at(fd, 0, &h, offsetof(Elf64_Ehdr, e_version));
	if (e < 0)
		return e;
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	ret->is_32bit = h.e_ident[EI_CLASS] == ELFCLASS32;
	if (h.e_ident[EI_DATA] != NATIVE_DATA)
		return 0;
	ret->type = h.e_type;
	ret->machine = h.e_machine;
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != NATIVE_MACHINE)
		return 0;
	e = read_at(fd, 0, &h, sizeof(h));
	if (e < 0)
		return e;
	ret->native = true;
	if (h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum == 0 || h.e_phnum > MAX_PHDRS)
		return -ENOEXEC;
	r.nphdrs = h.e_phnum;
	e = read_at(fd, h.e_phoff, r.phdrs, r.nphdrs * sizeof(r.phdrs[0]));
	if (e < 0)
		return e;
	for (size_t i = 0; i < r.nphdrs; i++) {
		const Elf64_Phdr *p = &r.phdrs[i];
		ssize_t n;

		if (p->p_type == PT_INTERP) {
			n = read_string(fd, p->p_offset, ret->interp, sizeof(ret->interp));
			if (n < 0)
				return (int)n;
		} else if (p->p_type == PT_DYNAMIC) {
			/* A second one would be another program's trick: the kernel and loader see
			 * the last, so what comes first must not be forgotten. */
			if (ret->nneeded || ret->search[0])
				return -ENOEXEC;
			e = read_dynamic(&r, p, ret);
			if (e < 0)
				return e;
		}
	}
	return 0;
}
