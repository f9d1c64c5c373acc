/* Cuts /proc/meminfo, cpuinfo and stat down to a box's limits, so that free, nproc, os.cpu_count(),
 * psutil and the runtimes that size their heaps and thread pools by them see the box, not the host.
 *
 * Runs in the supervisor while it plans; the texts are the host kernel's and trusted. The results
 * are files that are bound over the ones in the box's /proc: they stand still. What changes by the
 * moment and tells of the host (load, interrupts, page cache, neighbours' memory) is zero in them.
 */
#include "view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

unsigned view_cpus(uint64_t cpus_milli, unsigned host_cpus)
{
	uint64_t n = cpus_milli / 1000 + (cpus_milli % 1000 != 0);

	if (host_cpus == 0)
		host_cpus = 1;
	return cpus_milli == 0 || n > host_cpus ? host_cpus : (unsigned)n;
}

int view_cpu_list(struct buf *out, unsigned cpus)
{
	return cpus > 1 ? buf_addf(out, "0-%u\n", cpus - 1) : buf_adds(out, "0\n");
}

/* The next line without its newline; *at moves on. Its length, or -1 at the end. */
static ssize_t next_line(const char **at, const char **ret)
{
	size_t n;

	if (!**at)
		return -1;
	n = strcspn(*at, "\n");
	*ret = *at;
	*at += n + ((*at)[n] == '\n');
	return (ssize_t)n;
}

/* The line's key, up to the colon and the blanks before it. */
static bool is_key(const char *line, size_t len, const char *key)
{
	size_t n = strlen(key);

	if (len <= n || strncmp(line, key, n) != 0)
		return false;
	while (n < len && (line[n] == ' ' || line[n] == '\t'))
		n++;
	return n < len && line[n] == ':';
}

int view_meminfo(struct buf *out, const char *host, uint64_t memory_bytes)
{
	/* All of it. */
	static const char *const total[] = {"MemTotal", "MemFree", "MemAvailable", "CommitLimit"};
	/* Of the machine, not of what it does. */
	static const char *const kept[] = {"VmallocTotal", "Hugepagesize"};
	uint64_t kib = memory_bytes / 1024;
	const char *at = host, *line;
	ssize_t len;

	while ((len = next_line(&at, &line)) >= 0) {
		size_t n = (size_t)len, key = strcspn(line, ":");
		bool is_total = false, is_kept = false;

		if (is_key(line, n, "MemTotal")) {
			uint64_t have = strtoull(line + key + 1, NULL, 10);

			if (kib == 0 || kib > have)
				kib = have;
		}
		for (size_t i = 0; i < ARRAY_SIZE(total); i++)
			is_total |= is_key(line, n, total[i]);
		for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
			is_kept |= is_key(line, n, kept[i]);
		if (key >= n)
			continue;
		/* The kernel's columns: key and colon in 16, the number to the right in 8. */
		if (is_total)
			buf_addf(out, "%.*s:%*s%8" PRIu64 " kB\n", (int)key, line,
				 key < 15 ? 15 - (int)key : 0, "", kib);
		else if (is_kept)
			buf_addf(out, "%.*s\n", (int)n, line);
		else
			buf_addf(out, "%.*s:%*s%8d%s\n", (int)key, line,
				 key < 15 ? 15 - (int)key : 0, "", 0,
				 n > 3 && strncmp(line + n - 3, " kB", 3) == 0 ? " kB" : "");
	}
	return out->failed ? -ENOSPC : 0;
}

int view_cpuinfo(struct buf *out, const char *host, unsigned cpus)
{
	const char *at = host, *line;
	unsigned seen = 0;
	ssize_t len;

	while ((len = next_line(&at, &line)) >= 0) {
		size_t n = (size_t)len, key = strcspn(line, ":");

		if (is_key(line, n, "processor"))
			seen++;
		/* After the processors there may be lines on the machine ("Hardware" on ARM). */
		if (seen > cpus) {
			if (n == 0)
				seen = cpus;
			continue;
		}
		if (is_key(line, n, "processor"))
			buf_addf(out, "%.*s: %u\n", (int)key, line, seen - 1);
		else if (is_key(line, n, "siblings") || is_key(line, n, "cpu cores"))
			buf_addf(out, "%.*s: %u\n", (int)key, line, cpus);
		else if (is_key(line, n, "physical id"))
			buf_addf(out, "%.*s: 0\n", (int)key, line);
		else if (is_key(line, n, "core id") || is_key(line, n, "apicid") ||
			 is_key(line, n, "initial apicid"))
			buf_addf(out, "%.*s: %u\n", (int)key, line, seen ? seen - 1 : 0);
		else
			buf_addf(out, "%.*s\n", (int)n, line);
	}
	return out->failed ? -ENOSPC : 0;
}

#define STAT_FIELDS 10

int view_stat(struct buf *out, const char *host, unsigned cpus)
{
	uint64_t sum[STAT_FIELDS] = {0};
	_cleanup_buf_ struct buf lines = BUF_INIT(64 * 1024);
	const char *at = host, *line, *btime = NULL;
	size_t btime_len = 0;
	unsigned seen = 0;
	ssize_t len;

	while ((len = next_line(&at, &line)) >= 0) {
		if (strncmp(line, "btime ", 6) == 0) {
			btime = line;
			btime_len = (size_t)len;
		}
		if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9' || seen >= cpus)
			continue;
		char *end = (char *)line + strcspn(line, " ");

		buf_addf(&lines, "cpu%u", seen++);
		for (size_t i = 0; i < STAT_FIELDS && *end == ' '; i++) {
			uint64_t v = strtoull(end, &end, 10);

			sum[i] += v;
			buf_addf(&lines, " %" PRIu64, v);
		}
		buf_adds(&lines, "\n");
	}
	buf_adds(out, "cpu ");
	for (size_t i = 0; i < STAT_FIELDS; i++)
		buf_addf(out, " %" PRIu64, sum[i]);
	buf_addf(out, "\n%sintr 0\nctxt 0\n", lines.data ? lines.data : "");
	/* ps reckons the start of processes from it. */
	if (btime)
		buf_addf(out, "%.*s\n", (int)btime_len, btime);
	buf_adds(out, "processes 1\nprocs_running 1\nprocs_blocked 0\n"
		      "softirq 0 0 0 0 0 0 0 0 0 0 0\n");
	return out->failed || lines.failed ? -ENOSPC : 0;
}
