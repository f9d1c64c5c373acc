/* What the supervisor tells the broker: see config.h.
 *
 * Runs in the broker. config_read() and config_read_host() run before it locks itself in and read
 * nothing of the box; config_read_rules() runs later, on what the supervisor sends. The memfd must
 * be sealed, so that it is read as it was checked. */
#include "egress/config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#define STAGE		"egress"
#define HOST_FILE_MAX	(1u << 20) /* resolv.conf, hosts */
#define TRUST_MAX	(16u << 20)
#define READ_BYTES	65536u /* what buf_read_fd() asks for at a time */
#define TRUST_STORE	"/etc/ssl/certs/ca-certificates.crt"
#define TRUST_STORE_ALT "/etc/pki/tls/certs/ca-bundle.crt"

static int read_memfd(int memfd, struct buf *b, struct pale_err *err)
{
	int seals = fcntl(memfd, F_GET_SEALS);
	/* Not fstat(): the C library makes a call of it that takes paths, too, and the broker's
	 * filter has none of those. */
	off_t size = lseek(memfd, 0, SEEK_END);
	ssize_t n;

	if (seals < 0 || !(seals & F_SEAL_WRITE) || !(seals & F_SEAL_SHRINK))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the configuration is not sealed");
	if (size <= 0 || size > CONFIG_MAX_BYTES)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the configuration has no sane size");
	if (!buf_room(b, (size_t)size))
		return err_nomem(err, STAGE);
	n = fd_pread_full(memfd, b->data, (size_t)size, 0);
	if (n != size)
		return err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? (int)-n : 0,
			       "cannot read the configuration");
	b->len = (size_t)n;
	return 0;
}

/* The policy's network part becomes a policy of its own. */
static int load_network(json_t *root, struct policy **ret, struct pale_err *err)
{
	json_t *network = json_object_get(root, "network"),
	       *places = json_object_get(root, "places");
	_cleanup_policy_ struct policy *p = NULL;
	json_t *whole = json_pack("{s:i, s:O}", "pale", 1, "network", network);
	char *text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
	int r;

	json_decref(whole);
	if (!text)
		return err_nomem(err, STAGE);
	r = policy_new(&p, err);
	if (r == 0)
		r = policy_load_memory(p, text, strlen(text), "network", "/", true, err);
	explicit_bzero(text, strlen(text));
	free(text);
	if (r == 0 && places && policy_network_take_places(&p->network, places) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, 0,
			    "the places of the configuration are not those of its rules");
	if (r == 0)
		*ret = take_ptr(p);
	return r;
}

static json_t *parse(int memfd, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CONFIG_MAX_BYTES + 1);
	json_error_t where;
	json_t *root;

	if (read_memfd(memfd, &b, err) < 0)
		return NULL;
	root = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, &where);
	explicit_bzero(b.data, b.len);
	if (json_is_object(json_object_get(root, "network")))
		return root;
	err_set(err, PALE_E_SYSTEM, STAGE, 0, "the configuration has no network part");
	json_decref(root);
	return NULL;
}

static bool known_keys(json_t *root)
{
	static const char *const known[] = {"network", "places",  "mode",     "uid",
					    "gid",     "secrets", "landlock", "known_hosts"};
	const char *key;
	json_t *value;

	json_object_foreach(root, key, value)
	{
		bool found = false;

		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			found |= strcmp(key, known[i]) == 0;
		if (!found)
			return false;
	}
	return true;
}

static int take_secrets(struct config *c, json_t *secrets)
{
	size_t n = json_array_size(secrets);

	if (n != c->network->nsecrets)
		return -EINVAL;
	c->secrets = calloc(n ? n : 1, sizeof(*c->secrets));
	if (!c->secrets)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_t *s = json_array_get(secrets, i);
		const char *placeholder = json_string_value(json_object_get(s, "placeholder"));
		const char *value = json_string_value(json_object_get(s, "value"));

		if (!placeholder || !*placeholder || !value || !*value)
			return -EINVAL;
		c->nsecrets++;
		c->secrets[i].placeholder = strdup(placeholder);
		c->secrets[i].value = strdup(value);
		if (!c->secrets[i].placeholder || !c->secrets[i].value)
			return -ENOMEM;
	}
	return 0;
}

/* jansson frees its copies as they are: overwrite the secrets' first. */
static void wipe_secrets(json_t *secrets)
{
	for (size_t i = 0; i < json_array_size(secrets); i++) {
		json_t *value = json_object_get(json_array_get(secrets, i), "value");
		const char *text = json_string_value(value);

		if (text)
			explicit_bzero((char *)(uintptr_t)text, json_string_length(value));
	}
}

