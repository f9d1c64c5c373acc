/* The filters of both architectures in a simulator: a table of what must come out, every call
 * against the table that the filter was made from, and what the kernel's bitmap can cache. */
#include "confine/seccomp_compile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <linux/audit.h>

#include "sim.h"

struct program {
	struct sock_filter insns[SECCOMP_MAX_INSNS];
	size_t n;
};
static struct seccomp_map maps[SECCOMP_ARCHES];
static struct program programs[SECCOMP_ARCHES][SECCOMP_PROFILES][SECCOMP_WATCH_VARIANTS];

static int compile_all(void **state)
{
	(void)state;
	for (int a = 0; a < SECCOMP_ARCHES; a++) {
		if (seccomp_map_fill((enum seccomp_arch)a, &maps[a]) < 0)
			return -1;
		for (int p = 0; p < SECCOMP_PROFILES; p++)
			for (unsigned w = 0; w < SECCOMP_WATCH_VARIANTS; w++) {
				struct program *out = &programs[a][p][w];
				int n = seccomp_compile((enum seccomp_arch)a, &maps[a],
							(enum policy_profile)p,
							seccomp_watch_variant(w), out->insns);

				if (n < 0)
					return -1;
				out->n = (size_t)n;
			}
	}
	return 0;
}

static uint32_t sim(int arch, int profile, unsigned watch, struct seccomp_data *d)
{
	const struct program *p = &programs[arch][profile][watch];

	return sim_run(p->insns, p->n, d);
}

static int number(int arch, const char *name)
{
	for (int nr = 0; nr < SECCOMP_MAX_NR; nr++)
		if (strcmp(maps[arch].name[nr], name) == 0)
			return nr;
	return -1;
}

#define D      PROFILE_DEFAULT
#define S      PROFILE_STRICT
#define N      PROFILE_NESTED
#define QUIET  SECCOMP_NO_LISTENER
#define OK     SECCOMP_RET_ALLOW
#define NOTIF  SECCOMP_RET_USER_NOTIF
#define ERR(e) (SECCOMP_RET_ERRNO | (e))
#define HIGH   0xffffffff00000000ull /* what the kernel does not look at */

