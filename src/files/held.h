/* What `pale apply` holds back unless it is named: files that the host would execute or obey later
 * without being asked to. docs/workspaces.md has the list and the line that it draws. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "files/manifest.h"

enum held_check {
	HELD_ALWAYS,
	HELD_JSON_SCRIPTS, /* only if a key that runs something changed */
	HELD_TOML_BUILD,   /* only if the build system's section changed */
};

struct held_rule {
	const char *pattern; /* components with * and ?; "~/" first: below the caller's home only;
			      * "/" + "**" last: all that is below. Upper and lower case alike. */
	const char *class;
	const char *why; /* what on the host obeys it: "git runs it on commit, checkout and more" */
	enum held_check check;
};

extern const struct held_rule held_rules[]; /* up to a row without a pattern */

struct held {
	const struct manifest *manifest;
	const char *home; /* the caller's, absolute; or NULL */
	int root_fd;	  /* the host's directory */
};

/* The rule that holds c back, or NULL. */
const struct held_rule *held_find(const struct held *h, const struct change *c);

/* Whether the directory at this path (relative, may have no entry of its own) is one that a rule
 * names, so that who names it names all that is in it. */
bool held_names_directory(const struct held *h, const char *path);
