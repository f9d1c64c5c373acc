/* Lines and their chain: see chain.h. chain_parse() reads files that somebody may have altered:
 * length, depth and types are checked there; everything else is called by the writer. */
#include "chain.h"

#include <sha2.h>
#include <string.h>

static const char *const reserved[] = {"seq", "time", "run", "stage", "event", "prev"};

static void hex(const uint8_t raw[static 32], char out[static AUDIT_HASH_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 32; i++) {
		out[2 * i] = digits[raw[i] >> 4];
		out[2 * i + 1] = digits[raw[i] & 15];
	}
	out[64] = '\0';
}

void chain_hash(const void *line, size_t len, char out[static AUDIT_HASH_SIZE])
{
	SHA2_CTX c;
	uint8_t raw[32];

	SHA256Init(&c);
	SHA256Update(&c, line, len);
	SHA256Final(raw, &c);
	hex(raw, out);
}

void chain_genesis(const char *id, char out[static AUDIT_HASH_SIZE])
{
	char text[64];
	int n = snprintf(text, sizeof(text), "pale audit 1 %s", id);

	chain_hash(text, (size_t)n, out);
}

static int into_buf(const char *data, size_t len, void *arg)
{
	return buf_add(arg, data, len) < 0 ? -1 : 0;
}

int chain_build(const struct chain_head *head, const char *id, const char *time, const char *stage,
		const char *event, const json_t *body, struct buf *out)
{
	out->len = 0;
	out->failed = false;
	for (size_t i = 0; body && i < ARRAY_SIZE(reserved); i++)
		if (json_object_get(body, reserved[i]))
			return -EINVAL;
	/* stage and event are names from our own tables: nothing in them needs escaping. */
	buf_addf(out,
		 "{\"seq\":%" JSON_INTEGER_FORMAT
		 ",\"time\":\"%s\",\"run\":\"%s\",\"stage\":\"%s\",\"event\":\"%s\",",
		 (json_int_t)(head->seq + 1), time, id, stage, event);
	if (json_object_size(body)) {
		size_t at = out->len;

		if (json_dump_callback(body, into_buf, out,
				       JSON_COMPACT | JSON_ENSURE_ASCII | JSON_SORT_KEYS) < 0)
			return out->failed ? -ENOSPC : -EINVAL;
		/* {body} becomes body, : the opening brace goes, the closing one becomes a comma.
		 */
		memmove(out->data + at, out->data + at + 1, out->len - at - 1);
		out->len--;
		out->data[out->len - 1] = ',';
	}
	buf_addf(out, "\"prev\":\"%s\"}\n", head->hash);
	return out->failed ? -ENOSPC : 0;
}

static const char *text_of(const json_t *o, const char *key, size_t max)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) > max ||
	    strlen(json_string_value(v)) != json_string_length(v))
		return NULL;
	return json_string_value(v);
}

const char *chain_parse(const char *bytes, size_t len, struct chain_line *ret)
{
	json_error_t e;
	json_int_t seq;

	*ret = (struct chain_line){0};
	if (len == 0)
		return "it is empty";
	if (len > AUDIT_LINE_MAX)
		return "it is longer than any line that Pale writes";
	/* jansson's own limit on depth holds (2048); a repeated key would mean one thing to us and
	 * another to the next reader. */
	_cleanup_line_ struct chain_line l = {
		.object = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e)};
	if (!l.object)
		return "it is not JSON";
	if (!json_is_object(l.object))
		return "it is not a JSON object";
	seq = json_integer_value(json_object_get(l.object, "seq"));
	if (seq <= 0)
		return "it has no sequence number";
	l.seq = (uint64_t)seq;
	l.time = text_of(l.object, "time", 40);
	l.run = text_of(l.object, "run", AUDIT_ID_LEN);
	l.stage = text_of(l.object, "stage", 32);
	l.event = text_of(l.object, "event", 64);
	l.prev = text_of(l.object, "prev", AUDIT_HASH_SIZE - 1);
	if (!l.time || !l.run || !l.stage || !l.event || !l.prev)
		return "one of time, run, stage, event, prev is missing";
	*ret = l;
	l.object = NULL;
	return NULL;
}

void chain_line_done(struct chain_line *l)
{
	json_decref(l->object);
	l->object = NULL;
}
