/* Jupyter's connection files: see jupyter.h.
 *
 * Runs in `pale jupyter-kernel` before it plans, with the caller's rights. The file is the user's
 * own Jupyter's, and trusted; it is checked all the same, since what is wrong in it would else show
 * as a kernel that never answers. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/jupyter.h"

#define STAGE	       "cli"
#define MAX_BYTES      65536
#define IPC_PORT_MAX   1000000 /* there a port is only the end of a name */
#define LOOK_AGAIN_US  20000
#define SIGNATURE_NAME "hmac-sha256"
#define SCHEME_SET     "abcdefghijklmnopqrstuvwxyz0123456789-_"

/* In the box: above the ports that the kernel hands out by itself, beside Pale's own. */
#define FIRST_PORT 61001

static const char *const channels[JUPYTER_CHANNELS] = {"shell", "iopub", "stdin", "control", "hb"};

static int wrong(struct pale_err *err, const char *path, const char *what)
{
	return err_set(err, PALE_E_USAGE, STAGE, 0, "the connection file %s: %s", QUOTED(path),
		       what);
}

static int load(const char *path, json_t **ret, struct pale_err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_buf_ struct buf text = BUF_INIT(MAX_BYTES);
	json_error_t at;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, PALE_E_NOTFOUND, STAGE, errno,
			       "cannot open the connection file %s: it is Jupyter that makes it",
			       QUOTED(path));
	if (!S_ISREG(st.st_mode))
		return wrong(err, path, "it is no regular file");
	r = buf_read_fd(&text, fd);
	if (r == -ENOSPC)
		return wrong(err, path, "it is too large");
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot read the connection file %s",
			       QUOTED(path));
	*ret = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &at);
	if (!*ret)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "the connection file %s is no JSON: line %d: %s", QUOTED(path),
			       at.line, at.text);
	return json_is_object(*ret) ? 0 : wrong(err, path, "it is no JSON object");
}

static const char *text_of(const json_t *o, const char *key, const char *fallback)
{
	const json_t *value = json_object_get(o, key);

	return value ? json_string_value(value) : fallback;
}

/* What the host's sockets are named after, with its directory as it really is: the sockets are made
 * without following links. */
static int real_base(const char *path, const char *ip, char ret[static PATH_MAX],
		     struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(ip), *dir = NULL;
	const char *name = strrchr(ip, '/');
	int n;

	name = name ? name + 1 : ip;
	dir = copy ? realpath(dirname(copy), NULL) : NULL;
	if (!copy)
		return err_nomem(err, STAGE);
	if (!*name)
		return wrong(err, path, "`ip` is no beginning of a socket's path");
	if (!dir)
		return err_set(err, PALE_E_USAGE, STAGE, errno,
			       "the connection file %s: the directory of the sockets %s",
			       QUOTED(path), QUOTED(ip));
	n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
	return n > 0 && n < PATH_MAX ? 0 : wrong(err, path, "`ip` is too long");
}

static bool is_loopback(const char *ip)
{
	return strcmp(ip, "127.0.0.1") == 0 || strcmp(ip, "localhost") == 0 ||
	       strcmp(ip, "::1") == 0;
}

static int read_ports(const char *path, const json_t *o, const char *base,
		      struct jupyter_connection *ret, struct pale_err *err)
{
	json_int_t ports[JUPYTER_CHANNELS], max = base ? IPC_PORT_MAX : 65535;

	for (size_t i = 0; i < JUPYTER_CHANNELS; i++) {
		const json_t *port;
		char name[16];
		int n;

		snprintf(name, sizeof(name), "%s_port", channels[i]);
		port = json_object_get(o, name);
		ports[i] = json_integer_value(port);
		if (!json_is_integer(port) || ports[i] < 1 || ports[i] > max)
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "the connection file %s: `%s` is no port", QUOTED(path),
				       name);
		for (size_t k = 0; k < i; k++)
			if (ports[k] == ports[i])
				return err_set(
					err, PALE_E_USAGE, STAGE, 0,
					"the connection file %s: `%s` is the port of `%s_port`, "
					"too",
					QUOTED(path), name, channels[k]);
		n = base ? asprintf(&ret->publish[i], "%s-%lld:%zu", base, (long long)ports[i],
				    FIRST_PORT + i)
			 : asprintf(&ret->publish[i], "%lld:%zu", (long long)ports[i],
				    FIRST_PORT + i);
		if (n < 0) {
			ret->publish[i] = NULL;
			return err_nomem(err, STAGE);
		}
	}
	return 0;
}

