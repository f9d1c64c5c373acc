/* What the files of the keeper share; for nobody else. */
#pragma once

#include "files/keeper_snapshot.h"

/* A path whose entries differ between two snapshots. */
struct keeper_change {
	unsigned place;
	const char *path;	      /* of one of the snapshots */
	const struct entry *was, *is; /* or NULL */
	uint8_t kind;  /* enum inside_change_kind; 0: nobody would call it a change */
	uint32_t mode; /* what is told of it */
	uint64_t size;
	int error; /* when it was to be brought back */
};

/* What is at a path, as the box sees it. mode 0: nothing. */
struct state {
	uint32_t mode;
	uint64_t size;
	int64_t mtime_ns;
	const struct entry *entry; /* NULL: it is what lies under the overlay */
};

/* What was there when s was taken. e: the path's entry in it, or NULL. */
struct state keeper_state(const struct keeper_place *p, const struct snapshot *s, unsigned place,
			  const char *path, const struct entry *e);

/* What a place is brought back from, and to. */
struct back {
	const struct keeper_place *places;
	const struct snapshot *was, *is;
	struct keeper_change *changes; /* in the order of their paths */
	size_t n;
	uint64_t room; /* bytes of memory for it */
	uint32_t failed;
};
/* 0, or an errno: nothing was brought back (ENOSPC: there is no room). */
int keeper_bring_back(struct back *b);
