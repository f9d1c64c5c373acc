/* The layout: see layout.h.
 *
 * Runs in the supervisor before anything is made. The entries are the caller's; what lies at their
 * sources may be hostile and is only looked at with stat(). Every place of the box, the policy's
 * and our own, becomes an entry of one list; sorted by path, a parent comes before what is mounted
 * in it, so nesting in either order is the same case. */
#include "layout_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "plan/kernel.h"
#include "plan/etc.h"
#include "plan/source.h"
#include "plan/trust.h"
#include "plan/view.h"

#define STAGE "plan"

static void layout_done(struct layout *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->places[i].path);
		free(l->places[i].source);
	}
	for (size_t i = 0; i < l->ndirs; i++)
		free(l->dirs[i]);
	free(l->places);
	free(l->dirs);
}

/* Room for one more element of *array; false if out of memory. */
static bool grow(void **array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 32;
	void *bigger;

	if (n < *cap)
		return true;
	bigger = reallocarray(*array, more, size);
	if (!bigger)
		return false;
	*array = bigger;
	*cap = more;
	return true;
}

struct step *plan_add_step(struct plan *p, enum step_type type, const char *source,
			   const char *target, const char *content)
{
	struct step *s;

	if (!grow((void **)&p->steps, p->nsteps, &p->cap_steps, sizeof(*p->steps)))
		return NULL;
	s = &p->steps[p->nsteps];
	*s = (struct step){.type = type};
	s->source = source ? strdup(source) : NULL;
	s->target = target ? strdup(*target == '/' ? target + 1 : target) : NULL;
	s->content = content ? strdup(content) : NULL;
	if ((source && !s->source) || (target && !s->target) || (content && !s->content)) {
		free(s->source);
		free(s->target);
		free(s->content);
		return NULL;
	}
	p->nsteps++;
	return s;
}

/* Component-wise order, so that "/a" stands directly before "/a/b", not "/a-b" between them. */
static int compare_paths(const void *a, const void *b)
{
	const unsigned char *x = (const unsigned char *)((const struct place *)a)->path;
	const unsigned char *y = (const unsigned char *)((const struct place *)b)->path;

	while (*x && *x == *y)
		x++, y++;
	return (*x == '/' ? 1 : *x ? *x + 1 : 0) - (*y == '/' ? 1 : *y ? *y + 1 : 0);
}

/* Adds a place; of two with the same path the later one counts, but a hidden path stays hidden. */
static struct place *add_place(struct layout *l, enum place_kind kind, const char *path,
			       const char *source)
{
	struct place *p = NULL;

	for (size_t i = 0; i < l->n && !p; i++)
		if (strcmp(l->places[i].path, path) == 0)
			p = &l->places[i];
	if (p && p->kind == PLACE_HIDE)
		return p;
	if (!p) {
		if (!grow((void **)&l->places, l->n, &l->cap, sizeof(*l->places)))
			return NULL;
		p = &l->places[l->n++];
		*p = (struct place){.path = strdup(path)};
	} else {
		free(p->source);
		*p = (struct place){.path = p->path};
	}
	p->kind = kind;
	p->source = source ? strdup(source) : NULL;
	if (!p->path || (source && !p->source))
		return NULL;
	return p;
}

/* --- the places --------------------------------------------------------------------------------
 */

static int add_image(struct layout *l, const char *image, struct pale_err *err)
{
	static const char *const merged[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
	bool host = strcmp(image, "host") == 0;
	char from[PATH_MAX], to[32], link[PATH_MAX];
	struct stat usr;
	struct place *p;

	snprintf(from, sizeof(from), "%s/usr", host ? "" : image);
	if (stat(from, &usr) < 0 || !S_ISDIR(usr.st_mode))
		return err_set(err, PALE_E_POLICY, STAGE, 0,
			       "image: %s holds no root file system: there is no directory %s",
			       QUOTED(image), QUOTED(from));
	p = add_place(l, PLACE_HOST, "/usr", from);
	if (!p)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < ARRAY_SIZE(merged); i++) {
		struct stat st;
		ssize_t n;

		snprintf(from, sizeof(from), "%s/%s", host ? "" : image, merged[i]);
		snprintf(to, sizeof(to), "/%s", merged[i]);
		if (lstat(from, &st) < 0)
			continue;
		if (S_ISLNK(st.st_mode)) {
			n = readlink(from, link, sizeof(link) - 1);
			if (n < 0)
				continue;
			link[n] = '\0';
			p = add_place(l, PLACE_LINK, to, link);
		} else {
			p = add_place(l, PLACE_HOST, to, from);
		}
		if (!p)
			return err_nomem(err, STAGE);
	}
	/* Without its caches fontconfig reads every font there is, and tries to write them. */
	if (host && stat("/var/cache/fontconfig", &(struct stat){0}) == 0 &&
	    !add_place(l, PLACE_HOST, "/var/cache/fontconfig", "/var/cache/fontconfig"))
		return err_nomem(err, STAGE);
	return 0;
}

