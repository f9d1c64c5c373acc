/* Paths of a policy: made absolute and normal as text, and checked against the places that a box
 * keeps for itself. Only path_without_dotdot() looks at the file system. */
#pragma once

#include <stdbool.h>

#include "policy/policy.h"

/* path, if relative counted from base (absolute, without ".."), without doubled slashes, "." and a
 * final slash. ".." is refused unless dotdot. */
int path_absolute(char **ret, const char *path, const char *base, bool dotdot,
		  struct pale_err *err) _must_check_;
/* An absolute path with ".." resolved as the kernel would: through the file system, since a name
 * before ".." may be a symbolic link. */
int path_without_dotdot(char **ret, const char *path, struct pale_err *err) _must_check_;
bool path_has_dotdot(const char *path);
/* Whether path is dir or lies in it; both absolute and normal. */
bool path_inside(const char *path, const char *dir);
/* Whether an entry may stand there in the box, and whether it may show that of the host. */
int path_check_target(const char *path, enum policy_access access,
		      struct pale_err *err) _must_check_;
int path_check_source(const char *from, struct pale_err *err) _must_check_;
