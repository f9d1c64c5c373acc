/* The zygote of a pool: see zygotes.h. In the pool's process; nothing hostile is read. */
#include "pool/zygotes.h"

#include "plan/kernel.h"

/* All forks of one have the same layout of memory and the same seed of hashes. */
#define FORKS	 1000
#define FAILURES 3

static void failed(struct zygotes *z)
{
	z->failures++;
	z->none = !z->now;
}

void zygotes_tend(struct zygotes *z)
{
	if (z->none || z->next || z->failures >= FAILURES || (z->now && z->forks < FORKS))
		return;
	if (zygote_start(z->plan, &z->next, &z->why) < 0)
		failed(z);
}

bool zygotes_ready(const struct zygotes *z)
{
	return z->none || z->now;
}

void zygotes_fds(const struct zygotes *z, struct pollfd fds[static 2])
{
	fds[0] = (struct pollfd){z->now ? zygote_fd(z->now) : -1, POLLIN, 0};
	fds[1] = (struct pollfd){z->next ? zygote_fd(z->next) : -1, POLLIN, 0};
}

bool zygotes_hear(struct zygotes *z, const struct pollfd fds[static 2])
{
	bool died = fds[0].revents;

	if (died) {
		zygote_free(z->now);
		z->now = NULL;
		err_set(&z->why, PALE_E_SYSTEM, "pool", 0, "the zygote was killed again and again");
		z->none = ++z->failures >= FAILURES;
	}
	if (!fds[1].revents)
		return died;
	if (zygote_ready(z->next, &z->why) == 0) {
		zygote_free(z->now);
		z->now = z->next;
		z->forks = 0;
	} else {
		zygote_free(z->next);
		failed(z);
	}
	z->next = NULL;
	return died;
}

void zygotes_done(struct zygotes *z)
{
	zygote_free(z->now);
	zygote_free(z->next);
	z->now = z->next = NULL;
}
