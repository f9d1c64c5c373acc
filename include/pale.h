/* libpale: run code that nobody has reviewed, in a sandbox that holds.
 *
 * Every function that can fail returns 0 (or a count) or a negative enum pale_code, and fills in the
 * caller's struct pale_err, which may be NULL. Nothing here prints, exits, installs signal handlers
 * or keeps global state. Objects are not shared between threads without the caller's own lock;
 * different objects may be used from different threads at the same time. */
#ifndef PALE_H
#define PALE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PALE_EXPORT __attribute__((visibility("default")))

/* What went wrong, by what the caller can do about it. */
enum pale_code {
	PALE_OK = 0,
	PALE_E_USAGE = 1,    /* the call or the command line is wrong */
	PALE_E_POLICY = 2,   /* the policy is wrong; the message has file, line and column */
	PALE_E_HOST = 3,     /* this host cannot enforce what was asked; the message has the remedy */
	PALE_E_SYSTEM = 4,   /* a system call failed; see sys */
	PALE_E_NOMEM = 5,    /* out of memory */
	PALE_E_AUDIT = 6,    /* the audit log cannot be written or does not verify; nothing was run */
	PALE_E_NOTFOUND = 7, /* no such run, file or command */
	PALE_E_CONFLICT = 8, /* the host's files changed meanwhile, or are held back */
};

struct pale_err {
	enum pale_code code;
	int sys;            /* errno, or 0 */
	char stage[12];     /* policy, plan, isolation, confine, supervise, files, audit: a folder of src/ */
	char message[492];  /* one line or a few, without a final newline, safe for a terminal */
};

#ifdef __cplusplus
}
#endif
#endif
