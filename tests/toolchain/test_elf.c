/* The ELF reader: a real program, and bytes that lie. */
#include "plan/elf.h"
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static struct elf_info info;

static int parse(const void *data, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	r = elf_read(fd, &info);
	close(fd);
	return r;
}

static void test_own_program(void **state)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool libc = false;

	(void)state;
	assert_int_equal(elf_read(fd, &info), 0);
	assert_true(info.native);
	assert_non_null(strstr(info.interp, "/ld-"));
	for (size_t i = 0; i < info.nneeded; i++)
		libc |= strncmp(info.needed[i], "libc.", 5) == 0;
	assert_true(libc);
}

static void test_no_elf(void **state)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, 1},
			.e_machine = EM_386};

	(void)state;
	assert_int_equal(parse("", 0), -ENOEXEC);
	assert_int_equal(parse("#!/bin/sh\n", 10), -ENOEXEC);
	assert_int_equal(parse("\177ELF", 4), -ENOEXEC);
	assert_int_equal(parse(&h, sizeof(h)), 0);
	assert_true(info.is_32bit);
	assert_false(info.native);
	h.e_ident[EI_DATA] = ELFDATA2MSB;
	h.e_ident[EI_CLASS] = ELFCLASS64;
	assert_int_equal(parse(&h, sizeof(h)), 0);
	assert_false(info.native);
}

/* A small program with a field for each lie; what elf_read() must do with it. */
struct image {
	Elf64_Ehdr h;
	Elf64_Phdr p[3];
	Elf64_Dyn d[8];
	char strings[64];
};

static void make(struct image *f)
{
	memset(f, 0, sizeof(*f));
	memcpy(f->h.e_ident, ELFMAG, SELFMAG);
	f->h.e_ident[EI_CLASS] = ELFCLASS64;
	f->h.e_ident[EI_DATA] = ELFDATA2LSB;
	f->h.e_type = ET_DYN;
#if defined(__aarch64__)
	f->h.e_machine = EM_AARCH64;
#else
	f->h.e_machine = EM_X86_64;
#endif
	f->h.e_phoff = offsetof(struct image, p);
	f->h.e_phentsize = sizeof(Elf64_Phdr);
	f->h.e_phnum = 3;
	f->p[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof(*f)};
	f->p[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
			       .p_offset = offsetof(struct image, d),
			       .p_filesz = sizeof(f->d)};
	f->p[2] =
		(Elf64_Phdr){.p_type = PT_INTERP, .p_offset = offsetof(struct image, strings) + 1};
	f->d[0] = (Elf64_Dyn){DT_STRTAB, {0x1000 + offsetof(struct image, strings)}};
	f->d[1] = (Elf64_Dyn){DT_NEEDED, {4}};
	f->d[2] = (Elf64_Dyn){DT_RPATH, {9}};
	f->d[3] = (Elf64_Dyn){DT_RUNPATH, {12}};
	memcpy(f->strings, "\0ld\0a.so\0/r\0/run\0", 18);
}

static void test_lies(void **state)
{
	struct image good, f;

	(void)state;
	make(&good);
	assert_int_equal(parse(&good, sizeof(good)), 0);
	assert_string_equal(info.interp, "ld");
	assert_string_equal(info.search, "/run");
	assert_true(info.has_runpath);
	assert_int_equal(info.nneeded, 1);
	assert_string_equal(info.needed[0], "a.so");

#define LIE(change)                                               \
	do {                                                      \
		f = good;                                         \
		change;                                           \
		assert_int_equal(parse(&f, sizeof(f)), -ENOEXEC); \
	} while (0)
	LIE(f.h.e_phnum = 0xffff);
	LIE(f.h.e_phnum = 0);
	LIE(f.h.e_phentsize = 1);
	LIE(f.h.e_phoff = UINT64_MAX);
	LIE(f.h.e_phoff = INT64_MAX);
	LIE(f.h.e_phoff = sizeof(f) - 8);
	LIE(f.p[1].p_offset = UINT64_MAX - 3);
	LIE(f.p[1].p_filesz = UINT64_MAX);
	LIE(f.p[1].p_filesz = UINT64_MAX / 2);
	LIE(f.p[2].p_offset = UINT64_MAX);
	LIE(f.p[2].p_offset = sizeof(f));
	LIE(f.d[0].d_un.d_ptr = 0);
	LIE(f.d[0].d_un.d_ptr = UINT64_MAX);
	LIE(f.p[0].p_vaddr = UINT64_MAX - 4);
	LIE(f.p[0].p_offset = UINT64_MAX - 4);
	LIE(f.d[1].d_un.d_val = UINT64_MAX);
	LIE(f.d[1].d_un.d_val = sizeof(f));
	LIE(f.d[3].d_un.d_val = 0xffffffff);
	LIE(f.d[0].d_tag = 77);
	LIE(memset(f.strings, 'x', sizeof(f.strings)));
	LIE(f.p[0] = f.p[1]);
}

/* Many small damages: whatever comes out, strings end within their bounds. */
static void test_mutations(void **state)
{
	struct image good, f;
	uint32_t seed = 1;

	(void)state;
	make(&good);
	for (int i = 0; i < 20000; i++) {
		f = good;
		for (int k = 0; k < 1 + i % 4; k++) {
			seed = seed * 1664525 + 1013904223;
			((unsigned char *)&f)[16 + (seed >> 8) % (sizeof(f) - 16)] =
				(unsigned char)(seed >> 24);
		}
		if (parse(&f, sizeof(f)) < 0)
			continue;
		assert_true(strnlen(info.interp, sizeof(info.interp)) < sizeof(info.interp));
		assert_true(strnlen(info.search, sizeof(info.search)) < sizeof(info.search));
		assert_true(info.nneeded <= ELF_MAX_NEEDED);
		for (size_t n = 0; n < info.nneeded; n++)
			assert_true(info.needed[n] >= info.names &&
				    info.needed[n] + strlen(info.needed[n]) <
					    info.names + sizeof(info.names));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_program),
		cmocka_unit_test(test_no_elf),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_mutations),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
