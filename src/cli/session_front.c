/* An execution in the foreground: see session_front.h. In the caller's process, single-threaded.
 *
 * The library waits for the supervisor, and looks at one descriptor of ours besides: an epoll of
 * the signals, of a timer, and of stdin while the code asks for a line. What is then to be said to
 * the session goes over a connection of its own, since the first one is waiting.
 *
 * Ctrl-C ends the execution, not us: first as a program is asked to, the second time with all
 * variables if it has to be, and the third time we leave it alone. */
#include "cli/session_front.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/blocked.h"

#define STAGE	  "cli"
#define QUIET_MS  1000	     /* until it is said why nothing happens */
#define ASKED_MS  2500	     /* until it is said that an interrupt did not help */
#define TYPED_MAX (1u << 20) /* a line */

static void call(struct session_front *f, const char *command, json_t *arguments, json_t **ret)
{
	_cleanup_session_ struct pale_session *s = NULL;
	struct pale_err err = {0};
	int r = pale_session_open(f->id, &s, &err);

	if (ret)
		*ret = NULL;
	if (r < 0)
		json_decref(arguments);
	else
		r = cli_session_call(s, command, arguments, 0, ret, &err);
	/* That it has ended meanwhile we are told anyway. */
	if (r < 0 && err.code != PALE_E_NOTFOUND && err.code != PALE_E_CONFLICT)
		cli_say(&err);
}

static void set_timer(struct session_front *f, unsigned ms)
{
	struct itimerspec t = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};

	(void)!timerfd_settime(f->timer, 0, &t, NULL);
}

/* ---- Ctrl-C ---- */

static void ask_to_end(struct session_front *f)
{
	call(f, "session.interrupt",
	     json_pack("{s:I, s:s}", "execution", (json_int_t)f->execution, "escalate",
		       f->asked > 1 ? "restart" : "rollback"),
	     NULL);
	set_timer(f, ASKED_MS);
}

/* Not 0: we leave. */
static int on_signal(struct session_front *f, int signal_number)
{
	if (signal_number == SIGINT && f->owner && f->asked < 2) {
		f->asked++;
		/* Before it is known which one is ours, nothing is ended: see on_id(). */
		if (f->execution)
			ask_to_end(f);
		return 0;
	}
	f->left = signal_number;
	return 1;
}

static void say_why_it_waits(struct session_front *f)
{
	_cleanup_json_ json_t *shown = NULL;
	json_int_t running;
	char text[160];

	call(f, "session.show", NULL, &shown);
	running = cli_int_at(shown, "running");
	if (strcmp(cli_string_at(shown, "state"), "frozen") == 0)
		session_print_note(f->print,
				   "the session is frozen: `pale session thaw` lets it go on");
	else if (running && running != (json_int_t)f->execution) {
		snprintf(text, sizeof(text), "execution %u waits until execution %lld has ended",
			 f->execution, (long long)running);
		session_print_note(f->print, text);
	}
}

static void on_timer(struct session_front *f)
{
	if (f->asked == 0 && !f->started)
		say_why_it_waits(f);
	else if (f->asked == 1)
		session_print_note(f->print,
				   "it has not ended yet; Ctrl-C again ends it, if need be with "
				   "all variables");
	else if (f->asked == 2)
		session_print_note(f->print, "it has not ended yet; Ctrl-C again leaves it alone");
}

/* ---- what the code asks for ---- */

static void echo(bool on)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &t) < 0)
		return;
	t.c_lflag = on ? t.c_lflag | ECHO : t.c_lflag & ~(tcflag_t)ECHO;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
}

static void stop_asking(struct session_front *f)
{
	if (!f->wanted)
		return;
	f->wanted = false;
	epoll_ctl(f->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
	if (f->hidden) {
		echo(true);
		fputc('\n', stderr);
	}
	f->hidden = false;
}

static void answer(struct session_front *f, char *line, size_t len, bool eof)
{
	json_t *o;
	size_t valid;

	/* JSON has texts only. */
	while ((valid = str_utf8_prefix(line, len)) < len)
		line[valid] = '?';
	o = json_pack("{s:I, s:b}", "execution", (json_int_t)f->execution, "eof", eof);
	if (!eof)
		json_object_set_new(o, "text", json_stringn(line, len));
	stop_asking(f);
	call(f, "session.input", o, NULL);
}

/* A line, or the end, if there is one: true. */
static bool answer_typed(struct session_front *f, bool ended)
{
	char *newline = f->typed.len ? memchr(f->typed.data, '\n', f->typed.len) : NULL;
	size_t len = newline ? (size_t)(newline - f->typed.data) : f->typed.len,
	       used = newline ? len + 1 : len;
	char none[1] = "";

	if (!newline && !ended && !f->typed.failed)
		return false;
	answer(f, f->typed.len ? f->typed.data : none, len, !newline && !len);
	if (used)
		memmove(f->typed.data, f->typed.data + used, f->typed.len - used);
	f->typed.len -= used;
	f->typed.failed = false;
	return true;
}

static void read_typed(struct session_front *f)
{
	char data[4096];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0)
		(void)!buf_add(&f->typed, data, (size_t)n);
	/* After Ctrl-D a terminal has more. */
	if (n <= 0 && !isatty(STDIN_FILENO))
		f->stdin_ended = true;
	answer_typed(f, n <= 0);
}

