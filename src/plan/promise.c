/* The promises: see promise.h. Text only; made from the plan's own decisions, so that it cannot say
 * more than the steps do. */
#include "promise.h"

#include <stdarg.h>
#include <string.h>

#include "base/num.h"
#include "confine/seccomp.h"

#define MAX_PROMISES 64

struct promise *promise_add(struct plan *p, enum axis axis, const char *key)
{
	struct promise *promise = &p->promises[p->npromises];

	/* The lists are far shorter than MAX_PROMISES but for the rules and secrets of a policy,
	 * for which promise_make() has made room. */
	if (p->npromises == p->cap_promises)
		return &p->promises[p->cap_promises - 1];
	p->npromises++;
	promise->axis = axis;
	snprintf(promise->key, sizeof(promise->key), "%s", key);
	return promise;
}

void promise_say(char *field, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(field, size, fmt, ap);
	va_end(ap);
}

static const char *group(const struct plan *p)
{
	switch (p->host.cgroup.kind) {
	case CGROUP_V1: return "cgroup v1";
	case CGROUP_V2: return "cgroup v2";
	case CGROUP_V2_SYSTEMD: return "cgroup v2 (systemd scope)";
	case CGROUP_NONE: break;
	}
	return "no cgroup";
}

static void add_files(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_FILES, "root");
	const unsigned *counts = p->counts;
	char size[NUM_TEXT];

	SAY(it->what,
	    "a fresh root: the host's /usr read-only, a made /etc, and nothing else of the host");
	SAY(it->mechanism, "mount namespace, pivot_root, mount_setattr read-only nosuid nodev");

	if (counts[ACCESS_READ] || counts[ACCESS_OVERLAY]) {
		it = promise_add(p, AXIS_FILES, "sources");
		SAY(it->what,
		    "%u mounted read-only and %u copy-on-write; nothing is written to the host; "
		    "sockets, "
		    "FIFOs and devices in them lead nowhere",
		    counts[ACCESS_READ], counts[ACCESS_OVERLAY]);
		SAY(it->mechanism, "overlayfs over id-%s clones of the sources, nodev",
		    p->user_range ? "mapped" : "preserving");
		/* The kernel copies a file up with its owner and group, which must exist inside. */
		if (counts[ACCESS_OVERLAY] && !p->user_range)
			SAY(it->uncovered,
			    "files of another owner or group than uid %u, gid %u cannot be changed "
			    "inside, only replaced (EOVERFLOW, \"Value too large\"): chgrp them to "
			    "gid %u, or run as root",
			    p->host.uid, p->host.gid, p->host.gid);
	}
	if (p->ncollect) {
		it = promise_add(p, AXIS_FILES, "results");
		SAY(it->what,
		    "%zu writable director%s copied to the host at the end; no device, no setuid "
		    "bit, "
		    "no link that leads out",
		    p->ncollect, p->ncollect == 1 ? "y" : "ies");
		SAY(it->mechanism,
		    "a process of its own (Landlock, seccomp), openat2 beneath held directories, "
		    "a rename a file");
	}
	if (counts[ACCESS_HIDE]) {
		it = promise_add(p, AXIS_FILES, "hide");
		SAY(it->what, "%u hidden: empty and read-only inside", counts[ACCESS_HIDE]);
		SAY(it->mechanism, "an empty read-only mount over each");
	}
	it = promise_add(p, AXIS_FILES, "second-lock");
	SAY(it->what, "writing only below the writable places; no file of another domain");
	if (p->landlock) {
		SAY(it->mechanism, "Landlock ABI %d", p->host.landlock.abi);
		if (p->host.landlock.lacks[0])
			SAY(it->uncovered, "this kernel's Landlock lacks: %s",
			    p->host.landlock.lacks);
	} else {
		SAY(it->mechanism, "none");
		SAY(it->fallback, "mounts alone");
		SAY(it->uncovered, "a fault in the mount set-up has no second lock behind it");
		it->best_effort = true;
	}
	it = promise_add(p, AXIS_FILES, "events");
	if (p->watch_files == WATCH_ALL) {
		SAY(it->what, "each refused open is an event");
		SAY(it->mechanism, "seccomp notification of opens, looked up as the box sees them");
	} else if (p->watch_files == WATCH_WRITES) {
		SAY(it->what, "each refused open for writing or change of a name is an event");
		SAY(it->mechanism, "seccomp notification of opens for writing");
		SAY(it->uncovered,
		    "refused reads are refused, but not seen; audit: {files: all} reports them");
	} else {
		SAY(it->what, "refused accesses are refused, but not seen");
		SAY(it->mechanism, "none");
		SAY(it->uncovered, "what the kernel refuses by itself makes no event; audit: "
				   "{files: all} reports it");
	}
	it = promise_add(p, AXIS_FILES, "disk");
	SAY(it->what, "%s and %llu inodes for all writable places together",
	    num_format_size(size, p->limits.disk_bytes), (unsigned long long)p->limits.inodes);
	SAY(it->mechanism, "tmpfs size and nr_inodes, counted as the box's memory");
	it = promise_add(p, AXIS_FILES, "file_size");
	SAY(it->what, "%s a file", num_format_size(size, p->limits.file_size_bytes));
	SAY(it->mechanism, "RLIMIT_FSIZE");
}