static int add_writable(struct layout *l, const char *path, const char *name, unsigned mode,
			bool own, struct pale_err *err)
{
	struct place *p = add_place(l, PLACE_SHARED, path, NULL);

	if (!p)
		return err_nomem(err, STAGE);
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->mode = mode;
	p->own = own;
	return 0;
}

/* The working directory, where it is a host directory of which only parts are shown: writable like
 * HOME, since programs write to where they are, and gone with the box like it. */
static int add_cwd(struct layout *l, const struct policy *policy, struct pale_err *err)
{
	const char *cwd = l->plan->command.cwd;

	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->places[i].path, cwd) == 0 ||
		    ((l->places[i].kind == PLACE_HOST || l->places[i].kind == PLACE_SPECIAL) &&
		     place_within(cwd, l->places[i].path)))
			return 0;
	for (size_t i = 0; i < policy->nfiles; i++)
		if (place_within(cwd, policy->files[i].path))
			return 0;
	return add_writable(l, cwd, "cwd", 0755, true, err);
}

static int add_source(struct layout *l, const struct policy_file *f, struct pale_err *err)
{
	_cleanup_free_ char *real = NULL;
	struct place *p;
	struct stat st;
	int r = source_find(f, &real, &st, err);

	if (r < 0)
		return r;
	p = add_place(l, f->access == ACCESS_OVERLAY ? PLACE_OVERLAY : PLACE_READ, f->path, real);
	if (!p)
		return err_nomem(err, STAGE);
	if (p->kind == PLACE_HIDE)
		return 0;
	p->is_file = !S_ISDIR(st.st_mode);
	p->swap_owner = l->plan->user_range && st.st_uid != l->plan->uid;
	p->real = true;
	p->of_policy = true;
	p->where = f->where;
	return 0;
}

static int add_policy_file(struct layout *l, const struct policy_file *f, unsigned n,
			   struct pale_err *err)
{
	struct place *p;

	if (f->access == ACCESS_READ || f->access == ACCESS_OVERLAY)
		return add_source(l, f, err);
	p = add_place(l,
		      f->access == ACCESS_HIDE ? PLACE_HIDE
		      : f->size_bytes	       ? PLACE_SIZED
					       : PLACE_SHARED,
		      f->path, NULL);
	if (!p)
		return err_nomem(err, STAGE);
	p->where = f->where;
	p->of_policy = f->access != ACCESS_HIDE;
	p->collect = f->collect;
	p->size_bytes = f->size_bytes;
	p->mode = 0755;
	p->own = true;
	snprintf(p->name, sizeof(p->name), "d%u", n);
	return 0;
}

/* Places of the toolchain that a policy entry shows already are left to it. */
static int add_toolchain(struct layout *l, const struct toolchain *t, struct pale_err *err)
{
	for (size_t i = 0; t && i < t->nitems; i++) {
		const struct toolchain_item *item = &t->items[i];
		bool covered = false;
		struct place *p;
		struct stat st;

		for (size_t k = 0; k < l->n && !covered; k++)
			covered = (l->places[k].kind == PLACE_READ ||
				   l->places[k].kind == PLACE_OVERLAY) &&
				  place_within(item->path, l->places[k].path);
		if (covered)
			continue;
		p = add_place(l, item->type == TOOLCHAIN_LINK ? PLACE_LINK : PLACE_READ, item->path,
			      item->data);
		if (!p)
			return err_nomem(err, STAGE);
		p->is_file = item->type == TOOLCHAIN_BIND && !item->directory;
		p->swap_owner = l->plan->user_range && item->type == TOOLCHAIN_BIND &&
				stat(item->data, &st) == 0 && st.st_uid != l->plan->uid;
		p->real = true;
		p->where = item->why;
	}
	return 0;
}

