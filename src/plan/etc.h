/* The box's /etc: small files that are written, links, and read-only binds of the few host paths
 * that programs under /usr cannot do without. Nothing of the host's users, keys, machine id or
 * tokens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum etc_type {
	ETC_DIR,  /* an empty directory, a parent of what follows */
	ETC_FILE, /* a file with the content `data` */
	ETC_LINK, /* a symbolic link to `data` */
	ETC_BIND, /* read-only bind of the host path `data`; `directory` says what it is mounted on
		   */
};

struct etc_entry {
	enum etc_type type;
	bool directory;
	mode_t mode;
	const char *path; /* in the box, absolute */
	const char *data;
};

#define ETC_MAX 48

/* Everything points into this object or to constants: copy the entries, not the object. */
struct etc {
	struct etc_entry entries[ETC_MAX]; /* parents first */
	size_t n;
	size_t used;
	char text[6144];
};

struct etc_request {
	const char *host_etc; /* NULL: "/etc"; tests give another */
	const char *user;     /* name of the box's user */
	uid_t uid;
	gid_t gid;
	const char *home;     /* of the box's user, in the box */
	const char *hostname; /* of the box */
	bool terminal;	      /* the caller has a terminal: what makes a shell pleasant is added */
};

/* Fills *ret in. Looks at the host (about forty cheap system calls) and creates nothing.
 * PALE_E_POLICY: user, home or hostname hold bytes that /etc/passwd or /etc/hosts cannot. */
int etc_make(const struct etc_request *req, struct etc *ret, struct pale_err *err) _must_check_;
