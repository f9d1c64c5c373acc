/* Checking a log: see verify.h. Everything in the file is hostile: it may have been written by
 * whoever wants it to look whole. Memory is bounded by two lines. */
#include "verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/events.h"
#include "audit/lines.h"
#include "audit/state.h"
#include "base/num.h"
#include "base/str.h"

#define STAGE "audit"

struct look {
	const char *id;
	struct chain_head head; /* of the last line that holds */
	struct audit_verdict *v;
};

static void broken(struct audit_verdict *v, uint64_t line, const char *fmt, ...) _printf_(3, 4);
static void broken(struct audit_verdict *v, uint64_t line, const char *fmt, ...)
{
	va_list ap;

	v->state = AUDIT_LOG_BROKEN;
	v->bad_line = line;
	va_start(ap, fmt);
	vsnprintf(v->what, sizeof(v->what), fmt, ap);
	va_end(ap);
}

/* Why line does not follow; next (may be without object) is the one behind it and tells which of
 * the neighbours is the altered one. */
static void explain(struct look *k, const struct chain_line *line, const char *line_hash,
		    const struct chain_line *next, const struct audit_seal *seal)
{
	uint64_t number = k->head.seq + 1;
	bool intact = next->object ? strcmp(next->prev, line_hash) == 0
				   : seal->present && seal->lines == number &&
					     strcmp(seal->head, line_hash) == 0;

	if (strcmp(line->run, k->id) != 0) {
		broken(k->v, number, "line %lu belongs to run %s", number, QUOTED(line->run));
	} else if (line->seq == number + 1 && next->object && next->seq == number) {
		broken(k->v, number, "lines %lu and %lu were swapped", number, number + 1);
	} else if (line->seq > number) {
		broken(k->v, number, "%lu line%s removed before line %lu (number %lu%s)",
		       line->seq - number, line->seq - number == 1 ? " was" : "s were", number,
		       number, line->seq - number == 1 ? "" : " and what follows");
	} else if (line->seq < number) {
		broken(k->v, number,
		       "line %lu has the number %lu again: a line was inserted or repeated", number,
		       line->seq);
	} else if (next->object && next->seq == number && strcmp(next->prev, k->head.hash) == 0) {
		broken(k->v, number, "line %lu was inserted", number);
	} else if (number == 1) {
		broken(k->v, 1, "line 1 does not begin the chain of this run: it was changed");
	} else if (intact) {
		broken(k->v, number - 1,
		       "line %lu was changed: its hash is not the one in line %lu", number - 1,
		       number);
	} else if (next->object) {
		broken(k->v, number, "line %lu was changed: it fits neither neighbour", number);
	} else {
		broken(k->v, number, "line %lu or line %lu was changed: the hash does not fit",
		       number - 1, number);
	}
}

/* What may not be in an order that the writer never produces. */
static bool order_holds(struct look *k, const struct chain_line *line)
{
	const struct audit_event *e = audit_event_find(line->event);
	unsigned flags = e ? e->flags : 0;

	if (k->v->end_line && !(flags & AUDIT_F_AFTER_END)) {
		broken(k->v, line->seq, "line %lu: %s cannot follow the end of the run", line->seq,
		       QUOTED(line->event));
		return false;
	}
	if (flags & AUDIT_F_END)
		k->v->end_line = line->seq;
	return true;
}

/* Follows the chain to its end or its first break. */
static int follow(struct look *k, struct log_lines *lines, const char *want_head,
		  const struct audit_seal *seal)
{
	struct audit_verdict *v = k->v;
	char hash[AUDIT_HASH_SIZE];
	const char *text;
	size_t len;
	int r;

	while ((r = log_next(lines, &text, &len)) > 0) {
		_cleanup_line_ struct chain_line line = {0}, next = {0};
		const char *why = chain_parse(text, len, &line);

		if (why) {
			broken(v, k->head.seq + 1, "line %lu is no line of a log: %s",
			       k->head.seq + 1, why);
			return 0;
		}
		chain_hash(text, len, hash);
		if (line.seq != k->head.seq + 1 || strcmp(line.run, k->id) != 0 ||
		    strcmp(line.prev, k->head.hash) != 0) {
			if (log_next(lines, &text, &len) > 0)
				(void)chain_parse(text, len, &next);
			explain(k, &line, hash, &next, seal);
			return 0;
		}
		if (!order_holds(k, &line))
			return 0;
		k->head.seq = line.seq;
		memcpy(k->head.hash, hash, sizeof(hash));
		v->lines = line.seq;
		if (want_head && strcmp(want_head, hash) == 0)
			v->head_line = line.seq;
		if (seal->present && seal->lines == line.seq && strcmp(seal->head, hash) != 0) {
			broken(v, line.seq,
			       "line %lu was changed: its hash is not the one in the seal",
			       line.seq);
			return 0;
		}
	}
	if (r == -ENOSPC)
		broken(v, k->head.seq + 1, "line %lu is longer than any line that Pale writes",
		       k->head.seq + 1);
	return r == -ENOSPC ? 0 : r;
}