static int collect_places(struct layout *l, const struct policy *policy,
			  const struct toolchain *toolchain, struct pale_err *err)
{
	static const char *const special[] = {"/proc", "/sys", "/dev", "/etc"};
	struct plan *p = l->plan;
	int r = add_image(l, policy->image, err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(special); i++)
		if (!add_place(l, PLACE_SPECIAL, special[i], NULL))
			r = err_nomem(err, STAGE);
	if (r == 0 && !add_place(l, PLACE_EMPTY, "/run", NULL))
		r = err_nomem(err, STAGE);
	if (r == 0)
		r = add_writable(l, "/tmp", "tmp", 01777, false, err);
	if (r == 0)
		r = add_writable(l, "/var/tmp", "vartmp", 01777, false, err);
	if (r == 0)
		r = add_writable(l, "/dev/shm", "shm", 01777, false, err);
	if (r == 0)
		r = add_writable(l, p->home, "home", 0755, true, err);
	if (r == 0)
		r = add_cwd(l, policy, err);
	for (size_t i = 0; r == 0 && i < policy->nfiles; i++)
		r = add_policy_file(l, &policy->files[i], (unsigned)i, err);
	if (r == 0)
		r = add_toolchain(l, toolchain, err);
	if (r < 0)
		return r;
	qsort(l->places, l->n, sizeof(*l->places), compare_paths);
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < i; k++)
			if (place_within(l->places[i].path, l->places[k].path))
				l->places[i].in = &l->places[k];
	return 0;
}

/* --- the steps ---------------------------------------------------------------------------------
 */

static int make_dir(struct layout *l, const char *path, struct pale_err *err)
{
	struct step *s;

	for (size_t i = 0; i < l->ndirs; i++)
		if (strcmp(l->dirs[i], path) == 0)
			return 0;
	if (!grow((void **)&l->dirs, l->ndirs, &l->cap_dirs, sizeof(*l->dirs)))
		return err_nomem(err, STAGE);
	l->dirs[l->ndirs] = strdup(path);
	s = l->dirs[l->ndirs] ? plan_add_step(l->plan, STEP_DIR, NULL, path, NULL) : NULL;
	if (l->dirs[l->ndirs])
		l->ndirs++;
	if (!s)
		return err_nomem(err, STAGE);
	s->mode = 0755;
	return 0;
}

int layout_parents(struct layout *l, const char *path, const char *top, struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(path);
	size_t from = top ? strlen(top) : 0;
	int r = 0;

	if (!copy)
		return err_nomem(err, STAGE);
	for (char *slash = strchr(copy + from + (copy[from] == '/'), '/'); slash && r == 0;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_dir(l, copy, err);
		*slash = '/';
	}
	return r;
}

/* /etc is ours, with the policy's additions: what stands there already may be mounted over, but
 * nothing can be made in what is the host's. *ret_there: the mount point is there. */
static int check_etc(const struct plan *plan, const struct place *p, bool is_file, bool *ret_there,
		     struct pale_err *err)
{
	*ret_there = false;
	for (size_t i = 0; i < plan->nsteps; i++) {
		const struct step *s = &plan->steps[i];
		bool same = s->target && strcmp(p->path + 1, s->target) == 0;
		bool dir = s->type == STEP_DIR || (s->type == STEP_BIND && !s->is_file);

		if (!s->target || !place_within(p->path + 1, s->target))
			continue;
		if (s->type == STEP_SYMLINK || (!same && s->type != STEP_DIR) ||
		    (same && p->kind != PLACE_HIDE && dir == is_file))
			return err_set(err, PALE_E_POLICY, STAGE, 0,
				       "%s: %s cannot be mounted on the box's own \"/%s\"",
				       p->where ? p->where : "policy", QUOTED(p->path), s->target);
		*ret_there |= same;
	}
	return 0;
}

