/* HTTP/1 heads and chunked bodies from either side: the parser must end, within bounds, and say the
 * same however the bytes are cut; what it accepts must be clean enough to be written again. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "egress/http/h1_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *s, size_t len)
{
	if (strlen(s) != len)
		__builtin_trap();
	for (size_t i = 0; i < len; i++)
		if (s[i] == '\r' || s[i] == '\n')
			__builtin_trap();
}

static void head(const char *text, size_t len, bool request)
{
	_cleanup_head_ struct head h = {0};
	struct h1_scan whole = {0}, cut = {0};
	ssize_t n = h1_scan(&whole, text, len), m = 0;
	const char *why = NULL;
	int r;

	for (size_t i = 1; i <= len && m == 0; i += 1 + i / 3)
		m = h1_scan(&cut, text, i);
	if (m == 0)
		m = h1_scan(&cut, text, len);
	if (n != m)
		__builtin_trap();
	if (n <= 0)
		return;
	head_init(&h);
	r = request ? h1_parse_request(&h, text, (size_t)n, &why)
		    : h1_parse_answer(&h, text, (size_t)n, &why);
	if (r != 0 && (r < 400 || !why))
		__builtin_trap();
	for (size_t i = 0; r == 0 && i < h.nfields; i++) {
		check_text(head_name(&h, i), h.fields[i].name_len);
		check_text(head_value(&h, i), h.fields[i].value_len);
	}
	if (r == 0 && request)
		(void)h1_request_framing(&h);
	else if (r == 0)
		(void)h1_answer_framing(&h, false);
	head_drop_hops(&h);
}

static int unchunk(const char *text, size_t len, size_t step, bool request, struct buf *body)
{
	struct h1_chunks c;
	size_t at = 0;
	int r = 0;

	h1_chunks_init(&c, request);
	while (r == 0 && at < len) {
		size_t piece = len - at < step ? len - at : step, used, got;
		const char *data;

		r = h1_chunks_read(&c, text + at, piece, &used, &data, &got);
		if (used == 0 || used > piece || got > used)
			__builtin_trap();
		if (got && buf_add(body, data, got) < 0)
			break;
		at += used;
	}
	h1_chunks_done(&c);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size < 2)
		return 0;
	size--;
	if (data[0] & 1) {
		head(text, size, data[0] & 2);
	} else {
		_cleanup_buf_ struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);
		int r = unchunk(text, size, size, data[0] & 2, &a);

		if (unchunk(text, size, 1 + data[0] / 4, data[0] & 2, &b) != r || a.len != b.len ||
		    (a.len && memcmp(a.data, b.data, a.len) != 0))
			__builtin_trap();
	}
	return 0;
}
