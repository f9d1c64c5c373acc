/* The socket of a pool, for the pool itself. */
#pragma once

#include "base/err.h"

/* A listening socket, and the directory that it is in. */
int pool_listen(const char *key, int *ret_dir, struct pale_err *err) _must_check_;
void pool_unlisten(int dir, const char *key);
