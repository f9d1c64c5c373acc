/* Contents of files, before and after, and their name, as the box left them: what the helper of
 * `pale diff` makes of them is one patch, of lines that begin as those of a patch do, in which no
 * name breaks out of its line.
 *
 * The input: the modes, two bytes each for the lengths of the name and of the old content, the
 * name, the old content; the rest is the new one. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int patch_main(void);
#define main patch_main
#include "../src/files/patch_main.c"
#undef main

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
	if (!ok)
		__builtin_trap();
}

/* The name stands in the first line; a line of its own making would be somebody else's. */
static void check_text(const struct buf *out, const struct patch_answer *a)
{
	static const char *const starts[] = {"diff --git ",
					     "new file mode ",
					     "deleted file mode ",
					     "old mode ",
					     "new mode ",
					     "index ",
					     "--- ",
					     "+++ ",
					     "@@ ",
					     "Binary files ",
					     "GIT binary patch",
					     "literal ",
					     "delta ",
					     "\\ No newline"};
	uint64_t added = 0, removed = 0;
	bool body = false;

	for (size_t i = 0, end; i < out->len; i = end + 1) {
		const char *line = out->data + i, *nl = memchr(line, '\n', out->len - i);
		bool known = a->binary || line[0] == ' ';

		must(nl != NULL);
		end = (size_t)(nl - out->data);
		if (body && !a->binary && (line[0] == '+' || line[0] == '-')) {
			added += line[0] == '+';
			removed += line[0] == '-';
			known = true;
		}
		for (size_t s = 0; s < ARRAY_SIZE(starts); s++)
			known |= strncmp(line, starts[s], strlen(starts[s])) == 0;
		body |= strncmp(line, "@@ ", 3) == 0;
		must(known);
		must(i > 0 || strncmp(line, "diff --git ", 11) == 0);
	}
	must(a->binary || (added == a->added && removed == a->removed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t modes[] = {0100644, 0100755, 0120000, 0};
	struct patch_request q = {.magic = PATCH_MAGIC};
	static bool ready;

	if (size < 5)
		return 0;
	if (!ready && git_libgit2_init() < 0)
		return 0;
	ready = true;
	q.old_mode = modes[data[0] & 3];
	q.new_mode = modes[data[0] >> 2 & 3];
	q.path_len = (uint32_t)(data[1] << 8 | data[2]);
	q.old_len = (uint64_t)(data[3] << 8 | data[4]);
	data += 5;
	size -= 5;
	if (q.path_len > size || q.old_len > size - q.path_len || (!q.old_mode && !q.new_mode))
		return 0;
	q.new_len = size - q.path_len - q.old_len;
	if ((!q.old_mode && q.old_len) || (!q.new_mode && q.new_len))
		return 0;
	_cleanup_free_ char *path = strndup((const char *)data, q.path_len);
	_cleanup_free_ char *old = malloc(q.old_len + 1), *new = malloc(q.new_len + 1);

	if (!path || !old || !new || !*path)
		return 0;
	memcpy(old, data + q.path_len, q.old_len);
	memcpy(new, data + q.path_len + q.old_len, q.new_len);
	for (q.want = PATCH_WANT_TEXT; q.want <= PATCH_WANT_STAT; q.want++) {
		_cleanup_buf_ struct buf out = BUF_INIT(1 << 22);
		struct patch_answer a = {.magic = PATCH_MAGIC};

		if (diff(&q, path, old, new, &a, &out) < 0)
			continue;
		if (q.want == PATCH_WANT_TEXT && out.len)
			check_text(&out, &a);
		else
			must(out.len == 0);
	}
	return 0;
}