static void test_expected(void **state)
{
	static const struct {
		int profile;
		unsigned watch;
		const char *call;
		uint64_t args[6];
		uint32_t expect;
	} rows[] = {
		{D, 0, "read", {0}, OK},
		{S, 0, "read", {0}, OK},
		{D, QUIET, "clone3", {0}, ERR(ENOSYS)},
		{D, 0, "clone3", {0}, NOTIF},
		{N, 0, "clone3", {0}, OK},
		{D, 0, "clone", {0x3d0f00}, OK},      /* a thread */
		{S, 0, "clone", {0x01200011}, OK},    /* fork() */
		{D, 0, "clone", {0x10000011}, NOTIF}, /* CLONE_NEWUSER */
		{D, QUIET, "clone", {0x10000011}, ERR(EPERM)},
		{D, QUIET, "clone", {HIGH | 0x20000}, ERR(EPERM)},
		{D, QUIET, "clone", {HIGH | 0x11}, OK},
		{N, 0, "clone", {0x7e020011}, OK},
		{D, QUIET, "unshare", {0x10000000}, ERR(EPERM)},
		{D, QUIET, "unshare", {0x80}, ERR(EPERM)}, /* CLONE_NEWTIME */
		{D, 0, "unshare", {0x400}, OK},		   /* CLONE_FILES */
		{N, 0, "unshare", {0x10000000}, OK},
		{D, QUIET, "setns", {3, 0}, ERR(EPERM)},
		{D, SECCOMP_ONE_USER, "setreuid", {65534, ~0ull}, ERR(EPERM)},
		{D, SECCOMP_ONE_USER, "setreuid", {~0ull, 0}, ERR(EPERM)},
		{D, SECCOMP_ONE_USER, "setuid", {1000, 0}, OK},
		{D, SECCOMP_ONE_USER, "chown", {1, 0, 1000}, ERR(EPERM)},
		{D, SECCOMP_ONE_USER, "chown", {1, 1000, ~0ull}, OK},
		{D, SECCOMP_ONE_USER | QUIET, "fchownat", {3, 1, HIGH | 0, 5}, ERR(EPERM)},
		{D, 0, "chown", {1, 0, 0}, OK},
		{D, QUIET, "setuid", {0}, OK},
		{N, SECCOMP_ONE_USER, "setuid", {0}, OK},
		{D, QUIET, "mount", {0}, ERR(EPERM)},
		{N, QUIET, "mount", {0}, OK},
		{D, QUIET, "fsopen", {0}, ERR(EPERM)},
		{D, QUIET, "io_uring_setup", {0}, ERR(ENOSYS)},
		{N, QUIET, "io_uring_setup", {0}, ERR(ENOSYS)},
		{D, 0, "io_uring_setup", {0}, NOTIF},
		{D, QUIET, "io_setup", {0}, ERR(ENOSYS)},
		{D, QUIET, "mmap", {0, 4096, 3, 0x22}, OK},
		{D, QUIET, "mmap", {0, 4096, 3, 0x40022}, ERR(ENOMEM)}, /* MAP_HUGETLB */
		{N, QUIET, "mmap", {0, 4096, 3, HIGH | 0x40022}, ERR(ENOMEM)},
		{S, 0, "mmap", {0, 4096, 3, 0x40022}, NOTIF},
		{D, QUIET, "memfd_create", {0, 3}, OK},
		{D, QUIET, "memfd_create", {0, 5}, ERR(ENOMEM)}, /* MFD_HUGETLB */
		{D, QUIET, "shmget", {0, 4096, 01600}, OK},
		{D, QUIET, "shmget", {0, 4096, 05600}, ERR(ENOMEM)}, /* SHM_HUGETLB */
		{D, QUIET, "userfaultfd", {0}, ERR(EPERM)},
		{D, QUIET, "bpf", {0}, ERR(EPERM)},
		{D, QUIET, "keyctl", {0}, ERR(ENOSYS)},
		{D, QUIET, "perf_event_open", {0}, ERR(EACCES)},
		{D, QUIET, "open_by_handle_at", {0}, ERR(EPERM)},
		{D, QUIET, "kcmp", {0}, ERR(EPERM)},
		{D, QUIET, "process_vm_writev", {0}, ERR(EPERM)},
		{D, QUIET, "ptrace", {0}, OK},
		{D, QUIET, "ptrace", {16}, ERR(EPERM)},
		{D, QUIET, "ptrace", {HIGH | 0x4206}, ERR(EPERM)},
		{D, QUIET, "ptrace", {0x4206}, ERR(EPERM)},
		{S, QUIET, "ptrace", {0}, ERR(EPERM)},
		/* families, types and protocols */
		{D, QUIET, "socket", {1, 1, 0}, OK},
		{D, QUIET, "socket", {1, 5 | 02004000, 0}, OK},
		{D, QUIET, "socket", {2, 1, 0}, OK},
		{D, QUIET, "socket", {10, 1 | 02004000, 6}, OK},
		{D, QUIET, "socket", {2, 2, 17}, OK},
		{D, QUIET, "socket", {HIGH | 2, HIGH | 2, HIGH}, OK},
		{D, QUIET, "socket", {2, 1, 262}, ERR(EPROTONOSUPPORT)},
		{D, QUIET, "socket", {2, 1, 132}, ERR(EPROTONOSUPPORT)},
		{D, QUIET, "socket", {2, 2, 1}, ERR(EPROTONOSUPPORT)},
		{D, QUIET, "socket", {2, 3, 255}, ERR(EPERM)},
		{D, QUIET, "socket", {10, 3 | 02000000, 58}, ERR(EPERM)},
		{D, QUIET, "socket", {16, 3, 0}, OK},
		{D, QUIET, "socket", {16, 3, 9}, ERR(EPROTONOSUPPORT)},
		{D, QUIET, "socket", {17, 3, 0x300}, ERR(EAFNOSUPPORT)},
		{D, QUIET, "socket", {38, 5, 0}, ERR(EAFNOSUPPORT)}, /* AF_ALG */
		{D, QUIET, "socket", {40, 1, 0}, ERR(EAFNOSUPPORT)}, /* AF_VSOCK */
		{D, QUIET, "socket", {HIGH | 38, 5, 0}, ERR(EAFNOSUPPORT)},
		{D, 0, "socket", {38, 5, 0}, NOTIF},
		{S, 0, "socket", {1, 1, 0}, ERR(EACCES)},
		{S, 0, "socket", {2, 1, 0}, NOTIF},
		{S, QUIET, "socket", {38, 5, 0}, ERR(EACCES)},
		{S, QUIET, "socketpair", {1, 1, 0}, OK},
		{D, QUIET, "socketpair", {30, 1, 0}, ERR(EAFNOSUPPORT)},
		/* network calls */
		{D, 0, "connect", {3}, NOTIF},
		{D, QUIET, "connect", {3}, OK},
		{S, QUIET, "connect", {3}, ERR(EPERM)},
		{D, 0, "sendto", {3, 1, 1, 0, 0, 0}, OK},
		{D, 0, "sendto", {3, 1, 1, 0, 0x1000, 16}, NOTIF},
		{D, 0, "sendto", {3, 1, 1, 0, 0x7f0000000000, 16}, NOTIF}, /* low half zero */
		{D, 0, "sendmsg", {3}, NOTIF},
		{D, 0, "sendmmsg", {3}, NOTIF},
		{S, 0, "sendmsg", {3}, OK},
		/* terminals, personality, prctl, devices */
		{D, QUIET, "ioctl", {0, 0x5401}, OK},
		{D, QUIET, "ioctl", {0, 0x5412}, ERR(EPERM)},
		{D, QUIET, "ioctl", {0, HIGH | 0x5412}, ERR(EPERM)}, /* CVE-2019-10063 */
		{D, QUIET, "ioctl", {0, 0x541c}, ERR(EPERM)},
		{D, QUIET, "ioctl", {0, 0x5423}, ERR(EPERM)},
		{S, QUIET, "ioctl", {0, 0x5401}, OK},
		{S, QUIET, "ioctl", {0, 0x5412}, ERR(ENOTTY)},
		{S, QUIET, "ioctl", {0, 0x40049409}, ERR(ENOTTY)}, /* FICLONE */
		{D, QUIET, "personality", {0}, OK},
		{D, QUIET, "personality", {0xffffffff}, OK},
		{D, QUIET, "personality", {0x40000}, OK},
		{D, QUIET, "personality", {0x400000}, ERR(EPERM)}, /* READ_IMPLIES_EXEC */
		{D, QUIET, "prctl", {38, 1}, OK},
		{D, QUIET, "prctl", {35}, ERR(EPERM)},
		{D, QUIET, "mknodat", {0, 0, 0100644}, OK},
		{D, QUIET, "mknodat", {0, 0, 0010644}, OK},
		{D, QUIET, "mknodat", {0, 0, 0020644}, ERR(EPERM)},
		{D, QUIET, "mknodat", {0, 0, 0060644}, ERR(EPERM)},
		/* what is watched */
		{D, 0, "write", {2}, OK},
		{D, SECCOMP_WATCH_OUTPUT, "write", {2}, NOTIF},
		{D, SECCOMP_WATCH_OUTPUT, "write", {HIGH | 2}, NOTIF},
		{D, SECCOMP_WATCH_OUTPUT, "write", {1}, NOTIF},
		{D, SECCOMP_WATCH_OUTPUT, "write", {0}, OK},
		{D, SECCOMP_WATCH_OUTPUT, "write", {3}, OK},
		{D, SECCOMP_WATCH_OUTPUT, "pwritev2", {2}, NOTIF},
		{D, SECCOMP_WATCH_OUTPUT, "splice", {0, 0, 2}, NOTIF},
		{D, 0, "openat", {0, 0, 1}, OK},
		{D, SECCOMP_WATCH_FILE_WRITES, "openat", {0, 0, 0}, OK},
		{D, SECCOMP_WATCH_FILE_WRITES, "openat", {0, 0, 02000000}, OK},
		{D, SECCOMP_WATCH_FILE_WRITES, "openat", {0, 0, 1}, NOTIF},
		{D, SECCOMP_WATCH_FILE_WRITES, "openat", {0, 0, 0100}, NOTIF},
		{D, SECCOMP_WATCH_FILES, "openat", {0, 0, 0}, NOTIF},
		{D, SECCOMP_WATCH_FILES, "mkdirat", {0}, NOTIF},
		{D, SECCOMP_WATCH_FILES, "execve", {0}, NOTIF},
		{D, SECCOMP_WATCH_FILES, "execveat", {0}, NOTIF},
		{D, SECCOMP_WATCH_FILES, "execveat", {3, 0, 0, 0, 0x1000}, OK},
		{D, SECCOMP_WATCH_FILE_WRITES, "execve", {0}, OK},
		{D, SECCOMP_WATCH_FILE_WRITES, "renameat2", {0}, NOTIF},
		/* what strict refuses it refuses watched too */
		{S, SECCOMP_WATCH_FILES, "setxattr", {0}, ERR(EOPNOTSUPP)},
		{S, SECCOMP_WATCH_OUTPUT | QUIET, "splice", {0, 0, 2}, ERR(EPERM)},
		{S, SECCOMP_WATCH_OUTPUT | QUIET, "vmsplice", {2}, ERR(EPERM)},
		/* newer than the build machine's libseccomp */
		{D, QUIET, "mseal", {0}, OK},
		{D, QUIET, "statmount", {0}, ERR(ENOSYS)},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int a = 0; a < SECCOMP_ARCHES; a++) {
			struct seccomp_data d = {.arch = seccomp_audit_arch((enum seccomp_arch)a),
						 .nr = number(a, rows[i].call)};

			if (d.nr < 0)
				continue;
			memcpy(d.args, rows[i].args, sizeof(d.args));
			uint32_t got = sim(a, rows[i].profile, rows[i].watch, &d);

			if (got != rows[i].expect)
				fail_msg("row %zu, arch %d: %s: %#x, not %#x", i, a, rows[i].call,
					 got, rows[i].expect);
		}
}

