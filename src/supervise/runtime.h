/* The runtime directory of a box: where its supervisor's door is.
 *
 *   /run/pale/<id>/ for root, or $XDG_RUNTIME_DIR/pale/<id>/, or, without one, run/<id>/ in the
 *   state directory:
 *     control       the Unix socket (door.h)
 *   runs/<id>/door  in the state directory: a symbolic link to the directory, so that everybody who
 *                   finds the run finds its door, whatever the environment is by then
 *
 * The box's directory is its owner's alone (0700), those above it are not to be written to by
 * others; what is not so is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define RUNTIME_SOCKET	  "control"
#define RUNTIME_LINK	  "door"
#define RUNTIME_PATH_SIZE 4096

struct helper; /* base/helper.h */

struct runtime {
	int dir;	       /* the box's directory, or -1 */
	int parent;	       /* the one that it is in, or -1 */
	int run;	       /* runs/<id>/ in the state directory, borrowed */
	int going;	       /* dir, while it is being removed */
	struct helper *helper; /* that removes it, or NULL */
	char id[32];	       /* its name in parent */
	char path[RUNTIME_PATH_SIZE];
};

#define RUNTIME_NONE ((struct runtime){.dir = -1, .parent = -1, .run = -1, .going = -1})

/* Makes it for the run with this id, whose directory in the state directory is run_fd (borrowed
 * until runtime_remove()). PALE_E_HOST: something is there that others could have put there, or
 * that is in the way. */
int runtime_make(const char *id, int run_fd, struct runtime *ret,
		 struct pale_err *err) _must_check_;
/* Removes the socket and the link, and begins to remove the directory, which on a disk takes its
 * time; *r must stay where it is. Of one that was not made, nothing. */
void runtime_remove(struct runtime *r);
/* Waits until it is gone, and closes. */
void runtime_done(struct runtime *r);

/* The directory of the run whose directory in the state directory is run_fd, if it has one and it
 * is the caller's alone: a descriptor. PALE_E_NOTFOUND: it has none. */
int runtime_open(const char *id, int run_fd, struct pale_err *err) _must_check_;
/* Removes what a supervisor that was killed left, where that is still what it was. 0 also if there
 * was nothing. */
int runtime_clean(const char *id, struct pale_err *err) _must_check_;

/* "/proc/self/fd/N/control": a name for the socket that fits into a socket's address, whatever
 * path the directory has, and that leads to no other directory. */
#define RUNTIME_NAME_SIZE 48
const char *runtime_socket_name(int dir, char out[static RUNTIME_NAME_SIZE]);
