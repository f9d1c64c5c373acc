/* The synthesised /etc: see etc.h.
 *
 * Runs in the supervisor while it plans, with the caller's privileges; the host's /etc is trusted,
 * nothing hostile is read. The plan turns the entries into steps, in this order.
 *
 * The rule for what comes from the host: a fixed table, no scan, each row with a reason. A row is
 * taken only if the host has it. /etc as a whole, or "whatever /usr links to", would be the wrong
 * rule: /usr/lib/ssl links to /etc/ssl/private, /usr/lib/environment.d to /etc/environment. Each
 * bind costs ten microseconds of every start, so what is small is written, and what /usr holds too
 * is linked. What is left out on purpose: the host's shadow, gshadow, sudoers, subuid, ssh,
 * machine-id, pip.conf, npmrc, gitconfig, netrc and the like (tokens), environment, profile.d (the
 * host's set-up). */
#include "etc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

struct row {
	const char *name; /* below /etc */
	const char *why;
};

static const struct row rows[] = {
	{"alternatives", "/usr/bin/java, cc, awk, editor and hundreds more are links through it"},
	{"ld.so.cache", "libraries in directories that the loader does not search by itself"},
	{"ld-musl-x86_64.path", "the same with musl"},
	{"ssl/certs", "the certificate authorities of OpenSSL, GnuTLS, Go, Node"},
	{"ssl/openssl.cnf", "the openssl command refuses some work without it"},
	{"ssl/cert.pem", "Alpine, LibreSSL"},
	{"ca-certificates/extracted", "Arch: /etc/ssl/certs links into it"},
	{"pki/ca-trust/extracted", "Fedora: /etc/ssl/certs links into it"},
	{"pki/tls/certs", "Fedora"},
	{"pki/tls/cert.pem", "Fedora"},
	{"pki/tls/openssl.cnf", "Fedora"},
	{"pki/java", "Fedora: Java's certificate authorities"},
	{"crypto-policies/back-ends", "Fedora: OpenSSL's configuration includes a file of it"},
	{"crypto-policies/config", "Fedora"},
	{"services", "getservbyname"},
	{"protocols", "getprotobyname"},
	{"mime.types", "Python's mimetypes and others"},
	{"fonts", "fontconfig: without it no font is found"},
	{"java", "Fedora: OpenJDK's configuration"},
	{"maven/m2.conf", "mvn does not start without; settings.xml may hold passwords"},
	{"maven/logging", "mvn"},
	{"R", "R's profile and environment"},
	{"ImageMagick-6", "delegates and the policy of what may be read"},
	{"ImageMagick-7", "the same"},
	{"libreoffice", "soffice's registry links here"},
	{"texmf", "TeX's configuration"},
	{"xml", "the catalog by which xsltproc finds local copies"},
	{"fpc.cfg", "Free Pascal's search paths"},
	{"gnucobol", "GnuCOBOL's dialects"},
	{"debian_version", "platform, lsb_release"},
	{"lsb-release", "the same on Ubuntu"},
	{"redhat-release", "the same on Fedora and its relatives"},
	{"alpine-release", "the same on Alpine"},
};

static int add(struct etc *e, enum etc_type type, bool directory, mode_t mode, const char *path,
	       const char *data)
{
	if (e->n == ETC_MAX)
		return -ENOSPC;
	e->entries[e->n++] = (struct etc_entry){type, directory, mode, path, data};
	return 0;
}

/* A string in the object; NULL when it is full. */
_printf_(2, 3) static const char *text(struct etc *e, const char *fmt, ...)
{
	char *at = e->text + e->used;
	size_t room = sizeof(e->text) - e->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(at, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		return NULL;
	e->used += (size_t)n + 1;
	return at;
}

/* The parents of "ssl/certs" and deeper names, each once. */
static int add_parents(struct etc *e, const char *name)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *path = text(e, "/etc/%.*s", (int)(slash - name), name);
		bool have = false;

		if (!path)
			return -ENOSPC;
		for (size_t i = 0; i < e->n && !have; i++)
			have = e->entries[i].type == ETC_DIR &&
			       strcmp(e->entries[i].path, path) == 0;
		if (!have && add(e, ETC_DIR, true, 0755, path, NULL) < 0)
			return -ENOSPC;
	}
	return 0;
}

static int add_file(struct etc *e, const char *path, const char *content)
{
	return path && content ? add(e, ETC_FILE, false, 0644, path, content) : -ENOSPC;
}

