/* Throwing away what a run changed: see workspace_discard() in workspace.h. Runs with the caller's
 * rights, outside any box. */
#include <string.h>

#include "audit/audit.h"
#include "base/str.h"
#include "files/apply.h"
#include "files/workspace.h"

static void close_audit(struct audit **a)
{
	audit_free(*a);
}

/* What a killed apply left on the host, and an event. */
static int let_go(struct workspace *w, size_t i, struct audit *audit, struct pale_err *err)
{
	_cleanup_overlay_ struct overlay o = OVERLAY_NONE;
	json_t *body;
	int r = overlay_open(w, i, &o, err);

	/* The directory is gone or another one: nothing of it to clean, and the changes go all the
	 * same. */
	if (r < 0)
		body = json_pack("{s:i}", "n", (int)w->kept.overlays[i]);
	else
		body = json_pack("{s:i,s:o}", "n", (int)o.n, "root",
				 audit_text(o.manifest.root, strlen(o.manifest.root), 4096));
	if (!body)
		return err_nomem(err, "files");
	if (r == 0) {
		r = changes_lock(o.dir_fd, err);
		if (r == 0)
			r = changes_clean(&o.manifest, o.dir_fd, o.root_fd, err);
		if (r < 0) {
			json_decref(body);
			return r;
		}
	}
	return audit_append(audit, "files", "discard.done", body, err);
}

int workspace_discard(const char *run, struct pale_err *err)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	_cleanup_(close_audit) struct audit *audit = NULL;
	int r = workspace_open(run, NULL, 0, &w, err);

	if (r == 0)
		r = audit_reopen(w.kept.id, &audit, err);
	for (size_t i = 0; r == 0 && i < w.kept.count; i++)
		r = let_go(&w, i, audit, err);
	if (r == 0)
		r = audit_sync(audit, err);
	return r == 0 ? kept_remove(&w.kept, err) : r;
}
