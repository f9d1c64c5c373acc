/* Lines that a person types: see session_edit.h. In the caller's process, at its terminal.
 *
 * libedit edits one line at a time. What is pasted is told from what is typed by the terminal
 * (bracketed paste): its lines are taken as they are, no Tab in them completes, and nothing is
 * executed before Enter is pressed. Hostile: what completes and inspects a name, which comes from a
 * box; nothing of it gets into the line, or to the terminal, that is not plain text. */
#include "cli/session_edit.h"

#include <fcntl.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/session.h"

#define STAGE	    "cli"
#define REMEMBERED  1000	 /* lines */
#define HISTORY_MAX (512u << 10) /* bytes of the file, before it is cut to these lines */
#define PASTE_MAX   (4u << 20)
#define PRINTED_MAX 60	/* lines of what is known of a name */
#define LISTED_MAX  200 /* matches */
#define PASTE_END   L"\033[201~"

struct session_edit {
	struct session_edit_config config;
	EditLine *el;
	History *history;
	int fd;	   /* of the history's file, or -1 */
	int stops; /* a signalfd of those that concern the terminal */
	sigset_t old;
	const char *prompt;
	struct buf pasted; /* what follows the line that is being read */
	struct buf line;
	char *tail;		   /* the beginning of the next line */
	enum session_edit_got why; /* nothing was read */
};

/* ---- history ---- */

static void remember(struct session_edit *e, const char *line)
{
	HistEvent event;

	if (*line)
		history(e->history, &event, H_ENTER, line);
}

/* The last lines of what there is. */
static const char *last_lines(const struct buf *b)
{
	const char *at = b->data + b->len;

	for (int n = 0; at > b->data; at--)
		if (at[-1] == '\n' && ++n > REMEMBERED)
			break;
	return at;
}

static int open_history(const char *name)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char path[4096];
	_cleanup_close_ int dir = -1;

	if (state && *state == '/')
		snprintf(path, sizeof(path), "%s/pale", state);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.local/state/pale", home);
	else
		return -1;
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	mkdir(path, 0700);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1
		       : openat(dir, name, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
				0600);
}

/* That of another prompt at the same time goes to the same file, whole lines. */
static void load_history(struct session_edit *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * HISTORY_MAX);
	char *line, *save = NULL;
	const char *last;

	e->fd = e->config.history ? open_history(e->config.history) : -1;
	if (e->fd < 0)
		return;
	(void)fchmod(e->fd, 0600);
	if (buf_read_fd(&b, e->fd) < 0 || !b.len)
		return;
	last = last_lines(&b);
	if (b.len > HISTORY_MAX && ftruncate(e->fd, 0) == 0)
		(void)!fd_write_all(e->fd, last, strlen(last));
	for (line = strtok_r(b.data + (last - b.data), "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		remember(e, line);
}

static void keep(struct session_edit *e, const char *line)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20);

	if (!*line)
		return;
	remember(e, line);
	if (e->fd >= 0 && buf_addf(&b, "%s\n", line) == 0)
		(void)!fd_write_all(e->fd, b.data, b.len);
}

/* ---- the terminal ---- */

static void on_stop(struct session_edit *e)
{
	struct signalfd_siginfo s;

	if (read(e->stops, &s, sizeof(s)) != sizeof(s))
		return;
	if (s.ssi_signo == SIGWINCH) {
		el_resize(e->el);
		return;
	}
	/* Ctrl-Z: the shell gets the terminal as it was. */
	el_set(e->el, EL_PREP_TERM, 0);
	raise(SIGSTOP);
	el_set(e->el, EL_PREP_TERM, 1);
	el_set(e->el, EL_REFRESH);
}

static void on_signal(struct session_edit *e)
{
	struct signalfd_siginfo s;

	if (read(e->config.signals, &s, sizeof(s)) == sizeof(s))
		e->why = s.ssi_signo == SIGINT ? EDIT_CANCELLED : EDIT_SIGNAL;
}

/* Until there is something to read: false, if that is not wanted any more. */
static bool wait_for_key(struct session_edit *e)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = e->config.signals, .events = POLLIN},
			       {.fd = e->stops, .events = POLLIN}};

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			return false;
		}
		if (fds[2].revents)
			on_stop(e);
		if (fds[1].revents)
			on_signal(e);
		if (e->why != EDIT_LINE)
			return false;
		if (fds[0].revents)
			return true;
	}
}

