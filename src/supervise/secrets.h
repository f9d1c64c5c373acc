/* The values of a policy's secrets, on their way from where the caller keeps them to the egress
 * broker: they pass through here once, and are in no memory of this process afterwards. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "policy/network.h"

#define SECRET_MAX 16384 /* bytes of a value */

/* What the box has in their place: new in each run, one a secret; owned by the caller,
 * NULL-terminated. *ret is NULL where there are none. */
int secrets_placeholders(const struct policy_network *n, char ***ret,
			 struct pale_err *err) _must_check_;
void secrets_placeholders_free(char **placeholders);

/* Appends the array of the broker's configuration (egress/config.h), values included, to the file
 * fd. own_process: nothing else in this process needs the caller's variables that hold values, so
 * that those are wiped too. A value that cannot be had is an error, which does not say the value.
 */
int secrets_write(const struct policy_network *n, char *const *placeholders, bool own_process,
		  int fd, struct pale_err *err) _must_check_;
