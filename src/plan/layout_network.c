/* What a box with a network has in its file tree: see layout_impl.h.
 *
 * Runs in the supervisor before anything is made. Paths come from the policy, whose author is the
 * caller; no file is opened. */
#include "layout_impl.h"

#include "base/str.h"

#define STAGE "plan"

int layout_agent(struct layout *l, struct pale_err *err)
{
	static const char known[] = "/etc/ssh/ssh_known_hosts";
	struct plan *p = l->plan;
	struct step *s;
	int r;

	if (!p->agent_socket)
		return 0;
	s = plan_add_step(p, STEP_SOCKET, NULL, PLAN_AGENT, NULL);
	if (!s)
		return err_nomem(err, STAGE);
	s->mode = 0600;
	s->own = true;
	r = layout_parents(l, known, NULL, err);
	if (r < 0)
		return r;
	s = plan_add_step(p, STEP_FILE, NULL, known, p->known_hosts);
	if (!s)
		return err_nomem(err, STAGE);
	s->mode = 0444;
	return 0;
}

int layout_secrets(struct layout *l, struct pale_err *err)
{
	const struct policy_network *n = l->plan->network;
	struct step *s;

	for (size_t i = 0; n && i < n->nsecrets; i++) {
		const char *path = n->secrets[i].file;
		int r;

		if (!path)
			continue;
		for (size_t j = 0; j < l->n; j++)
			if (place_within(path, l->places[j].path) &&
			    (l->places[j].kind == PLACE_READ || l->places[j].kind == PLACE_OVERLAY))
				return err_set(
					err, PALE_E_POLICY, STAGE, 0,
					"%s: the file %s of a secret would lie in %s, which "
					"is the host's; name one elsewhere, such as /run/key",
					n->secrets[i].where, QUOTED(path),
					QUOTED(l->places[j].path));
		r = layout_parents(l, path, NULL, err);
		if (r < 0)
			return r;
		s = plan_add_step(l->plan, STEP_FILE, NULL, path, PLAN_PLACEHOLDER);
		if (!s)
			return err_nomem(err, STAGE);
		s->mode = 0444;
		s->secret = (unsigned)i + 1;
	}
	return 0;
}
