/* HTTP/1.1 as it is on the wire: see h1_parse.h.
 *
 * Process: the broker, confined. Hostile: everything, from both sides. What is accepted is written
 * anew by h1.c, never passed on byte by byte, so that the next reader sees what was checked here.
 * Sources: RFC 9110, 9112. */
#include "egress/http/h1_parse.h"

#include <string.h>
#include <strings.h>

bool h1_is_token(const char *s, size_t len)
{
	static const bool other[128] = {['!'] = 1,  ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1,
					['\''] = 1, ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,
					['^'] = 1,  ['_'] = 1, ['`'] = 1, ['|'] = 1, ['~'] = 1};

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c < 128 && other[c])))
			return false;
	}
	return len > 0;
}

ssize_t h1_scan(struct h1_scan *s, const char *data, size_t len)
{
	for (; s->seen < len; s->seen++) {
		char c = data[s->seen];

		if (c == '\0')
			return -EBADMSG;
		if (c == '\n') {
			if (!s->cr)
				return -EBADMSG;
			if (!s->line && s->begun)
				return (ssize_t)++s->seen;
			s->begun = s->begun || s->line;
			s->line = s->cr = false;
			/* Some programs end a request's body with an empty line too many. */
			if (!s->begun && s->seen >= 4)
				return -EBADMSG;
			continue;
		}
		if (s->cr)
			return -EBADMSG;
		if (c == '\r')
			s->cr = true;
		else
			s->line = true;
		if (s->seen >= HEAD_MAX_BYTES)
			return -E2BIG;
	}
	return 0;
}

/* The next line, without its CRLF. */
static bool next_line(const char **at, const char *end, const char **ret, size_t *ret_len)
{
	const char *lf = memchr(*at, '\n', (size_t)(end - *at));

	if (!lf || lf == *at || lf[-1] != '\r')
		return false;
	*ret = *at;
	*ret_len = (size_t)(lf - 1 - *at);
	*at = lf + 1;
	return !memchr(*ret, '\r', *ret_len);
}

static int bad(const char **ret_why, int status, const char *why)
{
	*ret_why = why;
	return status;
}

static bool value_is_clean(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return false;
	return true;
}

static int parse_field(struct head *h, const char *line, size_t len, const char **ret_why)
{
	const char *colon = memchr(line, ':', len), *value;
	size_t name_len, value_len;
	int r;

	if (line[0] == ' ' || line[0] == '\t')
		return bad(ret_why, 400, "a folded header line");
	if (!colon)
		return bad(ret_why, 400, "a header line without a colon");
	name_len = (size_t)(colon - line);
	if (!h1_is_token(line, name_len))
		return bad(ret_why, 400, "a header's name is not a token");
	value = colon + 1;
	value_len = len - name_len - 1;
	while (value_len && (*value == ' ' || *value == '\t')) {
		value++;
		value_len--;
	}
	while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
		value_len--;
	if (!value_is_clean(value, value_len))
		return bad(ret_why, 400, "a control character in a header's value");
	r = head_add(h, line, name_len, value, value_len);
	if (r == -E2BIG)
		return bad(ret_why, 431, "too many or too large headers");
	return r < 0 ? bad(ret_why, 503, "out of memory") : 0;
}

int h1_parse_fields(struct head *h, const char *data, size_t len, const char **ret_why)
{
	const char *at = data, *end = data + len, *line;
	size_t line_len;

	while (at < end) {
		int r;

		if (!next_line(&at, end, &line, &line_len))
			return bad(ret_why, 400, "a header line without CRLF");
		if (line_len == 0)
			return at == end ? 0 : bad(ret_why, 400, "an empty line among headers");
		r = parse_field(h, line, line_len, ret_why);
		if (r)
			return r;
	}
	return 0;
}

/* Digits only: no sign, no blanks, no list. */
static bool parse_length(const char *s, uint64_t *ret)
{
	size_t len = strlen(s);

	*ret = 0;
	if (len == 0 || len > 18)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(*s - '0');
	}
	return true;
}

