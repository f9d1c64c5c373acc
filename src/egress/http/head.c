/* The head of one HTTP message in memory: see head.h.
 *
 * Process: the broker, confined. Hostile: all of it, in requests from the box and in answers from
 * the other side alike; h1_parse.c and nghttp2 have checked which bytes are there before anything
 * comes here, and the maxima here bound how much. */
#include "egress/http/head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

void head_init(struct head *h)
{
	h->text = BUF_INIT(HEAD_MAX_BYTES);
	h->method = h->target = h->scheme = h->authority = h->reason = 0;
	h->target_secret = false;
	h->status = 0;
	h->minor = 1;
	h->nfields = 0;
}

void head_done(struct head *h)
{
	if (h->text.data)
		explicit_bzero(h->text.data, h->text.cap);
	buf_done(&h->text);
	head_init(h);
}

int head_store(struct head *h, const char *s, size_t len, uint32_t *ret)
{
	struct buf *b = &h->text;
	/* A part of what is there already may be stored anew, and making room may move it. */
	bool own = b->data && (uintptr_t)s >= (uintptr_t)b->data &&
		   (uintptr_t)s < (uintptr_t)b->data + b->len;
	size_t at = own ? (size_t)(s - b->data) : 0, begin = b->len ? 0 : 1;
	char *to = buf_room(b, begin + len + 1);

	if (!to)
		return errno == ENOSPC ? -E2BIG : -ENOMEM;
	*to = '\0'; /* offset 0 means "not there" */
	to += begin;
	memcpy(to, own ? b->data + at : s, len);
	to[len] = '\0';
	*ret = (uint32_t)(b->len + begin);
	b->len += begin + len + 1;
	return 0;
}

int head_add(struct head *h, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct head_field f = {.name_len = (uint32_t)name_len, .value_len = (uint32_t)value_len};
	int r;

	if (h->nfields == HEAD_MAX_FIELDS)
		return -E2BIG;
	r = head_store(h, name, name_len, &f.name);
	if (r == 0)
		r = head_store(h, value, value_len, &f.value);
	if (r == 0)
		h->fields[h->nfields++] = f;
	return r;
}

int head_set_value(struct head *h, size_t i, const char *value, size_t len)
{
	uint32_t at;
	int r = head_store(h, value, len, &at);

	if (r < 0)
		return r;
	h->fields[i].value = at;
	h->fields[i].value_len = (uint32_t)len;
	return 0;
}

bool head_is(const struct head *h, size_t i, const char *name)
{
	return strcasecmp(head_name(h, i), name) == 0;
}

const char *head_get(const struct head *h, const char *name, size_t *ret_count)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < h->nfields; i++)
		if (head_is(h, i, name) && n++ == 0)
			first = head_value(h, i);
	if (ret_count)
		*ret_count = n;
	return first;
}

void head_remove(struct head *h, const char *name)
{
	size_t to = 0;

	for (size_t i = 0; i < h->nfields; i++)
		if (!head_is(h, i, name))
			h->fields[to++] = h->fields[i];
	h->nfields = to;
}

/* The next element of a comma-separated list, without blanks around it; NULL at the end. */
static const char *next_token(const char **at, size_t *ret_len)
{
	const char *s = *at + strspn(*at, ", \t");
	size_t len = strcspn(s, ",");

	*at = s + len;
	while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	*ret_len = len;
	return len ? s : NULL;
}

bool head_lists(const struct head *h, const char *name, const char *token)
{
	size_t len;

	for (size_t i = 0; i < h->nfields; i++) {
		const char *at = head_value(h, i), *t;

		if (!head_is(h, i, name))
			continue;
		while ((t = next_token(&at, &len)))
			if (len == strlen(token) && strncasecmp(t, token, len) == 0)
				return true;
	}
	return false;
}

/* Fields that Connection may not take away: without them the message would mean something else than
 * what was checked. */
static bool essential(const char *name)
{
	static const char *const names[] = {"host",	    "content-length",
					    "content-type", "content-encoding",
					    "cookie",	    "authorization"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

void head_drop_hops(struct head *h)
{
	static const char *const hops[] = {
		"connection", "keep-alive",	"proxy-connection",    "transfer-encoding",
		"upgrade",    "http2-settings", "proxy-authorization", "proxy-authenticate"};
	bool drop[HEAD_MAX_FIELDS] = {false};
	size_t to = 0;

	for (size_t i = 0; i < h->nfields; i++)
		if (!essential(head_name(h, i)))
			drop[i] = head_lists(h, "connection", head_name(h, i));
	for (size_t i = 0; i < h->nfields; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(hops); k++)
			drop[i] = drop[i] || head_is(h, i, hops[k]);
		/* `TE: trailers` is what gRPC asks for; other codings are not understood here. */
		if (head_is(h, i, "te"))
			drop[i] = strcasecmp(head_value(h, i), "trailers") != 0;
		if (!drop[i])
			h->fields[to++] = h->fields[i];
	}
	h->nfields = to;
}
