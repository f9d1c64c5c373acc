/* What one overlay changed: changes/<n>/ of a run, and its manifest.
 *
 *   meta.json       the overlaid directory, written by the supervisor: where, which, when
 *   manifest.jsonl  one line an entry, written by the confined child: hostile
 *   contents        the new contents of files, one after the other (sparse): never a file of its
 *                   own, never executable
 *
 * A line: {"path":"a/b" | "path_hex":"..", "kind":"added", "type":"file", "mode":420,
 * "mtime_ns":.., "size":.., "offset":.., "sha256":"..", "target":".." | "target_hex":"..",
 * "links":"first/path", "why":"..",
 * "base":{"type","mode","dev","ino","size","mtime_ns","ctime_ns"}} Parents stand before their
 * children; deletions are listed one by one, directories after what they held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "files/walk.h"

#define MANIFEST_LINE_MAX   ((size_t)6 * WALK_PATH_MAX + 65536)
#define MANIFEST_BYTES_MAX  ((uint64_t)512 << 20)
#define MANIFEST_TARGET_MAX 4096

enum change_kind {
	CHANGE_ADDED,	 /* was not there */
	CHANGE_MODIFIED, /* another content, target or type */
	CHANGE_MODE,	 /* other permission bits only */
	CHANGE_TOUCHED,	 /* another time only */
	CHANGE_DELETED,
	CHANGE_REFUSED, /* never applied: see why */
	CHANGE_KINDS
};

enum change_type { TYPE_NONE, TYPE_FILE, TYPE_DIR, TYPE_SYMLINK, TYPE_OTHER, TYPES };

extern const char *const change_kind_names[CHANGE_KINDS];
extern const char *const change_type_names[TYPES];

/* What lay on the host at that path when the changes were captured; type TYPE_NONE: nothing. */
struct change_base {
	enum change_type type;
	uint32_t mode;
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

struct change {
	char *path; /* relative, normalised, any byte but NUL */
	enum change_kind kind;
	enum change_type type; /* of what is new; of what is deleted */
	uint32_t mode;	       /* permission bits, with setuid and the like as the box left them */
	int64_t mtime_ns;
	uint64_t size;
	uint64_t offset; /* in contents */
	bool has_sha256;
	char sha256[65];
	char *target; /* of a symbolic link */
	char *links;  /* another entry with which it shared an inode in the box, or NULL */
	char *why;    /* refused: the reason */
	struct change_base base;
};

void change_done(struct change *c);

/* Appends the line of c, with its newline. 0 or a negative errno. */
int manifest_format(struct buf *b, const struct change *c) _must_check_;

/* Parses one line (without its newline). 0 or a negative code; ret is to be released with
 * change_done() in either case. */
int manifest_parse(const char *line, size_t len, struct change *ret,
		   struct pale_err *err) _must_check_;

enum change_type change_type_of(mode_t mode);
void change_base_from_stat(struct change_base *b, const struct stat *st);

struct manifest {
	struct change *entries;
	size_t count, cap;
	int contents_fd;

	/* From meta.json. */
	char *root; /* the overlaid directory on the host, absolute */
	char *path; /* where it was in the box */
	uint64_t root_dev, root_ino;
	int64_t started_ns;
};

/* Reads changes/<n>/ (dir_fd, borrowed). */
int manifest_load(int dir_fd, struct manifest *ret, struct pale_err *err) _must_check_;
void manifest_done(struct manifest *m);
#define _cleanup_manifest_ _cleanup_(manifest_done)

/* Writes meta.json. */
int manifest_write_meta(int dir_fd, const struct manifest *m, struct pale_err *err) _must_check_;

/* The entry of that path, or NULL. */
struct change *manifest_find(const struct manifest *m, const char *path);

/* Whether p may be a path in a manifest: relative, no empty component, no "." or "..", not too
 * long. */
bool manifest_path_ok(const char *p, size_t len);

/* The path or path_hex of an object, checked. 0 or a negative errno. */
struct json_t;
int manifest_get_path(const struct json_t *o, char **ret) _must_check_;

/* {"path": ..} or {"path_hex": ..} by whether it is UTF-8: the one encoding of hostile names. */
int manifest_format_bytes(struct buf *b, const char *key, const char *s, size_t len) _must_check_;