/* Watching never lets through what is refused without it. */
static void test_watch_refuses_no_less(void **state)
{
	(void)state;
	for (int a = 0; a < SECCOMP_ARCHES; a++)
		for (int nr = 0; nr < SECCOMP_MAX_NR; nr++)
			for (int p = 0; p < SECCOMP_PROFILES; p++)
				for (unsigned arg = 0; arg < 8; arg++) {
					const uint64_t args[6] = {arg, arg, arg, arg, arg, arg};
					const struct seccomp_row *row = maps[a].row[nr];
					enum policy_profile profile = (enum policy_profile)p;
					struct seccomp_verdict plain =
						seccomp_row_verdict(row, profile, 0, args);
					struct seccomp_verdict watched = seccomp_row_verdict(
						row, profile,
						SECCOMP_WATCH_FILES | SECCOMP_WATCH_FILE_WRITES |
							SECCOMP_WATCH_OUTPUT,
						args);

					if (plain.error != watched.error)
						fail_msg("%s, profile %d", maps[a].name[nr], p);
				}
}

static void test_foreign(void **state)
{
	(void)state;
	for (int p = 0; p < SECCOMP_PROFILES; p++)
		for (unsigned w = 0; w < SECCOMP_WATCH_VARIANTS; w++) {
			uint32_t refused = w & QUIET ? ERR(ENOSYS) : NOTIF;
			struct seccomp_data d = {.arch = AUDIT_ARCH_I386};

			for (d.nr = 0; d.nr < 600; d.nr++) {
				assert_int_equal(sim(SECCOMP_X86_64, p, w, &d), refused);
				assert_int_equal(sim(SECCOMP_AARCH64, p, w, &d), refused);
			}
			d.arch = AUDIT_ARCH_X86_64;
			for (int nr = 0; nr < 600; nr++) {
				d.nr = nr | 0x40000000; /* x32 */
				assert_int_equal(sim(SECCOMP_X86_64, p, w, &d), refused);
			}
			d.nr = -1;
			assert_int_equal(sim(SECCOMP_X86_64, p, w, &d), refused);
			d.nr = 511;
			assert_int_equal(sim(SECCOMP_X86_64, p, w, &d), refused);
			d.arch = AUDIT_ARCH_ARM;
			d.nr = 3;
			assert_int_equal(sim(SECCOMP_AARCH64, p, w, &d), refused);
		}
}