/* A character, from bytes that may come one by one. */
static int get_char(EditLine *el, wchar_t *ret)
{
	struct session_edit *e;
	mbstate_t state = {0};

	el_get(el, EL_CLIENTDATA, &e);
	for (;;) {
		char c;
		size_t used;

		if (!wait_for_key(e))
			return -1;
		if (read(STDIN_FILENO, &c, 1) != 1) {
			e->why = EDIT_END;
			return -1;
		}
		used = mbrtowc(ret, &c, 1, &state);
		if (used == (size_t)-2)
			continue;
		/* What is no UTF-8 is nothing. */
		if (used != (size_t)-1)
			return 1;
		memset(&state, 0, sizeof(state));
	}
}

static char *show_prompt(EditLine *el)
{
	struct session_edit *e;

	el_get(el, EL_CLIENTDATA, &e);
	return (char *)(uintptr_t)e->prompt;
}

/* ---- what is on the line ---- */

static size_t characters(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* The line, and how many characters of it are before the cursor. */
static char *take_line(EditLine *el, size_t *ret_cursor)
{
	const LineInfo *info = el_line(el);

	*ret_cursor = characters(info->buffer, (size_t)(info->cursor - info->buffer));
	return strndup(info->buffer, (size_t)(info->lastchar - info->buffer));
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

void session_edit_print(const char *text)
{
	int lines = 0;

	while (*text && lines < PRINTED_MAX) {
		size_t len = strcspn(text, "\n\t");
		_cleanup_free_ char *part = strndup(text, len);

		if (part)
			cli_print_escaped(stdout, part);
		text += len;
		if (*text == '\t')
			fputs("    ", stdout);
		if (*text == '\n' || !*text) {
			putchar('\n');
			lines++;
		}
		text += *text != '\0';
	}
	if (*text)
		puts("...");
	fflush(stdout);
}

/* ---- keys ---- */

/* Bytes that all have in common, whole characters. */
static size_t common(const struct session_matches *m)
{
	size_t len = strlen(m->texts[0]);

	for (size_t i = 1; i < m->n; i++) {
		size_t n = 0;

		while (n < len && m->texts[i][n] == m->texts[0][n])
			n++;
		len = n;
	}
	return str_utf8_prefix(m->texts[0], len);
}

static void list_matches(const struct session_matches *m)
{
	size_t width = cli_width(stdout), widest = 1, columns,
	       n = m->n < LISTED_MAX ? m->n : LISTED_MAX;

	for (size_t i = 0; i < n; i++)
		if (characters(m->texts[i], strlen(m->texts[i])) > widest)
			widest = characters(m->texts[i], strlen(m->texts[i]));
	columns = width / (widest + 2);
	if (!columns)
		columns = 1;
	for (size_t i = 0; i < n; i++) {
		int pad = (int)(widest + 2 - characters(m->texts[i], strlen(m->texts[i])));

		printf("%s%s%*s", i % columns ? "" : "\n", m->texts[i],
		       i % columns == columns - 1 ? 0 : pad, "");
	}
	printf("%s\n", n < m->n ? "\n..." : "");
	fflush(stdout);
}

static unsigned char apply_matches(struct session_edit *e, size_t cursor,
				   const struct session_matches *m)
{
	size_t len, typed;
	char *text;

	if (!m->n || m->start > cursor)
		return CC_ERROR;
	len = common(m);
	typed = cursor - m->start;
	text = strndup(m->texts[0], len);
	if (!text)
		return CC_ERROR;
	/* As much as all have, unless that would take away what was typed. */
	if (characters(text, len) > typed || m->n == 1) {
		if (typed)
			el_deletestr(e->el, (int)typed);
		el_insertstr(e->el, text);
		free(text);
		return CC_REFRESH;
	}
	free(text);
	list_matches(m);
	return CC_REDISPLAY;
}

static unsigned char on_tab(EditLine *el, int c)
{
	struct session_edit *e;
	struct session_matches m = {0}, plain = {0};
	_cleanup_free_ char *line = NULL;
	unsigned char r = CC_ERROR;
	size_t cursor;

	(void)c;
	el_get(el, EL_CLIENTDATA, &e);
	line = take_line(el, &cursor);
	if (!line)
		return CC_ERROR;
	/* At the beginning there is nothing to complete: a step in. */
	if (cursor <= strspn(line, " ")) {
		el_insertstr(el, "    ");
		return CC_REFRESH;
	}
	e->config.complete(e->config.arg, line, cursor, &m);
	plain.texts = calloc(m.n + 1, sizeof(*plain.texts));
	plain.start = m.start;
	for (size_t i = 0; plain.texts && i < m.n; i++)
		if (is_plain(m.texts[i]))
			plain.texts[plain.n++] = m.texts[i];
	if (plain.texts)
		r = apply_matches(e, cursor, &plain);
	free(plain.texts);
	for (size_t i = 0; i < m.n; i++)
		free(m.texts[i]);
	free(m.texts);
	return r;
}

static unsigned char on_inspect(EditLine *el, int c)
{
	struct session_edit *e;
	_cleanup_free_ char *line = NULL, *text = NULL;
	size_t cursor;

	(void)c;
	el_get(el, EL_CLIENTDATA, &e);
	line = take_line(el, &cursor);
	if (line)
		text = e->config.inspect(e->config.arg, line, cursor);
	if (!text || !*text)
		return CC_ERROR;
	putchar('\n');
	session_edit_print(text);
	return CC_REDISPLAY;
}

/* ---- what is pasted ---- */

static void add_character(struct buf *b, wchar_t c)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t n;

	if (c == L'\t' || c == L'\n' || (c >= 0x20 && c != 0x7f)) {
		n = wcrtomb(bytes, c, &state);
		if (n != (size_t)-1)
			(void)!buf_add(b, bytes, n);
	}
}

/* Up to the terminal's mark of its end. */
static void read_paste(EditLine *el, struct buf *b)
{
	const wchar_t *end = PASTE_END;
	size_t matched = 0;
	wchar_t c, last = 0;

	while (matched < wcslen(end) && el_wgetc(el, &c) == 1) {
		if (c == end[matched]) {
			matched++;
			continue;
		}
		for (size_t i = 0; i < matched; i++)
			add_character(b, end[i]);
		matched = c == end[0];
		if (matched)
			continue;
		/* Terminals send Enter for the end of a line. */
		if (c == L'\r')
			c = L'\n', last = L'\r';
		else if (c == L'\n' && last == L'\r') {
			last = 0;
			continue;
		} else
			last = 0;
		add_character(b, c);
	}
}

/* Takes away and returns what is behind the cursor. */
static char *take_rest(EditLine *el)
{
	const LineInfo *info = el_line(el);
	size_t len = (size_t)(info->lastchar - info->cursor);
	char *rest = strndup(info->cursor, len);
	int n = (int)characters(info->cursor, len);

	if (rest && n) {
		el_cursor(el, n);
		el_deletestr(el, n);
	}
	return rest;
}

static unsigned char on_paste(EditLine *el, int c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PASTE_MAX);
	_cleanup_free_ char *rest = NULL;
	struct session_edit *e;
	char *newline, *last;

	(void)c;
	el_get(el, EL_CLIENTDATA, &e);
	read_paste(el, &b);
	if (b.failed || !b.len)
		return b.failed ? CC_ERROR : CC_REFRESH;
	newline = strchr(b.data, '\n');
	if (!newline)
		return el_insertstr(el, b.data) < 0 ? CC_ERROR : CC_REFRESH;
	rest = take_rest(el);
	last = strrchr(b.data, '\n');
	*newline = '\0';
	*last = '\0';
	free(e->tail);
	e->tail = NULL;
	if (asprintf(&e->tail, "%s%s", last + 1, rest ? rest : "") < 0)
		e->tail = NULL;
	e->pasted.len = 0;
	if (newline != last)
		(void)!buf_addf(&e->pasted, "%s\n", newline + 1);
	if (*b.data && el_insertstr(el, b.data) < 0)
		return CC_ERROR;
	e->why = EDIT_PASTED;
	el_push(el, "\n");
	return CC_REFRESH;
}

