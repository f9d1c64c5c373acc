/* Running boxes for the library's callers: see pale.h. Runs in the caller's process with its
 * privileges and speaks to a supervisor of the same user, in whose directory nobody else can put a
 * socket. What is answered is bounded all the same. */
#include "api.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "audit/state.h"
#include "base/num.h"
#include "base/str.h"
#include "policy/network_change.h"
#include "supervise/control.h"
#include "supervise/runtime.h"
#include "supervise/session_name.h"

#define STAGE	  "supervise"
#define CONNECT_S 5
#define ANSWER_S  30 /* longer than the supervisor waits for the broker */
#define LOOK_S	  5

/* ---- which box ---- */

/* Does it run, and has it a control socket? */
static int look_at(const struct audit_state *s, const char *id, bool *ret_live, bool *ret_door)
{
	_cleanup_close_ int dir = -1, log = -1;
	char to[2];
	int r = audit_state_run(s, id, O_RDONLY, &dir, &log, NULL);

	if (r < 0)
		return r;
	*ret_live = audit_locked(log);
	*ret_door = readlinkat(dir, RUNTIME_LINK, to, sizeof(to)) > 0;
	return 0;
}

/* Of a box that runs only its supervisor knows whether it is a session, or a pool's that nobody has
 * taken, which is not meant by anybody. One that does not answer may be one. */
static bool is_meant(const char *id, bool session)
{
	struct pale_err ignored;
	_cleanup_close_ int fd = api_door_open(id, &ignored);
	json_t *info = NULL, *shown;
	bool yes;

	if (fd < 0)
		return !session;
	if (api_door_ask(fd, id, "info", json_object(), LOOK_S, NULL, &info, &ignored) < 0)
		return ignored.code == PALE_E_SYSTEM;
	shown = json_object_get(info, "session");
	yes = shown ? !json_is_true(json_object_get(shown, "held")) : !session;
	json_decref(info);
	return yes;
}

static int none_found(const char *ref, bool session, const char *where, struct pale_err *err)
{
	if (session && ref)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       "there is no session %s; `pale session ls` lists those that run",
			       QUOTED(ref));
	if (session)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       "no session runs (in %s); `pale session new` starts one",
			       QUOTED(where));
	if (!ref)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       "no session, and no box with network rules, runs (in %s)",
			       QUOTED(where));
	return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
		       "no box %s runs; `pale audit list --outcome running` shows those that do",
		       QUOTED(ref));
}

static int find(const char *ref, bool session, char ret[static PALE_ID_SIZE], struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	_cleanup_buf_ struct buf names = BUF_INIT(400);
	size_t n = 0, found = 0;
	/* No id has an l. */
	bool last = ref && strcmp(ref, "last") == 0;
	int r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	if (last)
		ref = NULL;
	r = audit_state_list_active(&s, &ids, &n);
	if (r < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -r, "reading the list of live runs");
	for (size_t i = 0; i < n; i++) {
		bool live = false, door = false;

		if (ref && strncasecmp(ids[i], ref, strlen(ref)) != 0)
			continue;
		if (look_at(&s, ids[i], &live, &door) < 0 || !live || (!ref && !door))
			continue;
		/* Ids sort by time. */
		if (last && found && strcmp(ids[i], ret) < 0)
			continue;
		if ((session && !door) || ((session || !ref) && !is_meant(ids[i], session)))
			continue;
		memcpy(ret, ids[i], AUDIT_ID_SIZE);
		buf_addf(&names, "%s%s", found++ ? ", " : "", ids[i]);
	}
	if (found == 1 || (found && last))
		return 0;
	if (found > 1)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "%zu %s %s: say which: %s%s", found,
			       session ? "sessions" : "boxes", ref ? "begin so" : "run",
			       names.data ? names.data : "", names.failed ? ", ..." : "");
	return none_found(last ? "last" : ref, session, s.path, err);
}

/* By its name, which a supervisor that was killed leaves behind. */
static int find_name(const char *name, char ret[static PALE_ID_SIZE], struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	struct pale_err ignored;
	bool live = false, door = false;
	int r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	if (session_name_find(&s, name, ret, &ignored) < 0)
		return 1;
	if (look_at(&s, ret, &live, &door) == 0 && live)
		return 0;
	return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
		       "the session %s has ended (%s): `pale audit show` tells how, and `pale "
		       "session ls` which run",
		       QUOTED(name), ret);
}

int api_box_find(const char *ref, bool session, char ret[static PALE_ID_SIZE], struct pale_err *err)
{
	int r = 1;

	if (session && ref && session_name_valid(ref))
		r = find_name(ref, ret, err);
	return r <= 0 ? r : find(ref, session, ret, err);
}

