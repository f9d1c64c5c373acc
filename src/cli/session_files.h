/* Files of a session's box, over its door: for `pale session cp`. */
#pragma once

#include "base/buf.h"
#include "cli/session.h"

#define BOX_CHUNK 3145728 /* bytes in one request: in base64 they fit */

enum box_type { BOX_FILE, BOX_DIRECTORY, BOX_LINK, BOX_OTHER };

struct box_entry {
	enum box_type type;
	mode_t mode; /* permissions */
	uint64_t size;
	char *target; /* of a link, while box_list() calls; NULL: it is not known */
};

/* Paths are any bytes. Each returns 0 or a negative code. */

/* What is at the path, or, with follow, what it leads to. */
int box_stat(struct pale_session *s, const char *path, bool follow, struct box_entry *ret,
	     struct pale_err *err) _must_check_;
/* A piece of a file: *ret is for the caller to free. *ret_more: it goes on. */
int box_read(struct pale_session *s, const char *path, uint64_t offset, char **ret, size_t *ret_len,
	     bool *ret_more, struct pale_err *err) _must_check_;
/* first: the file is made, or emptied; else the piece is put at its end. */
int box_write(struct pale_session *s, const char *path, bool first, mode_t mode, const char *data,
	      size_t len, struct pale_err *err) _must_check_;
/* In the place of one that is there. */
int box_link(struct pale_session *s, const char *path, const char *target,
	     struct pale_err *err) _must_check_;
/* There may be such a directory already. */
int box_mkdir(struct pale_session *s, const char *path, mode_t mode,
	      struct pale_err *err) _must_check_;
/* Calls fn with each name in a directory, which is one: neither empty, nor "." or "..", nor with a
 * slash. fn returns other than 0 to stop, which is then returned. */
int box_list(struct pale_session *s, const char *path,
	     int (*fn)(void *arg, const char *name, const struct box_entry *entry), void *arg,
	     struct pale_err *err) _must_check_;