/* ---- reading ---- */

/* As if it were typed: no key of it means more than itself. */
static void put_tail(struct session_edit *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PASTE_MAX);

	for (const char *c = e->tail; c && *c; c++) {
		/* Ctrl-V: what follows is itself. */
		if (*c == '\t')
			(void)!buf_add(&b, "\026", 1);
		(void)!buf_add(&b, c, 1);
	}
	if (b.len)
		el_push(e->el, b.data);
	free(e->tail);
	e->tail = NULL;
}

/* The other lines of a paste, to be seen as if they had been typed. */
static void take_pasted(struct session_edit *e)
{
	char *line = e->pasted.len ? e->pasted.data : NULL;

	while (line && *line) {
		char *end = strchr(line, '\n');

		*end = '\0';
		printf("%s%s\n", e->config.more, line);
		keep(e, line);
		(void)!buf_addf(&e->line, "\n%s", line);
		line = end + 1;
	}
	e->pasted.len = 0;
}

enum session_edit_got session_edit_read(struct session_edit *e, const char *prompt,
					const char **ret)
{
	const char *text;
	sigset_t set;
	int n = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, &e->old);
	e->prompt = prompt;
	e->why = EDIT_LINE;
	e->line.len = 0;
	*ret = "";
	el_resize(e->el);
	put_tail(e);
	/* Before there is a prompt, not only when a key is waited for: until then the terminal
	 * would take Ctrl-D for itself. */
	el_set(e->el, EL_PREP_TERM, 1);
	fputs("\033[?2004h", stdout);
	fflush(stdout);
	text = el_gets(e->el, &n);
	fputs("\033[?2004l", stdout);
	sigprocmask(SIG_SETMASK, &e->old, NULL);
	if (!text || n <= 0) {
		putchar('\n');
		fflush(stdout);
		el_reset(e->el);
		return e->why == EDIT_LINE ? EDIT_END : e->why;
	}
	(void)!buf_add(&e->line, text, (size_t)n - (text[n - 1] == '\n'));
	keep(e, e->line.len ? e->line.data : "");
	if (e->why == EDIT_PASTED)
		take_pasted(e);
	fflush(stdout);
	*ret = e->line.len ? e->line.data : "";
	return e->why;
}

