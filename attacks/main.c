/* The attacks as one program:
 *
 *   pale-attacks NAME            one attack (or called by its name); see attack.h
 *   pale-attacks --list          what there is, as JSON
 *   pale-attacks --run KEY=VALUE... NAME...
 *                                one after the other, each a process and, for the audit log, a
 *                                program of its own; a line each
 *   pale-attacks --host DIR      what of the host the attacks are after; see host.c
 *
 * Linked to a single attack it runs that one. */
#include "attack.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "host.h"

#define SECONDS		 60  /* for one attack, also where the machine is busy */
#define SECONDS_ON_LIMIT 115 /* which ends its box before */

extern const struct attack *const __start_attacks[], *const __stop_attacks[];

static const char *name_of(const struct attack *a, char ret[static 64])
{
	snprintf(ret, 64, "%.*s", (int)strcspn(a->file, "."), a->file);
	return ret;
}

static const struct attack *find(const char *name)
{
	char text[64];

	for (const struct attack *const *a = __start_attacks; a < __stop_attacks; a++)
		if (strcmp(name_of(*a, text), name) == 0)
			return *a;
	return NULL;
}

static int run_one(const struct attack *a, int argc, char **argv)
{
	long r = a->run(argc, argv);

	if (r == NOT_HERE) {
		puts("not here");
		return 77;
	}
	if (r < 0) {
		const char *name = strerrorname_np(errno);

		printf("denied %s\n", name ? name : "?");
		return 0;
	}
	puts("SUCCEEDED");
	return 1;
}

static void put(const char *key, const char *value)
{
	if (!value)
		return;
	printf(",\"%s\":\"", key);
	for (; *value; value++)
		printf(*value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
	putchar('"');
}

static int list(void)
{
	static const char *const axes[] = {"files", "network", "kernel", "resources"};
	static const char *const works[] = {"outside", "root", "kernel", "limit"};
	char name[64];

	putchar('[');
	for (const struct attack *const *i = __start_attacks; i < __stop_attacks; i++) {
		const struct attack *a = *i;

		printf("%s\n{\"attack\":\"%s\"", i > __start_attacks ? "," : "", name_of(a, name));
		put("axis", axes[a->axis]);
		put("promise", a->promise);
		put("gain", a->gain);
		put("source", a->source);
		put("event", a->event);
		put("with", a->with);
		put("broken", a->broken);
		put("limit", a->limit);
		put("set", a->set);
		put("works", works[a->works]);
		put("needs", a->needs);
		printf(",\"flags\":%u}", a->flags);
	}
	puts("\n]");
	return 0;
}

/* --- the runner --------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A directory with a copy of this program, which each attack is a name of: by it the log tells them
 * apart. -1: there is no place for it. */
static int make_place(char ret[static 256])
{
	const char *tmp = getenv("TMPDIR");
	char path[300];
	struct stat st;
	int from, to, r = -1;

	snprintf(ret, 256, "%s/attacks-XXXXXX", tmp ? tmp : "/tmp");
	from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (from < 0 || !mkdtemp(ret))
		return -1;
	snprintf(path, sizeof(path), "%s/self", ret);
	to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (to >= 0 && fstat(from, &st) == 0)
		for (off_t left = st.st_size; left > 0; left -= r) {
			r = (int)sendfile(to, from, NULL, (size_t)left);
			if (r <= 0)
				break;
		}
	close(from);
	close(to);
	return r > 0 ? 0 : -1;
}

static void start(const char *place, const char *name, int out)
{
	char path[400] = "/proc/self/exe", self[400];
	char *argv[] = {(char *)(uintptr_t)name, NULL};
	int null = open("/dev/null", O_RDONLY);

	if (*place) {
		snprintf(self, sizeof(self), "%s/self", place);
		snprintf(path, sizeof(path), "%s/%s", place, name);
		if (link(self, path) < 0)
			snprintf(path, sizeof(path), "/proc/self/exe");
	}
	/* To flood the box's own output, not ours. */
	if (find(name) && find(name)->limit && strncmp(find(name)->limit, "output", 6) == 0) {
		dup2(STDOUT_FILENO, 9);
		setenv("ATTACK_output", "9", 1);
	}
	setsid();
	signal(SIGPIPE, SIG_DFL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	/* What attacks find besides is what the box gave them. */
	close(null);
	close(out);
	execv(path, argv);
	printf("denied: cannot run %s: %m\n", path);
	fflush(stdout);
	_exit(126);
}

/* Reads until the attack and all that it left have closed it, or the time is over. */
static size_t hear(int fd, unsigned seconds, char *text, size_t size, bool *ret_late)
{
	uint64_t end = now_ms() + seconds * 1000;
	size_t n = 0;

	for (;;) {
		uint64_t now = now_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char drop[4096];
		ssize_t r;

		if (now >= end || poll(&p, 1, (int)(end - now)) <= 0) {
			*ret_late = true;
			break;
		}
		r = read(fd, drop, sizeof(drop));
		if (r <= 0)
			break;
		/* The end is what counts. */
		if (n + (size_t)r >= size)
			n = 0;
		memcpy(text + n, drop, (size_t)r);
		n += (size_t)r;
	}
	text[n] = '\0';
	return n;
}

/* A limit kills what exceeds it, and the filter may what calls by another table. Any other death
 * says nothing of the box. */
static bool denies(const struct attack *a, int number)
{
	if (!a)
		return false;
	if (a->limit)
		return number == SIGKILL || number == SIGXFSZ || number == SIGXCPU;
	return number == SIGSYS && a->event && strcmp(a->event, "call.denied") == 0;
}

static void run(const char *place, const char *name)
{
	char text[8192] = "", line[512], *end;
	int p[2], status = 0;
	bool late = false;
	const char *verdict;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		printf("attack %s unclear cannot start it: %m\n", name);
		return;
	}
	if (pid == 0)
		start(place, name, p[1]);
	close(p[1]);
	hear(p[0], find(name) && find(name)->limit ? SECONDS_ON_LIMIT : SECONDS, text,
	     sizeof(text) - 4096, &late);
	close(p[0]);
	/* One that has closed all may still be about to end. */
	for (int i = 0; !late && i < 1000; i++) {
		siginfo_t ended = {0};

		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    ended.si_pid == pid)
			break;
		usleep(1000);
	}
	kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	for (end = text; *end; end++)
		if ((unsigned char)*end < ' ' || (unsigned char)*end > '~')
			*end = ' ';
	while (end > text && end[-1] == ' ')
		*--end = '\0';
	if (late)
		verdict = "unclear (it took too long)";
	else if (WIFSIGNALED(status))
		verdict = denies(find(name), WTERMSIG(status)) ? "denied (it was killed)"
							       : "unclear (it was killed)";
	else
		switch (WEXITSTATUS(status)) {
		case 0: verdict = "denied"; break;
		case 1: verdict = "succeeded"; break;
		case 77: verdict = "absent"; break;
		default: verdict = "unclear"; break;
		}
	snprintf(line, sizeof(line), "\nattack %s %.*s %.120s%s\n", name,
		 (int)strcspn(verdict, " "), verdict, end - text > 120 ? end - 120 : text,
		 strchr(verdict, ' ') ? strchr(verdict, ' ') : "");
	/* In one piece, whoever dies next; and on a line of its own, whatever a flood left. */
	(void)!write(STDOUT_FILENO, line, strlen(line));
	if (*place) {
		snprintf(line, sizeof(line), "%s/%s", place, name);
		unlink(line);
	}
}

