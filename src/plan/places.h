/* Where a path leads, and what must be mounted so that it leads there inside as well. */
#pragma once

#include <limits.h>

#include "plan/toolchain.h"

/* One search; lives on the stack of toolchain_find(). */
struct places {
	const struct toolchain_request *req;
	struct toolchain *out;
	struct pale_err *err; /* never NULL */
	/* By places_home() and places_cwd() only: a program in /usr never needs them. */
	char home[PATH_MAX];
	char cwd[PATH_MAX];
	bool have_home, have_cwd;
	/* A file that untrusted code may have written has had a say in where we are: from here on
	 * only toolchains that show unmistakable signs are mounted whole, and otherwise single
	 * programs. */
	bool tainted;
};

struct walked {
	char path[PATH_MAX]; /* canonical directory + the last name, which may be a link */
	char real[PATH_MAX]; /* where it ends */
};

const char *places_home(struct places *p); /* canonical; empty if there is none */
const char *places_cwd(struct places *p);  /* canonical */

/* Follows path (absolute), making each link on the way that must exist inside visible there.
 * named: path is the caller's own words, of which only the last name matters inside; otherwise it
 * is the words of a file, and each link in it must be there. 0, or a negative errno of which
 * nothing is said yet; -ECANCELED: p->err is set. */
int places_walk(struct places *p, const char *path, bool named, const char *why,
		struct walked *ret) _must_check_;

/* Inside at this same path already: the host image, the policy's entries, what was added so far. */
bool places_visible(struct places *p, const char *path);

/* Makes a canonical path visible: the toolchain it belongs to as a whole, or itself. */
int places_show(struct places *p, const char *path, const char *why) _must_check_;

/* The one file only, whatever it belongs to. */
int places_show_file(struct places *p, const char *path, const char *why) _must_check_;
int places_show_dir(struct places *p, const char *path, const char *why) _must_check_;
/* In the host image: /usr and what belongs to it. */
bool places_in_image(const char *path);

/* The directory of the toolchain that path belongs to, and its kind; NULL if none. */
const char *places_root(struct places *p, const char *path, char ret_root[static PATH_MAX]);

/* Whether untrusted code may have written it. */
bool places_hostile(struct places *p, const char *path);

/* path is dir, or beneath it. */
bool path_beneath(const char *path, const char *dir);
/* The directory part of an absolute path ("/" of "/x"), and the last name. */
void path_dir(const char *path, char ret[static PATH_MAX]);
const char *path_base(const char *path);
/* a + "/" + b. 0 or -ENAMETOOLONG. */
int path_join(char ret[static PATH_MAX], const char *a, const char *b) _must_check_;
bool path_exists(const char *dir, const char *name);

int places_add_dir(struct places *p, const char *dir) _must_check_; /* to PATH, once */
int places_add_env(struct places *p, const char *name, const char *value) _must_check_;
const char *places_getenv(struct places *p, const char *name); /* non-empty, or NULL */

/* "not there" (exit status 127) and "there, but not to be run" (126). */
int places_missing(struct places *p, const char *fmt, ...) _printf_(2, 3);
int places_unusable(struct places *p, const char *fmt, ...) _printf_(2, 3);
