/* Fake homes and toolchains below a temporary directory, and what toolchain_find() makes of them.
 */
#pragma once

#include "plan/toolchain.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

extern char tree_root[64]; /* "T" in what tree_find() shows */

int tree_setup(void **state);
int tree_teardown(void **state);

/* Below tree_root; parents are made. A path that ends in a slash makes a directory. */
void tree_file(const char *path, const char *content, unsigned mode);
void tree_link(const char *path, const char *target); /* "T/..." in target is replaced */
/* A minimal program: interp, runpath and needed ("a.so:b.so") may be NULL. */
void tree_elf(const char *path, const char *interp, const char *runpath, const char *needed);
void tree_elf_lib(const char *path, const char *runpath, const char *needed);
void tree_remove(const char *path);

/* What was found, one a line: "run PROGRAM", "bind PATH", "bind/ DIR", "link PATH -> TARGET",
 * "path DIR", "env NAME=VALUE", "script PATH", "drop N", "hint"; or "127 message", "126 message",
 * "refused message". In a static buffer. HOME is T/home, the working directory T/work, PATH
 * T/home/bin, T/home/.local/bin and /usr/bin; env holds up to four more settings and may change
 * these. */
const char *tree_find(const char *command, const char *script, const char *const *env);

#define ENV(...)		    ((const char *const[]){__VA_ARGS__, NULL})
#define assert_found(command, want) assert_string_equal(tree_find(command, NULL, NULL), want)
