/* One execution: see execution.h. In the supervisor. Hostile: all bytes that come from the box,
 * which are kept, counted, and never interpreted. */
#include "session/execution.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"

#define STAGE	  "session"
#define ITEM_MAX  16384 /* bytes of output in one item */
#define ITEMS_MAX 4096	/* items of the head, and of the tail */

enum item_type { ITEM_PRINTED, ITEM_SHOWN, ITEM_OTHER };

struct execution_item {
	TAILQ_ENTRY(execution_item) entry;
	uint64_t n;
	enum item_type type;
	enum execution_stream stream;
	bool tail;
	bool read; /* handed out: nothing is added to it any more */
	char *data;
	size_t len, cap;
	json_t *event; /* ITEM_OTHER; ITEM_SHOWN: without its number */
	int32_t number;
	bool result;
	size_t shown;
};

static const char *const stream_names[] = {"stdout", "stderr"};

struct execution *execution_new(uint32_t id, uint64_t half)
{
	struct execution *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->id = id;
	x->half = half;
	TAILQ_INIT(&x->items);
	return x;
}

static void item_free(struct execution *x, struct execution_item *item)
{
	TAILQ_REMOVE(&x->items, item, entry);
	json_decref(item->event);
	free(item->data);
	free(item);
}

void execution_forget(struct execution *x)
{
	struct execution_item *item;

	while ((item = TAILQ_FIRST(&x->items))) {
		x->omitted_bytes += item->len + item->shown;
		item_free(x, item);
	}
	x->head = x->tail = x->shown = 0;
	x->nhead = x->ntail = 0;
	if (json_array_size(json_object_get(x->result, "files"))) {
		json_object_set_new(x->result, "files", json_null());
		json_object_set_new(x->result, "files_why", json_string("it is forgotten"));
		x->files_bytes = 0;
	}
}

void execution_free(struct execution *x)
{
	if (!x)
		return;
	execution_forget(x);
	json_decref(x->result);
	free(x->code);
	free(x);
}

uint64_t execution_size(const struct execution *x)
{
	return x->head + x->tail + x->shown + x->files_bytes;
}

static struct execution_item *item_new(struct execution *x, enum item_type type)
{
	struct execution_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->type = type;
	item->n = x->next++;
	TAILQ_INSERT_TAIL(&x->items, item, entry);
	return item;
}

/* ---- output ---- */

/* The middle is given up, oldest first. */
static void trim(struct execution *x)
{
	struct execution_item *item = TAILQ_FIRST(&x->items), *next;

	for (; item && (x->tail > x->half || x->ntail > ITEMS_MAX); item = next) {
		next = TAILQ_NEXT(item, entry);
		if (item->type != ITEM_PRINTED || !item->tail)
			continue;
		x->tail -= item->len;
		x->ntail--;
		x->omitted_bytes += item->len;
		item_free(x, item);
	}
}

/* An item that takes more of this stream, or NULL: no memory. */
static struct execution_item *item_for(struct execution *x, enum execution_stream stream, bool tail)
{
	struct execution_item *item = TAILQ_LAST(&x->items, execution_items);

	if (item && item->type == ITEM_PRINTED && item->stream == stream && item->tail == tail &&
	    !item->read && item->len < ITEM_MAX)
		return item;
	item = item_new(x, ITEM_PRINTED);
	if (!item)
		return NULL;
	item->stream = stream;
	item->tail = tail;
	if (tail)
		x->ntail++;
	else
		x->nhead++;
	return item;
}

static int keep(struct execution *x, enum execution_stream stream, bool tail, const char *data,
		size_t len)
{
	while (len) {
		struct execution_item *item = item_for(x, stream, tail);
		size_t n;

		if (!item)
			return -ENOMEM;
		n = ITEM_MAX - item->len < len ? ITEM_MAX - item->len : len;
		if (item->len + n > item->cap) {
			size_t cap = item->cap ? item->cap * 2 : 256;
			char *bigger;

			while (cap < item->len + n)
				cap *= 2;
			bigger = realloc(item->data, cap);
			if (!bigger)
				return -ENOMEM;
			item->data = bigger;
			item->cap = cap;
		}
		memcpy(item->data + item->len, data, n);
		item->len += n;
		*(tail ? &x->tail : &x->head) += n;
		data += n;
		len -= n;
	}
	return 0;
}

int execution_print(struct execution *x, enum execution_stream stream, const char *data, size_t len,
		    struct pale_err *err)
{
	size_t head = 0;
	int r = 0;

	x->output_bytes[stream] += len;
	if (x->head < x->half && x->nhead < ITEMS_MAX) {
		head = x->half - x->head < len ? (size_t)(x->half - x->head) : len;
		r = keep(x, stream, false, data, head);
	}
	if (r == 0 && head < len) {
		/* Of a piece that is larger than the tail, only its end matters. */
		size_t skip = len - head > x->half ? len - head - (size_t)x->half : 0;

		x->omitted_bytes += skip;
		r = keep(x, stream, true, data + head + skip, len - head - skip);
		trim(x);
	}
	return r < 0 ? err_nomem(err, STAGE) : 0;
}

/* ---- what is shown ---- */

json_t *execution_text(const char *data, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(SIZE_MAX / 2);

	if (str_utf8_prefix(data, len) == len)
		return json_stringn(len ? data : "", len);
	while (len) {
		size_t valid = str_utf8_prefix(data, len);

		(void)!buf_add(&b, data, valid);
		data += valid;
		len -= valid;
		if (!len)
			break;
		(void)!buf_adds(&b, "\xef\xbf\xbd");
		data++;
		len--;
	}
	return b.failed ? NULL : json_stringn(b.data, b.len);
}

