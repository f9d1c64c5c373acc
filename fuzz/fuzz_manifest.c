/* Lines of a manifest from hostile bytes, as a lost capture child could write them. What is
 * accepted must be safe by itself (its path stays in the tree, numbers in range) and survive being
 * written again; and the rules that look at paths must bear it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/held.h"
#include "base/links.h"
#include "files/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct change *c)
{
	struct manifest m = {.contents_fd = -1, .root = (char[]){"/home/u/work"}};
	const struct held h = {.manifest = &m, .home = "/home/u", .root_fd = -1};

	if (!manifest_path_ok(c->path, strlen(c->path)) || c->path[0] == '/' || c->mode > 07777 ||
	    c->type == TYPE_NONE || c->size > INT64_MAX || c->offset > INT64_MAX - c->size)
		abort();
	m.entries = (struct change *)(uintptr_t)c;
	m.count = 1;
	if (manifest_find(&m, c->path) != c)
		abort();
	(void)held_find(&h, c);
	(void)held_names_directory(&h, c->path);
	if (c->target)
		(void)link_leads_out(c->path, c->target);
}

static int parse_line(const char *line, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(MANIFEST_LINE_MAX), b2 = BUF_INIT(MANIFEST_LINE_MAX);
	struct pale_err err = {0};
	struct change c, again;

	if (manifest_parse(line, len, &c, &err) < 0) {
		if (err.code == PALE_OK || !err.message[0])
			abort();
		return 0;
	}
	check(&c);
	if (manifest_format(&b, &c) < 0 || manifest_parse(b.data, b.len - 1, &again, &err) < 0 ||
	    manifest_format(&b2, &again) < 0 || b.len != b2.len ||
	    memcmp(b.data, b2.data, b.len) != 0)
		abort();
	change_done(&c);
	change_done(&again);
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	for (size_t i = 0; i < size;) {
		const char *end = memchr(text + i, '\n', size - i);
		size_t n = end ? (size_t)(end - text) - i : size - i;

		parse_line(text + i, n);
		i += n + 1;
	}
	return 0;
}
