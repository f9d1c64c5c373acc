/* Gives the tests written in Python the internal calls of src/files/.
 *
 *   files-tool run UPPER ROOT USERNS|- STARTED_NS|-        prints the id and the summary
 *   files-tool held                                        the table of docs/workspaces.md
 *   files-tool collect SOURCE DEST MAX_BYTES               prints refusals and the report */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "base/num.h"
#include "files/changes.h"
#include "files/collect.h"
#include "files/held.h"

static int fail(const struct pale_err *err)
{
	fprintf(stderr, "%s\n", err->message);
	return 1;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A whole run as far as the state directory shows it. "-" for no user namespace, and for now. */
static int run(char **argv)
{
	_cleanup_close_ int upper = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int userns =
		strcmp(argv[4], "-") ? open(argv[4], O_RDONLY | O_CLOEXEC) : -1;
	struct changes_source src = {.upper_fd = upper,
				     .userns_fd = userns,
				     .root = argv[3],
				     .path = argv[3],
				     .started_ns = now_ns()};
	struct changes_summary sum;
	struct audit *a;
	struct pale_err err;
	uint64_t started;

	if (upper < 0 || (userns < 0 && strcmp(argv[4], "-")))
		return 2;
	if (strcmp(argv[5], "-") && num_parse_u64(argv[5], INT64_MAX, &started) < 0)
		return 2;
	if (strcmp(argv[5], "-"))
		src.started_ns = (int64_t)started;
	if (audit_create(&a, &err) < 0 ||
	    audit_append(a, "supervise", "box.start", json_object(), &err) < 0 ||
	    changes_capture(&src, audit_dir_fd(a), 0, &sum, &err) < 0 ||
	    audit_append(a, "supervise", "box.end", json_object(), &err) < 0)
		return fail(&err);
	printf("%s added=%" PRIu64 " modified=%" PRIu64 " deleted=%" PRIu64 " other=%" PRIu64
	       " refused=%" PRIu64 " bytes=%" PRIu64 "\n",
	       audit_id(a), sum.added, sum.modified, sum.deleted, sum.other, sum.refused,
	       sum.bytes);
	audit_free(a);
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
	if (collect_tree(source, -1, argv[3], max, NULL, refused, NULL, &rep, &err) < 0)
		return fail(&err);
	printf("files=%" PRIu64 " directories=%" PRIu64 " links=%" PRIu64 " bytes=%" PRIu64
	       " refused=%" PRIu64 "\n",
	       rep.files, rep.directories, rep.links, rep.bytes, rep.refused);
	return 0;
}

/* One row a class: what is obeyed by whom, and the names. */
static int held(void)
{
	puts("| class | name | why |\n|---|---|---|");
	for (const struct held_rule *r = held_rules; r->pattern; r++)
		printf("| %s | `%s` | %s%s |\n", r->class, r->pattern, r->why,
		       r->check == HELD_JSON_SCRIPTS
			       ? " (only if a key that runs something changed)"
		       : r->check == HELD_TOML_BUILD ? " (only if the build system's part changed)"
						     : "");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "held") == 0)
		return held();
	if (argc == 6 && strcmp(argv[1], "run") == 0)
		return run(argv);
	if (argc == 5 && strcmp(argv[1], "collect") == 0)
		return collect(argv);
	return 2;
}
