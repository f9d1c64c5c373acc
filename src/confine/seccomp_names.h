/* Call numbers by name, from libseccomp. By itself, because libseccomp.h and our seccomp.h both
 * have a seccomp_version(). Runs at build time and in tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A negative number: the architecture has no such call. */
int seccomp_names_number(bool aarch64, const char *name);

/* ret is empty if the number is not known. */
void seccomp_names_name(bool aarch64, int nr, char *ret, size_t size);
