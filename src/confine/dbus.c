/* D-Bus messages and the connection's greeting: see dbus.h (the D-Bus Specification 0.43, "Message
 * Protocol" and "Authentication Protocol").
 *
 * Runs in the supervisor. What arrives is treated as hostile: lengths are checked against what
 * there is, strings must end where they say. Only little-endian messages are taken: both supported
 * machines are, and a peer answers in its own order. */
#include "confine/dbus.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"

#define HEADER 16
enum {
	FIELD_PATH = 1,
	FIELD_INTERFACE,
	FIELD_MEMBER,
	FIELD_ERROR_NAME,
	FIELD_REPLY_SERIAL,
	FIELD_DESTINATION,
	FIELD_SENDER,
	FIELD_SIGNATURE
};

static int greet(int fd, uid_t uid, uint64_t deadline_us)
{
	char text[80], answer[256], digits[16];
	size_t got = 0;
	int n = snprintf(digits, sizeof(digits), "%u", (unsigned)uid);

	text[0] = '\0'; /* the byte that carries the credentials comes first */
	int len = 1 + snprintf(text + 1, sizeof(text) - 1, "AUTH EXTERNAL ");

	for (int i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%02x",
				(unsigned)digits[i]);
	len += snprintf(text + len, sizeof(text) - (size_t)len, "\r\nBEGIN\r\n");
	if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return errno ? -errno : -EIO;
	while (!memchr(answer, '\n', got)) {
		uint64_t now = clock_mono_us();
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (now >= deadline_us || got == sizeof(answer))
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)((deadline_us - now) / 1000) + 1) <= 0)
			continue;
		ssize_t r = recv(fd, answer + got, sizeof(answer) - got, 0);

		if (r <= 0)
			return r < 0 ? -errno : -EACCES;
		got += (size_t)r;
	}
	return got > 3 && memcmp(answer, "OK ", 3) == 0 ? 0 : -EACCES;
}

int dbus_connect(const char *path, uid_t uid, uint64_t deadline_us)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	size_t len = strlen(path);

	if (len >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, len);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	int r = greet(fd, uid, deadline_us);

	return r < 0 ? r : take_fd(&fd);
}

void dbus_align(struct buf *b, size_t to)
{
	static const char zeros[8];

	if (b->len % to)
		buf_add(b, zeros, to - b->len % to);
}

static void put_u32(struct buf *b, size_t at, uint32_t v)
{
	if (!b->failed)
		memcpy(b->data + at, &v, sizeof(v));
}

void dbus_u32(struct buf *b, uint32_t v)
{
	dbus_align(b, 4);
	buf_add(b, &v, sizeof(v));
}

void dbus_u64(struct buf *b, uint64_t v)
{
	dbus_align(b, 8);
	buf_add(b, &v, sizeof(v));
}

void dbus_string(struct buf *b, const char *s)
{
	dbus_u32(b, (uint32_t)strlen(s));
	buf_add(b, s, strlen(s) + 1);
}

void dbus_signature(struct buf *b, const char *s)
{
	unsigned char len = (unsigned char)strlen(s);

	buf_add(b, &len, 1);
	buf_add(b, s, (size_t)len + 1);
}

size_t dbus_array(struct buf *b, size_t to)
{
	dbus_u32(b, 0);
	size_t mark = b->len - 4;

	/* The padding up to the first element does not count, and is there without elements too. */
	dbus_align(b, to);
	return mark;
}

void dbus_array_end(struct buf *b, size_t mark, size_t to)
{
	size_t first = (mark + 4 + to - 1) / to * to;

	put_u32(b, mark, (uint32_t)(b->len - first));
}

static void field(struct buf *b, unsigned char code, const char *type, const char *value)
{
	dbus_align(b, 8);
	buf_add(b, &code, 1);
	dbus_signature(b, type);
	if (type[0] == 'g')
		dbus_signature(b, value);
	else
		dbus_string(b, value);
}

void dbus_marshal(struct buf *out, uint32_t serial, const struct dbus_call *call)
{
	static const unsigned char fixed[4] = {'l', DBUS_CALL, 0, 1};

	buf_add(out, fixed, sizeof(fixed));
	dbus_u32(out, call->body ? (uint32_t)call->body->len : 0);
	dbus_u32(out, serial);
	size_t fields = dbus_array(out, 8);

	field(out, FIELD_PATH, "o", call->path);
	field(out, FIELD_INTERFACE, "s", call->interface);
	field(out, FIELD_MEMBER, "s", call->member);
	if (call->destination)
		field(out, FIELD_DESTINATION, "s", call->destination);
	if (call->body)
		field(out, FIELD_SIGNATURE, "g", call->signature);
	dbus_array_end(out, fields, 8);
	dbus_align(out, 8);
	if (call->body)
		buf_add(out, call->body->data, call->body->len);
	/* The next message starts its own alignment; a caller that appends more needs a multiple
	 * of 8. */
}