/* Each value that a case names, its neighbours, and garbage in the upper half. */
static size_t interesting(const struct seccomp_row *row, uint64_t *out, size_t max)
{
	size_t n = 0;

	for (const struct seccomp_case *c = seccomp_row_cases(row); c->profiles; c++)
		for (unsigned t = 0; t < c->ntests && n + 6 <= max; t++) {
			uint32_t v = c->tests[t].value;

			out[n++] = v;
			out[n++] = v + 1u;
			out[n++] = v - 1u;
			out[n++] = ~v;
			out[n++] = HIGH | v;
			out[n++] = v | (c->tests[t].mask & -c->tests[t].mask);
		}
	return n;
}

static uint32_t expected(const struct seccomp_row *row, int p, unsigned w, const uint64_t args[6])
{
	struct seccomp_verdict v =
		seccomp_row_verdict(row, (enum policy_profile)p, seccomp_watch_variant(w), args);

	switch (v.action) {
	case SECCOMP_ALLOW: return OK;
	case SECCOMP_SILENT: return ERR((uint32_t)v.error);
	case SECCOMP_REPORT: return w & QUIET ? OK : NOTIF;
	case SECCOMP_PEEK:
	case SECCOMP_REFUSE: break;
	}
	return w & QUIET ? ERR((uint32_t)v.error) : NOTIF;
}

