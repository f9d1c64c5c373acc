/* Gives the tests written in Python the internal calls of src/files/.
 *
 *   files-tool capture UPPER ROOT RUN_DIR N [STARTED_NS]   prints the summary
 *   files-tool collect SOURCE DEST MAX_BYTES               prints refusals and the report */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "files/changes.h"
#include "files/collect.h"

static int fail(const struct pale_err *err)
{
	fprintf(stderr, "%s\n", err->message);
	return 1;
}

static int capture(int argc, char **argv)
{
	_cleanup_close_ int upper = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int run = open(argv[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct changes_source src = {
		.upper_fd = upper, .userns_fd = -1, .root = argv[3], .path = argv[3]};
	struct changes_summary sum;
	struct pale_err err;
	uint64_t n, started = INT64_MAX;

	if (upper < 0 || run < 0 || num_parse_u64(argv[5], 99, &n) < 0 ||
	    (argc > 6 && num_parse_u64(argv[6], INT64_MAX, &started) < 0))
		return 2;
	src.started_ns = (int64_t)started;
	if (changes_capture(&src, run, (unsigned)n, &sum, &err) < 0)
		return fail(&err);
	printf("added=%" PRIu64 " modified=%" PRIu64 " deleted=%" PRIu64 " other=%" PRIu64
	       " refused=%" PRIu64 " bytes=%" PRIu64 "\n",
	       sum.added, sum.modified, sum.deleted, sum.other, sum.refused, sum.bytes);
	return 0;
}

static void refused(void *arg, const char *path, const char *why)
{
	(void)arg;
	printf("refused %s: %s\n", path, why);
}

static int collect(char **argv)
{
	_cleanup_close_ int source = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct collect_report rep;
	struct pale_err err;
	uint64_t max;

	if (source < 0 || num_parse_u64(argv[4], INT64_MAX, &max) < 0)
		return 2;
	if (collect_tree(source, -1, argv[3], max, refused, NULL, &rep, &err) < 0)
		return fail(&err);
	printf("files=%" PRIu64 " directories=%" PRIu64 " links=%" PRIu64 " bytes=%" PRIu64
	       " refused=%" PRIu64 "\n",
	       rep.files, rep.directories, rep.links, rep.bytes, rep.refused);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 6 && strcmp(argv[1], "capture") == 0)
		return capture(argc, argv);
	if (argc == 5 && strcmp(argv[1], "collect") == 0)
		return collect(argv);
	return 2;
}
