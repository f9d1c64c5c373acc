/* The table of events. To add one, add a row (in the order in which they happen in a run), then run
 * `pale audit events --markdown > docs/audit-log.md`. Pure data; used by the supervisor and by the
 * commands that read logs. */
#include "events.h"

#include <string.h>

const struct audit_event audit_events[] = {
	{"box.start", "supervise", AUDIT_INFO, AUDIT_F_WHOLE,
	 "version, policy, policy_digest, plan_digest, isolation, argv, code, cwd, uid, user, host",
	 "The first line of each log, on disk before the first instruction runs: what was asked "
	 "for, by "
	 "whom, on what, with the whole code and all arguments."},
	{"policy.widened", "policy", AUDIT_INFO, 0, "flag, key, from, to",
	 "A command-line flag permitted more than the policy file. The caller's right, on record."},
	{"best_effort.used", "plan", AUDIT_INFO, 0, "item, asked, got, why",
	 "The policy allowed this item to be weaker than asked, and it is."},
	{"box.ready", "isolation", AUDIT_INFO, 0, "pid, init_pid, mechanisms, fallbacks, setup_us",
	 "Every mechanism is in force; the code starts now."},
	{"call.denied", "confine", AUDIT_BLOCKED, 0,
	 "call, nr, arch, errno, pid, program, args, count",
	 "A system call that the policy does not allow; it failed with this errno."},
	{"network.blocked", "confine", AUDIT_BLOCKED, 0,
	 "call, protocol, address, port, family, pid, program, count",
	 "An attempt to reach a network address that the policy does not allow."},
	{"dns.blocked", "init", AUDIT_BLOCKED, 0, "name, type, count",
	 "A name lookup that the policy does not allow. It was answered inside the box; nothing "
	 "left."},
	{"file.blocked", "confine", AUDIT_BLOCKED, 0,
	 "path, access, call, errno, pid, program, count",
	 "An attempt to open or change a file that the policy does not allow."},
	{"mount.refused", "isolation", AUDIT_BLOCKED, 0, "path, kind, why",
	 "Something in a mounted source (a device, a socket, a FIFO) was hidden from the box."},
	{"limit.hit", "supervise", AUDIT_LIMIT, 0, "limit, max, used, unit, by, ended",
	 "A limit of the policy was reached; `ended` says whether that ended the box."},
	{"output.cut", "supervise", AUDIT_LIMIT, 0, "stream, kept_head, kept_tail, total",
	 "More output than the policy keeps: head and tail were kept."},
	{"signal.sent", "supervise", AUDIT_INFO, 0, "signal, to, why",
	 "The supervisor sent a signal into the box."},
	{"interrupt", "supervise", AUDIT_INFO, 0, "signal, count",
	 "The caller interrupted the run (Ctrl-C, SIGTERM)."},
	{"usage", "supervise", AUDIT_INFO, 0,
	 "wall_ms, cpu_ms, memory_bytes, memory_peak_bytes, processes, disk_bytes, output_bytes",
	 "What the box uses, sampled."},
	{"events.suppressed", "supervise", AUDIT_BLOCKED, 0, "of, key, count, since",
	 "Events like one that is in the log, left out because they came too fast; the count is "
	 "exact."},
	{"workspace.captured", "files", AUDIT_INFO, 0,
	 "n, root, path, added, modified, deleted, other, refused, bytes",
	 "The changes of an overlay were kept for review in changes/<n>/."},
	{"collect.done", "files", AUDIT_INFO, 0,
	 "path, to, files, directories, links, bytes, refused",
	 "What the box left in a `write` entry was copied to the host."},
	{"collect.refused", "files", AUDIT_BLOCKED, 0, "path, why",
	 "Something the box left was not copied to the host."},
	{"box.lost", "audit", AUDIT_ERROR, 0, "torn, torn_bytes, recovered_by, last_seq",
	 "The supervisor died without ending the log (killed, crash, power cut). Written by the "
	 "command "
	 "that found it, after what was left of the box was killed. `torn` holds the bytes of a "
	 "line that "
	 "was not complete; they were taken off the file."},
	{"box.end", "supervise", AUDIT_INFO, AUDIT_F_END,
	 "outcome, status, signal, limit, usage, blocked, output, events",
	 "The end of the run: nothing of the box is alive. Its `seq` is the number of lines up to "
	 "here, so "
	 "that none before it can have been cut off."},
	{"apply.done", "files", AUDIT_INFO, AUDIT_F_AFTER_END, "n, root, applied, paths, by",
	 "Changes of a workspace were written to the host (`pale apply`), after the run."},
	{"apply.refused", "files", AUDIT_BLOCKED, AUDIT_F_AFTER_END, "n, root, path, why",
	 "A change was not written to the host: a conflict, or held back."},
	{"discard.done", "files", AUDIT_INFO, AUDIT_F_AFTER_END, "n, root",
	 "The kept changes were thrown away (`pale discard`)."},
	{0},
};

const struct audit_event *audit_event_find(const char *name)
{
	for (const struct audit_event *e = audit_events; e->name; e++)
		if (strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

const char *audit_severity_name(enum audit_severity s)
{
	static const char *const names[] = {"info", "blocked", "limit", "error"};

	return names[s];
}

enum audit_severity audit_event_severity(const char *name)
{
	const struct audit_event *e = audit_event_find(name);

	return e ? e->severity : AUDIT_INFO;
}
