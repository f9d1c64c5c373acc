/* The entries of network.publish: what of the box is reachable from the host. Runs where policies
 * are read, with the caller's rights; rows may come from hostile texts, of which each value was
 * checked by its row in the options table. */
#include "policy/rules.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/paths.h"

/* What sun_path holds, less the NUL: a longer one nobody could connect to. */
#define SOCKET_PATH_MAX 107

int publish_append(struct policy *p, const struct publish_row *row, const struct option_place *at,
		   struct pale_err *err)
{
	struct policy_network *n = &p->network;
	struct network_publish e = {.port = (uint16_t)row->port,
				    .host_port = (uint16_t)row->host_port};
	int r = 0;

	if (n->npublish >= POLICY_MAX_PUBLISH)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "network: more than %d ports to "
			       "publish",
			       POLICY_MAX_PUBLISH);
	if (!row->port)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`port` is missing: where the server in the box listens");
	if (row->path && row->host_port)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`host_port` and `path` exclude each other: publish the port twice");
	if (row->path && path_has_dotdot(row->path)) {
		_cleanup_free_ char *absolute = NULL;

		r = path_absolute(&absolute, row->path, at->base, true, err);
		if (r >= 0)
			r = path_without_dotdot(&e.path, absolute, err);
	} else if (row->path) {
		r = path_absolute(&e.path, row->path, at->base, false, err);
	}
	if (r >= 0 && e.path && strlen(e.path) > SOCKET_PATH_MAX)
		r = err_set(err, PALE_E_POLICY, "policy", 0,
			    "%s: the path of a socket has at most %d bytes", QUOTED(e.path),
			    SOCKET_PATH_MAX);
	if (r >= 0 && e.path && strcmp(e.path, "/") == 0)
		r = err_set(err, PALE_E_POLICY, "policy", 0, "`path`: / is a directory");
	if (r >= 0 && at->where) {
		e.where = strdup(at->where);
		if (!e.where)
			r = err_nomem(err, "policy");
	}
	if (r >= 0 && policy_grow(&n->publish, n->npublish, sizeof(*n->publish)) < 0)
		r = err_nomem(err, "policy");
	if (r < 0) {
		free(e.path);
		free(e.where);
		return r;
	}
	n->publish[n->npublish++] = e;
	return 0;
}

static int set(struct publish_row *row, const char *name, const char *text, struct pale_err *err)
{
	char key[64];

	snprintf(key, sizeof(key), "%s.%s", list_publish.entries, name);
	return option_parse(option_find(key), text, row, err);
}

int policy_add_publish(struct policy *p, const char *text, const char *where, struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(text), *cwd = getcwd(NULL, 0);
	char *colon = copy ? strrchr(copy, ':') : NULL;
	struct option_place at = {cwd, where, false};
	struct publish_row row = {0};
	int r = 0;

	if (!copy || !cwd)
		return err_nomem(err, "policy");
	if (colon)
		*colon = '\0';
	if (colon && copy[strspn(copy, "0123456789")] == '\0')
		r = set(&row, "host_port", copy, err);
	else if (colon)
		r = set(&row, "path", copy, err);
	if (r >= 0)
		r = set(&row, "port", colon ? colon + 1 : copy, err);
	if (r >= 0)
		r = publish_append(p, &row, &at, err);
	option_row_done(&list_publish, &row);
	return r < 0 ? policy_at_place(err, where, r) : 0;
}

static bool same_place(const struct network_publish *a, const struct network_publish *b)
{
	if (a->path || b->path)
		return a->path && b->path && strcmp(a->path, b->path) == 0;
	return a->host_port && a->host_port == b->host_port;
}

/* A socket in what the box writes, and the host takes over at the end, could be replaced by it. */
static int check_path(const struct policy *p, const struct network_publish *e, struct pale_err *err)
{
	for (size_t i = 0; i < p->nfiles; i++) {
		const struct policy_file *f = &p->files[i];
		const char *dir = f->access == ACCESS_OVERLAY ? f->from : f->collect;

		if (dir && path_inside(e->path, dir))
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: the socket %s would lie in %s, into which the box's "
				       "changes are written back (%s): put it elsewhere, such as "
				       "below $XDG_RUNTIME_DIR",
				       e->where ? e->where : "network.publish", QUOTED(e->path),
				       QUOTED(dir), f->where);
	}
	return 0;
}

int publish_check(const struct policy *p, struct pale_err *err)
{
	const struct policy_network *n = &p->network;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n->npublish; i++) {
		const struct network_publish *e = &n->publish[i];
		const char *where = e->where ? e->where : "network.publish";

		if (p->profile == PROFILE_STRICT)
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: nothing can listen on port %u: the profile strict has "
				       "no network sockets",
				       where, e->port);
		if (e->port == NETWORK_PROXY_PORT || e->port == NETWORK_DNS_PORT ||
		    e->port == NETWORK_TCP_PORT)
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: port %u of the box is Pale's own", where, e->port);
		for (size_t j = 0; j < i; j++)
			if (same_place(e, &n->publish[j]))
				return err_set(err, PALE_E_POLICY, "policy", 0,
					       "%s: published at the same place as %s", where,
					       n->publish[j].where ? n->publish[j].where
								   : "another entry");
		if (e->path)
			r = check_path(p, e, err);
	}
	return r;
}
