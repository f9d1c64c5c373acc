/* The one step of an apply that is under way, kept in changes/<n>/journal, so that a killed apply
 * can be cleaned up exactly. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "files/manifest.h"

struct journal {
	int fd;
	size_t written; /* of the longest record, which a shorter one must cover */
};

enum journal_state {
	JOURNAL_IDLE,
	JOURNAL_MAKING,	  /* what has the temporary name is ours */
	JOURNAL_SWAPPING, /* it is ours if its inode is `ino`, else the host's, on its way out */
};

struct journal_record {
	enum journal_state state;
	char *path;	 /* the entry's */
	char *temporary; /* the temporary name, in the same directory */
	uint64_t ino;
};

int journal_open(int changes_fd, struct journal *ret, struct pale_err *err) _must_check_;
void journal_close(struct journal *j);

/* 0 or a negative errno. */
int journal_write(struct journal *j, enum journal_state state, const char *path,
		  const char *temporary, uint64_t ino) _must_check_;

/* What the last apply was at: state is JOURNAL_IDLE if nothing, or if no sense can be made of it.
 */
int journal_read(const struct journal *j, struct journal_record *ret) _must_check_;
void journal_record_done(struct journal_record *r);
