/* What is kept of a run's output: the head and the tail of each stream, in the order in which it
 * came. Hostile bytes, never interpreted. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_STREAMS };
extern const char *const output_stream_names[];

struct output; /* opaque */

/* Keeps at most max_bytes of each stream, half from its beginning and half from its end. */
int output_new(uint64_t max_bytes, struct output **ret, struct pale_err *err) _must_check_;
void output_free(struct output *o);
int output_add(struct output *o, enum output_stream stream, const char *data, size_t len,
	       struct pale_err *err) _must_check_;
/* Bytes that came, and bytes that were not kept. */
uint64_t output_total(const struct output *o, enum output_stream stream);
uint64_t output_omitted(const struct output *o, enum output_stream stream);
uint64_t output_kept_head(const struct output *o, enum output_stream stream);

/* Adds to a result: "stdout" and "stderr" (text with a note where bytes are left out, invalid UTF-8
 * replaced; then "stdout_base64" has what was kept, exactly), and "output", the chunks in order. */
int output_to_json(const struct output *o, json_t *result, struct pale_err *err) _must_check_;

/* The kept bytes of a stream, head then tail; owned by the caller. */
int output_bytes(const struct output *o, enum output_stream stream, char **ret, size_t *ret_len,
		 struct pale_err *err) _must_check_;
