/* Checked parsing and printing of numbers, sizes ("512MiB") and durations ("30s"). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"

/* A decimal number without sign or blanks, at most max. 0, -EINVAL or -ERANGE. */
int num_parse_u64(const char *s, uint64_t max, uint64_t *ret) _must_check_;

/* A size in bytes: a decimal number, with a fraction if a unit follows, and one of
 * B, KiB, MiB, GiB, TiB, kB, MB, GB, TB, or the short K, M, G, T (powers of 1024); a bare number
 * counts bytes. 0, -EINVAL or -ERANGE. */
int num_parse_size(const char *s, uint64_t *ret_bytes) _must_check_;

/* A duration in milliseconds: a decimal number, with a fraction, and one of ms, s, m (or min), h;
 * a bare number counts seconds. 0, -EINVAL or -ERANGE. */
int num_parse_duration(const char *s, uint64_t *ret_ms) _must_check_;

/* A count of processors in thousandths: "1", "0.5", "2.25". 0, -EINVAL or -ERANGE. */
int num_parse_milli(const char *s, uint64_t *ret_milli) _must_check_;

/* The shortest exact form: 536870912 is "512MiB", 1500 ms is "1.5s", 1000 milli is "1". */
#define NUM_TEXT 32
const char *num_format_size(char out[static NUM_TEXT], uint64_t bytes);
const char *num_format_duration(char out[static NUM_TEXT], uint64_t ms);
/* What was measured, for people: rounded down to a tenth of the largest unit, and to a tenth of a
 * second. 144818176 is "138.1MiB", 30001 ms is "30s". */
const char *num_round_size(char out[static NUM_TEXT], uint64_t bytes);
const char *num_round_duration(char out[static NUM_TEXT], uint64_t ms);
const char *num_format_milli(char out[static NUM_TEXT], uint64_t milli);
