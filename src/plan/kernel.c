/* Kernels of sessions: see kernel.h. In the supervisor, before anything is made; the texts are part
 * of the program (kernels/, embedded by the build), so that they are there without an installation
 * and nobody can change them. */
#include "plan/kernel.h"

#include <string.h>

#include "base/buf.h"
#include "kernel_host_blob.h"
#include "kernels_embedded.h"
#include "policy/options.h"

#define STAGE "plan"

struct plan_kernel {
	const char *name, *program;
	const char *file; /* of the driver, in the box */
	const unsigned char *driver;
	const unsigned char *host; /* NULL: the interpreter itself is the first process */
	size_t host_size;
	const char *warm_up;
	bool imports; /* its driver can import modules ahead */
	bool serves;  /* and fork itself into boxes */
	bool holds;   /* and hold the state before an execution */
};

static const struct plan_kernel kernels[] = {
	[KERNEL_PYTHON] = {"python", "python3", KERNEL_DIR "/python.py", kernel_python, NULL, 0,
			   "print()", true, true, true},
	[KERNEL_NODE] = {"node", "node", KERNEL_DIR "/node.js", kernel_node, kernel_host_blob,
			 sizeof(kernel_host_blob), "console.log()", false, false, false},
	[KERNEL_BASH] = {"bash", "bash", KERNEL_DIR "/bash.sh", kernel_bash, kernel_host_blob,
			 sizeof(kernel_host_blob), ":", false, false, false},
	/* Blank code is run, and not counted. */
	[KERNEL_IPYTHON] = {"ipython", "python3", KERNEL_DIR "/ipython.py", kernel_ipython, NULL, 0,
			    " ", true, false, false},
};

int kernel_plan(struct plan *p, const struct policy *policy, struct pale_err *err)
{
	const struct plan_kernel *k = &kernels[policy->session.kernel];

	if (policy->session.imports && policy->session.imports[0] && !k->imports)
		return err_set(
			err, PALE_E_POLICY, STAGE, 0,
			"session.imports: only Python's kernels can import modules ahead, and "
			"this one is %s",
			k->name);
	p->kernel = k;
	p->session = policy->session;
	/* In the arguments; the list itself stays the policy's. */
	p->session.imports = NULL;
	return 0;
}

const char *kernel_name(const struct plan_kernel *k)
{
	return k->name;
}

const char *kernel_warm_up(const struct plan_kernel *k)
{
	return k->warm_up;
}

const char *kernel_program(const struct plan_kernel *k)
{
	return k->program;
}

const char *kernel_driver(const struct plan_kernel *k, const char **ret_path)
{
	*ret_path = k->file;
	return (const char *)k->driver;
}

const void *kernel_host(const struct plan_kernel *k, size_t *ret_size)
{
	*ret_size = k->host_size;
	return k->host;
}

bool kernel_serves(const struct plan_kernel *k)
{
	return k->serves;
}

bool kernel_holds(const struct plan_kernel *k)
{
	return k->holds;
}

char **kernel_argv(const struct plan_kernel *k, const char *program, const struct policy *policy,
		   struct pale_err *err)
{
	_cleanup_buf_ struct buf imports = BUF_INIT(65536);
	const char *argv[8] = {0};
	size_t n = 0;
	char **list;

	if (k->host) {
		argv[n++] = "pale-kernel";
		argv[n++] = k->name;
		argv[n++] = program;
	} else {
		argv[n++] = k->program;
	}
	argv[n++] = k->file;
	for (char **i = policy->session.imports; i && *i; i++)
		(void)!buf_addf(&imports, "%s%s", imports.len ? "," : "", *i);
	if (imports.failed) {
		err_set(err, PALE_E_POLICY, STAGE, 0, "session.imports is too long");
		return NULL;
	}
	if (imports.len) {
		argv[n++] = "--import";
		argv[n++] = imports.data;
	}
	/* Then it need not be fit to be forked: its libraries may have threads. */
	if (k == &kernels[KERNEL_PYTHON] && policy->session.rollback == BOOL_FALSE)
		argv[n++] = "--no-rollback";
	list = calloc(n + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		list[i] = strdup(argv[i]);
		if (!list[i]) {
			while (i)
				free(list[--i]);
			free(list);
			list = NULL;
		}
	}
	if (!list)
		err_nomem(err, STAGE);
	return list;
}
