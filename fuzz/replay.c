/* Runs each file of a corpus through a fuzz program's entry, as a test. usage: fuzz_NAME DIR */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	unsigned n = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s DIR\n", argv[0]);
		return 2;
	}
	for (struct dirent *e; (e = readdir(dir));) {
		_cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
		_cleanup_close_ int fd = -1;
		int r;

		if (e->d_name[0] == '.')
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : buf_read_fd(&b, fd);
		/* A fault is an abort; what is left to tell is a file that was not read. */
		if (r == 0)
			LLVMFuzzerTestOneInput((const uint8_t *)(b.data ? b.data : ""), b.len);
		printf("%s %u - %s\n", r == 0 ? "ok" : "not ok", ++n, e->d_name);
	}
	closedir(dir);
	if (n == 0)
		printf("not ok 1 - the corpus is empty\n");
	printf("1..%u\n", n ? n : 1);
	return 0;
}
