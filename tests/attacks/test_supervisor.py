#!/usr/bin/python3
"""What a box sends to its supervisor, in floods, malformed, at the wrong moment: the limits still end it
on time, what it tried is told, and its log is whole."""
import datetime

from attacked import *

ROOM = ("--set", "limits.output_total=1GiB")


@case
def test_floods_of_output():
    r = attack("supervisor/flood_both", flags=("--timeout", "1s", *ROOM))
    on_time("single bytes to both streams", r, 1)
    check("and many did come", r.json["stdout_bytes"] > 10000, r.json.get("stdout_bytes"))
    r = attack("supervisor/flood_both", flags=("--timeout", "20s", "--set", "limits.output_total=256KiB"))
    on_time("the same with a small total", r, 20, "output")


@case
def test_last_close_that_waits():
    r = attack("supervisor/linger", flags=("--timeout", "2s"))
    on_time("sockets that linger", r, 2)
    check("its connections are told, with the protocol",
          r.told(event="network.blocked", address="192.0.2.1", port=53, protocol="tcp", op="connect"), r)


@case
def test_first_process_kept_busy():
    r = attack("supervisor/signal_flood", flags=("--timeout", "50s"))
    check("a flood of signals to the first process does not keep the run open",
          r.status == 7 and r.out == "ended\n" and r.seconds < 20, r)
    check("and who sent them is told to have been left over", r.json.get("killed_leftovers") == 8, r)


@case
def test_first_process_starved():
    r = attack("supervisor/starve_first", flags=("--timeout", "50s"))
    check("the first process keeps its processor time, and sees the command end",
          r.out == "tried\n" and r.status == 7 and r.seconds < 20, r)
    told = {e.get("call") for e in r.events if e["event"] == "call.denied"}
    late = []
    while len(late) < 8 and (not late or late[-1] > 100):  # the machine may be busy with others
        s = attack("supervisor/starve_first", "stay", flags=("--timeout", "1s", "--cpu-time", "60s"))
        at = {e["event"]: datetime.datetime.fromisoformat(e["time"].replace("Z", "+00:00")) for e in s.events}
        late.append((at["box.end"] - at["limit.hit"]).total_seconds() * 1000)
    check("110 processes that only use the processor are gone within 100 ms", late[-1] <= 100, late)
    check("the attempts are told", {"sched_setaffinity", "sched_setscheduler", "setpriority", "ioprio_set"} <= told, told)


@case
def test_name_lookups():
    for same in ("same", "various"):
        r = attack("supervisor/dns_flood", same, flags=("--timeout", "1s"))
        on_time(f"a flood of {same} names", r, 1)
        names = [e for e in r.events if e["event"] == "dns.blocked"]
        check(f"a flood of {same} names is told, and not all of it singly",
              0 < len(names) <= 1000 and os.path.getsize(r.log) < 1 << 20, len(names))
    r = attack("supervisor/dns_malformed")
    check("malformed queries do not stop the answers", r.out == "answered\n", r)
    verified("malformed queries", r)


@case
def test_reported_calls():
    for what, event in (("denied", "call.denied"), ("file", "file.blocked"), ("network", "network.blocked")):
        r = attack("supervisor/call_flood", what, flags=("--timeout", "1s", "--set", "audit.files=writes"))
        on_time(f"a flood of calls ({what})", r, 1)
        check(f"a flood of calls ({what}) is told, and the log stays small",
              r.told(event=event) and os.path.getsize(r.log) < 16 << 20, os.path.getsize(r.log))
        verified(f"a flood of calls ({what})", r)


@case
def test_hiding_in_noise():
    """Of one kind that of the others."""
    for noise in ("file", "network", "call"):
        r = attack("supervisor/hide_in_flood", noise, flags=("--set", "audit.files=writes"))
        for kind, want in (("file", {"event": "file.blocked", "path": "/usr/the-real-one"}),
                           ("network", {"event": "network.blocked", "address": "203.0.113.99"}),
                           ("call", {"event": "call.denied", "call": "keyctl"})):
            if kind == noise:
                continue
            check(f"noise of {noise} does not hide {kind} in the log", r.told(**want), r)
            want = {"kind": kind, **{k: v for k, v in want.items() if k != "event"}}
            check(f"nor in the result", any(want.items() <= b.items() for b in r.blocked), r.blocked[-3:])
        kinds = {"file": "file.blocked", "network": "network.blocked", "call": "call.denied"}
        told = sum(e.get("count", 1) for e in r.events
                   if e["event"] == kinds[noise] or e["event"] == "events.suppressed" and e["of"] == kinds[noise])
        # What of the others came besides.
        check(f"noise of {noise} is counted to the last", told in (3000, 3001), told)


@case
def test_hostile_arguments():
    r = attack("supervisor/argument_race")
    check("a changing argument reaches nothing", r.out == "tried some, reached 0\n", r)
    for watch in ("off", "writes", "all"):
        r = attack("supervisor/huge_arguments", flags=("--set", f"audit.files={watch}"))
        check(f"arguments at every edge (audit.files {watch})", r.out == "tried\n" and r.status == 0, r)
        verified(f"arguments at every edge (audit.files {watch})", r)
        with open(r.log, "rb") as f:
            text = f.read()
        check(f"and no control bytes get into the log", not any(c < 32 and c != 10 for c in text))


@case
def test_ways_not_to_end():
    on_time("everything is stopped", attack("supervisor/stop_all", flags=("--timeout", "1s")), 1)
    on_time("vfork without end", attack("supervisor/vfork_bomb", flags=("--timeout", "1s")), 1)
    for fd, out, err in (("0", "out\n" * 3, "err\n" * 3), ("1", "", "err\n" * 3), ("2", "out\n" * 3, "")):
        r = attack("supervisor/half_close", fd)
        check(f"descriptor {fd} closed: the rest goes on", (r.status, r.out, r.err) == (5, out, err), r)
    r = attack("supervisor/half_close")
    check("all closed: it goes on, and its status comes", (r.status, r.out, r.err) == (5, "", ""), r)
    p = subprocess.Popen([pale, "run", "--timeout", "1s", "--", "yes"], env=env, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    begun = time.monotonic()
    try:
        p.wait(timeout=20)
    except subprocess.TimeoutExpired:
        p.kill()
    check("a reader that never reads does not keep the box", time.monotonic() - begun < 1 + 2 + SLACK and p.returncode == 124)
    p.stdout.close()
    p.stderr.close()


done()
