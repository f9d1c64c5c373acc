/* What a box left: `write` directories collected to the host, overlays captured for review.
 *
 * Runs in the supervisor when nothing of the box is alive; the trees are hostile in names and
 * contents, and are read by a child that has nothing to lose (src/files). A failure is in the log
 * and the result; the others go on. */
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "files/changes.h"
#include "files/collect.h"
#include "supervise/run.h"

#define STAGE "files"

static void note_refusal(void *arg, const char *path, const char *why)
{
	struct run *run = arg;

	run->result->refused++;
	run_log(run, STAGE, "collect.refused",
		json_pack("{so ss}", "path", audit_text(path, strlen(path), 4096), "why", why));
}

static void note_error(struct run *run, json_t *entry, const struct pale_err *err)
{
	run->result->lost = true;
	json_object_set_new(entry, "error", audit_text(err->message, strlen(err->message), 512));
	if (run->error.code == PALE_OK)
		run->error = *err;
}

static void collect_one(struct run *run, const struct plan_collect *c, int fd)
{
	struct collect_report report = {0};
	struct pale_err err;
	json_t *entry = json_pack("{so so}", "path", audit_text(c->path, strlen(c->path), 4096),
				  "to", audit_text(c->dest, strlen(c->dest), 4096));

	if (collect_tree(fd, run->box.userns_fd, c->dest, c->size_bytes, c->mounts, note_refusal,
			 run, &report, &err) < 0)
		note_error(run, entry, &err);
	json_object_set_new(entry, "files", json_integer((json_int_t)report.files));
	json_object_set_new(entry, "directories", json_integer((json_int_t)report.directories));
	json_object_set_new(entry, "links", json_integer((json_int_t)report.links));
	json_object_set_new(entry, "bytes", json_integer((json_int_t)report.bytes));
	json_object_set_new(entry, "refused", json_integer((json_int_t)report.refused));
	json_array_append(run->result->collected, entry);
	run_log(run, STAGE, "collect.done", entry);
}

static void capture_one(struct run *run, const struct plan_overlay *o, unsigned n,
			int64_t started_ns)
{
	struct changes_source source = {
		.userns_fd = run->box.userns_fd,
		.root = o->root,
		.path = o->path,
		.started_ns = started_ns,
	};
	struct changes_summary summary = {0};
	_cleanup_close_ int upper = -1;
	struct pale_err err;
	char name[16];
	json_t *entry;

	snprintf(name, sizeof(name), "u%u", o->index);
	upper = fd_open_beneath(run->box.data_fd, name, O_RDONLY | O_DIRECTORY, 0);
	source.upper_fd = upper;
	entry = json_pack("{sI so so}", "n", (json_int_t)n, "root",
			  audit_text(o->root, strlen(o->root), 4096), "path",
			  audit_text(o->path, strlen(o->path), 4096));
	if (upper < 0)
		err_set(&err, PALE_E_SYSTEM, STAGE, -upper, "cannot open the changes");
	if (upper < 0 || changes_capture(&source, audit_dir_fd(run->log), n, &summary, &err) < 0)
		note_error(run, entry, &err);
	json_object_set_new(entry, "added", json_integer((json_int_t)summary.added));
	json_object_set_new(entry, "modified", json_integer((json_int_t)summary.modified));
	json_object_set_new(entry, "deleted", json_integer((json_int_t)summary.deleted));
	json_object_set_new(entry, "other", json_integer((json_int_t)summary.other));
	json_object_set_new(entry, "refused", json_integer((json_int_t)summary.refused));
	json_object_set_new(entry, "bytes", json_integer((json_int_t)summary.bytes));
	if (o->foreign)
		json_object_set_new(entry, "unchangeable", json_integer(o->foreign));
	json_array_append(run->result->changes, entry);
	run_log(run, STAGE, "workspace.captured", entry);
}

void harvest(struct run *run, int64_t started_ns)
{
	for (size_t i = 0; i < run->plan->ncollect; i++)
		if (run->box.collect_fds[i] >= 0)
			collect_one(run, &run->plan->collect[i], run->box.collect_fds[i]);
	for (size_t i = 0; i < run->plan->noverlays; i++)
		capture_one(run, &run->plan->overlays[i], (unsigned)i, started_ns);
}
