/* What `pale jupyter-kernel` and `pale kernelspec` share. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

/* The channels of Jupyter's messaging: shell, iopub, stdin, control, heartbeat. */
#define JUPYTER_CHANNELS 5

/* A connection file, read: where Jupyter connects to, as pale_policy_publish() takes it;
 * ipykernel's options for where to listen in the box; the key that signs messages. */
struct jupyter_connection {
	char *publish[JUPYTER_CHANNELS];
	char *options[JUPYTER_CHANNELS + 2];
	char *key;
};

int jupyter_connection_read(const char *path, struct jupyter_connection *ret,
			    struct pale_err *err) _must_check_;
/* Waits until nobody listens at these places any more, at most so long: the kernel before this one
 * had them, and may be about to end. */
void jupyter_connection_wait(const struct jupyter_connection *c, unsigned ms);
void jupyter_connection_done(struct jupyter_connection *c);

/* The policy of a kernel that is started in cwd: `notebook` where no -p names another, and the
 * flags. Where cwd is the caller's home directory, or above it, `notebook` shows nothing of it;
 * *ret_home says so. cwd NULL: `notebook` shows nothing. ret_base is the same without the flags. */
int jupyter_policy(const struct cli_args *args, const char *cwd, struct pale_policy **ret_base,
		   struct pale_policy **ret, bool *ret_home, struct pale_err *err) _must_check_;

extern const struct cli_command cli_kernelspec_list_command, cli_kernelspec_remove_command;

/* Where kernels are looked for, and installed. */
enum kernelspec_place { KERNELSPEC_USER, KERNELSPEC_PREFIX, KERNELSPEC_SYS_PREFIX };

/* The directory of kernels there, to be freed. prefix: for KERNELSPEC_PREFIX; python: the
 * interpreter, of whose environment KERNELSPEC_SYS_PREFIX is, or NULL. */
int kernelspec_dir(enum kernelspec_place place, const char *prefix, const char *python, char **ret,
		   struct pale_err *err) _must_check_;
/* The kernel.json in this directory of one kernel, if it is one of ours: a new reference, or NULL.
 * *ret_there: there is something. */
json_t *kernelspec_load(const char *dir, bool *ret_there);
/* Small letters, digits, dots, dashes and underscores. */
bool kernelspec_is_name(const char *name);
