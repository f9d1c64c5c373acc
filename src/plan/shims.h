/* Version managers put small programs in front of the real ones, which choose a version at each
 * call from files all over the home directory. Inside only the chosen version is visible, so the
 * choice is made here, as the manager would. */
#pragma once

#include "plan/places.h"

/* If at is such a program, called by the name in the last part of at->path, the path of the real
 * one is stored. 1: it is; 0: it is not; 2: the manager would look further in $PATH, after the
 * directory of at; or a negative code with p->err set. */
int shims_resolve(struct places *p, const struct walked *at,
		  char ret[static PATH_MAX]) _must_check_;
