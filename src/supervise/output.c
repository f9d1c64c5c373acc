/* Kept output: see output.h. In the supervisor; memory is bounded by the policy, however small the
 * writes are: what arrives next to its like is put into one chunk. */
#include "output.h"

#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"

#define STAGE	    "supervise"
#define CHUNK_BYTES 65536
/* Alternating one-byte writes must not cost a chunk's overhead each without end. */
#define CHUNK_LEAST 64

const char *const output_stream_names[] = {"stdout", "stderr"};

struct chunk {
	struct chunk *next;
	enum output_stream stream;
	bool tail;
	size_t from, len, cap; /* from: what the tail gave up at its beginning */
	char *data;
};

struct stream {
	uint64_t total, head, tail;
	uint64_t omitted;
};

struct output {
	uint64_t half;
	struct stream streams[OUTPUT_STREAMS];
	struct chunk *first, *last;
	struct chunk *oldest[OUTPUT_STREAMS]; /* first tail chunk of each stream */
};

int output_new(uint64_t max_bytes, struct output **ret, struct pale_err *err)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(err, STAGE);
	(*ret)->half = max_bytes / 2;
	return 0;
}

void output_free(struct output *o)
{
	struct chunk *next;

	for (struct chunk *c = o ? o->first : NULL; c; c = next) {
		next = c->next;
		free(c->data);
		free(c);
	}
	free(o);
}

static struct chunk *chunk_for(struct output *o, enum output_stream stream, bool tail, size_t want)
{
	struct chunk *c = o->last;

	if (c && c->stream == stream && c->tail == tail && c->from + c->len < CHUNK_BYTES)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->cap = want < CHUNK_LEAST ? CHUNK_LEAST : want > CHUNK_BYTES ? CHUNK_BYTES : want;
	c->data = malloc(c->cap);
	if (!c->data) {
		free(c);
		return NULL;
	}
	c->stream = stream;
	c->tail = tail;
	if (o->last)
		o->last->next = c;
	else
		o->first = c;
	o->last = c;
	if (tail && !o->oldest[stream])
		o->oldest[stream] = c;
	return c;
}

static int append(struct output *o, enum output_stream stream, bool tail, const char *data,
		  size_t len, struct pale_err *err)
{
	while (len) {
		struct chunk *c = chunk_for(o, stream, tail, len);
		size_t used, n;

		if (!c)
			return err_nomem(err, STAGE);
		used = c->from + c->len;
		n = CHUNK_BYTES - used;
		if (n > len)
			n = len;
		if (used + n > c->cap) {
			size_t cap = c->cap * 2 > used + n ? c->cap * 2 : used + n;
			char *bigger = realloc(c->data, cap);

			if (!bigger)
				return err_nomem(err, STAGE);
			c->data = bigger;
			c->cap = cap;
		}
		memcpy(c->data + used, data, n);
		c->len += n;
		data += n;
		len -= n;
	}
	return 0;
}

/* Gives up the oldest of the tail until it fits. Emptied chunks stay in the list only if they are
 * the last; the others are unlinked when a whole one is empty. */
static void trim(struct output *o, enum output_stream stream)
{
	struct stream *s = &o->streams[stream];

	while (s->tail > o->half) {
		struct chunk *c = o->oldest[stream];
		uint64_t excess = s->tail - o->half;
		size_t n = excess < c->len ? (size_t)excess : c->len;

		c->from += n;
		c->len -= n;
		s->tail -= n;
		s->omitted += n;
		if (c->len)
			break;
		/* The next tail chunk of the same stream. */
		do
			o->oldest[stream] = o->oldest[stream]->next;
		while (o->oldest[stream] &&
		       !(o->oldest[stream]->stream == stream && o->oldest[stream]->tail));
		free(c->data);
		c->data = NULL;
		c->cap = c->from = 0;
	}
}

/* Frees empty chunks, but the last, which chunk_for() may still fill. */
static void sweep(struct output *o)
{
	struct chunk **link = &o->first;

	while (*link) {
		struct chunk *c = *link;

		if (c->data || c == o->last) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		free(c);
	}
}

int output_add(struct output *o, enum output_stream stream, const char *data, size_t len,
	       struct pale_err *err)
{
	struct stream *s = &o->streams[stream];
	size_t head = 0;
	int r = 0;

	s->total += len;
	if (s->head < o->half) {
		head = o->half - s->head < len ? (size_t)(o->half - s->head) : len;
		r = append(o, stream, false, data, head, err);
		s->head += head;
	}
	if (r == 0 && head < len) {
		/* Of a piece that is larger than the tail, only its end matters. */
		size_t skip = len - head > o->half ? len - head - (size_t)o->half : 0;

		s->omitted += skip;
		r = append(o, stream, true, data + head + skip, len - head - skip, err);
		if (r < 0)
			return r; /* what is counted must be there to be given up */
		s->tail += len - head - skip;
		trim(o, stream);
		if (o->last && !o->last->data) {
			/* All of it was given up (a cap of 0): a chunk without memory takes nothing
			 * more. */
			o->last->from = CHUNK_BYTES;
		}
		sweep(o);
	}
	return r;
}

