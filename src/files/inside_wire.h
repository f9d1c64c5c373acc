/* What the supervisor and the worker in a running box say to each other: inside.c asks,
 * inside_worker.c answers, one packet each on a SOCK_SEQPACKET pair, contents in a memory file that
 * both have (its size is sealed). The worker reads what the box made and is believed in nothing:
 * every number of an answer is checked. */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define INSIDE_DATA_MAX (4u << 20) /* contents, or a list, of one request */
#define INSIDE_PATH_MAX 4096
#define INSIDE_NAME_MAX 255
#define INSIDE_LIST_MAX 4096 /* entries of one answer */

enum inside_op {
	INSIDE_STAT = 1,
	INSIDE_LIST,
	INSIDE_READ,
	INSIDE_WRITE,
	INSIDE_MKDIR,
	INSIDE_REMOVE,
	INSIDE_LINK,
	/* Of a session, to the keeper (keeper.h); without a path: */
	INSIDE_KEEP, /* remember what there is now */
	INSIDE_LOOK, /* what has changed since */
	INSIDE_BACK, /* the same, and bring back what was there; the keeper's last */
};

enum inside_flag {
	INSIDE_FOLLOW = 1,     /* STAT: what a link points to */
	INSIDE_CREATE = 2,     /* WRITE: the file, if there is none */
	INSIDE_TRUNCATE = 4,   /* WRITE: it is emptied first */
	INSIDE_APPEND = 8,     /* WRITE: at its end, not at offset */
	INSIDE_CHMOD = 16,     /* WRITE: it gets the mode also if it was there */
	INSIDE_PARENTS = 32,   /* MKDIR: what is missing on the way; and it may be there */
	INSIDE_RECURSIVE = 64, /* REMOVE: a directory with all in it */
	INSIDE_REPLACE = 128,  /* LINK: one that is there already */
	INSIDE_NOTHING = 256,  /* LOOK, BACK: when it would have been kept, nothing was there */
	INSIDE_SINCE = 512,    /* LOOK: since it was looked last, not since something was kept */
};

struct inside_request {
	uint32_t op;	 /* enum inside_op */
	uint32_t flags;	 /* enum inside_flag */
	uint32_t length; /* READ, WRITE: bytes; LIST: entries; LINK: of the target, which lies in
			    the memory file */
	uint32_t mode;	 /* WRITE, MKDIR: of what is made; at most 0777 */
	uint64_t offset; /* READ, WRITE; KEEP: bytes of contents to be kept at most, 0: none */
	uint64_t room;	 /* BACK: bytes that the box's memory has left */
	uint64_t number; /* of the request, which its answer repeats */
	char path[INSIDE_PATH_MAX];	 /* absolute; ended by a NUL */
	char after[INSIDE_NAME_MAX + 1]; /* LIST: only names behind this one; "": all */
};

struct inside_stat {
	uint32_t mode;	   /* with the type */
	uint32_t uid, gid; /* as the box sees them */
	uint32_t links;
	uint64_t size;
	int64_t mtime_ns;
};

/* The first packet: whether it is confined and ready, or why not. */
struct inside_hello {
	struct pale_err err;
};

struct inside_answer {
	int32_t error;	 /* an errno; 0: done */
	uint32_t length; /* bytes in the memory file: READ: contents; STAT: a link's target; LIST:
			    records; WRITE: bytes written, also of one that failed */
	uint32_t count;	 /* LIST, LOOK, BACK: records; REMOVE: what was removed, also if it failed
			    then */
	uint32_t more;	 /* LIST, REMOVE: there is more; READ: it goes on; WRITE, MKDIR: it
			    was made */
	struct inside_stat st; /* of what it was; mode 0: not known */
	uint32_t why;	       /* KEEP, BACK: an errno: why not all is kept; 0: it is */
	uint32_t total;	       /* LOOK, BACK: changes, also those without a record */
	uint32_t back, failed; /* BACK: of these, what was brought back, and all that was not */
};

/* As it is sent. */
struct inside_reply {
	uint64_t number; /* of the request */
	struct inside_answer answer;
};

/* A record of a list; name and target (of a link) follow, without a NUL. */
struct inside_entry {
	struct inside_stat st;
	uint16_t name_len, target_len;
	uint32_t zero;
};

/* A record of changes; path (in the box, absolute) follows, without a NUL. */
enum inside_change_kind { INSIDE_ADDED = 1, INSIDE_CHANGED, INSIDE_DELETED };
struct inside_change {
	uint8_t kind; /* enum inside_change_kind */
	uint8_t zero;
	uint16_t error; /* BACK: an errno: it was not brought back */
	uint32_t mode;	/* with the type; as it is, or, of what is deleted, was */
	uint64_t size;
	uint32_t path_len;
	uint32_t zero2;
};
#define INSIDE_CHANGES_MAX 1000 /* records of one answer */