static void add_kernel(struct plan *p)
{
	static const char *const profiles[] = {"what ordinary programs need", "compute only",
					       "ordinary programs and nested sandboxes"};
	struct promise *it = promise_add(p, AXIS_KERNEL, "calls");

	SAY(it->what,
	    "only the system calls of %s; i386 and x32 refused; a refused call gives an errno%s",
	    profiles[p->profile], p->events ? " and an event" : "");
	SAY(it->mechanism, "seccomp filter %.12s%s", seccomp_version(),
	    p->events ? " with user notification" : "");
	if (!p->events) {
		SAY(it->fallback, "no notification: an outer sandbox listens already");
		SAY(it->uncovered, "refused calls make no event");
		it->best_effort = true;
	}
	it = promise_add(p, AXIS_KERNEL, "privileges");
	SAY(it->what,
	    "no capabilities, none to be gained; no key, signal or descriptor of the caller");
	SAY(it->mechanism, "user namespace, no capabilities, no-root secure bits, no_new_privs, "
			   "new session and keyring");
	it = promise_add(p, AXIS_KERNEL, "identity");
	if (p->user_range) {
		SAY(it->what, "host ids that no other box and nobody else has");
		SAY(it->mechanism, "user namespace over a range of 65536 host ids");
	} else {
		SAY(it->what, "%s inside is uid %u outside; two boxes of one user share it",
		    p->user, p->host.uid);
		SAY(it->mechanism, "user namespace over the caller's own id");
		SAY(it->uncovered,
		    "the caller's supplementary groups stay in force on what is mounted");
	}
	it = promise_add(p, AXIS_KERNEL, "processes");
	SAY(it->what,
	    "sees, signals and traces only its own processes; dies whole with its supervisor");
	SAY(it->mechanism, "pid, ipc, uts and cgroup namespaces, parent-death signal%s",
	    p->host.landlock.abi >= 6 ? ", Landlock scope for signals" : "");
	promise_sidechannel(p);
}

static void add_memory(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_RESOURCES, "memory");
	char size[NUM_TEXT];

	SAY(it->what, "%s for the whole box, tmpfs and shared memory included",
	    num_format_size(size, p->limits.memory_bytes));
	if (!p->sample_memory) {
		SAY(it->mechanism, "%s memory%s", group(p), p->host.cgroup.swap ? " and swap" : "");
		return;
	}
	SAY(it->mechanism,
	    "RLIMIT_DATA a process, tmpfs sizes, and the supervisor's accounting (PSS)");
	SAY(it->fallback, "no memory cgroup: %s",
	    p->host.cgroup.why[0] ? p->host.cgroup.why : "none can be made");
	SAY(it->uncovered, "several processes can pass the limit together for the milliseconds "
			   "between two samples; one that asks for all of it at once is refused "
			   "(ENOMEM), which the outcome does not name");
}