/* What says where the body ends must say it once and in one way. */
static int check_framing(const struct head *h, int status, const char **ret_why)
{
	size_t nlength, ncoding;
	const char *length = head_get(h, "content-length", &nlength);
	const char *coding = head_get(h, "transfer-encoding", &ncoding);
	uint64_t n;

	if (nlength > 1)
		return bad(ret_why, status, "more than one Content-Length");
	if (length && !parse_length(length, &n))
		return bad(ret_why, status, "Content-Length is not a number");
	if (!coding)
		return 0;
	if (length)
		return bad(ret_why, status, "both Content-Length and Transfer-Encoding");
	if (ncoding > 1)
		return bad(ret_why, status, "more than one Transfer-Encoding");
	if (h->minor == 0)
		return bad(ret_why, status, "Transfer-Encoding in HTTP/1.0");
	if (strcasecmp(coding, "chunked") != 0)
		return bad(ret_why, status == 502 ? 502 : 501,
			   "a Transfer-Encoding other than chunked");
	return 0;
}

static bool parse_version(const char *s, size_t len, int *ret_minor)
{
	if (len != 8 || memcmp(s, "HTTP/1.", 7) != 0 || (s[7] != '0' && s[7] != '1'))
		return false;
	*ret_minor = s[7] - '0';
	return true;
}

int h1_parse_request(struct head *h, const char *data, size_t len, const char **ret_why)
{
	const char *at = data, *end = data + len, *line, *sp, *sp2;
	size_t line_len, n;
	int r;

	do {
		if (!next_line(&at, end, &line, &line_len))
			return bad(ret_why, 400, "a request line without CRLF");
	} while (line_len == 0);
	sp = memchr(line, ' ', line_len);
	sp2 = sp ? memchr(sp + 1, ' ', line_len - (size_t)(sp + 1 - line)) : NULL;
	if (!sp2 || memchr(sp2 + 1, ' ', line_len - (size_t)(sp2 + 1 - line)))
		return bad(ret_why, 400, "a request line that is not method, target and version");
	if (!h1_is_token(line, (size_t)(sp - line)) || sp - line > 32)
		return bad(ret_why, 400, "the method is not a token");
	if (sp2 == sp + 1)
		return bad(ret_why, 400, "an empty target");
	for (const char *c = sp + 1; c < sp2; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '#')
			return bad(ret_why, 400, "a target with characters that must be escaped");
	if (!parse_version(sp2 + 1, line_len - (size_t)(sp2 + 1 - line), &h->minor))
		return bad(ret_why, 505, "not HTTP/1.0 or HTTP/1.1");
	r = head_store(h, line, (size_t)(sp - line), &h->method);
	if (r == 0)
		r = head_store(h, sp + 1, (size_t)(sp2 - sp - 1), &h->target);
	if (r < 0)
		return bad(ret_why, r == -E2BIG ? 431 : 503, "too large a request line");
	r = h1_parse_fields(h, at, (size_t)(end - at), ret_why);
	if (r == 0)
		r = check_framing(h, 400, ret_why);
	if (r)
		return r;
	head_get(h, "host", &n);
	if (n > 1 || (n == 0 && h->minor == 1))
		return bad(ret_why, 400, n ? "more than one Host" : "no Host");
	return 0;
}

int h1_parse_answer(struct head *h, const char *data, size_t len, const char **ret_why)
{
	const char *at = data, *end = data + len, *line;
	size_t line_len;
	int r;

	if (!next_line(&at, end, &line, &line_len))
		return bad(ret_why, 502, "a status line without CRLF");
	if (line_len < 12 || !parse_version(line, 8, &h->minor) || line[8] != ' ')
		return bad(ret_why, 502, "not HTTP/1.0 or HTTP/1.1");
	for (int i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return bad(ret_why, 502, "the status is not a number");
		h->status = h->status * 10 + (unsigned)(line[i] - '0');
	}
	if (h->status < 100 || h->status > 599 || (line_len > 12 && line[12] != ' '))
		return bad(ret_why, 502, "a status that there is not");
	if (line_len > 13) {
		if (!value_is_clean(line + 13, line_len - 13))
			return bad(ret_why, 502, "a control character in the status line");
		if (head_store(h, line + 13, line_len - 13, &h->reason) < 0)
			return bad(ret_why, 502, "too large a status line");
	}
	r = h1_parse_fields(h, at, (size_t)(end - at), ret_why);
	return r ? 502 : check_framing(h, 502, ret_why);
}

