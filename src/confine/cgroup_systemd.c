/* Control groups, version 2 under systemd: the box becomes a transient scope (see cgroup.h).
 *
 * Runs in the supervisor with the caller's privileges. systemd is the only writer of the tree but
 * for what it delegates, and an unprivileged caller cannot move a process out of its login session
 * at all (the common ancestor belongs to root). So systemd is asked: the user's own manager over
 * the user bus, or for root the system's. One call makes pale-<id>.scope in pale.slice with the
 * limits as its properties and moves the box's first process in; the supervisor, which may be
 * somebody else's program with libpale in it, stays where it is.
 *
 * The scope is systemd's: it goes away by itself when the last process has ended, with every figure
 * in it. Hence cgroup_usage() keeps the last ones, and memory.oom.group is not set: the box's first
 * process, the smallest, survives the kernel's choice, and with it the scope until it was read. */
#include "confine/cgroup_impl.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "confine/dbus.h"

#define STAGE	   "confine"
#define TIMEOUT_US 5000000
#define BUS	   "org.freedesktop.DBus"
#define SYSTEMD	   "org.freedesktop.systemd1"
#define MANAGER	   SYSTEMD ".Manager"

/* Where systemd listens: a bus first, then its own socket (which needs no bus daemon). */
static const struct where {
	bool root;
	bool bus;
	const char *path; /* root: absolute; else below the runtime directory */
} wheres[] = {
	{true, true, "/run/dbus/system_bus_socket"},
	{true, false, "/run/systemd/private"},
	{false, true, "/bus"},
	{false, false, "/systemd/private"},
};

/* The user's runtime directory, if it is the user's. */
static bool runtime_dir(const char *given, uid_t uid, char *ret, size_t size)
{
	struct stat st;

	if (given && given[0] == '/' && stat(given, &st) == 0 && st.st_uid == uid)
		return snprintf(ret, size, "%s", given) < (int)size;
	snprintf(ret, size, "/run/user/%u", (unsigned)uid);
	return stat(ret, &st) == 0 && st.st_uid == uid;
}

static bool where_path(const struct where *w, const char *given, uid_t uid, char *ret, size_t size)
{
	char dir[160];

	if (w->root != (uid == 0))
		return false;
	if (w->root)
		return snprintf(ret, size, "%s", w->path) < (int)size;
	return runtime_dir(given, uid, dir, sizeof(dir)) &&
	       snprintf(ret, size, "%s%s", dir, w->path) < (int)size;
}

static bool reachable(const struct cgroup_source *src, struct cgroup_host *h)
{
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(wheres); i++) {
		if (where_path(&wheres[i], src->runtime_dir, src->uid, path, sizeof(path)) &&
		    cgroup_may(h, path, W_OK))
			return true;
	}
	return false;
}

void cgroup_systemd_probe(const struct cgroup_source *src, const struct cgroup_places *places,
			  struct cgroup_host *ret)
{
	const struct cgroup_place *p = &places->v2;
	char manager[PATH_MAX], text[256] = "";
	int n;

	if (!reachable(src, ret)) {
		if (src->uid == 0)
			cgroup_why(ret, "systemd does not answer on /run/dbus/system_bus_socket or "
					"/run/systemd/private");
		else
			cgroup_why(ret,
				   "no systemd user manager is running for uid %u: log in through "
				   "PAM with libpam-systemd and dbus-user-session installed, or "
				   "`loginctl enable-linger`",
				   (unsigned)src->uid);
		return;
	}
	if (src->uid == 0)
		n = snprintf(manager, sizeof(manager), "%.*s", (int)p->mount_len, p->dir);
	else
		n = snprintf(manager, sizeof(manager),
			     "%.*s/user.slice/user-%u.slice/user@%u.service", (int)p->mount_len,
			     p->dir, (unsigned)src->uid, (unsigned)src->uid);
	if (n < 0 || (size_t)n >= sizeof(manager) ||
	    cgroup_file_read(manager, "cgroup.controllers", text, sizeof(text)) < 0) {
		cgroup_why(ret,
			   "systemd's group for this user, user@%u.service, is not visible here",
			   (unsigned)src->uid);
		return;
	}
	n = snprintf(ret->base, sizeof(ret->base), "%.200s/pale.slice", manager);
	if (n < 0 || (size_t)n >= sizeof(ret->base))
		return;
	ret->kind = CGROUP_V2_SYSTEMD;
	ret->memory = cgroup_word(text, "memory");
	ret->pids = cgroup_word(text, "pids");
	ret->cpu = cgroup_word(text, "cpu");
	ret->cputime = true;
	if (ret->memory && ret->pids && ret->cpu)
		return;
	if (src->uid == 0)
		cgroup_why(ret, "%s%s%snot offered by the kernel: boot with cgroup_enable=memory",
			   ret->memory ? "" : "memory ", ret->pids ? "" : "pids ",
			   ret->cpu ? "" : "cpu ");
	else
		cgroup_why(
			ret,
			"%s%s%snot delegated to users: put \"[Service]\\nDelegate=cpu memory "
			"pids\" into /etc/systemd/system/user@.service.d/delegate.conf, `systemctl "
			"daemon-reload`, and log in again",
			ret->memory ? "" : "memory ", ret->pids ? "" : "pids ",
			ret->cpu ? "" : "cpu ");
}

