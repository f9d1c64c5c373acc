/* The client of `./dev bench session`: what libpale's callers wait for. Prints one JSON object a
 *mode.
 *
 *	bench-session fresh N CODE [KEY=VALUE...]     a box from the pool, to the result of CODE
 *	bench-session rate SECONDS CLIENTS CODE [...] fresh boxes a second, each used once
 *	bench-session exec N CODE ROLLBACK [...]      executions in one session (ROLLBACK: 0 or 1)
 *	bench-session interrupt N CODE GRACE [...]    from the request to the prompt
 *	bench-session live N [...]                    sessions of a pool at a time: prints their
 *ids, then what each took for one more execution, and holds them until its input ends
 *
 * KEY=VALUE are keys of the policy. Times are microseconds. */
#include <pale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM 4 /* boxes of a pool, at most */

static struct pale_policy *policy;

static void check(int r, const struct pale_err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-session: %s: %s\n", err->stage, err->message);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_times(const char *name, double *times, size_t n, const char *end)
{
	qsort(times, n, sizeof(*times), compare);
	printf("\"%s\": {\"n\": %zu, \"min\": %.1f, \"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f}%s",
	       name, n, times[0], times[n / 2], times[n * 9 / 10], times[n * 99 / 100], end);
}

static struct pale_session *start(int pool)
{
	struct pale_session_options o = {.size = sizeof(o)};
	struct pale_session *s;
	struct pale_err err;

	o.pool = pool ? PALE_POOL_ONLY : PALE_POOL_NEVER;
	check(pale_session_start(policy, &o, &s, &err), &err);
	return s;
}

static void stop(struct pale_session *s)
{
	struct pale_err err;

	check(pale_session_call(s, "box.destroy", NULL, 0, NULL, &err), &err);
	pale_session_close(s);
}

static void execute(struct pale_session *s, const char *code, int rollback)
{
	struct pale_exec_options o = {.size = sizeof(o), .rollback = rollback};
	struct pale_err err;
	char *result;

	check(pale_session_exec(s, code, strlen(code), &o, &result, &err), &err);
	if (!strstr(result, "\"outcome\":\"ok\"")) {
		fprintf(stderr, "bench-session: %s\n", result);
		exit(1);
	}
	free(result);
}

static void take_ready(void *arg, const char *json)
{
	const char *ready = strstr(json, "\"ready\":"), *size = strstr(json, "\"size\":"),
		   *warm = strstr(json, "\"warm\":");

	if (ready && size && warm && atoi(ready + 8) == atoi(size + 7) &&
	    (atoi(warm + 7) == atoi(size + 7) || atoi(warm + 7) >= WARM))
		*(int *)arg = 1;
}

/* The pool is full: nothing is being built beside what is measured. */
static void wait_for_pool(void)
{
	for (int full = 0; !full;) {
		struct pale_err err;

		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		check(pale_pool_list(take_ready, &full, &err), &err);
	}
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static void fresh(size_t n, const char *code)
{
	double *claim = calloc(n, sizeof(*claim)), *whole = calloc(n, sizeof(*whole));

	for (size_t i = 0; i < n; i++) {
		struct pale_session *s;
		double begun;

		/* Two at a time, then the pool fills up again. */
		if (i % 2 == 0)
			wait_for_pool();
		begun = now_us();
		s = start(1);
		claim[i] = now_us() - begun;
		execute(s, code, 0);
		whole[i] = now_us() - begun;
		stop(s);
	}
	printf("{");
	print_times("claim", claim, n, ", ");
	print_times("result", whole, n, "}\n");
}

static volatile sig_atomic_t over;

static void on_alarm(int number)
{
	(void)number;
	over = 1;
}

static void rate(unsigned seconds, int clients, const char *code)
{
	int results[2], done = 0, n;
	double begun = now_us(), took;

	if (pipe(results) < 0)
		exit(1);
	for (int i = 0; i < clients; i++)
		if (fork() == 0) {
			sigaction(
				SIGALRM,
				&(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART},
				NULL);
			alarm(seconds);
			for (n = 0; !over; n++) {
				struct pale_session *s = start(1);

				execute(s, code, 0);
				stop(s);
			}
			_exit(write(results[1], &n, sizeof(n)) != sizeof(n));
		}
	close(results[1]);
	while (read(results[0], &n, sizeof(n)) == sizeof(n))
		done += n;
	took = (now_us() - begun) / 1e6;
	while (wait(NULL) > 0)
		;
	printf("{\"executions\": %d, \"seconds\": %.2f, \"rate\": %.1f}\n", done, took,
	       done / took);
}

static void exec_many(size_t n, const char *code, int rollback)
{
	struct pale_session *s = start(0);
	double *times = calloc(n, sizeof(*times));

	for (size_t i = 0; i < 50; i++)
		execute(s, code, rollback ? 1 : -1);
	for (size_t i = 0; i < n; i++) {
		double begun = now_us();

		execute(s, code, rollback ? 1 : -1);
		times[i] = now_us() - begun;
	}
	stop(s);
	printf("{");
	print_times("exec", times, n, "}\n");
}

static void interrupt_many(size_t n, const char *code, unsigned grace_ms)
{
	struct pale_session *s = start(0);
	double *times = calloc(n, sizeof(*times));
	char arguments[4096], *how = NULL;
	struct pale_err err;

	for (size_t i = 0; i < n; i++) {
		double begun;

		snprintf(arguments, sizeof(arguments), "{\"code\": \"%s\"}", code);
		check(pale_session_call(s, "session.exec", arguments, 0, NULL, &err), &err);
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		snprintf(arguments, sizeof(arguments), "{\"grace_ms\": %u, \"wait_ms\": 20000}",
			 grace_ms);
		free(how);
		begun = now_us();
		check(pale_session_call(s, "session.interrupt", arguments, 20000, &how, &err),
		      &err);
		times[i] = now_us() - begun;
	}
	stop(s);
	printf("{\"how\": \"%s\", ", strstr(how, "\"how\":\"rollback\"") ? "rollback"
				     : strstr(how, "\"how\":\"signal\"") ? "signal"
									 : "other");
	print_times("interrupt", times, n, "}\n");
}

static void live(int n)
{
	struct pale_session **sessions = calloc((size_t)n, sizeof(*sessions));
	double begun;
	char byte;

	/* The connections stay open, as those of fronts would. */
	for (int i = 0; i < n; i++) {
		sessions[i] = start(1);
		execute(sessions[i], "x = 1", 0);
		printf("%s\n", pale_session_id(sessions[i]));
		fflush(stdout);
	}
	begun = now_us();
	for (int i = 0; i < n; i++)
		execute(sessions[i], "assert x == 1", 0);
	printf("%.2f\n", (now_us() - begun) / 1e3 / n);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	int operands = strcmp(mode, "live") == 0 ? 1 : strcmp(mode, "fresh") == 0 ? 2 : 3;
	struct pale_err err;

	if (argc < 2 + operands)
		return fprintf(stderr, "usage: see bench/session.c\n"), 2;
	check(pale_policy_new(&policy, &err), &err);
	for (int i = 2 + operands; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return fprintf(stderr, "%s: KEY=VALUE\n", argv[i]), 2;
		*value++ = '\0';
		check(pale_policy_set(policy, argv[i], value, &err), &err);
	}
	if (strcmp(mode, "fresh") == 0)
		fresh((size_t)atoi(argv[2]), argv[3]);
	else if (strcmp(mode, "rate") == 0)
		rate((unsigned)atoi(argv[2]), atoi(argv[3]), argv[4]);
	else if (strcmp(mode, "exec") == 0)
		exec_many((size_t)atoi(argv[2]), argv[3], atoi(argv[4]));
	else if (strcmp(mode, "interrupt") == 0)
		interrupt_many((size_t)atoi(argv[2]), argv[3], (unsigned)atoi(argv[4]));
	else if (strcmp(mode, "live") == 0)
		live(atoi(argv[2]));
	else
		return fprintf(stderr, "usage: see bench/session.c\n"), 2;
	return 0;
}
