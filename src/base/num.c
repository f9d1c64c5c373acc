/* Numbers with units: see num.h. Exact integer arithmetic; nothing is rounded silently. */
#include "num.h"

#include <inttypes.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* The first of equal factors is the one that is printed. */
static const struct unit size_units[] = {
	{"TiB", UINT64_C(1) << 40},
	{"GiB", UINT64_C(1) << 30},
	{"MiB", UINT64_C(1) << 20},
	{"KiB", UINT64_C(1) << 10},
	{"B", 1},
	{"T", UINT64_C(1) << 40},
	{"G", UINT64_C(1) << 30},
	{"M", UINT64_C(1) << 20},
	{"K", UINT64_C(1) << 10},
	{"k", UINT64_C(1) << 10},
	{"TB", UINT64_C(1000000000000)},
	{"GB", 1000000000},
	{"MB", 1000000},
	{"kB", 1000},
	{"KB", 1000},
};
static const struct unit duration_units[] = {
	{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {"min", 60000},
};
static const struct unit milli_units[] = {{"", 1000}};

static int digits(const char **s, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = *s;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value) || value > max)
			return -ERANGE;
	*s = p;
	*ret = value;
	return 0;
}

int num_parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t value;
	int r = digits(&s, max, &value);

	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* number[.fraction]unit, in the smallest unit; bare_factor is what a number without a unit means.
 */
static int parse_units(const char *s, const struct unit *units, size_t n, uint64_t bare_factor,
		       uint64_t *ret)
{
	uint64_t whole, fraction = 0, scale = 1, factor = 0, value;
	int r = digits(&s, UINT64_MAX, &whole);

	if (r < 0)
		return r;
	if (*s == '.') {
		const char *from = ++s;

		r = digits(&s, UINT64_C(1000000000), &fraction);
		if (r < 0)
			return -EINVAL;
		for (; from < s; from++)
			scale *= 10;
	}
	while (*s == ' ')
		s++;
	if (!*s)
		factor = bare_factor;
	for (size_t i = 0; i < n && !factor; i++)
		if (strcmp(s, units[i].name) == 0)
			factor = units[i].factor;
	if (!factor)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, factor, &value) ||
	    __builtin_mul_overflow(fraction, factor, &fraction))
		return -ERANGE;
	if (fraction % scale)
		return -EINVAL;
	if (__builtin_add_overflow(value, fraction / scale, ret))
		return -ERANGE;
	return 0;
}

int num_parse_size(const char *s, uint64_t *ret_bytes)
{
	return parse_units(s, size_units, ARRAY_SIZE(size_units), 1, ret_bytes);
}

int num_parse_duration(const char *s, uint64_t *ret_ms)
{
	return parse_units(s, duration_units, ARRAY_SIZE(duration_units), 1000, ret_ms);
}

int num_parse_milli(const char *s, uint64_t *ret_milli)
{
	return parse_units(s, milli_units, ARRAY_SIZE(milli_units), 1000, ret_milli);
}

static const char *format_units(char out[static NUM_TEXT], uint64_t value, const struct unit *units,
				size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t f = units[i].factor;

		if (value < f && f > 1)
			continue;
		if (value % f == 0) {
			snprintf(out, NUM_TEXT, "%" PRIu64 "%s", value / f, units[i].name);
			return out;
		}
		if (value * 10 / 10 == value && value * 10 % f == 0) {
			snprintf(out, NUM_TEXT, "%" PRIu64 ".%" PRIu64 "%s", value / f,
				 value % f * 10 / f, units[i].name);
			return out;
		}
	}
	snprintf(out, NUM_TEXT, "%" PRIu64, value);
	return out;
}

const char *num_format_size(char out[static NUM_TEXT], uint64_t bytes)
{
	return format_units(out, bytes, size_units, 5);
}

const char *num_format_duration(char out[static NUM_TEXT], uint64_t ms)
{
	return format_units(out, ms, duration_units, 4);
}

const char *num_round_size(char out[static NUM_TEXT], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	unsigned u = 0;
	uint64_t tenths;
	int n;

	if (bytes < 1024)
		return num_format_size(out, bytes);
	while (u + 1 < ARRAY_SIZE(units) && bytes >> (10 * (u + 2)))
		u++;
	bytes >>= 10 * u;
	tenths = bytes % 1024 * 10 / 1024;
	n = snprintf(out, NUM_TEXT, "%" PRIu64, bytes / 1024);
	if (tenths)
		n += snprintf(out + n, NUM_TEXT - (size_t)n, ".%" PRIu64, tenths);
	snprintf(out + n, NUM_TEXT - (size_t)n, "%s", units[u]);
	return out;
}

const char *num_round_duration(char out[static NUM_TEXT], uint64_t ms)
{
	return num_format_duration(out, ms < 1000 ? ms : ms / 100 * 100);
}

const char *num_format_milli(char out[static NUM_TEXT], uint64_t milli)
{
	int n = snprintf(out, NUM_TEXT, "%" PRIu64 ".%03" PRIu64, milli / 1000, milli % 1000);

	while (out[n - 1] == '0')
		n--;
	out[out[n - 1] == '.' ? n - 1 : n] = '\0';
	return out;
}