static int send_all(int fd, const struct buf *b)
{
	size_t sent = 0;

	if (b->failed)
		return -ENOMEM;
	while (sent < b->len) {
		ssize_t n = send(fd, b->data + sent, b->len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		sent += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int call(struct cgroup *g, const char *destination, const char *path, const char *member,
		const char *signature, const struct buf *body)
{
	_cleanup_buf_ struct buf out = BUF_INIT(1u << 16);
	const struct dbus_call c = {
		.destination = g->bus_direct ? NULL : destination,
		.path = path,
		.interface = strcmp(destination, BUS) == 0 ? BUS : MANAGER,
		.member = member,
		.signature = signature,
		.body = body,
	};

	dbus_marshal(&out, ++g->serial, &c);
	return send_all(g->bus_fd, &out);
}

/* On a bus: a name for us, and the signals of the job's end, of our unit only. */
static int introduce(struct cgroup *g)
{
	_cleanup_buf_ struct buf rule = BUF_INIT(512);
	char text[300];
	int r;

	snprintf(text, sizeof(text),
		 "type='signal',interface='" MANAGER "',member='JobRemoved',arg2='%s'", g->unit);
	dbus_string(&rule, text);
	if (rule.failed)
		return -ENOMEM;
	r = call(g, BUS, "/org/freedesktop/DBus", "Hello", NULL, NULL);
	if (r == 0)
		r = call(g, BUS, "/org/freedesktop/DBus", "AddMatch", "s", &rule);
	if (r == 0)
		r = call(g, SYSTEMD, "/org/freedesktop/systemd1", "Subscribe", NULL, NULL);
	return r;
}

static void property(struct buf *b, const char *name, const char *type)
{
	dbus_align(b, 8);
	dbus_string(b, name);
	dbus_signature(b, type);
}

static void property_u64(struct buf *b, const char *name, uint64_t v)
{
	property(b, name, "t");
	dbus_u64(b, v);
}

static void property_string(struct buf *b, const char *name, const char *v)
{
	property(b, name, "s");
	dbus_string(b, v);
}

static void property_true(struct buf *b, const char *name)
{
	property(b, name, "b");
	dbus_u32(b, 1);
}

/* StartTransientUnit(name, mode, properties, auxiliary units): "ssa(sv)a(sa(sv))". */
static void start_body(const struct cgroup *g, pid_t pid, struct buf *b)
{
	dbus_string(b, g->unit);
	dbus_string(b, "fail");
	size_t properties = dbus_array(b, 8);

	property_string(b, "Description", "a box of Pale");
	property_string(b, "Slice", "pale.slice");
	property(b, "PIDs", "au");
	size_t pids = dbus_array(b, 4);

	dbus_u32(b, (uint32_t)pid);
	dbus_array_end(b, pids, 4);
	/* A failed scope (one that the limit ended) is forgotten too. */
	property_string(b, "CollectMode", "inactive-or-failed");
	property_true(b, "CPUAccounting");
	if (g->limits.memory_bytes) {
		property_u64(b, "MemoryMax", g->limits.memory_bytes);
		property_u64(b, "MemorySwapMax", 0);
	}
	if (g->limits.processes)
		property_u64(b, "TasksMax", g->limits.processes);
	if (g->limits.cpus_milli)
		property_u64(b, "CPUQuotaPerSecUSec",
			     g->limits.cpus_milli < 10 ? 10000 : g->limits.cpus_milli * 1000);
	dbus_array_end(b, properties, 8);
	size_t aux = dbus_array(b, 8);

	dbus_array_end(b, aux, 8);
}

static int systemd_attach_begin(struct cgroup *g, pid_t pid, struct pale_err *err)
{
	_cleanup_buf_ struct buf body = BUF_INIT(4096);
	int r;

	start_body(g, pid, &body);
	r = body.failed ? -ENOMEM
			: call(g, SYSTEMD, "/org/freedesktop/systemd1", "StartTransientUnit",
			       "ssa(sv)a(sa(sv))", &body);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "asking systemd for \"%s\"", g->unit);
	g->start_serial = g->serial;
	return 0;
}

/* One message: 1 if the scope is there, 0 if it says nothing of it. */
static int on_message(struct cgroup *g, struct dbus_message *m, struct pale_err *err)
{
	const char *text, *unit, *result;
	uint32_t id;

	if (m->type == DBUS_ERROR && m->reply_serial <= g->start_serial) {
		dbus_read_string(m, &text);
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "systemd refused the scope \"%s\": %s (%s)", g->unit,
			       QUOTED(text ? text : ""),
			       QUOTED(m->error_name ? m->error_name : ""));
	}
	if (m->type != DBUS_SIGNAL || !m->member || strcmp(m->member, "JobRemoved") != 0 ||
	    !dbus_read_u32(m, &id) || !dbus_read_string(m, &text) || !dbus_read_string(m, &unit) ||
	    !dbus_read_string(m, &result) || strcmp(unit, g->unit) != 0)
		return 0;
	if (strcmp(result, "done") == 0)
		return 1;
	return err_set(err, PALE_E_HOST, STAGE, 0, "systemd could not start the scope \"%s\": %s",
		       g->unit, QUOTED(result));
}

static int wait_for_scope(struct cgroup *g, struct pale_err *err)
{
	_cleanup_buf_ struct buf in = BUF_INIT(2 * DBUS_MESSAGE_MAX);
	uint64_t deadline = clock_mono_us() + TIMEOUT_US;

	for (;;) {
		struct dbus_message m;
		ssize_t n;

		while ((n = dbus_parse(in.data, in.len, &m)) > 0) {
			int r = on_message(g, &m, err);

			if (r)
				return r < 0 ? r : 0;
			memmove(in.data, in.data + n, in.len - (size_t)n);
			in.len -= (size_t)n;
		}
		uint64_t now = clock_mono_us();
		struct pollfd p = {.fd = g->bus_fd, .events = POLLIN};

		if (n < 0 || now >= deadline)
			return err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? EBADMSG : ETIMEDOUT,
				       "waiting for systemd to make \"%s\"", g->unit);
		if (poll(&p, 1, (int)((deadline - now) / 1000) + 1) <= 0)
			continue;
		char *room = buf_room(&in, 4096);
		ssize_t got = room ? recv(g->bus_fd, room, 4096, 0) : -1;

		if (got <= 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, got < 0 ? errno : ECONNRESET,
				       "waiting for systemd to make \"%s\"", g->unit);
		in.len += (size_t)got;
	}
}