/* A place for the mount: in our own tree it is made, in the host image it must be there, and in a
 * mounted directory a skeleton has it. */
static int make_target(struct layout *l, struct place *p, bool is_file, struct pale_err *err)
{
	struct place *in = p->in;
	_cleanup_free_ char *on_host = NULL;
	bool in_etc = in && in->kind == PLACE_SPECIAL && strcmp(in->path, "/etc") == 0;
	bool there;
	struct step *s;
	struct stat st;
	int r;

	if (in && (in->kind == PLACE_LINK || in->is_file || in->kind == PLACE_HIDE ||
		   (in->kind == PLACE_SPECIAL && !in_etc && !str_starts(p->path, "/dev/shm"))))
		return err_set(err, PALE_E_POLICY, STAGE, 0, "%s: %s cannot be mounted inside %s",
			       p->where ? p->where : "policy", QUOTED(p->path), in->path);
	if (in && (in->kind == PLACE_READ || in->kind == PLACE_OVERLAY))
		return 0;
	if (in && in->kind == PLACE_HOST) {
		if (asprintf(&on_host, "%s%s", in->source, p->path + strlen(in->path)) < 0)
			return err_nomem(err, STAGE);
		if (stat(on_host, &st) < 0 || S_ISDIR(st.st_mode) == is_file)
			return err_set(err, PALE_E_POLICY, STAGE, 0,
				       "%s: there is no %s on the host to mount %s over; choose a "
				       "path outside %s",
				       p->where ? p->where : "policy",
				       is_file ? "file" : "directory", QUOTED(p->path), in->path);
		return 0;
	}
	if (in_etc) {
		r = check_etc(l->plan, p, is_file, &there, err);
		if (r < 0 || there)
			return r;
	}
	r = layout_parents(l, p->path, in ? in->path : NULL, err);
	if (r < 0)
		return r;
	if (!is_file)
		return make_dir(l, p->path, err);
	s = plan_add_step(l->plan, STEP_FILE, NULL, p->path, "");
	if (!s)
		return err_nomem(err, STAGE);
	s->mode = 0444;
	return 0;
}

/* The policy's, or in a place of the policy's. */
static bool of_policy(const struct place *p)
{
	while (p && !p->of_policy)
		p = p->in;
	return p;
}

static bool in_host_content(const struct place *p)
{
	return p->in && (p->in->kind == PLACE_READ || p->in->kind == PLACE_OVERLAY ||
			 p->in->kind == PLACE_HOST);
}

static int emit_directory(struct layout *l, struct place *p, struct pale_err *err)
{
	struct step *s = plan_add_step(l->plan, STEP_SOURCE, p->source, NULL, NULL);

	if (!s)
		return err_nomem(err, STAGE);
	s->index = p->index;
	s->swap_owner = p->swap_owner;
	s->real = p->real;
	s->of_policy = of_policy(p);
	for (size_t i = 0; i < l->n; i++) {
		struct place *child = &l->places[i];

		if (child->in != p || child->kind == PLACE_LINK)
			continue;
		s = plan_add_step(l->plan, STEP_SKELETON, NULL, child->path,
				  child->path + strlen(p->path) + 1);
		if (!s)
			return err_nomem(err, STAGE);
		s->index = p->index;
		s->is_file = child->is_file;
		s->of_policy = of_policy(child);
	}
	s = plan_add_step(l->plan, p->kind == PLACE_OVERLAY ? STEP_OVERLAY : STEP_VIEW, NULL,
			  p->path, NULL);
	if (!s)
		return err_nomem(err, STAGE);
	s->index = p->index;
	s->nested = in_host_content(p);
	s->of_policy = of_policy(p);
	return 0;
}

static int emit_link(struct layout *l, struct place *p, struct pale_err *err)
{
	int r = 0;

	if (in_host_content(p))
		return 0; /* the host has it */
	r = layout_parents(l, p->path, p->in ? p->in->path : NULL, err);
	if (r == 0 && !plan_add_step(l->plan, STEP_SYMLINK, NULL, p->path, p->source))
		r = err_nomem(err, STAGE);
	return r;
}