int audit_verify_fd(const char *id, int fd, const struct audit_seal *seal, const char *want_head,
		    enum audit_state_of_log unfinished, struct audit_verdict *ret,
		    struct pale_err *err)
{
	_cleanup_log_lines_ struct log_lines lines = LOG_LINES(fd);
	struct look k = {.id = id, .v = ret};

	*ret = (struct audit_verdict){.state = AUDIT_LOG_SEALED};
	chain_genesis(id, k.head.hash);
	int r = follow(&k, &lines, want_head, seal);

	if (r == -ENOMEM)
		return err_nomem(err, STAGE);
	if (r < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -r, "reading the log of run %s", id);
	memcpy(ret->head, k.head.hash, sizeof(ret->head));
	if (ret->state == AUDIT_LOG_BROKEN)
		return 0;
	if (!ret->end_line && unfinished != AUDIT_LOG_SEALED)
		ret->state = unfinished;
	if (log_rest(&lines) && ret->state == AUDIT_LOG_SEALED)
		broken(ret, ret->lines + 1,
		       "line %lu is not complete: the log was cut off or altered", ret->lines + 1);
	else if (!ret->end_line && unfinished == AUDIT_LOG_SEALED)
		broken(ret, ret->lines + 1,
		       "the log stops after line %lu without box.end, and nobody is writing it: "
		       "its end "
		       "was removed",
		       ret->lines);
	else if (ret->state == AUDIT_LOG_SEALED && !seal->present)
		broken(ret, ret->lines,
		       "the seal is missing: removed, or lost in a power cut; whether lines after "
		       "line "
		       "%lu were removed cannot be told",
		       ret->lines);
	else if (ret->state == AUDIT_LOG_SEALED && seal->lines > ret->lines)
		broken(ret, ret->lines + 1, "%lu line%s removed at the end: the seal counts %lu",
		       seal->lines - ret->lines, seal->lines - ret->lines == 1 ? " was" : "s were",
		       seal->lines);
	else if (ret->state == AUDIT_LOG_SEALED && seal->lines < ret->lines &&
		 unfinished == AUDIT_LOG_SEALED)
		broken(ret, seal->lines + 1,
		       "%lu line%s added after the seal (or a command that continued the log was "
		       "killed)",
		       ret->lines - seal->lines, ret->lines - seal->lines == 1 ? " was" : "s were");
	else if (want_head && !ret->head_line)
		broken(ret, 0,
		       "no line has the hash that was given: the log was rewritten or cut off");
	return 0;
}

static void read_seal(int dir, struct audit_seal *ret)
{
	char text[128], *space;
	_cleanup_close_ int fd =
		openat(dir, "head", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	*ret = (struct audit_seal){0};
	if (n <= 0)
		return;
	text[n] = '\0';
	space = strchr(text, ' ');
	if (!space || strlen(space + 1) != AUDIT_HASH_SIZE || space[AUDIT_HASH_SIZE] != '\n')
		return;
	*space = '\0';
	memcpy(ret->head, space + 1, AUDIT_HASH_SIZE - 1);
	ret->present = num_parse_u64(text, INT64_MAX, &ret->lines) == 0;
}

static bool is_empty(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	bool empty = d != NULL;

	for (struct dirent *e; d && (e = readdir(d));)
		empty &= strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
	if (d)
		closedir(d);
	else
		close_fd(&copy);
	return empty;
}

int audit_verify(const char *id, const char *want_head, struct audit_verdict *ret,
		 struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_close_ int dir = -1, log = -1;
	enum audit_state_of_log unfinished = AUDIT_LOG_SEALED;
	struct audit_seal seal;
	struct stat st;
	int r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	/* A supervisor that was killed between its first two steps leaves an empty directory:
	 * nothing ran. */
	r = audit_state_run(&s, id, O_RDONLY, &dir, NULL, err);
	if (r == 0 && is_empty(dir)) {
		*ret = (struct audit_verdict){.state = AUDIT_LOG_LOST};
		return 0;
	}
	if (r == 0)
		r = audit_state_run(&s, id, O_RDONLY, NULL, &log, err);
	if (r < 0)
		return r;
	if (audit_locked(log))
		unfinished = AUDIT_LOG_LIVE;
	else if (fstatat(s.active, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		unfinished = AUDIT_LOG_LOST;
	read_seal(dir, &seal);
	return audit_verify_fd(id, log, &seal, want_head, unfinished, ret, err);
}
