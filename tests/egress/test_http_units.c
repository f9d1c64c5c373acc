/* Parts of the HTTP engine by themselves: the parser on heads and chunks cut anywhere, the search,
 * the masking, the certificates. */
#include "egress/http/ca.h"
#include "egress/http/encode.h"
#include "egress/http/h1_parse.h"
#include "egress/http/search.h"
#include "egress/http/secrets.h"
#include "egress/http/websocket.h"

#include <stdio.h>
#include <string.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---------------------------------------------------------------- heads */

static const struct {
	const char *text; /* without the last empty line */
	int status;	  /* 0: fine */
} requests[] = {
	{"GET / HTTP/1.1\r\nHost: a\r\n", 0},
	{"\r\nGET / HTTP/1.1\r\nHost: a\r\n", 0},
	{"GET / HTTP/1.0\r\n", 0},
	{"OPTIONS * HTTP/1.1\r\nHost: a\r\n", 0},
	{"GET http://a/ HTTP/1.1\r\nHost: a\r\n", 0},
	{"M-SEARCH / HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Blanks: \t a \t\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n", 0},
	{"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: CHUNKED\r\n", 0},
	{"GET / HTTP/1.1\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400},
	{"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n", 400},
	{"GET /\r\nHost: a\r\n", 400},
	{"GET  / HTTP/1.1\r\nHost: a\r\n", 400},
	{"GET / HTTP/1.1 \r\nHost: a\r\n", 400},
	{"GET\t/ HTTP/1.1\r\nHost: a\r\n", 400},
	{" GET / HTTP/1.1\r\nHost: a\r\n", 400},
	{"G(T / HTTP/1.1\r\nHost: a\r\n", 400},
	{"GET /\x80 HTTP/1.1\r\nHost: a\r\n", 400},
	{"GET /#f HTTP/1.1\r\nHost: a\r\n", 400},
	{"GET / HTTP/1.2\r\nHost: a\r\n", 505},
	{"GET / HTTP/2.0\r\nHost: a\r\n", 505},
	{"GET / http/1.1\r\nHost: a\r\n", 505},
	{"GET / HTTP/1.10\r\nHost: a\r\n", 505},
	{"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nX\r\n", 400},
	{"GET / HTTP/1.1\r\n Host: a\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\n\tfolded\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01z\r\n", 400},
	{"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fz\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,1\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
	 400},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n", 501},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n", 501},
	{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n", 501},
	{"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n", 400},
};

static void test_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		_cleanup_head_ struct head h = {0};
		char text[512];
		const char *why = "";
		int len = snprintf(text, sizeof(text), "%s\r\n", requests[i].text);

		head_init(&h);
		/* However it is cut, the end of the head is found where it is. */
		for (int cut = 0; cut < len; cut++) {
			struct h1_scan s = {0};
			ssize_t n = h1_scan(&s, text, (size_t)cut);

			if (n != 0)
				fail_msg("%s: an end at %d of %d", requests[i].text, cut, len);
			if (h1_scan(&s, text, (size_t)len) != len)
				fail_msg("%s: no end, cut at %d", requests[i].text, cut);
		}
		if (h1_parse_request(&h, text, (size_t)len, &why) != requests[i].status)
			fail_msg("%s: not %d but: %s", requests[i].text, requests[i].status, why);
	}
}

static void test_scan(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		ssize_t want;
	} rows[] = {
		{"GET / HTTP/1.1\n\n", 16, -EBADMSG},
		{"GET / HTTP/1.1\r\nX: a\r\r\n", 23, -EBADMSG},
		{"GET /\0 HTTP/1.1\r\n", 17, -EBADMSG},
		{"\r\n\r\n\r\n", 6, -EBADMSG},
		{"\n", 1, -EBADMSG},
		{"GET", 3, 0},
		{"A\r\n\r\nB", 6, 5},
	};
	static char large[HEAD_MAX_BYTES + 10];
	struct h1_scan s = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s = (struct h1_scan){0};
		assert_int_equal(h1_scan(&s, rows[i].text, rows[i].len), rows[i].want);
	}
	memset(large, 'a', sizeof(large));
	s = (struct h1_scan){0};
	assert_int_equal(h1_scan(&s, large, sizeof(large)), -E2BIG);
}

