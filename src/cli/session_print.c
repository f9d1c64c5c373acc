/* What an execution prints and shows: see session_print.h. In the caller's process. Hostile: what
 * came from the box. Its output, its values and its tracebacks are passed on as they are, like the
 * output of `pale run`; what stands in our own lines is escaped, and names of files are ours. */
#include "cli/session_print.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/blocked.h"
#include "cli/session.h"

/* ---- text ---- */

static void put(struct session_print *p, FILE *f, const char *text, size_t len)
{
	if (!len)
		return;
	if (fwrite(text, 1, len, f) != len || fflush(f) != 0)
		p->failed |= f == stdout;
	p->in_line[f == stderr] = text[len - 1] != '\n';
}

static void put_text(struct session_print *p, FILE *f, const json_t *text)
{
	put(p, f, json_string_value(text) ? json_string_value(text) : "", json_string_length(text));
}

/* A line that begins a line. */
static void put_line(struct session_print *p, FILE *f, const json_t *text)
{
	put_text(p, f, text);
	if (p->in_line[f == stderr])
		put(p, f, "\n", 1);
}

void session_print_end_line(struct session_print *p)
{
	/* Also where both streams are the same terminal. */
	fflush(stdout);
	if (p->in_line[1] || (p->in_line[0] && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO)))
		fputc('\n', stderr);
	p->in_line[0] = p->in_line[0] && !isatty(STDOUT_FILENO);
	p->in_line[1] = false;
}

static void print_output(struct session_print *p, FILE *f, const json_t *event)
{
	const json_t *encoded = json_object_get(event, "base64");
	_cleanup_free_ char *data = NULL;
	size_t len;

	if (!encoded)
		put_text(p, f, json_object_get(event, "text"));
	else if (base64_decode(json_string_value(encoded) ? json_string_value(encoded) : "",
			       json_string_length(encoded), &data, &len) == 0)
		put(p, f, data, len);
}

/* The last line of a traceback says what it was, as Python has it, or the first one, as node. */
static void print_error(struct session_print *p, const json_t *event)
{
	const char *name = cli_string_at(event, "name"), *message = cli_string_at(event, "message"),
		   *traceback = cli_string_at(event, "traceback");
	bool colour = cli_colour(stderr);
	size_t len = strlen(traceback), last, first = strcspn(traceback, "\n");

	session_print_end_line(p);
	while (len && traceback[len - 1] == '\n')
		len--;
	for (last = len; last && traceback[last - 1] != '\n'; last--)
		;
	if (len && *name && str_starts(traceback, name)) {
		fprintf(stderr, "%s%.*s%s%.*s\n", colour ? "\033[31m" : "", (int)first, traceback,
			colour ? "\033[0m" : "", (int)(len - first), traceback + first);
		return;
	}
	if (!str_starts(traceback + last, name) || !len) {
		/* It only says where. */
		if (len)
			fprintf(stderr, "%.*s\n", (int)len, traceback);
		fprintf(stderr, "%s%s%s%s%s\n", colour ? "\033[31m" : "", name,
			*message ? ": " : "", message, colour ? "\033[0m" : "");
		return;
	}
	fprintf(stderr, "%.*s%s%.*s%s\n", (int)last, traceback, colour ? "\033[31m" : "",
		(int)(len - last), traceback + last, colour ? "\033[0m" : "");
}

void session_print_note(struct session_print *p, const char *text)
{
	if (p->quiet)
		return;
	session_print_end_line(p);
	fputs("pale: ", stderr);
	cli_print_escaped(stderr, text + (str_starts(text, "pale: ") ? 6 : 0));
	fputc('\n', stderr);
}

void session_print_prompt(struct session_print *p, const json_t *event)
{
	fflush(stdout);
	put_text(p, stderr, json_object_get(event, "prompt"));
	/* What is typed ends the line. */
	p->in_line[0] = p->in_line[1] = false;
}

/* ---- displays ---- */

static const char *suffix_of(const char *mime)
{
	static const struct {
		const char *mime, *suffix;
	} known[] = {
		{"image/png", "png"},	      {"image/jpeg", "jpg"},	{"image/gif", "gif"},
		{"image/webp", "webp"},	      {"image/svg+xml", "svg"}, {"application/pdf", "pdf"},
		{"application/json", "json"}, {"text/html", "html"},	{"text/markdown", "md"},
		{"text/latex", "tex"},	      {"text/plain", "txt"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].mime, mime) == 0)
			return known[i].suffix;
	if (str_ends(mime, "+json"))
		return "json";
	return str_starts(mime, "text/") ? "txt" : "bin";
}

/* Over what is there under this name, in one step. */
static int write_file(int dir, const char *name, const char *data, size_t len)
{
	char temporary[96];
	_cleanup_close_ int fd = -1;
	int r;

	snprintf(temporary, sizeof(temporary), ".%s.%d", name, getpid());
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, len);
	if (r == 0 && renameat(dir, temporary, dir, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir, temporary, 0);
	return r;
}

