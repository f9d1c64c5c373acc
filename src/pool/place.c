/* Where pools are found: pools/<key> in the state directory, a Unix socket. In the pool's process,
 * and in the library of those who look for one. The directory is its owner's alone. */
#include <fcntl.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <dirent.h>

#include "audit/state.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "pool/place.h"
#include "pool/pool.h"

#define STAGE "pool"
#define POOLS "pools"

static int open_dir(bool make, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	int fd, r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	if (make && mkdirat(s.dir, POOLS, 0700) < 0 && errno != EEXIST)
		return err_set(err, PALE_E_HOST, STAGE, errno, "cannot make %s/" POOLS,
			       QUOTED(s.path));
	fd = openat(s.dir, POOLS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno == ENOENT ? PALE_E_NOTFOUND : PALE_E_HOST, STAGE, errno,
			       "there is no pool: no %s/" POOLS, QUOTED(s.path));
	return fd;
}

static void address(int dir, const char *key, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir, key);
}

int pool_connect(const char *key, struct pale_err *err)
{
	_cleanup_close_ int dir = open_dir(false, err), fd = -1;
	struct sockaddr_un at;

	if (dir < 0)
		return dir;
	address(dir, key, &at);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err,
			       errno == ENOENT || errno == ECONNREFUSED ? PALE_E_NOTFOUND
									: PALE_E_SYSTEM,
			       STAGE, errno, "no pool with this policy runs");
	return take_fd(&fd);
}

int pool_listen(const char *key, int *ret_dir, struct pale_err *err)
{
	_cleanup_close_ int dir = open_dir(true, err), fd = -1;
	struct pale_err ignored;
	struct sockaddr_un at;

	if (dir < 0)
		return dir;
	address(dir, key, &at);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	for (int i = 0; i < 2; i++) {
		_cleanup_close_ int other = -1;

		if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0) {
			if (listen(fd, 128) < 0)
				break;
			*ret_dir = take_fd(&dir);
			return take_fd(&fd);
		}
		if (errno != EADDRINUSE)
			break;
		other = pool_connect(key, &ignored);
		if (other >= 0)
			return err_set(err, PALE_E_CONFLICT, STAGE, 0,
				       "a pool with this policy runs already: `pale pool ls`");
		/* What a killed one left. */
		unlinkat(dir, key, 0);
	}
	return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make the pool's socket");
}

void pool_unlisten(int dir, const char *key)
{
	unlinkat(dir, key, 0);
}

int pool_list(char (**ret)[POOL_KEY_SIZE], size_t *ret_n, struct pale_err *err)
{
	int fd = open_dir(false, err);
	DIR *d;

	*ret = NULL;
	*ret_n = 0;
	if (fd == -PALE_E_NOTFOUND)
		return 0;
	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return err_nomem(err, STAGE);
	}
	for (struct dirent *e; (e = readdir(d));) {
		char(*more)[POOL_KEY_SIZE];

		if (strlen(e->d_name) != POOL_KEY_SIZE - 1)
			continue;
		more = reallocarray(*ret, *ret_n + 1, sizeof(**ret));
		if (!more) {
			closedir(d);
			free(*ret);
			*ret = NULL;
			return err_nomem(err, STAGE);
		}
		*ret = more;
		memcpy(more[(*ret_n)++], e->d_name, POOL_KEY_SIZE);
	}
	closedir(d);
	return 0;
}

int pool_possible(const struct policy *p, struct pale_err *err)
{
	for (size_t i = 0; i < p->nfiles; i++)
		if (p->files[i].access != ACCESS_HIDE &&
		    (p->files[i].access != ACCESS_WRITE || p->files[i].collect))
			return err_set(err, PALE_E_POLICY, STAGE, 0,
				       "%s: a pool's boxes are made before they are asked for, and "
				       "would show the host's files as they are then: no `read`, "
				       "`overlay` or `collect` in its policy (`pale session cp` "
				       "brings files in and out)",
				       p->files[i].where ? p->files[i].where : "files");
	if (p->network.nsecrets)
		return err_set(
			err, PALE_E_POLICY, STAGE, 0,
			"network.secrets: a pool's boxes are made before they are asked for, "
			"and would hold the secrets of then");
	if (p->network.npublish)
		return err_set(
			err, PALE_E_POLICY, STAGE, 0,
			"network.publish: the boxes of a pool would all ask for the same ports");
	if (p->network.ssh_agent_hosts)
		return err_set(
			err, PALE_E_POLICY, STAGE, 0,
			"network.ssh_agent: a pool's boxes are made before they are asked for");
	return 0;
}

int pool_key(const struct policy *p, char *const *env, char ret[static POOL_KEY_SIZE],
	     struct pale_err *err)
{
	/* By these a toolchain is found. */
	static const char *const names[] = {
		"PATH=",	  "VIRTUAL_ENV=", "CONDA_PREFIX=", "PYENV_ROOT=",
		"PYENV_VERSION=", "NVM_DIR=",	  "HOME="};
	_cleanup_free_ char *text = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
	int r = policy_to_json(p, &text, err);

	if (r < 0)
		return r;
	(void)!buf_addf(&b, "pale pool 1\n%s\n%s\n", PALE_VERSION, text);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (char *const *e = env; e && *e; e++)
			if (str_starts(*e, names[i]))
				(void)!buf_addf(&b, "%s\n", *e);
	if (b.failed)
		return err_nomem(err, STAGE);
	SHA256Data((const uint8_t *)b.data, b.len, ret);
	return 0;
}