static void test_answers(void **state)
{
	static const struct {
		const char *text;
		int result;
		enum h1_body body;
		bool keep_alive;
	} rows[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, H1_LENGTH, true},
		{"HTTP/1.1 200\r\n\r\n", 0, H1_UNTIL_CLOSE, false},
		{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", 0, H1_LENGTH, false},
		{"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", 0,
		 H1_NONE, true},
		{"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", 0, H1_NONE,
		 false},
		{"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", 0, H1_NONE, true},
		{"HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n", 0, H1_NONE, true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, H1_CHUNKED, true},
		{"HTTP/1.1 99 OK\r\n\r\n", 502, H1_NONE, false},
		{"HTTP/1.1 600 OK\r\n\r\n", 502, H1_NONE, false},
		{"HTTP/1.1 200OK\r\n\r\n", 502, H1_NONE, false},
		{"HTTP/2 200 OK\r\n\r\n", 502, H1_NONE, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 502, H1_NONE,
		 false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 502,
		 H1_NONE, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 502, H1_NONE, false},
		{"HTTP/1.1 200 \x1b[2J\r\n\r\n", 502, H1_NONE, false},
		{"ICY 200 OK\r\n\r\n", 502, H1_NONE, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_head_ struct head h = {0};
		const char *why = "";
		struct h1_framing f;

		head_init(&h);
		if (h1_parse_answer(&h, rows[i].text, strlen(rows[i].text), &why) != rows[i].result)
			fail_msg("%s: %s", rows[i].text, why);
		if (rows[i].result)
			continue;
		f = h1_answer_framing(&h, false);
		if (f.body != rows[i].body || f.keep_alive != rows[i].keep_alive)
			fail_msg("%s: body %d, keep %d", rows[i].text, f.body, f.keep_alive);
		assert_int_equal(h1_answer_framing(&h, true).body, H1_NONE);
	}
}

static void test_hops(void **state)
{
	static const char text[] =
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Mine, host, keep-alive\r\n"
		"X-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
		"HTTP2-Settings: x\r\nProxy-Authorization: y\r\nX-Other: 2\r\n\r\n";
	_cleanup_head_ struct head h = {0};
	const char *why;

	(void)state;
	head_init(&h);
	assert_int_equal(h1_parse_request(&h, text, strlen(text), &why), 0);
	head_drop_hops(&h);
	assert_int_equal(h.nfields, 3);
	assert_non_null(head_get(&h, "host", NULL));
	assert_non_null(head_get(&h, "te", NULL));
	assert_non_null(head_get(&h, "x-other", NULL));
}

static void test_head_is_bounded(void **state)
{
	_cleanup_head_ struct head h = {0};
	static char large[HEAD_MAX_BYTES];
	int r = 0;

	(void)state;
	head_init(&h);
	for (size_t i = 0; i < HEAD_MAX_FIELDS; i++)
		assert_int_equal(head_add(&h, "a", 1, "b", 1), 0);
	assert_int_equal(head_add(&h, "a", 1, "b", 1), -E2BIG);
	head_done(&h);
	memset(large, 'x', sizeof(large));
	for (size_t i = 0; r == 0 && i < 100; i++)
		r = head_add(&h, "a", 1, large, sizeof(large) / 10);
	assert_int_equal(r, -E2BIG);
}

/* ---------------------------------------------------------------- chunks */

/* All of it, in pieces of n bytes: 1 and the body, or the failure. */
static int unchunk(const char *text, size_t len, size_t n, bool request, struct buf *body,
		   struct buf *trailers)
{
	struct h1_chunks c;
	size_t at = 0;
	int r = 0;

	h1_chunks_init(&c, request);
	while (r == 0 && at < len) {
		size_t piece = len - at < n ? len - at : n, used, got;
		const char *data;

		r = h1_chunks_read(&c, text + at, piece, &used, &data, &got);
		assert_true(used > 0 && used <= piece);
		if (got)
			assert_int_equal(buf_add(body, data, got), 0);
		at += used;
	}
	if (c.trailers.len)
		assert_int_equal(buf_add(trailers, c.trailers.data, c.trailers.len), 0);
	h1_chunks_done(&c);
	return r;
}

static void test_chunks(void **state)
{
	static const struct {
		const char *text;
		int request, answer;
		const char *body, *trailers;
	} rows[] = {
		{"0\r\n\r\n", 1, 1, "", ""},
		{"3\r\nabc\r\n00\r\n\r\n", 1, 1, "abc", ""},
		{"A\r\n0123456789\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", 1, 1, "0123456789x",
		 "A: b\r\nC: d\r\n"},
		{"1;a=b\r\nx\r\n0\r\n\r\n", -EBADMSG, 1, "x", ""},
		{"1 \r\nx\r\n0\r\n\r\n", -EBADMSG, 1, "x", ""},
		{"\r\n", -EBADMSG, -EBADMSG, "", ""},
		{"0x1\r\nx\r\n0\r\n\r\n", -EBADMSG, -EBADMSG, "", ""},
		{"-1\r\nx\r\n", -EBADMSG, -EBADMSG, "", ""},
		{"1\nx\r\n0\r\n\r\n", -EBADMSG, -EBADMSG, "", ""},
		{"1\r\nxy\r\n0\r\n\r\n", -EBADMSG, -EBADMSG, "x", ""},
		{"1\r\nx\n0\r\n\r\n", -EBADMSG, -EBADMSG, "x", ""},
		{"1000000000000000\r\nx", -EBADMSG, -EBADMSG, "", ""},
		{"0\r\nA: b\n\r\n", -EBADMSG, -EBADMSG, "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int request = 0; request < 2; request++)
			for (size_t n = 1; n <= strlen(rows[i].text); n++) {
				_cleanup_buf_ struct buf body = BUF_INIT(1024), t = BUF_INIT(1024);
				int want = request ? rows[i].request : rows[i].answer;
				int r = unchunk(rows[i].text, strlen(rows[i].text), n, request,
						&body, &t);

				if (r != want)
					fail_msg("%s by %zu: %d, not %d", rows[i].text, n, r, want);
				if (r == 1) {
					assert_string_equal(body.data ? body.data : "",
							    rows[i].body);
					assert_string_equal(t.data ? t.data : "", rows[i].trailers);
				}
			}
}

static void test_trailers_are_bounded(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 20), body = BUF_INIT(64),
				 t = BUF_INIT(1 << 20);

	(void)state;
	buf_adds(&text, "0\r\n");
	for (int i = 0; i < 3000; i++)
		buf_adds(&text, "A: b\r\n");
	assert_int_equal(unchunk(text.data, text.len, 1000, true, &body, &t), -E2BIG);
}

/* ---------------------------------------------------------------- search and masks */

static void test_search(void **state)
{
	static const struct search_needle needles[] = {
		{"he", 2}, {"she", 3}, {"hers", 4}, {"abcabd", 6}, {"\0\xff", 2},
	};
	static const char text[] = "ushers abcabcabd \0\xff she";
	struct search *s;
	size_t ends[16], found[16], n = 0;

	(void)state;
	assert_int_equal(search_new(needles, ARRAY_SIZE(needles), &s), 0);
	for (size_t chunk = 1; chunk < sizeof(text); chunk++) {
		uint32_t st = 0;
		size_t k = 0;

		for (size_t from = 0; from < sizeof(text) - 1; from += chunk) {
			size_t len =
				sizeof(text) - 1 - from < chunk ? sizeof(text) - 1 - from : chunk;
			size_t at = 0, hit;

			while ((hit = search_next(s, &st, text + from, len, &at))) {
				if (chunk == 1) {
					ends[n] = from + at;
					found[n++] = hit;
				}
				assert_true(k < n && ends[k] == from + at && found[k] == hit);
				k++;
			}
			assert_int_equal(at, len);
		}
		assert_int_equal(k, n);
	}
	assert_int_equal(n, 5); /* she (he within), hers, abcabd, \0\xff, she */
	search_free(s);
	assert_int_equal(search_new(NULL, 0, &s), 0);
	assert_int_equal(search_finds(s, "anything", 8), 0);
	search_free(s);
}

static struct secrets *make_secrets(void)
{
	static char *hosts[] = {(char *)"api.example.com", (char *)"*.example.net", NULL};
	static struct network_secret rules[] = {
		{.env = (char *)"KEY",
		 .hosts = hosts,
		 .place = SECRET_HEADER,
		 .name = (char *)"Authorization",
		 .where = (char *)"here"},
		{.env = (char *)"Q",
		 .hosts = hosts,
		 .place = SECRET_QUERY,
		 .name = (char *)"key",
		 .where = (char *)"here"},
	};
	static const struct config_secret values[] = {
		{(char *)"placeholder-0123456789", (char *)"top-secret-value"},
		{(char *)"placeholder-abcdefghij", (char *)"aaaaaaaaab"}, /* falls back on itself */
	};
	const struct policy_network n = {.secrets = rules, .nsecrets = 2};
	struct secrets *s;
	struct pale_err err;

	if (secrets_new(&n, values, 2, &s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

/* text through a mask in pieces of n bytes. */
static void masked(const struct secrets *s, const char *text, size_t n, char *out)
{
	struct evbuffer *to = evbuffer_new();
	size_t len = strlen(text);
	struct mask m;

	mask_init(&m, s);
	for (size_t at = 0; at < len; at += n)
		assert_int_equal(mask_add(&m, text + at, len - at < n ? len - at : n, to), 0);
	assert_int_equal(mask_end(&m, to), 0);
	mask_done(&m);
	assert_int_equal(evbuffer_get_length(to), len);
	evbuffer_remove(to, out, len);
	out[len] = '\0';
	evbuffer_free(to);
}

static void test_mask(void **state)
{
	static const char *const rows[][2] = {
		{"nothing", "nothing"},
		{"top-secret-value", "****************"},
		{"xtop-secret-valuey", "x****************y"},
		{"top-secret-valutop-secret-value", "top-secret-valu****************"},
		{"top-secret-value top-secret-value", "**************** ****************"},
		{"aaaaaaaaaaaaab", "aaaa**********"},
		{"aaaaaaaaaaaaac", "aaaaaaaaaaaaac"},
		{"dG9wLXNlY3JldC12YWx1ZQ==", "*********************Q=="},
		{"746f702d7365637265742d76616c7565", "********************************"},
	};
	struct secrets *s = make_secrets();
	char out[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i][0]);

		masked(s, rows[i][0], len, out);
		assert_string_equal(out, rows[i][1]);
		/* In pieces, no more of it than its first letters may have gone before it was
		 * known. */
		for (size_t n = 1; n < len; n++) {
			masked(s, rows[i][0], n, out);
			assert_null(strstr(out, "top-secret-value"));
			for (size_t k = 0, differ = 0; k < len; k++) {
				if (out[k] != rows[i][1][k])
					differ++;
				if (differ > 2 * MASK_SLACK)
					fail_msg("%s by %zu: %s", rows[i][0], n, out);
			}
		}
	}
	secrets_free(s);
}

static void test_put(void **state)
{
	static const struct {
		const char *host, *target, *value;
		int result;
		const char *target_after, *value_after;
	} rows[] = {
		{"api.example.com", "/", "placeholder-0123456789", 0, "/", "top-secret-value"},
		{"a.example.net", "/", "Bearer placeholder-0123456789", 0, "/",
		 "Bearer top-secret-value"},
		{"example.net", "/", "placeholder-0123456789", -EPERM, NULL, NULL},
		{"api.example.com", "/?key=placeholder-abcdefghij", "x", 0, "/?key=aaaaaaaaab",
		 "x"},
		{"api.example.com", "/?a&key=placeholder%2Dabcdefghij&", "x", 0,
		 "/?a&key=aaaaaaaaab&", "x"},
		{"api.example.com", "/?Key=placeholder-abcdefghij", "x", -EPERM, NULL, NULL},
		{"api.example.com", "/?key=placeholder-0123456789", "x", -EPERM, NULL, NULL},
		{"api.example.com", "/?key=", "x", 0, "/?key=", "x"},
		{"api.example.com", "/", "placeholder-abcdefghij", -EPERM, NULL, NULL},
		{"other.example.com", "/", "x", 0, "/", "x"},
	};
	struct secrets *s = make_secrets();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_head_ struct head h = {0};
		char detail[160];
		int r;

		head_init(&h);
		assert_int_equal(head_store(&h, rows[i].target, strlen(rows[i].target), &h.target),
				 0);
		assert_int_equal(
			head_add(&h, "authorization", 13, rows[i].value, strlen(rows[i].value)), 0);
		r = secrets_put(s, rows[i].host, true, &h, detail);
		if (r != rows[i].result)
			fail_msg("row %zu: %d (%s)", i, r, detail);
		if (r < 0)
			continue;
		assert_string_equal(head_text(&h, h.target), rows[i].target_after);
		assert_string_equal(head_value(&h, 0), rows[i].value_after);
	}
	assert_true(secrets_belong(s, "x.example.net"));
	assert_false(secrets_belong(s, "example.net"));
	secrets_free(s);
}

static void test_values_that_cannot_be_kept(void **state)
{
	static char *hosts[] = {(char *)"a.example", NULL};
	static struct network_secret rule = {.env = (char *)"KEY",
					     .hosts = hosts,
					     .place = SECRET_HEADER,
					     .name = (char *)"A",
					     .where = (char *)"p.yaml:3:1"};
	static const char *const values[] = {"short", "", "line\nbreak", "bell\aringing"};
	const struct policy_network n = {.secrets = &rule, .nsecrets = 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const struct config_secret v = {(char *)"placeholder-0123456789",
						(char *)(uintptr_t)values[i]};
		struct secrets *s;
		struct pale_err err;

		assert_true(secrets_new(&n, &v, 1, &s, &err) < 0);
		assert_non_null(strstr(err.message, "p.yaml:3:1"));
		assert_null(s);
		if (values[i][0])
			assert_null(strstr(err.message, values[i]));
	}
}

static void test_websocket(void **state)
{
	struct secrets *s = make_secrets();
	const char *word = "..placeholder-0123456789..";
	uint8_t frames[256];
	size_t n = 0, len = strlen(word), half = 10;

	(void)state;
	/* One message in two frames, with a ping between them. */
	for (int part = 0; part < 2; part++) {
		size_t from = part ? half : 0, to = part ? len : half;
		const uint8_t mask[4] = {1, 2, 3, (uint8_t)(0xf0 + part)};

		frames[n++] = part ? 0x80 : 0x01;
		frames[n++] = (uint8_t)(0x80 | (to - from));
		memcpy(frames + n, mask, 4);
		n += 4;
		for (size_t i = from; i < to; i++)
			frames[n++] = (uint8_t)word[i] ^ mask[(i - from) & 3];
		if (part == 0) {
			memcpy(frames + n, "\x89\x80\0\0\0\0", 6);
			n += 6;
		}
	}
	for (size_t chunk = 1; chunk <= n; chunk++) {
		struct websocket w = {0};
		bool found = false;

		for (size_t at = 0; at < n; at += chunk)
			found = websocket_sent(&w, s, frames + at,
					       n - at < chunk ? n - at : chunk) ||
				found;
		assert_true(found);
	}
	frames[8] ^= 1;
	struct websocket w = {0};
	assert_false(websocket_sent(&w, s, frames, n));
	secrets_free(s);
}

static void test_encodings(void **state)
{
	unsigned char bytes[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37 + 200);
	for (size_t len = 0; len <= sizeof(bytes); len++)
		for (int url = 0; url < 2; url++) {
			_cleanup_buf_ struct buf text = BUF_INIT(256), back = BUF_INIT(256);

			assert_int_equal(encode_base64(&text, bytes, len, url), 0);
			assert_int_equal(decode_base64(&back, text.data ? text.data : "", text.len),
					 0);
			assert_int_equal(back.len, len);
			assert_int_equal(len ? memcmp(back.data, bytes, len) : 0, 0);
			text.len = back.len = 0;
			assert_int_equal(encode_percent(&text, (char *)bytes, len), 0);
			assert_int_equal(
				decode_percent(&back, text.data ? text.data : "", text.len, true),
				0);
			assert_int_equal(back.len, len);
			assert_int_equal(len ? memcmp(back.data, bytes, len) : 0, 0);
		}
}

/* ---------------------------------------------------------------- certificates */

static bool trusted(struct ca *ca, X509 *leaf, const char *name, time_t when)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	bool ok;

	X509_STORE_add_cert(store, ca_certificate(ca));
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), name, 0);
	if (when)
		X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), when);
	ok = X509_verify_cert(ctx) == 1;
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return ok;
}

