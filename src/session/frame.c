/* The packets of the kernel channel: see frame.h. In the supervisor; pure functions. Hostile: every
 * byte of what is parsed (fuzz/fuzz_frame.c). */
#include "session/frame.h"

#include <endian.h>
#include <string.h>

static void put16(unsigned char *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static void put32(unsigned char *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static uint32_t get32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

size_t frame_pack(const struct frame *f, unsigned char out[static FRAME_HEADER + FRAME_KEY_MAX])
{
	out[0] = f->kind;
	out[1] = f->flags;
	put16(out + 2, (uint16_t)f->key_len);
	put32(out + 4, f->id);
	put32(out + 8, (uint32_t)f->value);
	put32(out + 12, (uint32_t)f->data_len);
	put32(out + 16, 0);
	if (f->key_len)
		memcpy(out + FRAME_HEADER, f->key, f->key_len);
	return FRAME_HEADER + f->key_len;
}

bool frame_parse(const void *packet, size_t len, struct frame *ret)
{
	const unsigned char *p = packet;
	uint16_t key_len;

	if (len < FRAME_HEADER || len > FRAME_PACKET_MAX)
		return false;
	memcpy(&key_len, p + 2, sizeof(key_len));
	*ret = (struct frame){
		.kind = p[0],
		.flags = p[1],
		.key_len = le16toh(key_len),
		.id = get32(p + 4),
		.value = (int32_t)get32(p + 8),
		.data_len = get32(p + 12),
		.key = (const char *)p + FRAME_HEADER,
	};
	if (ret->kind < FRAME_READY || ret->kind > FRAME_REFUSED || get32(p + 16) != 0 ||
	    (ret->flags & ~(FRAME_MORE | FRAME_RESULT)) || ret->key_len > FRAME_KEY_MAX)
		return false;
	ret->data = ret->key + ret->key_len;
	return ret->data_len <= FRAME_PACKET_MAX &&
	       FRAME_HEADER + ret->key_len + ret->data_len == len;
}

bool frame_key_is(const struct frame *f, const char *key)
{
	return f->key_len == strlen(key) && memcmp(f->key, key, f->key_len) == 0;
}