static int save(const char *where, const char *name, const char *data, size_t len)
{
	_cleanup_close_ int dir = -1;

	if (mkdir(where, 0777) < 0 && errno != EEXIST)
		return -errno;
	dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : write_file(dir, name, data, len);
}

/* One of a bundle's forms: its bytes, for the caller to free. */
static int bytes_of(const json_t *value, char **ret, size_t *ret_len)
{
	const json_t *encoded = json_object_get(value, "base64");
	const char *text = json_string_value(value);

	*ret = NULL;
	if (encoded && json_string_value(encoded))
		return base64_decode(json_string_value(encoded), json_string_length(encoded), ret,
				     ret_len);
	*ret_len = json_string_length(value);
	*ret = text ? malloc(*ret_len + 1) : NULL;
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, text, *ret_len + 1);
	return 0;
}

static void print_form(struct session_print *p, json_int_t number, const char *mime,
		       const json_t *value)
{
	_cleanup_free_ char *data = NULL;
	char name[64], size[NUM_TEXT];
	size_t len = 0;
	int r = bytes_of(value, &data, &len);

	if (r == 0 && p->display_dir) {
		snprintf(name, sizeof(name), "exec-%u-%lld.%s", p->execution, (long long)number,
			 suffix_of(mime));
		r = save(p->display_dir, name, data, len);
	}
	session_print_end_line(p);
	if (r < 0 && p->display_failed)
		return;
	p->display_failed |= r < 0;
	if (r < 0)
		fprintf(stderr, "pale: cannot write what is shown to %s: %s\n",
			QUOTED(p->display_dir ? p->display_dir : ""), strerror(-r));
	else if (p->display_dir)
		fprintf(stderr, "[%s, %s: %s/%s]\n", mime, num_round_size(size, len),
			p->display_dir, name);
	else if (!p->quiet)
		fprintf(stderr, "[%s, %s: --display DIR saves it]\n", mime,
			num_round_size(size, len));
}

/* Of several forms of the same thing text is what a terminal shows; a picture is more than its
 * text. MIME types were checked by the supervisor. */
static void print_bundle(struct session_print *p, const json_t *event)
{
	json_t *data = json_object_get(event, "data"), *value;
	const json_t *text = json_object_get(data, "text/plain");
	const char *mime;

	if (text)
		put_line(p, stdout, text);
	json_object_foreach(data, mime, value)
	{
		bool picture = str_starts(mime, "image/") || str_starts(mime, "application/pdf");

		if (value == text || (text && !picture && !p->display_dir) || !cli_is_clean(mime))
			continue;
		print_form(p, cli_int_at(event, "display"), mime, value);
	}
}

/* ---- events ---- */

static void print_line(struct session_print *p, json_t *o)
{
	if (!o || json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 ||
	    putchar('\n') == EOF || fflush(stdout) != 0)
		p->failed = true;
	json_decref(o);
}

void session_print_begin(struct session_print *p, uint32_t execution)
{
	p->execution = execution;
	p->in_line[0] = p->in_line[1] = false;
	if (p->form == SESSION_JSON)
		p->events = json_array();
	if (p->form == SESSION_STREAM)
		print_line(p, json_pack("{s:s, s:I}", "type", "execution", "execution",
					(json_int_t)execution));
}

void session_print_event(struct session_print *p, const json_t *event)
{
	const char *type = cli_string_at(event, "type");
	json_int_t n = cli_int_at(event, "n");

	if (n > p->next && p->form == SESSION_TEXT)
		session_print_note(p, "some of its output is left out here");
	p->next = n + 1;
	if (p->form == SESSION_JSON)
		json_array_append(p->events, (json_t *)(uintptr_t)event);
	else if (p->form == SESSION_STREAM)
		print_line(p, json_copy((json_t *)(uintptr_t)event));
	else if (strcmp(type, "stdout") == 0)
		print_output(p, stdout, event);
	else if (strcmp(type, "stderr") == 0)
		print_output(p, stderr, event);
	else if (strcmp(type, "display") == 0 || strcmp(type, "result") == 0)
		print_bundle(p, event);
	else if (strcmp(type, "error") == 0)
		print_error(p, event);
	else if (strcmp(type, "note") == 0)
		session_print_note(p, cli_string_at(event, "text"));
}

/* ---- the end ---- */

int session_status(const json_t *result)
{
	const char *outcome = cli_string_at(result, "outcome");
	const json_t *status = json_object_get(result, "status");
	int code = json_is_integer(status) ? (int)(json_integer_value(status) & 0xff) : -1;

	if (strcmp(outcome, "ok") == 0 || strcmp(outcome, "ended") == 0)
		return code < 0 ? 0 : code;
	if (strcmp(outcome, "error") == 0)
		return code <= 0 ? 1 : code;
	if (strcmp(outcome, "interrupted") == 0)
		return 130;
	if (strcmp(outcome, "died") == 0)
		return code <= 0 ? 137 : code;
	if (strcmp(outcome, "timeout") == 0 || strcmp(outcome, "cpu") == 0 ||
	    strcmp(outcome, "output") == 0 || strcmp(outcome, "memory") == 0)
		return CLI_EXIT_LIMIT;
	return CLI_EXIT_PALE;
}

