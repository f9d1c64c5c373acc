/* The index: see index.h.
 *
 * Runs in `pale audit`, never in a supervisor. What it reads are logs (altered ones too); what it
 * writes is only its own database. Several commands may use it at once: the update is one immediate
 * transaction with a busy timeout; a rollback journal, since a log beside one reader and one short
 * writer gains nothing. synchronous=off: after a power cut it is at worst damaged, and then made
 * anew. */
#include "index.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/events.h"
#include "audit/lines.h"
#include "audit/state.h"
#include "audit/summary.h"
#include "base/clock.h"

#define STAGE	"audit"
#define VERSION 3

static const char schema[] =
	"CREATE TABLE run(id TEXT PRIMARY KEY, ino INTEGER, size INTEGER, mtime INTEGER, started "
	"TEXT,"
	" ended TEXT, outcome TEXT, status INTEGER, wall_ms INTEGER, blocked INTEGER, limits "
	"INTEGER,"
	" errors INTEGER, lines INTEGER, command TEXT, policy TEXT, user TEXT, damaged TEXT,"
	" unapplied INTEGER, session TEXT) WITHOUT ROWID;"
	"CREATE TABLE event(run TEXT, name TEXT, n INTEGER, PRIMARY KEY(run, name)) WITHOUT ROWID;"
	"CREATE INDEX event_name ON event(name);"
	"CREATE INDEX run_started ON run(started);";

struct audit_index {
	struct audit_state state;
	sqlite3 *db;
	char path[4200];
};

void audit_index_free(struct audit_index *ix)
{
	if (!ix)
		return;
	sqlite3_close_v2(ix->db);
	audit_state_done(&ix->state);
	free(ix);
}

static void index_done(struct audit_index **ix)
{
	audit_index_free(*ix);
}

static void finalize(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}
#define _cleanup_stmt_ _cleanup_(finalize)

static int run_sql(struct audit_index *ix, const char *sql)
{
	return sqlite3_exec(ix->db, sql, NULL, NULL, NULL);
}

/* What means "this file is no index of ours" rather than "not now". */
static bool damaged(int rc)
{
	rc &= 0xff;
	return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_ERROR ||
	       rc == SQLITE_CONSTRAINT || rc == SQLITE_SCHEMA || rc == SQLITE_MISMATCH;
}

static int open_db(struct audit_index *ix)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	mode_t old = umask(077);
	int rc = sqlite3_open_v2(ix->path, &ix->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
				 NULL);

	umask(old);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_busy_timeout(ix->db, 10000);
	rc = run_sql(ix, "PRAGMA synchronous=OFF; PRAGMA trusted_schema=OFF; BEGIN IMMEDIATE");
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_prepare_v2(ix->db, "PRAGMA user_version", -1, &s, NULL);
	if (rc != SQLITE_OK || sqlite3_step(s) != SQLITE_ROW)
		return rc == SQLITE_OK ? SQLITE_CORRUPT : rc;
	int version = sqlite3_column_int(s, 0);

	if (version != 0 && version != VERSION)
		return SQLITE_SCHEMA;
	if (version == VERSION)
		return SQLITE_OK;
	sqlite3_finalize(take_ptr(s));
	rc = run_sql(ix, schema);
	if (rc != SQLITE_OK)
		return rc;
	char pragma[64];

	snprintf(pragma, sizeof(pragma), "PRAGMA user_version=%d", VERSION);
	return run_sql(ix, pragma);
}

static int bind_text(sqlite3_stmt *s, int at, const char *text)
{
	return text && *text ? sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT)
			     : sqlite3_bind_null(s, at);
}

