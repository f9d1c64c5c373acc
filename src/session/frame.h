/* The packets of the kernel channel: docs/kernel-protocol.md. Read and written here; kernel.c puts
 * messages together from them. What comes from a kernel is hostile. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION	 1
#define FRAME_PACKET_MAX 32768u
#define FRAME_HEADER	 20u
#define FRAME_KEY_MAX	 256u
#define FRAME_DATA_MAX	 (FRAME_PACKET_MAX - FRAME_HEADER - FRAME_KEY_MAX)

enum frame_kind {
	/* supervisor to kernel */
	FRAME_EXECUTE = 1,
	FRAME_UNDO = 2,
	FRAME_COMPLETE = 3,
	FRAME_INSPECT = 4,
	FRAME_INPUT = 5,
	FRAME_RESTART = 6,
	/* kernel to supervisor */
	FRAME_READY = 16,
	FRAME_STARTED = 17,
	FRAME_DATA = 18,
	FRAME_REPLY = 19,
	FRAME_ERROR = 20,
	FRAME_DONE = 21,
	FRAME_BACK = 22,
	FRAME_INPUT_WANTED = 23,
	FRAME_NOTE = 24,
	FRAME_REFUSED = 25,
};

#define FRAME_MORE     1 /* the data goes on in the next packet */
#define FRAME_RESULT   2 /* FRAME_DATA: the value of the last expression */
#define FRAME_ROLLBACK 1 /* value of FRAME_EXECUTE */

/* How an execution ended: value of FRAME_DONE. */
enum frame_done { FRAME_OK = 0, FRAME_FAILED = 1, FRAME_INTERRUPTED = 2, FRAME_ENDED = 3 };

/* key and data are borrowed: of a packet, or of a message. */
struct frame {
	uint8_t kind, flags;
	uint32_t id;
	int32_t value;
	const char *key, *data;
	size_t key_len, data_len;
	size_t lost; /* of a message that was too long: its bytes; then there are none here */
};

/* Writes header and key: their length. key_len and data_len must fit a packet. */
size_t frame_pack(const struct frame *f, unsigned char out[static FRAME_HEADER + FRAME_KEY_MAX]);
/* A packet as it came; false: it is none, or of no kind that a kernel sends. */
bool frame_parse(const void *packet, size_t len, struct frame *ret);
/* Whether it is this text. */
bool frame_key_is(const struct frame *f, const char *key);
