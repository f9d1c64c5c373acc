/* The kernel channel, from the kernel's side: docs/kernel-protocol.md.
 *
 * The supervisor at its other end is not hostile. Sending waits until there is room: it always
 * takes what it is sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"

#define PACKET_MAX 32768u
#define HEADER	   20u
#define KEY_MAX	   256u
#define PART_MAX   (PACKET_MAX - HEADER - KEY_MAX)
#define MORE	   1u

static void put32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void channel_send(struct host *h, uint8_t kind, uint32_t id, int32_t value, const char *key,
		  const void *data, size_t len)
{
	static unsigned char packet[PACKET_MAX];
	size_t key_len = strlen(key), at = 0;
	ssize_t n;

	do {
		size_t part = len - at < PART_MAX ? len - at : PART_MAX;

		memset(packet, 0, HEADER);
		packet[0] = kind;
		packet[1] = at + part < len ? MORE : 0;
		packet[2] = (unsigned char)key_len;
		put32(packet + 4, id);
		put32(packet + 8, (uint32_t)value);
		put32(packet + 12, (uint32_t)part);
		memcpy(packet + HEADER, key, key_len);
		if (part)
			memcpy(packet + HEADER + key_len, (const char *)data + at, part);
		do
			n = send(h->channel, packet, HEADER + key_len + part, MSG_NOSIGNAL);
		while (n < 0 && errno == EINTR);
		/* The supervisor is gone: so is the box. */
		if (n < 0)
			_exit(1);
		at += part;
	} while (at < len);
}

void channel_say(struct host *h, uint8_t kind, uint32_t id, const char *text)
{
	channel_send(h, kind, id, 0, "", text, strlen(text));
}

void message_free(struct message *m)
{
	free(m->data);
	*m = (struct message){0};
}

static void append(struct message *m, const void *data, size_t len)
{
	size_t size = m->size ? m->size : 4096;

	if (m->len + len > MESSAGE_MAX)
		die("a message of more than 16 MiB", 0);
	while (size < m->len + len + 1)
		size *= 2;
	if (size != m->size) {
		char *bigger = realloc(m->data, size);

		if (!bigger)
			die("no memory for a message", 0);
		m->data = bigger;
		m->size = size;
	}
	memcpy(m->data + m->len, data, len);
	m->len += len;
	m->data[m->len] = '\0';
}

bool channel_receive(struct host *h)
{
	static unsigned char packet[PACKET_MAX];
	struct message *m = &h->in;
	size_t key_len, len;
	ssize_t n = recv(h->channel, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0)
		_exit(0);
	if ((size_t)n > sizeof(packet) || n < (ssize_t)HEADER)
		die("the supervisor sent what is no packet", 0);
	key_len = (size_t)packet[2] | (size_t)packet[3] << 8;
	len = get32(packet + 12);
	if (HEADER + key_len + len != (size_t)n)
		die("the supervisor sent a packet of another length than it says", 0);
	if (!h->coming || m->kind != packet[0] || m->id != get32(packet + 4)) {
		message_free(m);
		m->kind = packet[0];
		m->id = get32(packet + 4);
		m->value = (int32_t)get32(packet + 8);
	}
	append(m, packet + HEADER + key_len, len);
	h->coming = packet[1] & MORE;
	return !h->coming;
}