static int emit_place(struct layout *l, struct place *p, uint64_t sized_inodes,
		      struct pale_err *err)
{
	struct step *s = NULL;
	int r;

	if (p->kind == PLACE_SPECIAL)
		return 0;
	if (p->kind == PLACE_LINK)
		return emit_link(l, p, err);
	/* A program of the host image may be hidden, too; what it lacks is absent as it is. */
	if (p->kind == PLACE_HIDE && p->in && p->in->kind == PLACE_HOST) {
		char on_host[PATH_MAX];
		struct stat st = {0};

		r = snprintf(on_host, sizeof(on_host), "%s%s", p->in->source,
			     p->path + strlen(p->in->path));
		if (r > 0 && r < (int)sizeof(on_host) && lstat(on_host, &st) < 0 && errno == ENOENT)
			return 0;
		p->is_file = r > 0 && r < (int)sizeof(on_host) && !S_ISDIR(st.st_mode);
	}
	r = make_target(l, p, p->is_file, err);
	if (r < 0)
		return r;
	switch (p->kind) {
	case PLACE_READ:
	case PLACE_OVERLAY:
		if (!p->is_file)
			return emit_directory(l, p, err);
		s = plan_add_step(l->plan, STEP_BIND, p->source, p->path, NULL);
		break;
	case PLACE_HOST: s = plan_add_step(l->plan, STEP_BIND, p->source, p->path, NULL); break;
	case PLACE_SHARED: s = plan_add_step(l->plan, STEP_WRITABLE, NULL, p->path, p->name); break;
	case PLACE_SIZED: s = plan_add_step(l->plan, STEP_TMPFS, NULL, p->path, NULL); break;
	case PLACE_HIDE: s = plan_add_step(l->plan, STEP_HIDE, NULL, p->path, NULL); break;
	case PLACE_LINK:
	case PLACE_EMPTY:
	case PLACE_SPECIAL: return 0;
	}
	if (!s)
		return err_nomem(err, STAGE);
	s->nested = in_host_content(p);
	s->of_policy = of_policy(p);
	s->is_file = p->is_file;
	s->swap_owner = p->swap_owner;
	s->real = p->real;
	s->mode = p->mode;
	s->own = p->own;
	s->size_bytes = p->kind == PLACE_SIZED ? p->size_bytes : 0;
	s->inodes = p->kind == PLACE_SIZED ? sized_inodes : 0;
	return 0;
}

static int emit_etc(struct layout *l, struct pale_err *err)
{
	struct plan *p = l->plan;
	_cleanup_free_ struct etc *etc = calloc(1, sizeof(*etc));
	struct etc_request req = {
		.user = p->user,
		.uid = p->uid,
		.gid = p->gid,
		.home = p->home,
		.hostname = "pale",
		.terminal = p->command.tty,
	};
	int r;

	if (!etc)
		return err_nomem(err, STAGE);
	r = etc_make(&req, etc, err);
	if (r == 0)
		r = make_dir(l, "/etc", err);
	for (size_t i = 0; r == 0 && i < etc->n; i++) {
		const struct etc_entry *e = &etc->entries[i];
		struct step *s = NULL;

		r = layout_parents(l, e->path, NULL, err);
		if (r < 0)
			break;
		if (e->type == ETC_DIR || (e->type == ETC_BIND && e->directory))
			r = make_dir(l, e->path, err);
		if (e->type == ETC_FILE || (e->type == ETC_BIND && !e->directory)) {
			s = plan_add_step(p, STEP_FILE, NULL, e->path,
					  e->type == ETC_FILE ? e->data : "");
			if (!s)
				return err_nomem(err, STAGE);
			s->mode = e->type == ETC_FILE ? (unsigned)e->mode : 0444;
		}
		if (e->type == ETC_LINK && !plan_add_step(p, STEP_SYMLINK, NULL, e->path, e->data))
			return err_nomem(err, STAGE);
		if (e->type == ETC_BIND) {
			s = plan_add_step(p, STEP_BIND, e->data, e->path, NULL);
			if (!s)
				return err_nomem(err, STAGE);
			s->is_file = !e->directory;
		}
	}
	return r;
}

