/* Answers of the worker in a running box, from hostile bytes: whatever it says, it becomes a result
 * or an error, of bounded size, as JSON that can be written down. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "supervise/door_files.h"
#include "supervise/session_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct inside_request *q, const struct inside_answer *a, const char *data)
{
	char user[] = "agent";
	const struct plan plan = {.user = user, .uid = 1000, .gid = 1000};
	struct pale_err err = {0};
	json_t *o = door_files_result(&plan, q, a, data, &err);
	char *text;

	if ((o != NULL) == (err.code != PALE_OK))
		abort();
	if (!o)
		return;
	text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text || json_array_size(json_object_get(o, "entries")) > q->length)
		abort();
	free(text);
	json_decref(o);
}

/* Of the keeper: what an execution changed. */
static void check_changes(const struct inside_request *q, const struct inside_answer *a,
			  const char *data)
{
	json_t *o = session_files_result(q, a, data, NULL);
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (!text || !json_object_get(o, "files") ||
	    json_array_size(json_object_get(o, "files")) > a->count)
		abort();
	free(text);
	json_decref(o);
}

/* One byte of what was asked, an answer, and what lies in its memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct inside_request q = {.path = "/some/path", .length = 64};
	struct inside_answer a;
	char *memory;

	if (size < 1 + sizeof(a))
		return 0;
	q.op = data[0] % INSIDE_BACK + 1;
	memcpy(&a, data + 1, sizeof(a));
	data += 1 + sizeof(a);
	size -= 1 + sizeof(a);
	if (q.op != INSIDE_LIST && q.op != INSIDE_STAT)
		q.length = (uint32_t)size;
	if (!inside_sensible(&q, &a))
		return 0;
	/* As take_data() does: exactly as much as was said, or nothing. */
	if (q.op == INSIDE_WRITE || q.op == INSIDE_LINK || a.error)
		size = 0;
	else if (a.length > size)
		return 0;
	else
		size = a.length;
	memory = malloc(size + 1);
	if (!memory)
		return 0;
	memcpy(memory, data, size);
	memory[size] = '\0';
	if (q.op >= INSIDE_KEEP)
		check_changes(&q, &a, memory);
	else
		check(&q, &a, memory);
	free(memory);
	return 0;
}
