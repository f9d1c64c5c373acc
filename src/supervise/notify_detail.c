/* What the arguments of a refused call say, in words: AF_ALG, TIOCSTI, CLONE_NEWUSER. In the
 * supervisor; the arguments are hostile, and only compared and printed as numbers. */
#include "supervise/notify_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

struct word {
	uint32_t value;
	const char *text;
};

static const struct word families[] = {
	{4, "AF_IPX"},	    {5, "AF_APPLETALK"}, {15, "AF_KEY"},   {17, "AF_PACKET"},
	{21, "AF_RDS"},	    {29, "AF_CAN"},	 {30, "AF_TIPC"},  {31, "AF_BLUETOOTH"},
	{38, "AF_ALG"},	    {39, "AF_NFC"},	 {40, "AF_VSOCK"}, {41, "AF_KCM"},
	{42, "AF_QIPCRTR"}, {43, "AF_SMC"},	 {44, "AF_XDP"},   {1, "AF_UNIX"},
};
static const struct word ioctls[] = {
	{0x5412, "TIOCSTI"},  {0x541c, "TIOCLINUX"},   {0x541d, "TIOCCONS"},
	{0x5423, "TIOCSETD"}, {0x5437, "TIOCVHANGUP"},
};
static const struct word requests[] = {
	{0, "PTRACE_TRACEME"}, {16, "PTRACE_ATTACH"}, {0x4206, "PTRACE_SEIZE"}};
static const struct word options[] = {
	{35, "PR_SET_MM"},
	{57, "PR_SET_IO_FLUSHER"},
	{59, "PR_SET_SYSCALL_USER_DISPATCH"},
	{62, "PR_SCHED_CORE"},
};
static const struct word namespaces[] = {
	{0x10000000, "CLONE_NEWUSER"},	 {0x00020000, "CLONE_NEWNS"},  {0x20000000, "CLONE_NEWPID"},
	{0x40000000, "CLONE_NEWNET"},	 {0x08000000, "CLONE_NEWIPC"}, {0x04000000, "CLONE_NEWUTS"},
	{0x02000000, "CLONE_NEWCGROUP"}, {0x80, "CLONE_NEWTIME"},
};

static void one_of(const struct word *words, size_t n, uint32_t value, char *ret, size_t size)
{
	for (size_t i = 0; i < n; i++)
		if (words[i].value == value) {
			snprintf(ret, size, "%s", words[i].text);
			return;
		}
	snprintf(ret, size, "%#x", value);
}

static void bits_of(uint32_t value, char *ret, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++)
		if (value & namespaces[i].value && used + strlen(namespaces[i].text) + 2 < size)
			used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? "|" : "",
						 namespaces[i].text);
}

#define ONE_OF(words, value) one_of(words, ARRAY_SIZE(words), value, ret, size)

void notify_detail(int nr, const uint64_t args[6], char *ret, size_t size)
{
	uint32_t family;

	ret[0] = 0;
	switch (nr) {
	case SYS_socket:
		family = (uint32_t)args[0];
		if (family != 2 && family != 10 && family != 16)
			ONE_OF(families, family);
		else if (family != 16 && (args[1] & 0xf) == 3)
			snprintf(ret, size, "SOCK_RAW");
		else
			snprintf(ret, size, "%s protocol %u", family == 16 ? "AF_NETLINK" : "IP",
				 (uint32_t)args[2]);
		return;
	case SYS_socketpair: ONE_OF(families, (uint32_t)args[0]); return;
	case SYS_ioctl: ONE_OF(ioctls, (uint32_t)args[1]); return;
	case SYS_ptrace: ONE_OF(requests, (uint32_t)args[0]); return;
	case SYS_prctl: ONE_OF(options, (uint32_t)args[0]); return;
	case SYS_clone: bits_of((uint32_t)args[0] & ~0xffu, ret, size); return;
	case SYS_unshare: bits_of((uint32_t)args[0], ret, size); return;
	case SYS_mmap:
	case SYS_memfd_create:
	case SYS_shmget: snprintf(ret, size, "huge pages"); return;
	case SYS_personality: snprintf(ret, size, "%#x", (uint32_t)args[0]); return;
	}
}