uint64_t cgroup_systemd_slice_kills(const struct cgroup *g)
{
	char slice[CGROUP_PATH], buf[256];

	snprintf(slice, sizeof(slice), "%s", g->group[0].path);
	*strrchr(slice, '/') = '\0';
	if (cgroup_file_read(slice, "memory.events", buf, sizeof(buf)) < 0)
		return 0;
	return cgroup_key(buf, "oom_kill");
}

static int systemd_attach_end(struct cgroup *g, struct pale_err *err)
{
	int r = wait_for_scope(g, err);

	close_fd(&g->bus_fd);
	if (r < 0)
		return r;
	if (!cgroup_has_file(g->group[0].path, "cgroup.procs"))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "systemd made \"%s\", but it is not at \"%s\"", g->unit,
			       g->group[0].path);
	g->ngroups = 1;
	r = g->event_fd >= 0 ? cgroup_v2_watch_start(g) : 0;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "watching \"%s/memory.events\"",
			       g->group[0].path);
	g->slice_kills = cgroup_systemd_slice_kills(g);
	/* A short run may be over, and its scope gone, before anybody else asks. */
	struct cgroup_usage now;

	return cgroup_usage(g, &now, err);
}

int cgroup_systemd_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
			  struct pale_err *err)
{
	static const struct cgroup_ops ops = {
		.attach_begin = systemd_attach_begin,
		.attach_end = systemd_attach_end,
		.usage = cgroup_v2_usage,
		.throttled_us = cgroup_v2_throttled_us,
		.stop_forks = cgroup_v2_stop_forks,
	};
	uint64_t deadline = clock_mono_us() + TIMEOUT_US;
	const char *given = getenv("XDG_RUNTIME_DIR");
	char path[256];
	int r = -ENOENT;

	g->ops = &ops;
	g->group[0].join_fd = -1;
	snprintf(g->unit, sizeof(g->unit), "%s.scope", name);
	int n = snprintf(g->group[0].path, sizeof(g->group[0].path), "%s/%s", host->base, g->unit);

	if (n < 0 || (size_t)n >= sizeof(g->group[0].path))
		return err_set(err, PALE_E_HOST, STAGE, ENAMETOOLONG, "control group \"%s\"",
			       host->base);
	for (size_t i = 0; i < ARRAY_SIZE(wheres) && r < 0; i++) {
		if (!where_path(&wheres[i], given, geteuid(), path, sizeof(path)))
			continue;
		r = dbus_connect(path, geteuid(), deadline);
		if (r < 0)
			continue;
		g->bus_fd = r;
		g->bus_direct = !wheres[i].bus;
		if (wheres[i].bus)
			r = introduce(g);
		if (r < 0)
			close_fd(&g->bus_fd);
	}
	if (r < 0)
		return err_set(err, PALE_E_HOST, STAGE, -r, "reaching systemd at \"%s\"", path);
	/* The descriptor now, what it watches when the scope is there. */
	r = g->limits.memory_bytes ? cgroup_v2_watch_open(g) : 0;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "watching \"%s\"", g->unit);
	return 0;
}
