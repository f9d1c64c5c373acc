/* The audit log: one append-only file of JSON lines a run, each line chained by SHA-256 to the one
 * before, outside the box, in the state directory:
 *
 *   $PALE_STATE_DIR, or /var/lib/pale for root, or $XDG_STATE_HOME/pale, or ~/.local/state/pale
 *     runs/<id>/audit.jsonl      the log; its supervisor holds a lock on it while it lives
 *     runs/<id>/...              what else a run leaves (changes of a workspace)
 *     runs/<id>/head             the seal of an ended log: its number of lines, the last one's hash
 *     active/<id>                an empty file for each run that has no end in its log yet
 *     index.db                   SQLite, rebuildable from the files; never touched by a run
 *
 * If the log cannot be written, nothing runs, and a run whose log fails half-way is ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"

#define AUDIT_ID_LEN	26 /* time-ordered, unique: lower-case Crockford base32 (ULID) */
#define AUDIT_ID_SIZE	(AUDIT_ID_LEN + 1)
#define AUDIT_HASH_SIZE 65 /* SHA-256 as lower-case hexadecimal digits */
#define AUDIT_LOG_NAME	"audit.jsonl"

struct audit; /* the writer: opaque, in the supervisor of the run */

/* Makes the run's directory and log and takes the lock. The directory's fd stays open for others.
 */
int audit_create(struct audit **ret, struct pale_err *err) _must_check_;

/* Opens the log of a run that has ended, to continue it (`pale apply`): waits for the lock, checks
 * that the last line is whole and takes the chain up there. Only events that may follow box.end
 * (the table in events.c says which) can be appended. PALE_E_NOTFOUND: no such run;
 * PALE_E_CONFLICT: the run is still active; PALE_E_AUDIT: its log has no end or is damaged. */
int audit_reopen(const char *id, struct audit **ret, struct pale_err *err) _must_check_;

const char *audit_id(const struct audit *a);
int audit_dir_fd(const struct audit *a); /* borrowed: runs/<id>/ */
const char *audit_dir_path(const struct audit *a);

/* Appends one event: stage is a folder of src/ ("supervise"), event a dotted name ("box.start")
 * that events.c knows. body (an object; its keys are merged into the line) is stolen, also on
 * failure; NULL is what a body is for which there was no memory, and an error. It must not have the
 * keys seq, time, run, stage, event, prev. Strings in body must be valid UTF-8: use audit_text()
 * for hostile bytes. A body beyond the event's maximum is cut and marked ("cut": true), except
 * where the table demands the whole (box.start): then it is an error. After a failed write the
 * half-written line is taken back, so that the file stays whole and a later append (box.end) may
 * still succeed.
 */
int audit_append(struct audit *a, const char *stage, const char *event, json_t *body,
		 struct pale_err *err) _must_check_;

/* Everything appended so far is on disk when this returns (fdatasync; the directories too, once).
 */
int audit_sync(struct audit *a, struct pale_err *err) _must_check_;

/* The same in two parts, because it is nearly all waiting: a process that shares our memory calls
 * the disk, and the caller goes on until it needs to know. audit_append() and audit_free() wait for
 * what was begun, too. */
int audit_sync_begin(struct audit *a, struct pale_err *err) _must_check_;
int audit_sync_end(struct audit *a, struct pale_err *err) _must_check_;

/* The hash of the last line: whoever keeps it elsewhere can prove later that nothing was cut off or
 * rewritten (`pale audit verify --head HASH`). Changes with each append. */
const char *audit_head(const struct audit *a);

/* Closes the log. The caller has appended box.end; without it the run counts as lost. */
void audit_free(struct audit *a);

/* A JSON string of hostile bytes: invalid UTF-8 and NUL as \xNN text, cut at max bytes with "...".
 */
json_t *audit_text(const char *bytes, size_t len, size_t max);

/* The state directory, made if need be (0700). A descriptor, owned by the caller, or a negative
 * code. Refused if it is a symbolic link, belongs to another user, or others may write to it.
 * ret_path may be NULL. */
int audit_state_dir(char *ret_path, size_t size, struct pale_err *err) _must_check_;

/* The lines most recently appended, in memory, so that a result can list them without reading back:
 * called for every appended event with the finished object (borrowed). NULL for none. */
typedef void audit_observer(void *arg, const json_t *event);
void audit_observe(struct audit *a, audit_observer *fn, void *arg);

/* Finds and closes the runs whose supervisor was lost: no end in the log, lock free. For each, kill
 * is called (the lock is held; nothing else will touch the run), which must end and remove what is
 * left of it; if it fails, the run stays as it is for the next try. Then the log is closed with
 * box.lost and box.end. A torn last line (a crash or power cut in mid-write) is taken off the file
 * and kept in box.lost. Costs one directory listing and two calls for each live run; several
 * processes may do it at once. The number of runs closed, or a negative code. kill may be NULL. */
typedef int audit_kill_fn(void *arg, const char *id, struct pale_err *err);
int audit_recover(audit_kill_fn *kill, void *arg, struct pale_err *err) _must_check_;

/* The id that ref means: an id, a unique prefix of one, "last" or "@" (the newest), "@1" (the one
 * before it) and so on. PALE_E_NOTFOUND, or PALE_E_USAGE where several begin so. */
int audit_find(const char *ref, char ret_id[static AUDIT_ID_SIZE],
	       struct pale_err *err) _must_check_;

/* Calls fn with each event (borrowed) of a run's log in order until it returns other than 0, which
 * is then returned. The chain is not checked (audit/verify.h does); a line that is no event ends it
 * with PALE_E_AUDIT, but for an unfinished last line. */
typedef int audit_reader(void *arg, const json_t *event);
int audit_read(const char *id, audit_reader *fn, void *arg, struct pale_err *err) _must_check_;