/* A bounded reader: positions are relative to the start of the message. */
struct reader {
	const unsigned char *data;
	size_t len, pos;
};

static bool skip_to(struct reader *r, size_t to)
{
	size_t pos = (r->pos + to - 1) / to * to;

	if (pos > r->len)
		return false;
	r->pos = pos;
	return true;
}

static bool read_u32(struct reader *r, uint32_t *ret)
{
	if (!skip_to(r, 4) || r->len - r->pos < 4)
		return false;
	memcpy(ret, r->data + r->pos, 4);
	r->pos += 4;
	return true;
}

/* len bytes and a NUL, none in between. */
static bool read_text(struct reader *r, size_t len, const char **ret)
{
	if (len >= r->len - r->pos || memchr(r->data + r->pos, '\0', len) || r->data[r->pos + len])
		return false;
	*ret = (const char *)r->data + r->pos;
	r->pos += len + 1;
	return true;
}

static bool read_string(struct reader *r, const char **ret)
{
	uint32_t len;

	return read_u32(r, &len) && read_text(r, len, ret);
}

static bool read_signature(struct reader *r, const char **ret)
{
	if (r->pos >= r->len)
		return false;
	size_t len = r->data[r->pos++];

	return read_text(r, len, ret);
}

/* One header field; those that matter are kept. */
static bool read_field(struct reader *r, struct dbus_message *ret)
{
	const char *type, *text = NULL;
	uint32_t number = 0;

	if (!skip_to(r, 8) || r->pos >= r->len)
		return false;
	unsigned code = r->data[r->pos++];

	if (!read_signature(r, &type))
		return false;
	if (strcmp(type, "s") == 0 || strcmp(type, "o") == 0) {
		if (!read_string(r, &text))
			return false;
	} else if (strcmp(type, "g") == 0) {
		if (!read_signature(r, &text))
			return false;
	} else if (strcmp(type, "u") != 0 || !read_u32(r, &number)) {
		return false;
	}
	if (code == FIELD_MEMBER)
		ret->member = text;
	else if (code == FIELD_ERROR_NAME)
		ret->error_name = text;
	else if (code == FIELD_REPLY_SERIAL)
		ret->reply_serial = number;
	return true;
}

ssize_t dbus_parse(const void *data, size_t len, struct dbus_message *ret)
{
	const unsigned char *p = data;
	uint32_t body_len, fields_len;

	memset(ret, 0, sizeof(*ret));
	if (len < HEADER)
		return 0;
	memcpy(&body_len, p + 4, 4);
	memcpy(&fields_len, p + 12, 4);
	if (p[0] != 'l' || p[1] < DBUS_CALL || p[1] > DBUS_SIGNAL || p[3] != 1 ||
	    body_len > DBUS_MESSAGE_MAX || fields_len > DBUS_MESSAGE_MAX)
		return -EBADMSG;
	size_t body = (HEADER + (size_t)fields_len + 7) / 8 * 8;
	size_t total = body + body_len;

	if (total > DBUS_MESSAGE_MAX)
		return -EBADMSG;
	if (len < total)
		return 0;
	struct reader r = {.data = p, .len = HEADER + fields_len, .pos = HEADER};

	ret->type = (enum dbus_type)p[1];
	while (r.pos < r.len) {
		if (!read_field(&r, ret))
			return -EBADMSG;
	}
	ret->body = p + body;
	ret->body_len = body_len;
	return (ssize_t)total;
}

bool dbus_read_u32(struct dbus_message *m, uint32_t *ret)
{
	struct reader r = {m->body, m->body_len, m->pos};
	bool ok = read_u32(&r, ret);

	if (!ok)
		*ret = 0;
	m->pos = r.pos;
	return ok;
}

bool dbus_read_string(struct dbus_message *m, const char **ret)
{
	struct reader r = {m->body, m->body_len, m->pos};
	bool ok = read_string(&r, ret);

	if (!ok)
		*ret = NULL;
	m->pos = r.pos;
	return ok;
}
