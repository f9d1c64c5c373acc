/* The search for placeholders and the masking of values: the same whatever the pieces, nothing
 * lost, no value left in what passed in one piece. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "egress/http/secrets.h"
#include "egress/http/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VALUE "abababac"

static void masked(const struct secrets *s, const uint8_t *data, size_t size, size_t step,
		   struct evbuffer *to)
{
	struct mask m;

	mask_init(&m, s);
	for (size_t at = 0; at < size; at += step)
		if (mask_add(&m, data + at, size - at < step ? size - at : step, to) < 0)
			__builtin_trap();
	if (mask_end(&m, to) < 0 || evbuffer_get_length(to) != size)
		__builtin_trap();
	mask_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *hosts[] = {(char *)"a.example", NULL};
	static struct network_secret rules[] = {
		{.env = (char *)"K",
		 .hosts = hosts,
		 .place = SECRET_HEADER,
		 .name = (char *)"A",
		 .where = (char *)"1"},
		{.env = (char *)"Q",
		 .hosts = hosts,
		 .place = SECRET_QUERY,
		 .name = (char *)"k",
		 .where = (char *)"2"},
		{.env = (char *)"B", .hosts = hosts, .place = SECRET_BASIC, .where = (char *)"3"},
	};
	static const struct config_secret values[] = {
		{(char *)"placeholderplaceh", (char *)VALUE},
		{(char *)"qqqqqqqqqqqqqqqqq", (char *)"x/y+z=\"w\""},
		{(char *)"bbbbbbbbbbbbbbbbc", (char *)"ababab\\\xc3\xa4"}};
	static const struct policy_network n = {.secrets = rules, .nsecrets = 3};
	static struct secrets *s;
	struct evbuffer *whole, *pieces;
	struct pale_err err;
	uint32_t once = 0, cut = 0;
	bool sent, sent_cut = false;
	size_t step;

	if (!s && secrets_new(&n, values, 3, &s, &err) < 0)
		__builtin_trap();
	if (size < 2)
		return 0;
	step = data[0] + 1u;
	data++;
	size--;
	whole = evbuffer_new();
	pieces = evbuffer_new();
	masked(s, data, size, size, whole);
	masked(s, data, size, step, pieces);
	if (size <= 32768 && memmem(evbuffer_pullup(whole, -1), size, VALUE, strlen(VALUE)))
		__builtin_trap();
	if (memmem(evbuffer_pullup(pieces, -1), size, VALUE, strlen(VALUE)))
		__builtin_trap();
	evbuffer_free(whole);
	evbuffer_free(pieces);
	sent = secrets_sent(s, &once, data, size);
	for (size_t at = 0; at < size && !sent_cut; at += step)
		sent_cut = secrets_sent(s, &cut, data + at, size - at < step ? size - at : step);
	if (sent != sent_cut)
		__builtin_trap();

	struct secrets_form form = {0}, form_cut = {0};
	bool in_form = secrets_sent_form(s, &form, data, size), in_form_cut = false;

	for (size_t at = 0; at < size && !in_form_cut; at += step)
		in_form_cut = secrets_sent_form(s, &form_cut, data + at,
						size - at < step ? size - at : step);
	if (in_form != in_form_cut)
		__builtin_trap();

	struct websocket w = {0};

	(void)websocket_sent(&w, s, data, size);
	if (memchr(data, 0, size) || memchr(data, '\r', size) || memchr(data, '\n', size) ||
	    size > 4096)
		return 0;

	_cleanup_head_ struct head h = {0};
	char detail[160];

	head_init(&h);
	if (head_store(&h, (const char *)data, size, &h.target) == 0 &&
	    head_add(&h, "authorization", 13, (const char *)data, size) == 0 &&
	    head_add(&h, "a", 1, (const char *)data, size) == 0 &&
	    secrets_put(s, "a.example", true, &h, detail) == 0)
		secrets_mask_head(s, &h);
	return 0;
}