/* The driver of a kernel: where nothing of the policy's can be mounted over it. */
static int emit_kernel(struct layout *l, struct pale_err *err)
{
	const char *path, *text = kernel_driver(l->plan->kernel, &path);
	struct step *s;
	int r = make_dir(l, KERNEL_DIR, err);

	if (r < 0 || !text)
		return r;
	s = plan_add_step(l->plan, STEP_FILE, NULL, path, text);
	if (!s)
		return err_nomem(err, STAGE);
	s->mode = 0444;
	s->of_kernel = true;
	return 0;
}

static int emit_dev(struct layout *l, struct pale_err *err)
{
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {
		{"/dev/fd", "/proc/self/fd"},	    {"/dev/stdin", "/proc/self/fd/0"},
		{"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
		{"/dev/ptmx", "pts/ptmx"},
	};
	int r = make_dir(l, "/dev", err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(nodes); i++) {
		char path[32];
		struct step *s;

		snprintf(path, sizeof(path), "/dev/%s", nodes[i]);
		s = plan_add_step(l->plan, STEP_FILE, NULL, path, "");
		if (!s)
			return err_nomem(err, STAGE);
		s->mode = 0666;
		s = plan_add_step(l->plan, STEP_BIND, path, path, NULL);
		if (!s)
			return err_nomem(err, STAGE);
		s->device = true;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
		if (!plan_add_step(l->plan, STEP_SYMLINK, NULL, links[i][0], links[i][1]))
			r = err_nomem(err, STAGE);
	if (r == 0)
		r = make_dir(l, "/dev/pts", err);
	if (r == 0 && !plan_add_step(l->plan, STEP_DEVPTS, NULL, "/dev/pts", NULL))
		r = err_nomem(err, STAGE);
	return r;
}

static int emit_proc(struct layout *l, struct pale_err *err)
{
	int r = make_dir(l, "/proc", err);
	struct step *s = r < 0 ? NULL : plan_add_step(l->plan, STEP_PROC, NULL, "/proc", NULL);

	if (r == 0 && !s)
		r = err_nomem(err, STAGE);
	/* For the host's root by another name: core_pattern alone would be a way out. */
	if (s)
		s->readonly = l->plan->host.owns_settings;
	return r;
}

/* What tells programs how large the machine is, told for the box. In the nested profile /proc stays
 * uncovered, or the kernel would refuse the inner box a /proc of its own. */
static int emit_views(struct layout *l, struct pale_err *err)
{
	static const char *const lists[] = {"online", "present", "possible"};
	static const char *const covers[VIEWS_OF_MACHINE] = {[VIEW_MEMINFO] = "/proc/meminfo",
							     [VIEW_CPUINFO] = "/proc/cpuinfo",
							     [VIEW_STAT] = "/proc/stat"};
	struct plan *p = l->plan;
	_cleanup_buf_ struct buf cpus = BUF_INIT(256);
	struct step *s;
	int r = view_cpu_list(&cpus, p->affinity) < 0 ? err_nomem(err, STAGE) : 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", lists[i]);
		r = layout_parents(l, path, NULL, err);
		if (r < 0)
			break;
		s = plan_add_step(p, STEP_FILE, NULL, path, cpus.data);
		if (!s)
			return err_nomem(err, STAGE);
		s->mode = 0444;
	}
	for (unsigned i = 0; r == 0 && i < VIEWS_OF_MACHINE && p->profile != PROFILE_NESTED; i++) {
		s = plan_add_step(p, STEP_COVER, NULL, covers[i], NULL);
		if (!s)
			return err_nomem(err, STAGE);
		s->index = i;
	}
	/* It names the keys of the caller, whose user the box's is; a kernel without keys has none.
	 */
	if (r == 0 && !p->user_range && p->profile != PROFILE_NESTED &&
	    (access("/proc/keys", F_OK) == 0 || errno != ENOENT) &&
	    !plan_add_step(p, STEP_HIDE, NULL, "/proc/keys", NULL))
		return err_nomem(err, STAGE);
	return r;
}

/* The disk limit is divided: what sized places take is not the others' any more. */
static int divide_disk(struct layout *l, uint64_t *ret_sized_inodes, struct pale_err *err)
{
	struct policy_limits *limits = &l->plan->limits;
	uint64_t sized = 0, parts = 1;
	struct step *s;

	for (size_t i = 0; i < l->n; i++) {
		if (l->places[i].kind != PLACE_SIZED)
			continue;
		parts++;
		if (__builtin_add_overflow(sized, l->places[i].size_bytes, &sized))
			sized = UINT64_MAX;
	}
	if (sized >= limits->disk_bytes) {
		char a[NUM_TEXT], b[NUM_TEXT];

		return err_set(err, PALE_E_POLICY, STAGE, 0,
			       "the sizes of the writable directories add up to %s, and "
			       "limits.disk is %s for all "
			       "writable places together; raise limits.disk or lower the sizes",
			       num_format_size(a, sized), num_format_size(b, limits->disk_bytes));
	}
	*ret_sized_inodes = limits->inodes / parts;
	s = plan_add_step(l->plan, STEP_DATA, NULL, NULL, NULL);
	if (!s)
		return err_nomem(err, STAGE);
	s->size_bytes = limits->disk_bytes - sized;
	s->inodes = limits->inodes - *ret_sized_inodes * (parts - 1);
	return 0;
}

static int add_rule(struct plan *p, const char *path, enum landlock_access access,
		    struct pale_err *err)
{
	char *copy = strdup(path);

	if (!copy)
		return err_nomem(err, STAGE);
	p->rules[p->nrules++] = (struct plan_rule){.path = copy, .access = access};
	return 0;
}

/* The second lock: the whole tree can be read, and only what is meant to be written can be. */
static int make_rules(struct layout *l, struct pale_err *err)
{
	struct plan *p = l->plan;
	int r;

	if (!p->landlock)
		return 0;
	p->rules = calloc(l->n + 3, sizeof(*p->rules));
	if (!p->rules)
		return err_nomem(err, STAGE);
	r = add_rule(p, "/", LANDLOCK_READ_EXECUTE, err);
	/* Its own files are the kernel's to guard; programs write to a few of their own. */
	if (r == 0)
		r = add_rule(p, "/proc", LANDLOCK_READ_WRITE, err);
	if (r == 0)
		r = add_rule(p, "/dev", LANDLOCK_DEVICE, err);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		if (l->places[i].kind == PLACE_SHARED || l->places[i].kind == PLACE_SIZED ||
		    l->places[i].kind == PLACE_OVERLAY)
			r = add_rule(p, l->places[i].path, LANDLOCK_READ_WRITE, err);
	return r;
}

int layout_make(struct plan *p, const struct plan_request *req, const struct toolchain *toolchain,
		struct pale_err *err)
{
	_cleanup_(layout_done) struct layout l = {.plan = p};
	uint64_t sized_inodes = 0;
	unsigned index = 0;
	int r = collect_places(&l, req->policy, toolchain, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l.n; i++)
		if (l.places[i].kind == PLACE_READ || l.places[i].kind == PLACE_OVERLAY)
			l.places[i].index = index++;
	if (!plan_add_step(p, STEP_ROOT, NULL, NULL, NULL))
		return err_nomem(err, STAGE);
	r = divide_disk(&l, &sized_inodes, err);
	/* The special places first: what the policy mounts may lie below one of our own
	 * directories, never the other way round. */
	if (r == 0)
		r = emit_etc(&l, err);
	if (r == 0 && p->kernel)
		r = emit_kernel(&l, err);
	if (r == 0)
		r = emit_dev(&l, err);
	if (r == 0)
		r = emit_proc(&l, err);
	if (r == 0)
		r = emit_views(&l, err);
	if (r == 0)
		r = trust_steps(p, err);
	if (r == 0)
		r = layout_agent(&l, err);
	for (size_t i = 0; r == 0 && i < l.n; i++)
		r = emit_place(&l, &l.places[i], sized_inodes, err);
	if (r == 0)
		r = layout_secrets(&l, err);
	if (r == 0)
		r = layout_given(&l, req->files, req->nfiles, err);
	if (r == 0)
		r = layout_results(&l, err);
	if (r == 0)
		r = make_rules(&l, err);
	if (r == 0 && !plan_add_step(p, STEP_READONLY, NULL, NULL, NULL))
		r = err_nomem(err, STAGE);
	return r;
}