static json_t *encoded(const char *data, size_t len)
{
	_cleanup_free_ char *text = base64_encode(data, len);

	return text ? json_pack("{s:s}", "base64", text) : NULL;
}

/* Exactly what came: as text if it is, else in base64. */
static json_t *exact(const char *data, size_t len)
{
	return str_utf8_prefix(data, len) == len ? json_stringn(len ? data : "", len)
						 : encoded(data, len);
}

/* type/subtype, with a parameter or a suffix: what MIME types are made of, and nothing that could
 * be taken for something else. */
static bool mime_valid(const char *key, size_t len)
{
	bool slash = false;

	for (size_t i = 0; i < len; i++) {
		char c = key[i];

		slash = slash || c == '/';
		if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
		    !strchr("/.+-_;=", c))
			return false;
	}
	return len && slash;
}

int execution_show(struct execution *x, const struct frame *f, struct pale_err *err)
{
	struct execution_item *item = TAILQ_LAST(&x->items, execution_items);
	bool result = f->flags & FRAME_RESULT;
	char key[FRAME_KEY_MAX + 1];
	size_t len = f->lost ? f->lost : f->data_len;
	json_t *data;

	x->display_bytes += len;
	if (!mime_valid(f->key, f->key_len))
		return 0;
	memcpy(key, f->key, f->key_len);
	key[f->key_len] = '\0';
	if (f->lost || x->shown + len > EXECUTION_SHOWN_MAX || x->next > 4 * ITEMS_MAX) {
		char text[400];

		x->omitted_bytes += len;
		snprintf(text, sizeof(text), "pale: left out a display of %zu bytes (%s)", len,
			 key);
		/* Once is enough for a flood of them. */
		if (item && item->type == ITEM_OTHER && x->next > 4 * ITEMS_MAX)
			return 0;
		return execution_add(x, json_pack("{s:s, s:s}", "type", "note", "text", text),
				     strlen(text), err);
	}
	if (!item || item->type != ITEM_SHOWN || item->number != f->value ||
	    item->result != result || item->read) {
		item = item_new(x, ITEM_SHOWN);
		if (!item)
			return err_nomem(err, STAGE);
		item->number = f->value;
		item->result = result;
		item->event = json_object();
	}
	/* Of what claims to be text, what is not is replaced; images and the like come whole. */
	data = strncmp(key, "text/", 5) == 0 ? execution_text(f->data, f->data_len)
					     : exact(f->data, f->data_len);
	if (!data || json_object_set_new(item->event, key, data) < 0)
		return err_nomem(err, STAGE);
	item->shown += len;
	x->shown += len;
	return 0;
}

int execution_add(struct execution *x, json_t *event, size_t bytes, struct pale_err *err)
{
	struct execution_item *item;

	if (event && (x->nother >= ITEMS_MAX || x->shown + bytes > EXECUTION_SHOWN_MAX)) {
		x->omitted_bytes += bytes;
		json_decref(event);
		return 0;
	}
	item = event ? item_new(x, ITEM_OTHER) : NULL;
	if (!item) {
		json_decref(event);
		return err_nomem(err, STAGE);
	}
	item->event = event;
	item->shown = bytes;
	x->shown += bytes;
	x->nother++;
	return 0;
}

int execution_fail(struct execution *x, const struct frame *f, struct pale_err *err)
{
	const char *end = f->data_len ? memchr(f->data, '\0', f->data_len) : NULL;
	size_t message = end ? (size_t)(end - f->data) : f->data_len,
	       at = end ? message + 1 : f->data_len;

	str_escape_into(x->name, sizeof(x->name), f->key, f->key_len);
	x->display_bytes += f->data_len;
	return execution_add(
		x,
		json_pack("{s:s, s:o, s:o, s:o, s:i}", "type", "error", "name",
			  execution_text(f->key, f->key_len), "message",
			  execution_text(f->data, message), "traceback",
			  execution_text(f->data_len ? f->data + at : "", f->data_len - at), "line",
			  f->value > 0 ? f->value : 0),
		f->data_len + f->key_len, err);
}

/* ---- reading ---- */

static json_t *item_json(const struct execution_item *item)
{
	json_t *o;

	if (item->type == ITEM_OTHER) {
		o = json_copy(item->event);
	} else if (item->type == ITEM_SHOWN) {
		o = json_pack("{s:s, s:i, s:O}", "type", item->result ? "result" : "display",
			      "display", item->number, "data", item->event);
	} else {
		bool text = str_utf8_prefix(item->data, item->len) == item->len;

		o = json_pack("{s:s}", "type", stream_names[item->stream]);
		if (o && text)
			json_object_set_new(o, "text", json_stringn(item->data, item->len));
		else if (o)
			json_object_update_new(o, encoded(item->data, item->len));
	}
	if (o)
		json_object_set_new(o, "n", json_integer((json_int_t)item->n));
	return o;
}

int execution_read(struct execution *x, uint64_t *from, size_t at_most, json_t *events,
		   struct pale_err *err)
{
	struct execution_item *item;
	size_t bytes = 0;

	TAILQ_FOREACH(item, &x->items, entry)
	{
		if (item->n < *from)
			continue;
		if (bytes && bytes + item->len + item->shown > at_most)
			return 1;
		if (json_array_append_new(events, item_json(item)) < 0)
			return err_nomem(err, STAGE);
		item->read = true;
		bytes += item->len + item->shown + 64;
		*from = item->n + 1;
	}
	if (*from < x->next)
		*from = x->next;
	return 0;
}