static bool keeps_alive(const struct head *h)
{
	if (head_lists(h, "connection", "close"))
		return false;
	return h->minor == 1 || head_lists(h, "connection", "keep-alive");
}

static struct h1_framing framing(const struct head *h)
{
	const char *length = head_get(h, "content-length", NULL);
	struct h1_framing f = {.keep_alive = keeps_alive(h)};

	if (head_get(h, "transfer-encoding", NULL))
		f.body = H1_CHUNKED;
	else if (length && parse_length(length, &f.length))
		f.body = f.length ? H1_LENGTH : H1_NONE;
	return f;
}

struct h1_framing h1_request_framing(const struct head *h)
{
	return framing(h);
}

struct h1_framing h1_answer_framing(const struct head *h, bool to_head_request)
{
	struct h1_framing f = framing(h);

	if (to_head_request || h->status < 200 || h->status == 204 || h->status == 304) {
		f.body = H1_NONE;
	} else if (f.body == H1_NONE && !head_get(h, "content-length", NULL)) {
		f.body = H1_UNTIL_CLOSE;
		f.keep_alive = false;
	}
	return f;
}

/* ---------------------------------------------------------------- chunks */

enum { CHUNK_SIZE, CHUNK_EXT, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_CR, CHUNK_LF, CHUNK_TRAILERS };

void h1_chunks_init(struct h1_chunks *c, bool request)
{
	*c = (struct h1_chunks){.request = request, .trailers = BUF_INIT(H1_TRAILER_MAX)};
}

void h1_chunks_done(struct h1_chunks *c)
{
	buf_done(&c->trailers);
}

static int hex(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)(ch | 0x20);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* One byte outside of the data. */
static int chunk_byte(struct h1_chunks *c, char ch)
{
	int r;

	switch (c->state) {
	case CHUNK_SIZE:
		if (hex(ch) >= 0) {
			if (++c->digits > 15)
				return -EBADMSG;
			c->left = c->left << 4 | (uint64_t)hex(ch);
			return 0;
		}
		if (c->digits == 0 || !strchr("\r; \t", ch))
			return -EBADMSG;
		c->state = CHUNK_EXT;
		c->ext = 0;
		__attribute__((fallthrough));
	case CHUNK_EXT:
		if (ch == '\r') {
			c->state = CHUNK_SIZE_LF;
			return 0;
		}
		if (c->request || ++c->ext > H1_CHUNK_EXT_MAX ||
		    ((unsigned char)ch < ' ' && ch != '\t'))
			return -EBADMSG;
		return 0;
	case CHUNK_SIZE_LF:
		if (ch != '\n')
			return -EBADMSG;
		c->state = c->left ? CHUNK_DATA : CHUNK_TRAILERS;
		c->scan = (struct h1_scan){.begun = true};
		return 0;
	case CHUNK_CR: c->state = CHUNK_LF; return ch == '\r' ? 0 : -EBADMSG;
	case CHUNK_LF:
		c->state = CHUNK_SIZE;
		c->digits = 0;
		return ch == '\n' ? 0 : -EBADMSG;
	case CHUNK_TRAILERS:
		r = buf_add(&c->trailers, &ch, 1);
		if (r < 0)
			return r == -ENOSPC ? -E2BIG : r;
		r = (int)h1_scan(&c->scan, c->trailers.data, c->trailers.len);
		if (r > 0)
			c->trailers.len -= 2; /* the empty line */
		return r > 0 ? 1 : r;
	}
	return -EBADMSG;
}

int h1_chunks_read(struct h1_chunks *c, const char *data, size_t len, size_t *ret_used,
		   const char **ret_body, size_t *ret_len)
{
	size_t at = 0;
	int r = 0;

	*ret_body = NULL;
	*ret_len = 0;
	while (at < len && r == 0) {
		if (c->state == CHUNK_DATA) {
			size_t n = len - at < c->left ? len - at : (size_t)c->left;

			*ret_body = data + at;
			*ret_len = n;
			at += n;
			c->left -= n;
			if (c->left == 0)
				c->state = CHUNK_CR;
			break;
		}
		r = chunk_byte(c, data[at++]);
	}
	*ret_used = at;
	return r;
}
