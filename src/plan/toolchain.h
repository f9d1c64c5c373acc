/* From a command to what must be visible inside so that it runs: the program, its interpreter, and
 * the directory that the toolchain of both lives in, when they are outside the host image (/usr).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* All of it is the caller's own and trusted. The files that it names are not: they may lie in a
 * workspace that untrusted code has written. */
struct toolchain_request {
	const char *command; /* argv[0] as typed: a name for $PATH, or a path */
	bool is_file; /* command is a path even without a slash: a script in the working directory
		       */
	const char *first_arg; /* argv[1] or NULL: rustup's +toolchain */
	const char *path_env;  /* the caller's $PATH; NULL: the usual one */
	const char *home;      /* the caller's, on the host; NULL if there is none */
	const char *cwd;       /* absolute */
	const char *script;    /* a script that the command is to run, or NULL */
	char *const
		*env; /* the caller's environment (PYENV_VERSION, CARGO_HOME ...); may be NULL */
	/* What is visible inside anyway, at the same path as on the host (policy entries);
	 * canonical. */
	const char *const *visible;
	size_t nvisible;
};

enum toolchain_type {
	TOOLCHAIN_BIND, /* the host's `data`, read-only, at `path`; `directory` says what it is */
	TOOLCHAIN_LINK, /* a symbolic link at `path` to `data` */
};

struct toolchain_item {
	enum toolchain_type type;
	bool directory;
	char *path; /* in the box, absolute, canonical */
	char *data;
	char *why; /* "Python virtual environment", "interpreter of /home/u/bin/x" */
};

struct toolchain_env {
	char *name;
	char *value;
};

#define TOOLCHAIN_MAX_ITEMS 96
#define TOOLCHAIN_MAX_DIRS  8
#define TOOLCHAIN_MAX_ENV   4

struct toolchain {
	char *program;	    /* absolute path to execute inside */
	char *script;	    /* absolute path of the script inside, or NULL */
	unsigned drop_args; /* arguments after argv[0] that are used up ("+nightly") */
	struct toolchain_item items[TOOLCHAIN_MAX_ITEMS]; /* parents first, each once */
	size_t nitems;
	char *path_dirs[TOOLCHAIN_MAX_DIRS]; /* to be put in front of the box's PATH, in this order
					      */
	size_t npath_dirs;
	struct toolchain_env env[TOOLCHAIN_MAX_ENV]; /* VIRTUAL_ENV, CONDA_PREFIX, JAVA_HOME */
	size_t nenv;
	char hint[256]; /* what will be missing inside and the remedy; empty usually */
};

/* Fills *ret in; to be released with toolchain_done(), also after a failure.
 * PALE_E_NOTFOUND with err->sys ENOENT: there is no such command, interpreter or script (exit
 * status 127); with EACCES: it is there and cannot be run (126). PALE_E_HOST: it would need a mount
 * that would show the box too much. */
int toolchain_find(const struct toolchain_request *req, struct toolchain *ret,
		   struct pale_err *err) _must_check_;
void toolchain_done(struct toolchain *t);