static int store(struct audit_index *ix, const char *id, const struct stat *st,
		 const struct run_summary *r)
{
	_cleanup_stmt_ sqlite3_stmt *run = NULL, *event = NULL, *old = NULL;
	int rc = sqlite3_prepare_v2(ix->db, "DELETE FROM event WHERE run=?", -1, &old, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(ix->db,
					"INSERT OR REPLACE INTO run VALUES"
					"(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
					-1, &run, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(ix->db, "INSERT OR REPLACE INTO event VALUES(?,?,?)", -1,
					&event, NULL);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_text(old, 1, id, -1, SQLITE_STATIC);
	rc = sqlite3_step(old);
	if (rc != SQLITE_DONE)
		return rc;
	const int64_t numbers[] = {(int64_t)st->st_ino, st->st_size, clock_ns_of(&st->st_mtim)};

	bind_text(run, 1, id);
	for (int i = 0; i < 3; i++)
		sqlite3_bind_int64(run, 2 + i, numbers[i]);
	bind_text(run, 5, r->started);
	bind_text(run, 6, r->ended);
	bind_text(run, 7, r->outcome);
	sqlite3_bind_int64(run, 8, r->status);
	sqlite3_bind_int64(run, 9, r->wall_ms);
	sqlite3_bind_int64(run, 10, (int64_t)r->by_severity[AUDIT_BLOCKED]);
	sqlite3_bind_int64(run, 11, (int64_t)r->by_severity[AUDIT_LIMIT]);
	sqlite3_bind_int64(run, 12, (int64_t)r->by_severity[AUDIT_ERROR]);
	sqlite3_bind_int64(run, 13, (int64_t)r->lines);
	bind_text(run, 14, r->command);
	bind_text(run, 15, r->policy);
	bind_text(run, 16, r->user);
	bind_text(run, 17, r->damaged);
	sqlite3_bind_int(run, 18, r->unapplied);
	bind_text(run, 19, r->session);
	rc = sqlite3_step(run);
	for (size_t i = 0; rc == SQLITE_DONE && i < r->nevents; i++) {
		sqlite3_reset(event);
		bind_text(event, 1, id);
		bind_text(event, 2, r->events[i].name);
		sqlite3_bind_int64(event, 3, (int64_t)r->events[i].n);
		rc = sqlite3_step(event);
	}
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Whether the index has this run as the file is now. */
static int known(sqlite3_stmt *s, const char *id, const struct stat *st, bool *ret)
{
	sqlite3_reset(s);
	sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
	int rc = sqlite3_step(s);

	*ret = rc == SQLITE_ROW && sqlite3_column_int64(s, 0) == (int64_t)st->st_ino &&
	       sqlite3_column_int64(s, 1) == st->st_size &&
	       sqlite3_column_int64(s, 2) == clock_ns_of(&st->st_mtim);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int forget_missing(struct audit_index *ix, char (*ids)[AUDIT_ID_SIZE], size_t n)
{
	_cleanup_stmt_ sqlite3_stmt *add = NULL;
	int rc = run_sql(ix, "CREATE TEMP TABLE here(id TEXT PRIMARY KEY) WITHOUT ROWID");

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(ix->db, "INSERT INTO here VALUES(?)", -1, &add, NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		sqlite3_reset(add);
		sqlite3_bind_text(add, 1, ids[i], -1, SQLITE_STATIC);
		rc = sqlite3_step(add) == SQLITE_DONE ? SQLITE_OK : SQLITE_CORRUPT;
	}
	if (rc == SQLITE_OK)
		rc = run_sql(ix, "DELETE FROM run WHERE id NOT IN (SELECT id FROM here);"
				 "DELETE FROM event WHERE run NOT IN (SELECT id FROM here);"
				 "DROP TABLE here");
	return rc;
}

/* SQLITE_OK or an SQLite code; *ret is another failure (then err is set). */
static int update(struct audit_index *ix, int *ret, struct pale_err *err)
{
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	_cleanup_stmt_ sqlite3_stmt *find = NULL;
	size_t n = 0, found = 0;
	int rc;

	*ret = audit_state_list(&ix->state, &ids, &n, err);
	if (*ret < 0)
		return SQLITE_OK;
	rc = sqlite3_prepare_v2(ix->db, "SELECT ino,size,mtime FROM run WHERE id=?", -1, &find,
				NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		_cleanup_close_ int log = -1;
		char path[AUDIT_ID_SIZE + 16];
		struct run_summary r;
		struct stat st;
		bool same = false;

		snprintf(path, sizeof(path), "%s/" AUDIT_LOG_NAME, ids[i]);
		if (fstatat(ix->state.runs, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		memcpy(ids[found++], ids[i], AUDIT_ID_SIZE);
		rc = known(find, ids[found - 1], &st, &same);
		if (rc != SQLITE_OK || same)
			continue;
		if (audit_state_run(&ix->state, ids[found - 1], O_RDONLY, NULL, &log, NULL) < 0)
			continue;
		*ret = run_summarize(log, &r, err);
		if (*ret < 0)
			return SQLITE_OK;
		rc = store(ix, ids[found - 1], &st, &r);
		run_summary_done(&r);
	}
	sqlite3_finalize(take_ptr(find));
	return rc == SQLITE_OK ? forget_missing(ix, ids, found) : rc;
}

int audit_index_open(bool rebuild, struct audit_index **ret, struct pale_err *err)
{
	_cleanup_(index_done) struct audit_index *ix = calloc(1, sizeof(*ix));
	int rc = SQLITE_OK, r;

	if (!ix)
		return err_nomem(err, STAGE);
	ix->state = AUDIT_STATE_NONE;
	r = audit_state_open(&ix->state, err);
	if (r < 0)
		return r;
	snprintf(ix->path, sizeof(ix->path), "%s/index.db", ix->state.path);
	for (int i = 0; i < 2; i++) {
		if (rebuild || i > 0) {
			unlinkat(ix->state.dir, "index.db", 0);
			unlinkat(ix->state.dir, "index.db-journal", 0);
		}
		rc = open_db(ix);
		if (rc == SQLITE_OK)
			rc = update(ix, &r, err);
		if (r < 0)
			return r;
		if (rc == SQLITE_OK)
			rc = run_sql(ix, "COMMIT");
		if (rc == SQLITE_OK) {
			*ret = take_ptr(ix);
			return 0;
		}
		err_set(err, PALE_E_AUDIT, STAGE, 0,
			"the index %s: %s; `pale audit reindex` makes it anew", ix->path,
			ix->db ? sqlite3_errmsg(ix->db) : sqlite3_errstr(rc));
		if (!damaged(rc))
			break;
		sqlite3_close_v2(ix->db);
		ix->db = NULL;
	}
	return -PALE_E_AUDIT;
}

static const char *text(sqlite3_stmt *s, int at)
{
	return (const char *)sqlite3_column_text(s, at);
}

int audit_index_query(struct audit_index *ix, const struct audit_filter *f, audit_row_fn *fn,
		      void *arg, struct pale_err *err)
{
	static const char sql[] =
		"SELECT "
		"id,started,ended,outcome,command,policy,user,damaged,status,wall_ms,blocked,"
		"limits,errors,lines,size,unapplied,session FROM run WHERE (?1 IS NULL OR "
		"started>=?1)"
		" AND (?2 IS NULL OR session=?2)"
		" AND (?3 IS NULL OR EXISTS(SELECT 1 FROM event WHERE run=id AND name=?3))"
		" ORDER BY id DESC";
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	size_t given = 0;
	int rc = sqlite3_prepare_v2(ix->db, sql, -1, &s, NULL);

	if (rc == SQLITE_OK) {
		bind_text(s, 1, f->since);
		bind_text(s, 2, f->session);
		bind_text(s, 3, f->event);
	}
	while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW && text(s, 0)) {
		struct audit_row row = {
			.id = text(s, 0),
			.started = text(s, 1),
			.ended = text(s, 2),
			.outcome = text(s, 3),
			.command = text(s, 4),
			.policy = text(s, 5),
			.user = text(s, 6),
			.damaged = text(s, 7),
			.status = sqlite3_column_int64(s, 8),
			.wall_ms = sqlite3_column_int64(s, 9),
			.blocked = (uint64_t)sqlite3_column_int64(s, 10),
			.limits = (uint64_t)sqlite3_column_int64(s, 11),
			.errors = (uint64_t)sqlite3_column_int64(s, 12),
			.lines = (uint64_t)sqlite3_column_int64(s, 13),
			.bytes = (uint64_t)sqlite3_column_int64(s, 14),
			.unapplied = sqlite3_column_int(s, 15) != 0,
			.session = text(s, 16),
		};

		if (!row.outcome) {
			/* Whether it lives is not in the log. */
			_cleanup_close_ int log = -1;
			struct stat st;

			if (audit_state_run(&ix->state, row.id, O_RDONLY, NULL, &log, NULL) == 0)
				row.live = audit_locked(log);
			row.lost = !row.live;
			row.outcome =
				row.live ? "running"
				: fstatat(ix->state.active, row.id, &st, AT_SYMLINK_NOFOLLOW) == 0
					? "lost"
					: "altered";
		}
		if (f->outcome && strcmp(f->outcome, row.outcome) != 0) {
			rc = SQLITE_OK;
			continue;
		}
		int r = fn(arg, &row);

		if (r)
			return r;
		if (f->limit && ++given >= f->limit)
			return 0;
		rc = SQLITE_OK;
	}
	if (rc != SQLITE_DONE)
		return err_set(err, PALE_E_AUDIT, STAGE, 0, "reading the index: %s",
			       sqlite3_errmsg(ix->db));
	return 0;
}
