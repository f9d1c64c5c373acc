/* What an apply has under way, kept in changes/<n>/journal, so that a killed one can be cleaned up
 * exactly. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum journal_state {
	JOURNAL_IDLE,
	JOURNAL_MAKING,	  /* what has a temporary name is ours */
	JOURNAL_SWAPPING, /* so it is, but for that of `entry`: ours if its inode is `ino`, else the
			     host's, on its way out */
};

/* Entry i of the manifest has the temporary name of the number start + i. */
struct journal_record {
	enum journal_state state;
	uint64_t start;	 /* random */
	size_t from, to; /* entries that may have one */
	size_t entry;
	uint64_t ino;
};

struct journal {
	int fd;
};

int journal_open(int changes_fd, struct journal *ret, struct pale_err *err) _must_check_;
void journal_close(struct journal *j);

/* 0 or a negative errno. */
int journal_write(struct journal *j, const struct journal_record *r) _must_check_;

/* JOURNAL_IDLE if there is nothing, or if no sense can be made of it. */
int journal_read(const struct journal *j, struct journal_record *ret) _must_check_;
