/* The policies: see policy.h. In the caller's process; trusted. */
#include "policy.h"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "base/num.h"
#include "base/str.h"

#define STAGE	    "verify"
#define MIB	    ((uint64_t)1 << 20)
#define CONNECTIONS 32

enum unit { COUNT, BYTES, MS, MILLI };

/* Each limit: what the attacks on other things need at least, and the most that is exceeded in a
 * few seconds. 0: any. */
static const struct limit_row {
	const char *name;
	size_t offset;
	enum unit unit;
	uint64_t room, most;
} rows[] = {
#define AT(field) offsetof(struct policy_limits, field)
	{"wall", AT(wall_ms), MS, 120000, 1500},
	{"cpu", AT(cpu_ms), MS, 60000, 300},
	{"cpus", AT(cpus_milli), MILLI, 0, 0},
	{"memory", AT(memory_bytes), BYTES, 320 * MIB, 1024 * MIB},
	{"processes", AT(processes), COUNT, 64, 512},
	{"open_files", AT(open_files), COUNT, 256, 20000},
	{"file_size", AT(file_size_bytes), BYTES, 64 * MIB, 0},
	{"disk", AT(disk_bytes), BYTES, 64 * MIB, 512 * MIB},
	{"inodes", AT(inodes), COUNT, 4096, 70000},
	{"output", AT(output_bytes), BYTES, 1 * MIB, 4 * MIB},
	{"output_total", AT(output_total_bytes), BYTES, 16 * MIB, 256 * MIB},
#undef AT
};

static uint64_t *at(struct pale_policy *p, const struct limit_row *row)
{
	return (uint64_t *)(void *)((char *)&p->model->limits + row->offset);
}

static const struct limit_row *find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
			return &rows[i];
	return NULL;
}

static int replace(char **text, const char *dir, const char *name, size_t i)
{
	char *other;

	if (asprintf(&other, "%s%s-%zu", dir, name, i) < 0)
		return -1;
	free(*text);
	*text = other;
	return 0;
}

/* Nothing that the caller has is written, published or handed over. */
static int spare_the_caller(struct policy *p, const char *dir)
{
	for (size_t i = 0; i < p->nfiles; i++)
		if (p->files[i].collect &&
		    (replace(&p->files[i].collect, dir, "/collect", i) < 0 ||
		     (mkdir(p->files[i].collect, 0700) < 0 && errno != EEXIST)))
			return -1;
	for (size_t i = 0; i < p->network.npublish; i++) {
		free(p->network.publish[i].path);
		p->network.publish[i].path = NULL;
		p->network.publish[i].host_port = 0;
	}
	for (size_t i = 0; i < p->network.nsecrets; i++) {
		free(p->network.secrets[i].value_from);
		if (asprintf(&p->network.secrets[i].value_from, "file:%s/host/secret", dir) < 0) {
			p->network.secrets[i].value_from = NULL;
			return -1;
		}
	}
	return 0;
}

static int add_files(struct pale_policy *p, const char *dir, struct pale_err *err)
{
	char path[600];
	int r;

	snprintf(path, sizeof(path), "%s/host/shown/read", dir);
	r = pale_policy_read(p, path, VERIFY_READ, err);
	if (r == 0)
		r = pale_policy_hide(p, VERIFY_READ "/hidden", err);
	snprintf(path, sizeof(path), "%s/host/shown/overlay", dir);
	if (r == 0)
		r = pale_policy_overlay(p, path, VERIFY_OVERLAY, err);
	snprintf(path, sizeof(path), "%s/host/shown/collected", dir);
	return r < 0 ? r : pale_policy_write(p, VERIFY_COLLECT, path, 1 * MIB, err);
}

int verify_policy(const struct pale_policy *given, const char *program, const char *dir, bool files,
		  struct pale_policy **ret, struct pale_err *err)
{
	struct pale_policy *p;
	int r = pale_policy_copy(&p, given, err);

	if (r < 0)
		return r;
	pale_policy_origin(p, "pale verify");
	if (spare_the_caller(p->model, dir) < 0)
		r = err_nomem(err, STAGE);
	/* What is below /usr is there anyway, unless the image is another. */
	if (r == 0 && (!str_starts(program, "/usr/") || strcmp(p->model->image, "host") != 0))
		r = pale_policy_read(p, program, program, err);
	if (r == 0 && files)
		r = add_files(p, dir, err);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (*at(p, &rows[i]) < rows[i].room)
			*at(p, &rows[i]) = rows[i].room;
	if (r < 0)
		pale_policy_free(p);
	else
		*ret = p;
	return r;
}

