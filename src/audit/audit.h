/* The audit log: one append-only file of JSON lines a run, each line chained by SHA-256 to the one
 * before, outside the box, in the state directory:
 *
 *   $PALE_STATE_DIR, or /var/lib/pale for root, or $XDG_STATE_HOME/pale, or ~/.local/state/pale
 *     runs/<id>/audit.jsonl      the log; its supervisor holds a lock on it while it lives
 *     runs/<id>/...              what else a run leaves (changes of a workspace)
 *     index.db                   SQLite, rebuildable from the files; never touched by a run
 *
 * If the log cannot be written, nothing runs, and a run whose log fails half-way is ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"

#define AUDIT_ID_LEN  26                 /* time-ordered, unique: lower-case Crockford base32 (ULID) */
#define AUDIT_ID_SIZE (AUDIT_ID_LEN + 1)

struct audit; /* the writer: opaque, in the supervisor of the run */

/* Makes the run's directory and log and takes the lock. The directory's fd stays open for others. */
int audit_create(struct audit **ret, struct pale_err *err) _must_check_;
const char *audit_id(const struct audit *a);
int audit_dir_fd(const struct audit *a); /* borrowed: runs/<id>/ */
const char *audit_dir_path(const struct audit *a);

/* Appends one event: stage is a folder of src/ ("supervise"), event a dotted name ("box.start").
 * body (an object; its keys are merged into the line) is stolen, also on failure, and may be NULL.
 * Strings in body must be valid UTF-8: use audit_text() for hostile bytes. */
int audit_append(struct audit *a, const char *stage, const char *event, json_t *body,
		 struct pale_err *err) _must_check_;

/* Everything appended so far is on disk when this returns (fdatasync; the directory too, once). */
int audit_sync(struct audit *a, struct pale_err *err) _must_check_;

/* Closes the log. The caller has appended box.end; without it the run counts as lost. */
void audit_free(struct audit *a);

/* A JSON string of hostile bytes: invalid UTF-8 as \xNN text, cut at max bytes with "...". */
json_t *audit_text(const char *bytes, size_t len, size_t max);

/* The state directory, made if need be (0700). A descriptor, owned by the caller, or a negative code. */
int audit_state_dir(char *ret_path, size_t size, struct pale_err *err) _must_check_;

/* The lines most recently appended, in memory, so that a result can list them without reading back:
 * called for every appended event with the finished object (borrowed). NULL for none. */
typedef void audit_observer(void *arg, const json_t *event);
void audit_observe(struct audit *a, audit_observer *fn, void *arg);