static int take(struct config *c, json_t *root, struct pale_err *err)
{
	const char *mode = json_string_value(json_object_get(root, "mode"));
	json_t *uid = json_object_get(root, "uid"), *gid = json_object_get(root, "gid");
	json_t *landlock = json_object_get(root, "landlock");
	const char *known_hosts = json_string_value(json_object_get(root, "known_hosts"));
	int r = load_network(root, &c->policy, err);

	if (r < 0)
		return r;
	c->network = &c->policy->network;
	if (mode && strcmp(mode, "tproxy") == 0)
		c->mode = EGRESS_TPROXY;
	else if (mode && strcmp(mode, "redirect") == 0)
		c->mode = EGRESS_REDIRECT;
	else
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the configuration has no mode");
	if ((uid && !json_is_integer(uid)) || (gid && !json_is_integer(gid)) ||
	    (landlock && !json_is_boolean(landlock)) || !known_keys(root))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the configuration makes no sense");
	c->uid = (uid_t)json_integer_value(uid);
	c->gid = (gid_t)json_integer_value(gid);
	c->no_landlock = json_is_false(landlock);
	if (known_hosts) {
		c->known_hosts = strdup(known_hosts);
		if (!c->known_hosts)
			return err_nomem(err, STAGE);
	}
	r = take_secrets(c, json_object_get(root, "secrets"));
	if (r == -ENOMEM)
		return err_nomem(err, STAGE);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the secrets of the configuration are not those of its rules");
	return 0;
}

int config_read(int memfd, struct config **ret, struct pale_err *err)
{
	_cleanup_config_ struct config *c = calloc(1, sizeof(*c));
	json_t *root = c ? parse(memfd, err) : NULL;
	int r;

	if (!c)
		return err_nomem(err, STAGE);
	if (!root)
		return -(int)err->code;
	r = take(c, root, err);
	wipe_secrets(json_object_get(root, "secrets"));
	json_decref(root);
	if (r == 0)
		*ret = take_ptr(c);
	return r;
}

int config_read_rules(int memfd, struct policy **ret, struct pale_err *err)
{
	json_t *root = parse(memfd, err);
	int r;

	if (!root)
		return -(int)err->code;
	r = load_network(root, ret, err);
	json_decref(root);
	return r;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nsecrets; i++) {
		free(c->secrets[i].placeholder);
		if (c->secrets[i].value)
			explicit_bzero(c->secrets[i].value, strlen(c->secrets[i].value));
		free(c->secrets[i].value);
	}
	free(c->secrets);
	free(c->known_hosts);
	free(c->resolv_conf);
	free(c->hosts);
	free(c->trust);
	policy_free(c->policy);
	free(c);
}

/* ---------------------------------------------------------------- the host's files */

/* Appends a file; 0 or a negative errno. */
static int add_file(struct buf *b, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	struct stat st;

	if (fd < 0)
		return -errno;
	/* Room for all of it, and for the read that finds its end: growing copies each time. */
	if (fstat(fd, &st) == 0 && st.st_size > 0 && (size_t)st.st_size < b->max / 2 &&
	    b->len < b->max / 2 - READ_BYTES)
		(void)!buf_room(b, (size_t)st.st_size + READ_BYTES);
	return buf_read_fd(b, fd);
}

/* A file that need not be there: without it the resolver's defaults hold. */
static int read_text(const char *path, char **ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(HOST_FILE_MAX);
	int r = add_file(&b, path);

	if (r < 0 && r != -ENOENT)
		return err_set(err, PALE_E_HOST, STAGE, -r, "cannot read %s", path);
	*ret = strdup(b.data ? b.data : "");
	return *ret ? 0 : err_nomem(err, STAGE);
}

static int read_trust(struct config *c, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(TRUST_MAX);
	int r = add_file(&b, TRUST_STORE);

	if (r == -ENOENT)
		r = add_file(&b, TRUST_STORE_ALT);
	if (r < 0 && r != -ENOENT)
		return err_set(err, PALE_E_HOST, STAGE, -r, "cannot read the trust store %s",
			       TRUST_STORE);
	for (char **p = c->network->extra_ca; p && *p; p++) {
		if (b.len)
			buf_adds(&b, "\n");
		r = add_file(&b, *p);
		if (r < 0)
			return err_set(err, PALE_E_POLICY, STAGE, -r,
				       "cannot read network.extra_ca %s", QUOTED(*p));
	}
	if (b.failed)
		return err_nomem(err, STAGE);
	c->trust_len = b.len;
	c->trust = b.data ? take_ptr(b.data) : strdup("");
	return c->trust ? 0 : err_nomem(err, STAGE);
}

int config_read_host(struct config *c, struct pale_err *err)
{
	int r = read_text("/etc/resolv.conf", &c->resolv_conf, err);

	if (r == 0)
		r = read_text("/etc/hosts", &c->hosts, err);
	if (r == 0 && network_may_intercept(c->network))
		r = read_trust(c, err);
	return r;
}
