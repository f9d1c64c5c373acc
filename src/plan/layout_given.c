/* Files that the caller puts into the box for one run: see struct pale_file in pale.h.
 *
 * Runs in the supervisor while it plans. Paths and contents are the caller's. Only directories that
 * are the box's own and empty when it starts will do: in a directory of the host's a link could
 * lead elsewhere. */
#include "layout_impl.h"

#include "base/str.h"
#include "policy/paths.h"

#define STAGE "plan"

/* The place in which path lies: the innermost that is mounted. */
static const struct place *place_of(const struct layout *l, const char *path)
{
	const struct place *in = NULL;

	/* Sorted, so that the innermost comes last. */
	for (size_t i = 0; i < l->n; i++)
		if (place_within(path, l->places[i].path))
			in = &l->places[i];
	return in;
}

/* The directories between the place and the file are the user's, as if the user had made them. */
static int make_way(struct layout *l, const char *path, const char *top, struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return err_nomem(err, STAGE);
	for (char *slash = strchr(copy + strlen(top) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		struct step *s;

		*slash = '\0';
		s = plan_add_step(l->plan, STEP_DIR, NULL, copy, NULL);
		*slash = '/';
		if (!s)
			return err_nomem(err, STAGE);
		s->mode = 0700;
		s->own = true;
	}
	return 0;
}

static int keep(struct plan *p, const struct pale_file *f, struct pale_err *err)
{
	struct plan_file *copy = &p->files[p->nfiles];

	copy->path = strdup(f->path);
	copy->content = strdup(f->content ? f->content : "");
	p->nfiles++;
	return copy->path && copy->content ? 0 : err_nomem(err, STAGE);
}

int layout_given(struct layout *l, const struct pale_file *files, size_t n, struct pale_err *err)
{
	struct plan *p = l->plan;
	int r = 0;

	if (!n)
		return 0;
	p->files = calloc(n, sizeof(*p->files));
	if (!p->files)
		return err_nomem(err, STAGE);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const char *path = files[i].path;
		const struct place *in;
		struct step *s;

		if (!path || *path != '/' || path_has_dotdot(path) || strstr(path, "//") ||
		    str_ends(path, "/"))
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "the path of a file for the box has to be absolute and "
				       "plain, not %s",
				       QUOTED(path ? path : ""));
		in = place_of(l, path);
		if (!in || (in->kind != PLACE_SHARED && in->kind != PLACE_SIZED) ||
		    strcmp(in->path, path) == 0)
			return err_set(err, PALE_E_POLICY, STAGE, 0,
				       "%s: the file that goes there needs a directory of the "
				       "box's own that is writable, such as HOME; here it is in %s",
				       QUOTED(path), QUOTED(in ? in->path : "/"));
		r = make_way(l, path, in->path, err);
		if (r == 0)
			r = keep(p, &files[i], err);
		if (r < 0)
			return r;
		s = plan_add_step(p, STEP_FILE, NULL, path, PLAN_GIVEN);
		if (!s)
			return err_nomem(err, STAGE);
		s->mode = 0600;
		s->own = true;
		s->given = (unsigned)p->nfiles;
	}
	return r;
}