static void add_resources(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_RESOURCES, "wall");
	char text[NUM_TEXT], other[NUM_TEXT];

	SAY(it->what, "%s", num_format_duration(text, p->limits.wall_ms));
	SAY(it->mechanism, "the supervisor's timer");
	it = promise_add(p, AXIS_RESOURCES, "cpu");
	SAY(it->what, "%s of processor time for the whole box%s",
	    num_format_duration(text, p->limits.cpu_ms),
	    p->network ? ", with the broker's for it" : "");
	if (p->sample_cpu) {
		SAY(it->mechanism, "the supervisor's accounting, RLIMIT_CPU a process");
		SAY(it->fallback, "no cpu accounting cgroup: %s",
		    p->host.cgroup.why[0] ? p->host.cgroup.why : "none can be made");
		SAY(it->uncovered, "a process that ends between two samples is counted at its end");
	} else {
		SAY(it->mechanism, "%s cpu time, read by the supervisor; RLIMIT_CPU a process",
		    group(p));
	}
	it = promise_add(p, AXIS_RESOURCES, "cpus");
	SAY(it->what,
	    p->limits.cpus_milli == 1000 ? "%s processor's worth" : "%s processors' worth",
	    num_format_milli(text, p->limits.cpus_milli));
	if (p->cgroup_limits.cpus_milli) {
		SAY(it->mechanism, "%s quota, a low weight while it is busy; affinity to %u",
		    group(p), p->affinity);
	} else {
		SAY(it->mechanism, "affinity to %u processor%s", p->affinity,
		    p->affinity == 1 ? "" : "s");
		SAY(it->fallback, "no cpu cgroup: %s",
		    p->host.cgroup.why[0] ? p->host.cgroup.why : "none can be made");
		SAY(it->uncovered, "a program that asks for other processors "
				   "(sched_setaffinity) runs on them");
		if (p->limits.cpus_milli < 1000) {
			SAY(it->uncovered,
			    "a whole processor can be used; so can others, by a program that asks "
			    "for them (sched_setaffinity)");
			it->best_effort = true;
		}
	}
	add_memory(p);
	it = promise_add(p, AXIS_RESOURCES, "processes");
	SAY(it->what, "%llu processes and threads", (unsigned long long)p->limits.processes);
	SAY(it->mechanism, "%s%sRLIMIT_NPROC, which the kernel counts in the box's user namespace",
	    p->cgroup_limits.processes ? group(p) : "",
	    p->cgroup_limits.processes ? " pids; " : "");
	it = promise_add(p, AXIS_RESOURCES, "open_files");
	SAY(it->what, "%llu a process", (unsigned long long)p->limits.open_files);
	SAY(it->mechanism, "RLIMIT_NOFILE");
	SAY(it->uncovered, "the program is told (EMFILE), the outcome does not name it");
	it = promise_add(p, AXIS_RESOURCES, "output");
	SAY(it->what, "%s of each stream is kept, half head and half tail; at %s the run is ended",
	    num_format_size(text, p->limits.output_bytes),
	    num_format_size(other, p->limits.output_total_bytes));
	SAY(it->mechanism, "the supervisor reads the pipes");
}

static void add_freeze(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_RESOURCES, "freeze");

	SAY(it->what, "box.freeze stops all of it where it stands, its time-outs too");
	if (p->cgroup_limits.freezer) {
		SAY(it->mechanism, "%s freezer", group(p));
		return;
	}
	SAY(it->mechanism, "SIGSTOP by its first process to all others");
	SAY(it->fallback, "no cgroup freezer: %s",
	    p->host.cgroup.why[0] ? p->host.cgroup.why : "none is here");
	SAY(it->uncovered, "a program that had the kernel send it a SIGCONT (by a timer) goes on; "
			   "parents are told of it (SIGCHLD)");
}

int promise_make(struct plan *p, struct pale_err *err)
{
	p->cap_promises = MAX_PROMISES;
	if (p->network)
		p->cap_promises += p->network->nrules + p->network->nsecrets;
	p->promises = calloc(p->cap_promises, sizeof(*p->promises));
	if (!p->promises)
		return err_nomem(err, "plan");
	add_files(p);
	promise_network(p);
	add_kernel(p);
	add_resources(p);
	if (p->kernel)
		add_freeze(p);
	return 0;
}