static const char *what_ended(const json_t *result, char out[static 128])
{
	const char *outcome = cli_string_at(result, "outcome");
	char time[NUM_TEXT];

	if (strcmp(outcome, "timeout") == 0) {
		snprintf(out, 128, "its time was up after %s",
			 num_round_duration(time, (uint64_t)cli_int_at(result, "wall_ms")));
		return out;
	}
	if (strcmp(outcome, "cpu") == 0)
		return "its processor time was used up";
	if (strcmp(outcome, "output") == 0)
		return "it printed more than it may";
	if (strcmp(outcome, "memory") == 0)
		return "the box's memory was used up";
	if (strcmp(outcome, "interrupted") == 0)
		return "interrupted";
	return NULL;
}

const char *session_print_back(const json_t *result, char *buf)
{
	long long back = cli_int_at(result, "files_back"),
		  failed = cli_int_at(result, "files_failed");
	char why[400];

	if (!json_is_integer(json_object_get(result, "files_back"))) {
		const char *text = cli_string_at(result, "files_why");

		snprintf(buf, SESSION_BACK, " are as they were before it, but no files (%s)",
			 str_escape_into(why, sizeof(why), text, strlen(text)));
	} else if (failed) {
		snprintf(buf, SESSION_BACK,
			 ", and %lld file%s, are as they were before it; %lld could not be brought "
			 "back",
			 back, back == 1 ? "" : "s", failed);
	} else if (back) {
		snprintf(buf, SESSION_BACK, ", and %lld file%s, are as they were before it", back,
			 back == 1 ? "" : "s");
	} else {
		snprintf(buf, SESSION_BACK, " are as they were before it");
	}
	return buf;
}

/* What it cost, in words. */
static const char *what_became(const json_t *result, char *buf)
{
	const char *state = cli_string_at(result, "state");

	if (strcmp(state, "held") == 0) {
		memcpy(buf, "variables", 10);
		session_print_back(result, buf + 9);
		return buf;
	}
	if (strcmp(state, "fresh") == 0)
		return "a fresh interpreter took its place, and variables are gone";
	if (strcmp(state, "gone") == 0)
		return "the session ended with it";
	return "variables are kept, as it left them";
}

static void print_end(struct session_print *p, const json_t *result)
{
	const char *outcome = cli_string_at(result, "outcome"),
		   *state = cli_string_at(result, "state"), *ended,
		   *on = cli_colour(stderr) ? "\033[33m" : "", *off = *on ? "\033[0m" : "",
		   *not_armed = cli_string_at(result, "not_armed");
	char text[128], became[SESSION_BACK + 10];

	ended = what_ended(result, text);
	/* Whoever interrupts it sees that it has ended. */
	if (strcmp(outcome, "interrupted") == 0 && strcmp(state, "kept") == 0)
		ended = NULL;
	session_print_end_line(p);
	if (ended) {
		fprintf(stderr, "%spale: %s: %s", on, ended, what_became(result, became));
		if (strcmp(state, "fresh") == 0 && *not_armed) {
			fputs(" (their state was not held: ", stderr);
			cli_print_escaped(stderr, not_armed);
			fputc(')', stderr);
		}
		fprintf(stderr, "%s\n", off);
	} else if (strcmp(outcome, "ended") == 0) {
		fprintf(stderr,
			"%spale: the interpreter ended itself: variables are gone, and the next "
			"execution has a fresh one%s\n",
			on, off);
	} else if (session_status(result) == CLI_EXIT_PALE &&
		   !json_is_integer(json_object_get(result, "status"))) {
		fprintf(stderr, "%spale: the session has ended (%s)%s\n", on,
			cli_is_clean(outcome) ? outcome : "?", off);
	}
}

int session_print_result(struct session_print *p, json_t *result, const char *run)
{
	_cleanup_json_ json_t *o = result;
	const json_t *blocked = json_object_get(result, "blocked");
	int status = session_status(result);

	if (p->form == SESSION_JSON) {
		json_object_set_new(o, "exit_status", json_integer(status));
		json_object_set_new(o, "events", take_ptr(p->events));
		print_line(p, take_ptr(o));
	} else if (p->form == SESSION_STREAM) {
		json_object_set_new(o, "exit_status", json_integer(status));
		print_line(p, json_pack("{s:s, s:O}", "type", "end", "result", o));
	} else if (!p->quiet) {
		print_end(p, o);
		if (json_array_size(blocked)) {
			session_print_end_line(p);
			cli_print_blocked(blocked, json_array_size(blocked), run);
		}
		if (json_array_size(json_object_get(o, "hints"))) {
			session_print_end_line(p);
			cli_print_hints(o);
		}
	}
	return status;
}
