/* Ids of runs: see ulid.h. */
#include "ulid.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

int ulid_make(char out[static AUDIT_ID_SIZE])
{
	struct timespec now;
	uint8_t raw[16];
	ssize_t n;

	do
		n = getrandom(raw + 6, 10, 0);
	while (n < 0 && errno == EINTR);
	if (n != 10)
		return n < 0 ? -errno : -EIO;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;

	for (int i = 0; i < 6; i++)
		raw[i] = (uint8_t)(ms >> (40 - 8 * i));
	/* 128 bits in 26 digits of 5: the first digit holds the two bits that are left over as
	 * zero. */
	for (int i = 0; i < AUDIT_ID_LEN; i++) {
		unsigned v = 0;

		for (int b = i * 5 - 2; b < i * 5 + 3; b++)
			v = v << 1 | (b < 0 ? 0 : raw[b / 8] >> (7 - b % 8) & 1);
		out[i] = digits[v];
	}
	out[AUDIT_ID_LEN] = '\0';
	return 0;
}

bool ulid_valid(const char *s)
{
	return strlen(s) == AUDIT_ID_LEN && strspn(s, digits) == AUDIT_ID_LEN && s[0] <= '7';
}

uint64_t ulid_ms(const char *id)
{
	uint64_t ms = 0;

	for (int i = 0; i < 10; i++)
		ms = ms << 5 | (uint64_t)(strchr(digits, id[i]) - digits);
	return ms;
}

const char *ulid_time(const char *id, char out[static 40])
{
	uint64_t ms = ulid_ms(id);
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + 19, 40 - 19, ".%03uZ", (unsigned)(ms % 1000));
	return out;
}