static void test_against_table(void **state)
{
	uint64_t values[128] = {0}, args[6] = {0};
	size_t refused_without_errno = 0;

	(void)state;
	for (int a = 0; a < SECCOMP_ARCHES; a++)
		for (int nr = 0; nr < SECCOMP_MAX_NR; nr++) {
			const struct seccomp_row *row = maps[a].row[nr];
			size_t n = row ? interesting(row, values, ARRAY_SIZE(values)) : 0;

			for (int p = 0; p < SECCOMP_PROFILES; p++)
				for (unsigned w = 0; w < SECCOMP_WATCH_VARIANTS; w++) {
					unsigned rounds = n ? 40 : 1;
					struct seccomp_data d = {
						.arch = seccomp_audit_arch((enum seccomp_arch)a),
						.nr = nr};

					for (unsigned r = 0; r < rounds; r++) {
						for (int i = 0; n && i < 6; i++)
							d.args[i] = args[i] =
								values[(size_t)rand() % n];
						uint32_t want = expected(row, p, w, args);
						uint32_t got = sim(a, p, w, &d);

						/* The limit of core dumps is kept without a word.
						 */
						refused_without_errno +=
							want == ERR(0) &&
							!strstr(maps[a].name[nr], "rlimit");
						if (got != want)
							fail_msg("%s, profile %d, watch %u: %#x, "
								 "not %#x",
								 maps[a].name[nr], p, w, got, want);
					}
				}
		}
	assert_int_equal(refused_without_errno, 0);
}

/* Of the calls that ordinary programs make in their inner loops. */
static void test_cacheable(void **state)
{
	static const char *const calls[] = {"read",  "close", "futex",	 "mprotect",  "getpid",
					    "fstat", "lseek", "pread64", "epoll_ctl", "munmap"};

	(void)state;
	for (int a = 0; a < SECCOMP_ARCHES; a++)
		for (int p = 0; p < SECCOMP_PROFILES; p++)
			for (unsigned w = 0; w < SECCOMP_WATCH_VARIANTS; w++)
				for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
					struct seccomp_data d = {
						.arch = seccomp_audit_arch((enum seccomp_arch)a),
						.nr = number(a, calls[i])};

					assert_true(d.nr >= 0);
					assert_true(sim_const_allow(programs[a][p][w].insns,
								    programs[a][p][w].n, &d));
				}
}

/* What is linked into Pale is what the compiler makes. */
static void test_embedded(void **state)
{
#ifdef __x86_64__
	int a = SECCOMP_X86_64;
#else
	int a = SECCOMP_AARCH64;
#endif

	(void)state;
	for (int p = 0; p < SECCOMP_PROFILES; p++)
		for (unsigned w = 0; w < SECCOMP_WATCH_VARIANTS; w++) {
			const struct sock_fprog *f = seccomp_program((enum policy_profile)p, w);
			const struct program *want = &programs[a][p][w];

			assert_int_equal(f->len, want->n);
			assert_memory_equal(f->filter, want->insns, want->n * sizeof(*f->filter));
		}
	assert_string_equal(seccomp_call_name(number(a, "keyctl")), "keyctl");
	assert_int_equal(seccomp_call_errno(number(a, "keyctl")), ENOSYS);
	assert_int_equal(seccomp_call_errno(number(a, "socket")), EAFNOSUPPORT);
	assert_null(seccomp_call_name(-1));
	assert_null(seccomp_call_name(100000));
	assert_int_equal(seccomp_call_errno(100000), ENOSYS);
	assert_int_equal(strlen(seccomp_version()), 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expected),  cmocka_unit_test(test_watch_refuses_no_less),
		cmocka_unit_test(test_foreign),	  cmocka_unit_test(test_against_table),
		cmocka_unit_test(test_cacheable), cmocka_unit_test(test_embedded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, compile_all, NULL);
}
