/* Files in memory that only a message on its way holds. */
#include "memory.h"

#include <sys/mman.h>
#include <sys/socket.h>

static long send_file(int to, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {(char *)(uintptr_t) "x", 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(to, &m, 0);
}

ATTACK(RESOURCES, "memory", .gain = "the host's memory, held by no process", .source = "unix(7)",
       .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .set = "limits.memory=64MiB", .works = LIMIT, .flags = ALONE)
{
	static char junk[PIECE];
	int pair[2] = {-1, -1};

	memset(junk, 1, sizeof(junk));
	for (long got = 0; got < want(); got += PIECE) {
		int fd = memfd_create("attack", 0);

		/* A socket takes few messages: a new one for each. */
		if (fd < 0 || write(fd, junk, PIECE) != PIECE ||
		    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 || send_file(pair[0], fd) < 0)
			return -1;
		close(fd);
	}
	return 0;
}
