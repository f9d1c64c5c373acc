/* The TLS hello: see tls_hello.h. Runs in the broker. Every byte is hostile. The handshake message
 * may be spread over records of any size, even of one byte; it is put together in a buffer of fixed
 * size and parsed only when it is whole. Each length is checked against what encloses it. */
#include "egress/tls_hello.h"

#include <string.h>

#define RECORD_HANDSHAKE 22
#define CLIENT_HELLO	 1
#define EXTENSION_NAME	 0
#define EXTENSION_ECH	 0xfe0d
#define EXTENSION_ESNI	 0xffce /* the draft before it */
#define RECORD_MAX	 16384

struct cursor {
	const uint8_t *p;
	size_t left;
};

static bool take(struct cursor *c, size_t n, const uint8_t **ret)
{
	if (n > c->left)
		return false;
	*ret = c->p;
	c->p += n;
	c->left -= n;
	return true;
}

static bool take_number(struct cursor *c, unsigned bytes, size_t *ret)
{
	const uint8_t *p;

	if (!take(c, bytes, &p))
		return false;
	*ret = 0;
	for (unsigned i = 0; i < bytes; i++)
		*ret = *ret << 8 | p[i];
	return true;
}

/* A vector with its length, of `bytes` bytes, before it. */
static bool take_vector(struct cursor *c, unsigned bytes, struct cursor *ret)
{
	size_t n;

	if (!take_number(c, bytes, &n) || !take(c, n, &ret->p))
		return false;
	ret->left = n;
	return true;
}

static bool parse_name(struct cursor extension, struct hello *h)
{
	struct cursor list, name;
	size_t type;

	if (!take_vector(&extension, 2, &list) || extension.left || !list.left)
		return false;
	/* One name is all that ever was defined; a second would be one that the server might
	 * prefer. */
	if (!take_number(&list, 1, &type) || type != 0 || !take_vector(&list, 2, &name) ||
	    list.left)
		return false;
	if (network_host_normalise((const char *)name.p, name.left, h->name) < 0) {
		h->name[0] = '\0';
		h->name_broken = true;
	}
	return true;
}

static bool parse_hello(struct cursor c, struct hello *h)
{
	struct cursor session, suites, compression, extensions;
	const uint8_t *fixed;
	bool named = false;

	if (!take(&c, 2 + 32, &fixed) || !take_vector(&c, 1, &session) ||
	    !take_vector(&c, 2, &suites) || !take_vector(&c, 1, &compression))
		return false;
	if (!c.left)
		return true; /* as of old: no extensions */
	if (!take_vector(&c, 2, &extensions) || c.left)
		return false;
	while (extensions.left) {
		struct cursor extension;
		size_t type;

		if (!take_number(&extensions, 2, &type) || !take_vector(&extensions, 2, &extension))
			return false;
		if (type == EXTENSION_ECH || type == EXTENSION_ESNI)
			h->encrypted = true;
		if (type != EXTENSION_NAME)
			continue;
		if (named || !parse_name(extension, h))
			return false;
		named = true;
	}
	return true;
}

enum hello_state hello_parse(const uint8_t *data, size_t len, struct hello *ret)
{
	uint8_t message[HELLO_MAX];
	size_t got = 0, wanted = 4;
	struct cursor c = {data, len};

	memset(ret, 0, sizeof(*ret));
	while (got < wanted) {
		const uint8_t *header, *body;
		size_t n;

		/* As soon as a byte is wrong, it is not TLS. */
		if (c.left > 0 && c.p[0] != RECORD_HANDSHAKE)
			return got ? HELLO_BROKEN : HELLO_NOT;
		if (c.left > 1 && c.p[1] != 3)
			return got ? HELLO_BROKEN : HELLO_NOT;
		if (!take(&c, 5, &header))
			break;
		n = (size_t)header[3] << 8 | header[4];
		if (n == 0 || n > RECORD_MAX)
			return HELLO_BROKEN;
		bool whole = n <= c.left;

		if (!whole)
			n = c.left;
		if (n > sizeof(message) - got)
			return HELLO_BROKEN;
		if (!take(&c, n, &body))
			return HELLO_BROKEN;
		memcpy(message + got, body, n);
		got += n;
		if (got > 0 && message[0] != CLIENT_HELLO)
			return HELLO_BROKEN;
		if (got >= 4)
			wanted = 4 +
				 ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
		if (wanted > sizeof(message))
			return HELLO_BROKEN;
		if (!whole)
			break;
	}
	if (got < wanted || got < 4)
		return len >= HELLO_MAX ? HELLO_BROKEN : HELLO_MORE;
	/* Something behind the hello in its record: a client waits for the answer first. */
	if (got > wanted)
		return HELLO_BROKEN;
	return parse_hello((struct cursor){message + 4, wanted - 4}, ret) ? HELLO_OK : HELLO_BROKEN;
}