/* One path of the host: a bind, or where it is a link into /usr, that link. */
static int add_host(struct etc *e, int etc_fd, const char *host_etc, const char *name)
{
	char host[PATH_MAX], real[PATH_MAX];
	const char *path, *data;
	struct stat st;
	int r;

	real[0] = '\0';
	/* One system call for each of the many rows that a host does not have. */
	if (fstatat(etc_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    snprintf(host, sizeof(host), "%s/%s", host_etc, name) >= (int)sizeof(host))
		return 0;
	if (S_ISLNK(st.st_mode) && (!realpath(host, real) || stat(real, &st) < 0))
		return 0;
	if (*real == '\0')
		memcpy(real, host, strlen(host) + 1);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	r = add_parents(e, name);
	if (r < 0)
		return r;
	path = text(e, "/etc/%s", name);
	data = text(e, "%s", real);
	if (!path || !data)
		return -ENOSPC;
	if (str_starts(real, "/usr/"))
		return add(e, ETC_LINK, false, 0777, path, data);
	return add(e, ETC_BIND, S_ISDIR(st.st_mode), S_ISDIR(st.st_mode) ? 0755 : 0644, path, data);
}

/* Debian's OpenJDKs keep their configuration, jvm.cfg among it, in /etc/java-N-openjdk. The
 * versions are those under /usr/lib/jvm, a directory that most hosts lack and that is tiny where it
 * exists. */
static int add_java(struct etc *e, int etc_fd, const char *host_etc)
{
	static const char *const versions[] = {"8", "11", "17", "21", "25"};
	char name[32];
	int r = 0;

	if (access("/usr/lib/jvm", F_OK) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(versions) && r == 0; i++) {
		snprintf(name, sizeof(name), "java-%s-openjdk", versions[i]);
		r = add_host(e, etc_fd, host_etc, name);
	}
	return r;
}

/* Debian's and Ubuntu's library has a link to /etc/python3.N/sitecustomize.py, and a link that
 * leads nowhere is what a program stumbles over that reads the whole library. It is the host's: of
 * another file the compiled form would be out of date, and each start would try to write it anew.
 */
static int add_python(struct etc *e, int etc_fd, const char *host_etc)
{
	static const char *const versions[] = {"9", "10", "11", "12", "13", "14", "15"};
	char name[64];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(versions) && r == 0; i++) {
		snprintf(name, sizeof(name), "python3.%s/sitecustomize.py", versions[i]);
		r = add_host(e, etc_fd, host_etc, name);
	}
	return r;
}

/* The time zone: a link as on the host, and its name for those who ask for that. */
static int add_zone(struct etc *e, int etc_fd, const char *host_etc)
{
	static const char dir[] = "/usr/share/zoneinfo/";
	char target[256];
	ssize_t n = readlinkat(etc_fd, "localtime", target, sizeof(target) - 1);
	const char *at, *zone;
	int r;

	if (n <= 0)
		return add_host(e, etc_fd, host_etc, "localtime");
	target[n] = '\0';
	/* ../usr/share/zoneinfo/Europe/Berlin, or absolute; anything else is resolved. */
	at = strstr(target, dir);
	if (!at || strstr(at, "/../"))
		return add_host(e, etc_fd, host_etc, "localtime");
	zone = text(e, "%s", at);
	if (!zone)
		return -ENOSPC;
	r = add(e, ETC_LINK, false, 0777, "/etc/localtime", zone);
	return r < 0 ? r : add_file(e, "/etc/timezone", text(e, "%s\n", zone + strlen(dir)));
}

static int add_users(struct etc *e, const struct etc_request *req)
{
	const char *shell = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	const char *passwd, *group;
	int r;

	if (req->uid == 0)
		passwd = text(e, "root:x:0:%u:%s:%s:%s\n", req->gid, req->user, req->home, shell);
	else
		passwd = text(e, "root:x:0:0:root:/root:/usr/sbin/nologin\n%s:x:%u:%u:%s:%s:%s\n",
			      req->user, req->uid, req->gid, req->user, req->home, shell);
	if (!passwd)
		return -ENOSPC;
	/* Ids that the box's user namespace does not map show as this one. */
	if (req->uid != 65534) {
		e->used--;
		if (!text(e, "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"))
			return -ENOSPC;
	}
	group = req->gid == 0 ? text(e, "root:x:0:\n")
			      : text(e, "root:x:0:\n%s:x:%u:\n", req->user, req->gid);
	if (!group)
		return -ENOSPC;
	if (req->gid != 65534) {
		e->used--;
		if (!text(e, "nogroup:x:65534:\n"))
			return -ENOSPC;
	}
	r = add_file(e, "/etc/passwd", passwd);
	if (r == 0)
		r = add_file(e, "/etc/group", group);
	/* Empty, and for nobody: who asks for a password's hash is told that it may not, as on any
	 * machine. */
	return r < 0 ? r : add(e, ETC_FILE, false, 0, "/etc/shadow", "");
}