/* ---- its beginning and end ---- */

static void bind(EditLine *el)
{
	static const char *const keys[][2] = {
		{"^I", "pale-complete"},	   {"\\e[Z", "pale-inspect"},
		{"\\e[200~", "pale-paste"},	   {"^R", "em-inc-search-prev"},
		{"\\e[3~", "ed-delete-next-char"}, {"\\e[1;5C", "em-next-word"},
		{"\\e[1;5D", "ed-prev-word"},	   {"\\e[1~", "ed-move-to-beg"},
		{"\\e[4~", "ed-move-to-end"},	   {"\\e[H", "ed-move-to-beg"},
		{"\\e[F", "ed-move-to-end"},
	};

	/* Wide: of other texts it makes copies, and loses them. */
	el_wset(el, EL_ADDFN, L"pale-complete", L"Complete the name", on_tab);
	el_wset(el, EL_ADDFN, L"pale-inspect", L"Say what is known of the name", on_inspect);
	el_wset(el, EL_ADDFN, L"pale-paste", L"Take what is pasted", on_paste);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

int session_edit_new(const struct session_edit_config *config, struct session_edit **ret,
		     struct pale_err *err)
{
	struct session_edit *e = calloc(1, sizeof(*e));
	HistEvent event;
	sigset_t set;

	*ret = e;
	if (!e)
		return err_nomem(err, STAGE);
	e->config = *config;
	e->fd = e->stops = -1;
	e->pasted = BUF_INIT(PASTE_MAX);
	e->line = BUF_INIT(2 * PASTE_MAX);
	/* Code is UTF-8, wherever we are; this one needs no file. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return err_set(err, PALE_E_HOST, STAGE, 0, "there is no locale C.UTF-8");
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGWINCH);
	e->stops = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	e->history = history_init();
	e->el = el_init("pale", stdin, stdout, stderr);
	if (e->stops < 0 || !e->history || !e->el)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot edit lines here");
	history(e->history, &event, H_SETSIZE, REMEMBERED);
	history(e->history, &event, H_SETUNIQUE, 1);
	el_set(e->el, EL_CLIENTDATA, e);
	el_set(e->el, EL_PROMPT, show_prompt);
	el_set(e->el, EL_EDITOR, "emacs");
	el_set(e->el, EL_SIGNAL, 0);
	el_set(e->el, EL_HIST, history, e->history);
	el_set(e->el, EL_GETCFN, get_char);
	bind(e->el);
	load_history(e);
	return 0;
}

void session_edit_free(struct session_edit *e)
{
	if (!e)
		return;
	if (e->el)
		el_end(e->el);
	if (e->history)
		history_end(e->history);
	close_fd(&e->fd);
	close_fd(&e->stops);
	buf_done(&e->pasted);
	buf_done(&e->line);
	free(e->tail);
	free(e);
}