static int run_all(int argc, char **argv)
{
	char place[256] = "", path[300];
	int names = 0;

	for (int i = 0; i < argc; i++)
		names += !strchr(argv[i], '=');
	if (names > 1 && make_place(place) < 0)
		*place = '\0';
	/* What detaches itself comes back to us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '='), name[64];

		if (value) {
			snprintf(name, sizeof(name), "ATTACK_%.*s", (int)(value - argv[i]),
				 argv[i]);
			setenv(name, value + 1, 1);
		} else {
			run(place, argv[i]);
		}
	}
	if (*place) {
		snprintf(path, sizeof(path), "%s/self", place);
		unlink(path);
		rmdir(place);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *base = strrchr(argv[0], '/');
	const struct attack *a = find(base ? base + 1 : argv[0]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!a && __stop_attacks - __start_attacks == 1)
		a = *__start_attacks;
	if (a)
		return run_one(a, argc, argv);
	if (strcmp(argv[0], SURVIVOR) == 0)
		return (int)sleep(600); /* the host ends it when it looks for it */
	if (argc > 1 && strcmp(argv[1], "--list") == 0)
		return list();
	if (argc > 1 && strcmp(argv[1], "--run") == 0)
		return run_all(argc - 2, argv + 2);
	if (argc > 2 && (strcmp(argv[1], "--host") == 0 || strcmp(argv[1], "--victim") == 0))
		return host(argc, argv);
	a = argc > 1 ? find(argv[1]) : NULL;
	if (a)
		return run_one(a, argc - 1, argv + 1);
	fprintf(stderr,
		"usage: pale-attacks --list | NAME | --run [KEY=VALUE...] NAME... | --host DIR\n");
	return 2;
}