static void test_certificates(void **state)
{
	struct ca *ca, *other;
	struct pale_err err;
	char long_name[NETWORK_HOST_MAX + 1] = "";
	X509 *a, *again, *b;

	(void)state;
	assert_int_equal(ca_new(&ca, &err), 0);
	assert_int_equal(ca_new(&other, &err), 0);
	assert_non_null(strstr(ca_pem(ca), "BEGIN CERTIFICATE"));
	assert_null(strstr(ca_pem(ca), "PRIVATE"));
	a = ca_leaf(ca, "api.example.com");
	assert_true(trusted(ca, a, "api.example.com", 0));
	assert_true(trusted(ca, a, "api.example.com", time(NULL) - 24 * 3600));
	assert_true(trusted(ca, a, "api.example.com", time(NULL) + 60 * 24 * 3600));
	assert_false(trusted(ca, a, "example.com", 0));
	assert_false(trusted(ca, a, "x.api.example.com", 0));
	assert_false(trusted(other, a, "api.example.com", 0));
	again = ca_leaf(ca, "api.example.com");
	assert_ptr_equal(a, again);
	/* More names than are kept: the first is made anew. */
	for (int i = 0; i < CA_LEAVES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "h%d.example.com", i);
		b = ca_leaf(ca, name);
		assert_non_null(b);
		X509_free(b);
	}
	b = ca_leaf(ca, "api.example.com");
	assert_ptr_not_equal(a, b);
	assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(a), X509_get0_serialNumber(b)),
			     0);
	X509_free(b);
	X509_free(again);
	X509_free(a);
	for (int i = 0; i < 4; i++)
		snprintf(long_name + strlen(long_name), sizeof(long_name) - strlen(long_name),
			 "%.60s.", "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij");
	snprintf(long_name + strlen(long_name), sizeof(long_name) - strlen(long_name), "example");
	a = ca_leaf(ca, long_name);
	assert_true(trusted(ca, a, long_name, 0));
	X509_free(a);
	a = ca_leaf(ca, "192.0.2.1");
	assert_int_equal(X509_check_ip_asc(a, "192.0.2.1", 0), 1);
	X509_free(a);
	/* The authority may make no other one. */
	assert_int_equal(X509_get_pathlen(ca_certificate(ca)), 0);
	ca_free(ca);
	ca_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_hops),
		cmocka_unit_test(test_head_is_bounded),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_trailers_are_bounded),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_values_that_cannot_be_kept),
		cmocka_unit_test(test_websocket),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_certificates),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