/* Options, not a connection file of its own: before ipykernel reads the address from one, it starts
 * other programs to list those of the machine. */
static int set_options(struct jupyter_connection *c, const char *scheme, struct pale_err *err)
{
	int r = asprintf(&c->options[0], "--ip=127.0.0.1");

	if (r >= 0)
		r = asprintf(&c->options[1], "--Session.signature_scheme=%s", scheme);
	for (size_t i = 0; r >= 0 && i < JUPYTER_CHANNELS; i++)
		r = asprintf(&c->options[2 + i], "--%s=%zu", channels[i], FIRST_PORT + i);
	return r < 0 ? err_nomem(err, STAGE) : 0;
}

static int check(const char *path, json_t *o, struct jupyter_connection *ret, struct pale_err *err)
{
	const char *transport = text_of(o, "transport", "tcp"), *ip = text_of(o, "ip", "127.0.0.1"),
		   *key = text_of(o, "key", ""),
		   *scheme = text_of(o, "signature_scheme", SIGNATURE_NAME);
	char base[PATH_MAX];
	bool ipc;
	int r = 0;

	if (!transport || !ip || !key || !scheme)
		return wrong(err, path,
			     "`transport`, `ip`, `key` and `signature_scheme` are texts");
	if (!str_starts(scheme, "hmac-") || scheme[strspn(scheme, SCHEME_SET)])
		return wrong(err, path, "`signature_scheme` is none that Jupyter has");
	ipc = strcmp(transport, "ipc") == 0;
	if (!ipc && strcmp(transport, "tcp") != 0)
		return wrong(err, path, "`transport` is neither tcp nor ipc");
	if (!ipc && !is_loopback(ip))
		return wrong(err, path,
			     "`ip` is not loopback: a kernel in a box is reached from this machine "
			     "only");
	if (ipc)
		r = real_base(path, ip, base, err);
	if (r == 0)
		r = read_ports(path, o, ipc ? base : NULL, ret, err);
	if (r == 0)
		r = set_options(ret, scheme, err);
	ret->key = strdup(key);
	return r < 0 || ret->key ? r : err_nomem(err, STAGE);
}

int jupyter_connection_read(const char *path, struct jupyter_connection *ret, struct pale_err *err)
{
	json_t *o = NULL;
	int r = load(path, &o, err);

	*ret = (struct jupyter_connection){0};
	if (r == 0)
		r = check(path, o, ret, err);
	json_decref(o);
	return r;
}

void jupyter_connection_done(struct jupyter_connection *c)
{
	for (size_t i = 0; i < JUPYTER_CHANNELS; i++)
		free(c->publish[i]);
	for (size_t i = 0; i < ARRAY_SIZE(c->options); i++)
		free(c->options[i]);
	free(c->key);
}

/* --- waiting for the kernel before ------------------------------------------------------------ */

static bool is_taken(const char *place)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_un un;
	} at = {0};
	const char *colon = strrchr(place, ':');
	size_t n = (size_t)(colon - place);
	bool path = *place == '/';
	_cleanup_close_ int fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		return false;
	if (path) {
		if (n >= sizeof(at.un.sun_path))
			return false; /* said where it is published */
		at.un.sun_family = AF_UNIX;
		memcpy(at.un.sun_path, place, n);
		return connect(fd, &at.sa, sizeof(at.un)) == 0;
	}
	at.in.sin_family = AF_INET;
	at.in.sin_port = htons((uint16_t)strtoul(place, NULL, 10));
	at.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(fd, &at.sa, sizeof(at.in)) < 0 && errno == EADDRINUSE;
}

void jupyter_connection_wait(const struct jupyter_connection *c, unsigned ms)
{
	static const struct timespec pause = {.tv_nsec = LOOK_AGAIN_US * 1000};
	uint64_t until = clock_mono_us() + ms * 1000ULL;

	for (size_t i = 0; i < JUPYTER_CHANNELS; i++)
		while (is_taken(c->publish[i]) && clock_mono_us() < until)
			nanosleep(&pause, NULL);
}