static void on_input_wanted(struct session_front *f, const json_t *event)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = STDIN_FILENO};
	char none[1] = "";

	if (!f->owner)
		return;
	if (f->print->form == SESSION_TEXT)
		session_print_prompt(f->print, event);
	if (!f->input) {
		answer(f, none, 0, true);
		return;
	}
	if (f->wanted || answer_typed(f, f->stdin_ended))
		return;
	f->wanted = true;
	f->hidden = json_is_true(json_object_get(event, "password")) && isatty(STDIN_FILENO);
	if (f->hidden)
		echo(false);
	if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, STDIN_FILENO, &e) == 0)
		return;
	/* A file, which never lets anybody wait. */
	while (f->wanted)
		read_typed(f);
}

/* ---- what happens ---- */

static int on_wake(void *arg)
{
	struct session_front *f = arg;
	struct epoll_event e;
	struct signalfd_siginfo s;
	uint64_t times;

	if (epoll_wait(f->epoll, &e, 1, 0) <= 0)
		return 0;
	if (e.data.fd == f->signals)
		return read(f->signals, &s, sizeof(s)) == sizeof(s) ? on_signal(f, (int)s.ssi_signo)
								    : 0;
	if (e.data.fd == f->timer && read(f->timer, &times, sizeof(times)) == sizeof(times))
		on_timer(f);
	else if (e.data.fd == STDIN_FILENO)
		read_typed(f);
	return 0;
}

static void on_id(void *arg, uint32_t execution)
{
	struct session_front *f = arg;

	f->execution = execution;
	session_print_begin(f->print, execution);
	set_timer(f, QUIET_MS);
	if (f->asked)
		ask_to_end(f);
}

static int on_event(void *arg, const char *text)
{
	struct session_front *f = arg;
	_cleanup_json_ json_t *event = json_loads(text, JSON_ALLOW_NUL, NULL);
	const char *type = cli_string_at(event, "type");

	session_print_event(f->print, event);
	if (strcmp(type, "started") == 0)
		f->started = true;
	else if (strcmp(type, "input") == 0)
		on_input_wanted(f, event);
	if (!f->print->failed)
		return 0;
	/* Nobody reads it any more: as in a pipe, that is the end of it. */
	f->left = -1;
	f->asked = 1;
	if (f->owner)
		ask_to_end(f);
	return 1;
}

static int watch(struct session_front *f, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return fd < 0 ? -1 : epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &e);
}

int session_front_begin(struct session_front *f, struct pale_err *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction old;
	sigset_t set;

	f->typed = BUF_INIT(TYPED_MAX);
	sigemptyset(&set);
	/* What the caller ignores (nohup, a job in the background) stays ignored. */
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (f->epoll < 0 || watch(f, f->signals) < 0 || watch(f, f->timer) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot watch the terminal");
	return 0;
}

void session_front_done(struct session_front *f)
{
	close_fd(&f->epoll);
	close_fd(&f->signals);
	close_fd(&f->timer);
	buf_done(&f->typed);
}

static void begin(struct session_front *f, struct pale_exec_options *o)
{
	*o = (struct pale_exec_options){.size = sizeof(*o),
					.on_event = on_event,
					.on_id = on_id,
					.on_wake = on_wake,
					.wake_fd = f->epoll,
					.arg = f};
	f->execution = f->asked = 0;
	f->started = false;
	f->left = 0;
}

/* What was seen as it came may be more than is kept, or less: one object has what is kept. */
static void read_again(struct session_front *f, struct pale_session *s, json_t *result)
{
	_cleanup_json_ json_t *answer = NULL;
	struct pale_err ignored;

	/* The box may have ended with it. */
	if (cli_session_events(s, f->execution, (uint64_t)f->from, &answer, &ignored) < 0)
		return;
	json_decref(f->print->events);
	f->print->events = json_incref(json_object_get(answer, "events"));
	json_object_set(result, "omitted_bytes", json_object_get(answer, "omitted_bytes"));
}

/* r: of the library. text is stolen. */
static int end(struct session_front *f, struct pale_session *s, int r, char *text,
	       const struct pale_err *err)
{
	_cleanup_free_ char *taken = text;
	json_t *result = taken ? json_loads(taken, JSON_ALLOW_NUL, NULL) : NULL;
	char note[200];

	stop_asking(f);
	set_timer(f, 0);
	if (result && f->print->form == SESSION_JSON)
		read_again(f, s, result);
	json_decref(r < 0 || !result ? take_ptr(f->print->events) : NULL);
	if (r < 0) {
		session_print_end_line(f->print);
		return cli_fail_as(err, err->code == PALE_E_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_PALE);
	}
	if (result)
		return session_print_result(f->print, result, f->id);
	if (f->left < 0)
		return cli_flushed(CLI_EXIT_PALE);
	snprintf(note, sizeof(note), "execution %u goes on: `pale session output %s %u --follow`",
		 f->execution, f->name, f->execution);
	session_print_note(f->print, note);
	return 128 + f->left;
}

int session_front_exec(struct session_front *f, struct pale_session *s, const char *code,
		       size_t len, uint64_t timeout_ms, int rollback)
{
	struct pale_exec_options o;
	struct pale_err err = {0};
	char *result = NULL;
	int r;

	begin(f, &o);
	f->print->next = f->from = 0;
	o.timeout_ms = timeout_ms;
	o.rollback = rollback;
	r = pale_session_exec(s, code, len, &o, &result, &err);
	return end(f, s, r, result, &err);
}

int session_front_follow(struct session_front *f, struct pale_session *s, uint32_t execution,
			 uint64_t from)
{
	struct pale_exec_options o;
	struct pale_err err = {0};
	char *result = NULL;
	int r;

	begin(f, &o);
	f->print->next = f->from = (json_int_t)from;
	r = pale_session_follow(s, execution, from, &o, &result, &err);
	return end(f, s, r, result, &err);
}