uint64_t output_total(const struct output *o, enum output_stream stream)
{
	return o->streams[stream].total;
}

uint64_t output_omitted(const struct output *o, enum output_stream stream)
{
	return o->streams[stream].omitted;
}

uint64_t output_kept_head(const struct output *o, enum output_stream stream)
{
	return o->streams[stream].head;
}

int output_bytes(const struct output *o, enum output_stream stream, char **ret, size_t *ret_len,
		 struct pale_err *err)
{
	struct buf b = BUF_INIT(SIZE_MAX / 2);

	buf_add(&b, "", 0);
	for (const struct chunk *c = o->first; c; c = c->next)
		if (c->stream == stream && c->data)
			buf_add(&b, c->data + c->from, c->len);
	if (b.failed) {
		buf_done(&b);
		return err_nomem(err, STAGE);
	}
	*ret = b.data;
	*ret_len = b.len;
	return 0;
}

static json_t *base64(const char *data, size_t len)
{
	_cleanup_free_ char *text = base64_encode(data, len);

	return text ? json_string(text) : NULL;
}

/* Text, invalid bytes replaced by U+FFFD; *ret_exact tells whether none were. */
static void add_text(struct buf *b, const char *data, size_t len, bool *ret_exact)
{
	while (len) {
		size_t valid = str_utf8_prefix(data, len);

		buf_add(b, data, valid);
		data += valid;
		len -= valid;
		if (!len)
			break;
		buf_adds(b, "\xef\xbf\xbd");
		*ret_exact = false;
		data++;
		len--;
	}
}

static int add_stream(const struct output *o, enum output_stream stream, json_t *result)
{
	const struct stream *s = &o->streams[stream];
	_cleanup_buf_ struct buf text = BUF_INIT(SIZE_MAX / 2), bytes = BUF_INIT(SIZE_MAX / 2);
	_cleanup_buf_ struct buf head = BUF_INIT(SIZE_MAX / 2), tail = BUF_INIT(SIZE_MAX / 2);
	const char *name = output_stream_names[stream];
	char key[24];
	bool exact = true;

	for (const struct chunk *c = o->first; c; c = c->next)
		if (c->stream == stream && c->data) {
			buf_add(c->tail ? &tail : &head, c->data + c->from, c->len);
			buf_add(&bytes, c->data + c->from, c->len);
		}
	buf_add(&text, "", 0);
	if (s->omitted) {
		add_text(&text, head.data, head.len, &exact);
		buf_addf(&text, "\n[... %" PRIu64 " bytes left out by pale ...]\n", s->omitted);
		add_text(&text, tail.data, tail.len, &exact);
	} else {
		add_text(&text, bytes.data, bytes.len, &exact);
	}
	if (text.failed || bytes.failed ||
	    json_object_set_new(result, name, json_stringn(text.data, text.len)) < 0)
		return -ENOMEM;
	snprintf(key, sizeof(key), "%s_base64", name);
	if (!exact && json_object_set_new(result, key, base64(bytes.data, bytes.len)) < 0)
		return -ENOMEM;
	snprintf(key, sizeof(key), "%s_bytes", name);
	if (json_object_set_new(result, key, json_integer((json_int_t)s->total)) < 0)
		return -ENOMEM;
	snprintf(key, sizeof(key), "%s_omitted", name);
	if (s->omitted &&
	    json_object_set_new(result, key, json_integer((json_int_t)s->omitted)) < 0)
		return -ENOMEM;
	return 0;
}

int output_to_json(const struct output *o, json_t *result, struct pale_err *err)
{
	json_t *chunks = json_array();

	for (int i = 0; i < OUTPUT_STREAMS; i++)
		if (add_stream(o, (enum output_stream)i, result) < 0)
			goto nomem;
	for (const struct chunk *c = o->first; c; c = c->next) {
		json_t *chunk;
		const char *data = c->data ? c->data + c->from : NULL;

		if (!c->data || !c->len)
			continue;
		chunk = json_object();
		json_object_set_new(chunk, "stream", json_string(output_stream_names[c->stream]));
		if (str_utf8_prefix(data, c->len) == c->len)
			json_object_set_new(chunk, "text", json_stringn(data, c->len));
		else
			json_object_set_new(chunk, "base64", base64(data, c->len));
		if (json_array_append_new(chunks, chunk) < 0)
			goto nomem;
	}
	if (json_object_set_new(result, "output", chunks) < 0)
		return err_nomem(err, STAGE);
	return 0;
nomem:
	json_decref(chunks);
	return err_nomem(err, STAGE);
}
