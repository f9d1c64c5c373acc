/* The table of events. To add one, add a row (in the order in which they happen in a run), then run
 * `pale audit events --markdown > docs/audit-log.md`. Pure data; used by the supervisor and by the
 * commands that read logs. */
#include "events.h"

#include <string.h>

const struct audit_event audit_events[] = {
	{"box.start", "supervise", AUDIT_INFO, AUDIT_F_WHOLE,
	 "version, policy_name, policy, policy_digest, plan_digest, isolation, argv, code, cwd, "
	 "uid, user, host",
	 "The first line of each log, on disk before the first instruction runs: what was asked "
	 "for, by "
	 "whom, on what, with the whole code and all arguments."},
	{"policy.widened", "policy", AUDIT_INFO, 0, "flag, key, from, to",
	 "A command-line flag permitted more than the policy file. The caller's right, on record."},
	{"best_effort.used", "plan", AUDIT_INFO, 0, "item, got, why",
	 "The policy allowed this item to be weaker than asked, and it is."},
	{"box.ready", "isolation", AUDIT_INFO, 0, "init_pid, mechanisms, fallbacks, setup_us",
	 "Every mechanism is in force; the code starts now."},
	{"network.published", "supervise", AUDIT_INFO, 0, "ports",
	 "Where the host can reach servers in the box: for each of network.publish the port in the "
	 "box and host_port (of 127.0.0.1 and ::1) or path (a Unix socket)."},
	{"call.denied", "confine", AUDIT_BLOCKED, 0, "call, detail, op, errno, program, comm, pid",
	 "A system call that the policy does not allow; it failed with this errno."},
	{"network.blocked", "confine, egress", AUDIT_BLOCKED, 0,
	 "call, op, errno, pid, comm (confine); host, sni, method, path, detail, rule, where, "
	 "reason, count (egress); protocol, address, port, program",
	 "An attempt to reach what the policy does not allow: an address (`confine`), or a "
	 "connection or request that the broker refused, with the rule that decided, if one did."},
	{"dns.blocked", "init, egress", AUDIT_BLOCKED, 0,
	 "name, type, program; rule, where, reason, detail, count (egress)",
	 "A name lookup that the policy does not allow. It was answered inside the box; nothing "
	 "left."},
	{"dns.allowed", "egress", AUDIT_INFO, 0, "name, type, detail, program, count",
	 "A name that the policy allows was looked up."},
	{"network.allowed", "egress", AUDIT_INFO, 0,
	 "host, address, port, protocol, sni, bytes_out, bytes_in, duration_us, rule, where, "
	 "program, outcome, detail, count",
	 "A connection that a rule allows has ended; `address` is the one that was dialled. With "
	 "`count`, so many alike, with their bytes together. `outcome` box_ended: it was open when "
	 "the box ended."},
	{"network.opened", "egress", AUDIT_INFO, 0, "as network.allowed",
	 "An allowed connection that goes on; its end is told too."},
	{"network.request", "egress", AUDIT_INFO, 0,
	 "host, address, port, protocol, method, path, status, bytes_out, bytes_in, duration_us, "
	 "rule, where, program, outcome, detail, count",
	 "One HTTP request of a connection that is looked into. Values of secrets are masked."},
	{"network.inbound", "egress", AUDIT_INFO, 0,
	 "outcome, port, from, address, protocol, bytes_out, bytes_in, duration_us, detail, count",
	 "A connection from the host to a published port: `port` and `address` are the box's, "
	 "`from` "
	 "says who connected, bytes_out left the box. `outcome`: connected (it has ended), open "
	 "(for "
	 "more than ten seconds), box_ended (it was open then), unreachable (`detail` says why: "
	 "ECONNREFUSED, nothing listens), "
	 "refused (too many at a time)."},
	{"ssh.sign", "egress", AUDIT_INFO, 0, "outcome, host, user, key, request, detail, count",
	 "The box asked the caller's ssh agent to sign a login: at `host`, as `user`, with the key "
	 "that has this fingerprint. `outcome`: allowed, refused (`detail` says why), or failed: "
	 "the "
	 "agent did not."},
	{"ssh.agent", "egress", AUDIT_INFO, 0, "outcome, request, host, key, detail, count",
	 "Anything else that it asked the agent for: to list the keys, or what is refused: to add "
	 "or "
	 "remove keys, to lock it, to be bound to a server that the policy does not name."},
	{"network.unreachable", "egress", AUDIT_INFO, 0,
	 "host, address, port, protocol, detail, outcome, rule, where, program, count",
	 "A rule allows it, but the network did not: `detail` says why. `outcome` box_ended: there "
	 "was no time for it."},
	{"network.exfiltration", "egress", AUDIT_BLOCKED, 0,
	 "host, address, port, protocol, method, path, detail, rule, where, program, count",
	 "The placeholder of a secret was sent where it does not belong; nothing of it left."},
	{"network.changed", "supervise", AUDIT_INFO, 0,
	 "revision, effect, added, removed, uid, pid, program",
	 "The rules of the running box were changed by its owner (`pale network`): `effect` says "
	 "whether they were widened, narrowed, or both. On record before it is in force."},
	{"door.refused", "supervise", AUDIT_BLOCKED, 0, "uid, pid, program, why",
	 "Somebody who is not the box's owner, or is inside of a box, came to the supervisor's "
	 "control socket, and was turned away."},
	{"file.blocked", "confine", AUDIT_BLOCKED, 0, "path, op, call, errno, program, comm, pid",
	 "An attempt to open or change a file that the policy does not allow."},
	{"mount.refused", "isolation", AUDIT_BLOCKED, 0, "path, kind, why",
	 "Something in a mounted source (a device, a socket, a FIFO) was hidden from the box."},
	{"limit.hit", "supervise", AUDIT_LIMIT, 0, "limit, max, used, unit, ended",
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
	{"events.suppressed", "supervise", AUDIT_BLOCKED, 0,
	 "of, count, key (and type) or the keys of the event that it stands for",
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
	{"files.changed", "files", AUDIT_INFO, 0, "op, path, bytes, uid, pid, program",
	 "The box's owner writes into a running box, makes a directory or a link there, or removes "
	 "something, "
	 "through the supervisor's control socket: `op` is write, mkdir, link or remove. On record "
	 "before "
	 "it is done."},
	{"session.ready", "session", AUDIT_INFO, 0, "name, kernel, language, banner, ready_us",
	 "The kernel of a session is ready for its first execution."},
	{"session.claimed", "session", AUDIT_INFO, 0, "name, uid, pid, program",
	 "A session that was held ready in a pool is somebody's from now on."},
	{"exec.start", "session", AUDIT_INFO, AUDIT_F_WHOLE, "execution, kernel, code",
	 "An execution of a session begins: the whole code, on record before it is run (and on "
	 "disk "
	 "when the kernel writes it)."},
	{"exec.interrupt", "session", AUDIT_INFO, 0, "execution, cause",
	 "It is interrupted: asked to by a client, by its time-out or by another limit."},
	{"exec.end", "session", AUDIT_INFO, 0,
	 "execution, outcome, how, state, status, wall_ms, cpu_ms, queued_ms, output_bytes, "
	 "display_bytes, error, not_armed, blocked, files, files_more, files_why, files_back, "
	 "files_failed, files_not_kept",
	 "How it ended: `outcome` ok, error, interrupted, timeout, cpu, output, memory, ended (the "
	 "interpreter ended itself), died, or how the box ended; `how` it was made to: signal, "
	 "rollback, restart, destroyed; `state` of the session's variables afterwards: kept, held "
	 "(as "
	 "before this execution), fresh, gone; `files` that it changed (at most 100 of them; null: "
	 "not known, see `files_why`), and how many were brought back with the variables."},
	{"session.undone", "session", AUDIT_INFO, 0,
	 "execution, files_back, files_failed, files_why",
	 "The last execution was undone: variables, and so many files (null: none, and why)."},
	{"session.restarted", "session", AUDIT_INFO, 0, "",
	 "The kernel was restarted: its variables are gone, the box is as it was."},
	{"session.frozen", "session", AUDIT_INFO, 0, "", "All of the box stands still."},
	{"session.thawed", "session", AUDIT_INFO, 0, "", "It goes on."},
	{"session.over", "session", AUDIT_LIMIT, 0, "why",
	 "The session ends by itself: nobody used it for session.idle, or its session.lifetime is "
	 "over."},
	{"box.lost", "audit", AUDIT_ERROR, 0, "torn, torn_bytes, recovered_by, last_seq",
	 "The supervisor died without ending the log (killed, crash, power cut). Written by the "
	 "command "
	 "that found it, after what was left of the box was killed. `torn` holds the bytes of a "
	 "line that "
	 "was not complete; they were taken off the file."},
	{"box.end", "supervise", AUDIT_INFO, AUDIT_F_END,
	 "outcome, summary, status, signal, usage, blocked, leftover, error",
	 "The end of the run: nothing of the box is alive. Its `seq` is the number of lines up to "
	 "here, so "
	 "that none before it can have been cut off."},
	{"apply.done", "files", AUDIT_INFO, AUDIT_F_AFTER_END, "n, root, applied, remaining, paths",
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

static int text(struct buf *out, const char *s)
{
	/* A pipe would end the cell of a table. */
	for (; *s; s++)
		if (*s == '|' ? buf_adds(out, "\\|") : buf_add(out, s, 1))
			return -ENOMEM;
	return 0;
}

int audit_events_markdown(struct buf *out)
{
	buf_adds(
		out,
		"# The audit log\n\n"
		"<!-- Made by `pale audit events --markdown` from src/audit/events.c; do not edit. "
		"-->\n\n"
		"Each run has a directory `runs/<id>/` in the state directory (`$PALE_STATE_DIR`, "
		"or "
		"`/var/lib/pale` for root, or `$XDG_STATE_HOME/pale`, or `~/.local/state/pale`), "
		"outside "
		"the box. Its log `audit.jsonl` is append-only: one JSON object a line, in ASCII, "
		"with\n\n"
		"| key | meaning |\n|---|---|\n"
		"| `seq` | the line's number, from 1 |\n"
		"| `time` | when it was written, UTC, with microseconds |\n"
		"| `run` | the run's id: a ULID, so that ids sort by time |\n"
		"| `stage` | the folder of `src/` that wrote it |\n"
		"| `event` | one of the names below |\n"
		"| ... | the event's own keys, sorted |\n"
		"| `prev` | SHA-256 of the line before (its bytes without the newline); in line 1 "
		"of "
		"`pale audit 1 <id>` |\n\n"
		"Text from a box is escaped: bytes that are no UTF-8 stand as `\\xNN`. A line too "
		"long for "
		"the log is cut and has `\"cut\": true`; `box.start` never is. `box.start` is on "
		"disk before "
		"the first instruction runs, and if the log cannot be written, nothing runs.\n\n"
		"## What a power cut can lose\n\nEach line is the kernel's when it is written, so "
		"that no death of a process loses one, the supervisor's by SIGKILL included. A "
		"power cut, or a crash of the host's kernel, can take the newest lines after "
		"`box.start`: those not yet on the disk (ext4 puts them there within about 5 "
		"seconds, other file systems within about 30, as Linux is set). That goes for "
		"`exec.start`, too: code of a session may then have run of which the log knows "
		"nothing. It ran in the box that `box.start` tells of; the box is gone, and what "
		"of its doings can have outlived it are connections to the outside, and outputs "
		"collected in those seconds. Waiting for the disk before each execution was "
		"measured at 4 ms more at p50 (ext4 on a virtual disk), of executions that take "
		"0.2 ms; so it is not waited for.\n\n"
		"## What is proved\n\n"
		"`pale audit verify` follows the chain and compares its end with the seal "
		"`runs/<id>/head` "
		"(number of lines and hash of the last), which is written when the log is closed. "
		"So a line "
		"that was changed, removed, added or moved is found, at the end too, and named. A "
		"log "
		"without `box.end` that no supervisor is writing and that is not in `active/` had "
		"its end "
		"removed. What this cannot show is a log and seal that somebody with write access "
		"to the "
		"state directory made anew as a whole: for that, keep the hash of the last line "
		"(`head` in "
		"the result of a run) on another machine and check it with `--head`.\n\n"
		"What a person does with the results later (`pale apply`) continues the chain "
		"after "
		"`box.end`, under the same lock, and renews the seal.\n\n"
		"A run whose supervisor was killed is closed by the next command, or by a pool "
		"that makes boxes, which looks once a second: `box.lost`, then `box.end` with the "
		"outcome `supervisor lost`. A line that was only half written is moved to "
		"`runs/<id>/torn`.\n\n"
		"## Events\n\n"
		"Severities: `info`; `blocked` (attempted, did not happen); `limit`; `error`. "
		"Where events "
		"come in floods, `count` says how many one line stands for, and "
		"`events.suppressed` how "
		"many were left out, exactly.\n\n"
		"| event | stage | severity | keys | meaning |\n|---|---|---|---|---|\n");
	for (const struct audit_event *e = audit_events; e->name; e++) {
		buf_addf(out, "| `%s` | %s | %s | ", e->name, e->stage,
			 audit_severity_name(e->severity));
		text(out, e->keys);
		buf_adds(out, " | ");
		text(out, e->doc);
		buf_adds(out, " |\n");
	}
	return out->failed ? -ENOMEM : 0;
}