static int add_names(struct etc *e, const struct etc_request *req)
{
	int r = add_file(e, "/etc/hosts",
			 text(e,
			      "127.0.0.1\tlocalhost %s\n"
			      "::1\tlocalhost ip6-localhost ip6-loopback\n",
			      req->hostname));

	if (r == 0)
		r = add_file(e, "/etc/hostname", text(e, "%s\n", req->hostname));
	/* Only files and DNS: systemd, mDNS and directory services are the host's, and would hang.
	 */
	if (r == 0)
		r = add_file(e, "/etc/nsswitch.conf",
			     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			     "networks: files\nprotocols: files\nservices: files\n");
	/* The box's first process answers there, at once. */
	if (r == 0)
		r = add_file(e, "/etc/resolv.conf",
			     "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
	return r;
}

/* What an interactive shell reads; a run without a terminal does not pay for it. */
static int add_terminal(struct etc *e, int etc_fd, const char *host_etc)
{
	static const char rc[] = "[ -n \"$PS1\" ] && PS1='\\u@\\h:\\w\\$ '\n:\n";
	int r = add_file(e, "/etc/profile", rc);

	if (r == 0)
		r = add_file(e, "/etc/bash.bashrc", rc);
	if (r == 0)
		r = add_host(e, etc_fd, host_etc, "inputrc");
	if (r == 0)
		r = add_host(e, etc_fd, host_etc, "terminfo");
	return r;
}

/* A name that /etc/passwd, /etc/group and /etc/hosts can hold as one field. */
static bool is_field(const char *s, bool name)
{
	if (!s || !*s || (name && *s == '-') || (!name && *s != '/'))
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f || *s == ':' ||
		    (name && strchr(" \t#/,", *s)))
			return false;
	return true;
}

int etc_make(const struct etc_request *req, struct etc *ret, struct pale_err *err)
{
	const char *host_etc = req->host_etc ? req->host_etc : "/etc";
	_cleanup_close_ int fd = open(host_etc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	ret->n = ret->used = 0;
	if (!is_field(req->user, true))
		return err_set(err, PALE_E_POLICY, "plan", 0, "%s cannot be a user name",
			       QUOTED(req->user ? req->user : ""));
	if (!is_field(req->hostname, true))
		return err_set(err, PALE_E_POLICY, "plan", 0, "%s cannot be a host name",
			       QUOTED(req->hostname ? req->hostname : ""));
	if (!is_field(req->home, false))
		return err_set(err, PALE_E_POLICY, "plan", 0,
			       "%s cannot be a home directory: it must be absolute, without ':' "
			       "and controls",
			       QUOTED(req->home ? req->home : ""));
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "plan", errno, "cannot open %s",
			       QUOTED(host_etc));

	r = add_users(ret, req);
	if (r == 0)
		r = add_names(ret, req);
	if (r == 0)
		r = add_file(ret, "/etc/shells",
			     "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n");
	/* Opened by almost every program; without them each start would be a refused read in the
	 * log. */
	if (r == 0)
		r = add_file(ret, "/etc/host.conf", "multi on\n");
	if (r == 0)
		r = add_file(ret, "/etc/locale.alias", "");
	if (r == 0)
		r = add(ret, ETC_LINK, false, 0777, "/etc/mtab", "/proc/self/mounts");
	if (r == 0)
		r = access("/usr/lib/os-release", F_OK) == 0
			    ? add(ret, ETC_LINK, false, 0777, "/etc/os-release",
				  "../usr/lib/os-release")
			    : add_host(ret, fd, host_etc, "os-release");
	if (r == 0)
		r = add_zone(ret, fd, host_etc);
	/* Debian's matplotlib wants /etc/matplotlibrc, which asks for a display. The upstream copy
	 * in /usr, for which there is none, draws into files where there is no display. */
	if (r == 0 && faccessat(fd, "matplotlibrc", F_OK, 0) == 0)
		r = access("/usr/share/matplotlib/mpl-data/matplotlibrc", F_OK) == 0
			    ? add(ret, ETC_LINK, false, 0777, "/etc/matplotlibrc",
				  "/usr/share/matplotlib/mpl-data/matplotlibrc")
			    : add_host(ret, fd, host_etc, "matplotlibrc");
	for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++)
		r = add_host(ret, fd, host_etc, rows[i].name);
	if (r == 0)
		r = add_java(ret, fd, host_etc);
	if (r == 0)
		r = add_python(ret, fd, host_etc);
	if (r == 0 && req->terminal)
		r = add_terminal(ret, fd, host_etc);
	if (r < 0)
		return err_set(
			err, PALE_E_SYSTEM, "plan", 0,
			"the names of the box's user, home and host are too long for its /etc");
	return 0;
}
