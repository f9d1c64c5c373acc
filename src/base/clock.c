/* Time: see clock.h. */
#include "clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"

uint64_t clock_mono_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

#define NS_PER_S 1000000000

int64_t clock_ns_of(const struct timespec *t)
{
	/* What a file system makes up may be any number. */
	return (int64_t)((uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec);
}

void clock_mtime_of(int64_t ns, struct timespec ret[static 2])
{
	int64_t s = ns / NS_PER_S, rest = ns % NS_PER_S;

	if (rest < 0) {
		rest += NS_PER_S;
		s--;
	}
	ret[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	ret[1] = (struct timespec){.tv_sec = s, .tv_nsec = rest};
}

const char *clock_wall_text(char out[static CLOCK_TEXT])
{
	struct timespec t;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(out, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + 19, CLOCK_TEXT - 19, ".%06uZ", (unsigned)(t.tv_nsec / 1000) % 1000000u);
	return out;
}

static bool parse_time(const char *text, struct tm *ret)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t t;

	if (!end || (*end != '.' && *end != 'Z'))
		return false;
	t = timegm(&tm);
	return localtime_r(&t, ret) != NULL;
}

const char *clock_local_text(const char *time, char out[static CLOCK_LOCAL])
{
	struct tm tm;

	if (time && parse_time(time, &tm))
		strftime(out, CLOCK_LOCAL, "%Y-%m-%d %H:%M:%S", &tm);
	else
		str_escape_into(out, CLOCK_LOCAL, time ? time : "", time ? strlen(time) : 0);
	return out;
}
