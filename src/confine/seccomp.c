/* Installing the filter, and what the tables say of a call.
 *
 * The installing functions run in the box's set-up child or in a zygote's fork, after everything
 * that the filter refuses (mounts, namespaces), with no_new_privs set, and are async-signal-safe.
 * The look-ups run in the supervisor with numbers and arguments from the box, which are hostile. */
#include "confine/seccomp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/futex.h>
#include <linux/seccomp.h>

#include "base/fd.h"
#include "base/helper.h"
#include "confine/seccomp_programs.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif

const struct sock_fprog *seccomp_program(enum policy_profile profile, unsigned watch)
{
	return &seccomp_programs[profile][watch % SECCOMP_WATCH_VARIANTS];
}

int seccomp_install_program(const struct sock_fprog *prog, bool listens, int *ret_listener)
{
	long r;

	*ret_listener = -1;
	if (!listens) {
		r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, prog);
		return r < 0 ? -errno : 0;
	}
	/* Once the supervisor has taken a call up, only a fatal signal interrupts the wait: without
	 * this, a program with a busy timer could make its call be reported, restarted, reported...
	 */
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		    prog);
	if (r < 0 && errno == EINVAL)
		r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    prog);
	if (r < 0)
		return -errno;
	*ret_listener = (int)r; /* close-on-exec from birth */
	return 0;
}

int seccomp_install(enum policy_profile profile, unsigned watch, int *ret_listener)
{
	return seccomp_install_program(seccomp_program(profile, watch),
				       !(watch & SECCOMP_NO_LISTENER), ret_listener);
}

struct sender {
	int sock;
	const void *data;
	size_t len;
	int listener; /* -1 until known; -2: there will be none */
	int ready;    /* futex */
};

/* The filter reports sendmsg(), and until the listener is sent nobody answers: so a second process,
 * which shares memory and descriptors and has no filter yet, sends it. */
static int sender_main(void *arg)
{
	struct sender *s = arg;

	while (!__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &s->ready, FUTEX_WAIT, 0, NULL, NULL, 0);
	return s->listener < 0 ? 0 : fd_send(s->sock, s->data, s->len, &s->listener, 1);
}

int seccomp_install_program_send(const struct sock_fprog *prog, bool listens, int sock,
				 const void *data, size_t len)
{
	struct helper helper;
	struct sender s = {.sock = sock, .data = data, .len = len, .listener = -2};
	int listener = -1, r;

	if (!listens)
		return seccomp_install_program(prog, false, &listener);
	r = helper_start_waiting(&helper, sender_main, &s);
	if (r < 0)
		return r;
	r = seccomp_install_program(prog, true, &listener);
	if (r == 0)
		s.listener = listener;
	__atomic_store_n(&s.ready, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s.ready, FUTEX_WAKE, 1, NULL, NULL, 0);
	int sent = helper_wait(&helper);

	if (listener >= 0)
		close(listener);
	return r ? r : sent;
}

int seccomp_install_send(enum policy_profile profile, unsigned watch, int sock, const void *data,
			 size_t len)
{
	return seccomp_install_program_send(seccomp_program(profile, watch),
					    !(watch & SECCOMP_NO_LISTENER), sock, data, len);
}

static const struct seccomp_row *row_of(int nr)
{
	if (nr < 0 || nr >= (int)ARRAY_SIZE(seccomp_row_of) || !seccomp_row_of[nr])
		return NULL;
	return &seccomp_rows[seccomp_row_of[nr] - 1];
}

const char *seccomp_call_name(int nr)
{
	if (nr < 0 || nr >= (int)ARRAY_SIZE(seccomp_names) || !seccomp_names[nr][0])
		return NULL;
	return seccomp_names[nr];
}

int seccomp_call_errno(int nr)
{
	const struct seccomp_row *row = row_of(nr);

	return row && row->error ? row->error : row ? EPERM : SECCOMP_UNKNOWN_ERRNO;
}

struct seccomp_verdict seccomp_verdict(enum policy_profile profile, unsigned watch, int nr,
				       const uint64_t args[6])
{
	return seccomp_row_verdict(row_of(nr), profile, watch, args);
}

const char *seccomp_version(void)
{
	return seccomp_digest;
}

int seccomp_can_listen(bool *ret)
{
	pid_t child = fork();
	int status = 0, error;

	if (child < 0)
		return -errno;
	if (child == 0) {
		int listener = -1;

		_exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
			      ? errno
			      : -seccomp_install(PROFILE_DEFAULT, 0, &listener));
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	/* EBUSY: there is one already. A filter that kills who tries has answered, too. */
	error = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGSYS ? 0 : EINTR;
	if (error && error != EBUSY && !err_is_lasting(error))
		return -error;
	*ret = WIFEXITED(status) && error == 0;
	return 0;
}