int pale_box_find(const char *ref, char ret[PALE_ID_SIZE], struct pale_err *err)
{
	NEED_ERR(err);
	if (ref && !*ref)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "the box's id is empty");
	return find(ref, false, ret, err);
}

/* ---- asking ---- */

static int open_socket(const char *id, struct pale_err *err)
{
	static const struct timeval connect_time = {.tv_sec = CONNECT_S};
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_close_ int run = -1, dir = -1, fd = -1;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int r = audit_state_open(&s, err);

	if (r == 0)
		r = audit_state_run(&s, id, 0, &run, NULL, err);
	if (r < 0)
		return r;
	dir = runtime_open(id, run, err);
	if (dir < 0)
		return dir;
	runtime_socket_name(dir, at.sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &connect_time, sizeof(connect_time)) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err,
			       errno == ECONNREFUSED || errno == ENOENT ? PALE_E_NOTFOUND
									: PALE_E_SYSTEM,
			       STAGE, errno, "cannot reach the supervisor of box %s", id);
	return take_fd(&fd);
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Until fd is readable. 1: wake had enough. */
static int wait_for(int fd, unsigned timeout_s, const struct api_wake *wake)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = wake ? wake->fd : -1, .events = POLLIN}};

	for (;;) {
		int r = poll(fds, ARRAY_SIZE(fds), (int)timeout_s * 1000);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0)
			return -EAGAIN;
		if (r > 0 && fds[1].revents && wake->fn(wake->arg) != 0)
			return 1;
		if (r > 0 && fds[0].revents)
			return 0;
	}
}

/* Up to the newline. 1: wake had enough. */
static int receive(int fd, struct buf *b, unsigned timeout_s, const struct api_wake *wake)
{
	for (;;) {
		char *to = buf_room(b, 65536);
		ssize_t n;
		int r;

		if (!to)
			return -EMSGSIZE;
		r = wait_for(fd, timeout_s, wake);
		if (r != 0)
			return r;
		n = recv(fd, to, 65536, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		b->len += (size_t)n;
		if (b->data[b->len - 1] == '\n')
			return 0;
	}
}

static enum pale_code code_of(const char *name)
{
	static const struct {
		enum control_code control;
		enum pale_code code;
	} codes[] = {
		{CONTROL_ARGUMENTS, PALE_E_USAGE},	{CONTROL_POLICY, PALE_E_POLICY},
		{CONTROL_NOT_FOUND, PALE_E_NOTFOUND},	{CONTROL_CONFLICT, PALE_E_CONFLICT},
		{CONTROL_STATE, PALE_E_CONFLICT},	{CONTROL_REFUSED, PALE_E_HOST},
		{CONTROL_UNKNOWN_COMMAND, PALE_E_HOST}, {CONTROL_VERSION_UNKNOWN, PALE_E_HOST},
	};

	for (size_t i = 0; name && i < ARRAY_SIZE(codes); i++)
		if (strcmp(name, control_code_name(codes[i].control)) == 0)
			return codes[i].code;
	return PALE_E_SYSTEM;
}

/* The result within the answer, a new reference; or what it says went wrong. */
static int take_answer(const char *id, struct buf *line, json_t **ret, struct pale_err *err)
{
	/* What a session printed may have any character. */
	json_t *o = json_loadb(line->data, line->len, JSON_ALLOW_NUL, NULL);
	json_t *result = json_object_get(o, "result"), *error = json_object_get(o, "error");
	const char *message = json_string_value(json_object_get(error, "message"));
	const char *stage = json_string_value(json_object_get(error, "stage"));
	int r = 0;

	if (result)
		*ret = json_incref(result);
	else if (message)
		r = err_set(err, code_of(json_string_value(json_object_get(error, "code"))),
			    stage ? stage : STAGE, 0, "%s", message);
	else
		r = err_set(err, PALE_E_SYSTEM, STAGE, 0,
			    "the supervisor of box %s answers in a way that makes no sense", id);
	json_decref(o);
	return r;
}

int api_door_open(const char *id, struct pale_err *err)
{
	return open_socket(id, err);
}

int api_door_ask(int fd, const char *id, const char *command, json_t *arguments, unsigned timeout_s,
		 const struct api_wake *wake, json_t **ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf line = BUF_INIT(CONTROL_REPLY_MAX + 65536);
	json_t *o = arguments ? json_pack("{s:i, s:s, s:o}", "pale", CONTROL_VERSION, "command",
					  command, "arguments", arguments)
			      : NULL;
	_cleanup_free_ char *text = o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	size_t len;
	int r;

	json_decref(o);
	if (!text)
		return err_nomem(err, STAGE);
	len = strlen(text);
	if (len >= CONTROL_REQUEST_MAX)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "that is too much for one request: do it in parts");
	/* In one piece with its newline: it is one packet less. */
	text[len] = '\n';
	r = send_all(fd, text, len + 1);
	/* Whoever is turned away may be told why before it has said all. */
	if (r == 0 || r == -EPIPE)
		r = receive(fd, &line, timeout_s, wake);
	if (r == 1)
		return 1;
	if (r == -EAGAIN)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the supervisor of box %s does not answer", id);
	if (r == -ECONNRESET)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0, "box %s has ended", id);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot speak to the supervisor of box %s", id);
	return take_answer(id, &line, ret, err);
}