static const char *text_of(enum unit unit, uint64_t value, char out[static NUM_TEXT])
{
	switch (unit) {
	case BYTES: return num_format_size(out, value);
	case MS: return num_format_duration(out, value);
	case MILLI: return num_format_milli(out, value);
	case COUNT: break;
	}
	snprintf(out, NUM_TEXT, "%llu", (unsigned long long)value);
	return out;
}

/* Half of what the host has left, so that a limit that does not hold does no harm. */
static uint64_t half_of_memory(void)
{
	_cleanup_file_ FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	return kib * 1024 / 2;
}

/* To use more there must be more: cpus_spin takes at most 16, and calls it more from 1.2 times the
 * limit and 0.05 on. A tenth of what there is may be others'. In thousandths, as all of it. */
static uint64_t most_processors(void)
{
	long host = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof(ours), &ours) == 0 && CPU_COUNT(&ours) < host)
		host = CPU_COUNT(&ours);
	host = host > 16 ? 16 : host;
	return ((uint64_t)host * 900 - 150) * 10 / 13 / 100 * 100;
}

static uint64_t bound(const struct limit_row *row, uint64_t given, bool quota)
{
	uint64_t value = row->most && given > row->most ? row->most : given;

	if (row->unit == BYTES && row->most && half_of_memory() && value > half_of_memory())
		value = half_of_memory();
	/* A busy machine, too, leaves more than a tenth of a processor to be had. */
	if (row->unit == MILLI && value > (quota ? 100 : most_processors()))
		value = quota ? 100 : most_processors();
	return value;
}

/* "limits.memory=64MiB limits.disk=256MiB": no more than that. */
static int apply_set(struct attempt *a, struct pale_policy *p, struct pale_err *err)
{
	const char *s = a->set;

	while (s && *s) {
		const char *name = s + strlen("limits."), *end = s + strcspn(s, " "),
			   *equal = strchr(s, '=');
		const struct limit_row *row = str_starts(s, "limits.") && equal && equal < end
						      ? find(name, (size_t)(equal - name))
						      : NULL;
		char text[64];
		uint64_t value = 0;
		int r;

		snprintf(text, sizeof(text), "%.*s", equal ? (int)(end - equal - 1) : 0,
			 equal ? equal + 1 : "");
		r = !row		 ? -EINVAL
		    : row->unit == BYTES ? num_parse_size(text, &value)
					 : num_parse_u64(text, UINT64_MAX, &value);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, 0,
				       "the attack %s is not for this version", a->name);
		if (strcmp(row->name, a->limit) != 0 || *at(p, row) > value)
			*at(p, row) = value;
		s = end + strspn(end, " ");
	}
	return 0;
}

int verify_limit(const struct pale_policy *given, struct attempt *a, bool quota,
		 struct pale_policy *p, uint64_t *ret_max, struct pale_err *err)
{
	const struct limit_row *row = find(a->limit, strlen(a->limit));
	char text[NUM_TEXT];
	uint64_t mine, theirs;
	int r;

	if (!row)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "there is no limit %s", a->limit);
	theirs = *(const uint64_t *)(const void *)((const char *)&given->model->limits +
						   row->offset);
	*at(p, row) = bound(row, theirs, quota);
	r = apply_set(a, p, err);
	if (r < 0)
		return r;
	mine = *at(p, row);
	/* What is written counts as memory, and is not to meet that limit first. */
	if (strcmp(row->name, "disk") == 0 && p->model->limits.memory_bytes < mine + 128 * MIB)
		p->model->limits.memory_bytes = mine + 128 * MIB;
	if (mine != theirs)
		snprintf(a->lowered, sizeof(a->lowered), "limits.%s=%s", row->name,
			 text_of(row->unit, mine, text));
	*ret_max = mine;
	return 0;
}

uint64_t verify_connections(struct attempt *a, struct pale_policy *p)
{
	uint64_t *n = &p->model->network.connections;

	if (*n > CONNECTIONS) {
		*n = CONNECTIONS;
		snprintf(a->lowered, sizeof(a->lowered), "network.connections=%d", CONNECTIONS);
	}
	return *n;
}