/* arguments are stolen. */
static int ask(const char *id, const char *command, json_t *arguments, json_t **ret,
	       struct pale_err *err)
{
	_cleanup_close_ int fd = open_socket(id, err);

	if (fd < 0) {
		json_decref(arguments);
		return fd;
	}
	return api_door_ask(fd, id, command, arguments, ANSWER_S, NULL, ret, err);
}

/* arguments are stolen; ret may be NULL. */
static int ask_text(const char *id, const char *command, json_t *arguments, char **ret,
		    struct pale_err *err)
{
	json_t *result = NULL;
	int r = ask(id, command, arguments, &result, err);

	if (r == 0 && ret) {
		*ret = json_dumps(result, JSON_COMPACT | JSON_ENSURE_ASCII);
		if (!*ret)
			r = err_nomem(err, STAGE);
	}
	json_decref(result);
	return r;
}

int pale_box_info(const char *id, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	*ret = NULL;
	return ask_text(id, "info", json_object(), ret, err);
}

int pale_box_network_show(const char *id, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	*ret = NULL;
	return ask_text(id, "network.show", json_object(), ret, err);
}

/* ---- a change ---- */

/* Read here and told as entries: presets are the caller's, and files are found from where it is. */
static int put_rules(json_t *arguments, const char *key, const char *const *rules, bool deny,
		     const char *reason, struct pale_err *err)
{
	_cleanup_change_ struct network_change c = {0};
	json_t *list = json_array();
	int r = network_change_init(&c, err);

	for (; r == 0 && rules && *rules; rules++)
		r = network_change_add(&c, deny, *rules, key, err);
	for (size_t i = 0; r == 0 && i < c.added->network.nrules; i++) {
		json_t *entry = network_rule_entry(c.added, i);

		if ((reason && json_object_set_new(entry, "reason", json_string(reason)) < 0) ||
		    json_array_append(list, entry) < 0)
			r = err_nomem(err, STAGE);
		json_decref(entry);
	}
	if (r == 0 && json_array_size(list) && json_object_set(arguments, key, list) < 0)
		r = err_nomem(err, STAGE);
	json_decref(list);
	return r;
}

static int put_removed(json_t *arguments, const char *const *removed, struct pale_err *err)
{
	json_t *list = json_array();
	int r = list ? 0 : err_nomem(err, STAGE);

	for (; r == 0 && removed && *removed; removed++) {
		uint64_t number;
		bool is_number = num_parse_u64(*removed, INT64_MAX, &number) == 0;

		if (!is_number && str_utf8_prefix(*removed, strlen(*removed)) != strlen(*removed))
			r = err_set(err, PALE_E_USAGE, STAGE, 0, "%s is no rule", QUOTED(*removed));
		else if (json_array_append_new(list, is_number ? json_integer((json_int_t)number)
							       : json_string(*removed)) < 0)
			r = err_nomem(err, STAGE);
	}
	if (r == 0 && json_array_size(list) && json_object_set(arguments, "remove", list) < 0)
		r = err_nomem(err, STAGE);
	json_decref(list);
	return r;
}

int pale_box_network_change(const char *id, const struct pale_network_change *change, char **ret,
			    struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_network_change c = {0};
	json_t *arguments;
	int r = api_take(&c, sizeof(c), change, "struct pale_network_change", err);

	if (ret)
		*ret = NULL;
	arguments = r < 0 ? NULL : json_object();
	if (r == 0 && !arguments)
		r = err_nomem(err, STAGE);
	if (r == 0 && c.reason &&
	    (!c.deny || str_utf8_prefix(c.reason, strlen(c.reason)) != strlen(c.reason)))
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "a reason is a text, for rules that deny");
	if (r == 0)
		r = put_rules(arguments, "allow", c.allow, false, NULL, err);
	if (r == 0)
		r = put_rules(arguments, "deny", c.deny, true, c.reason, err);
	if (r == 0)
		r = put_removed(arguments, c.remove, err);
	if (r == 0 && c.revision &&
	    json_object_set_new(arguments, "revision", json_integer((json_int_t)c.revision)) < 0)
		r = err_nomem(err, STAGE);
	if (r < 0) {
		json_decref(arguments);
		return r;
	}
	return ask_text(id, "network.change", arguments, ret, err);
}
