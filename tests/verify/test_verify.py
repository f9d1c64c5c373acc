"""`pale verify`: with all mechanisms every promise holds; with one taken away it says which promise is broken, and
by what. TAP.

usage: test_verify.py PALE PALE-BOX-WITHOUT CALLER PALE-EGRESS
"""
import glob
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "egress"))
from tap import *  # noqa: E402, F401, F403

pale, without, caller, egress = map(os.path.abspath, sys.argv[1:])
root = os.geteuid() == 0
place = tempfile.mkdtemp(prefix="pale-test-verify-")
env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": place, "LANG": "C.UTF-8", "TMPDIR": place,
       "PALE_STATE_DIR": os.path.join(place, "state")}
env |= {k: v for k, v in os.environ.items() if k.startswith("PALE_ATTACKS") or k.endswith("SAN_OPTIONS")}


class Verify:
    def __init__(self, *args, lacks=None, **more):
        if lacks:
            more |= {"PALE_WITHOUT": lacks, "PALE_BOX_PROGRAM": without, "PALE_EGRESS_PROGRAM": egress}
        begun = time.monotonic()
        p = subprocess.run([pale, "verify", "--json", *args], env={**env, **more}, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, cwd=place, check=False)
        self.seconds, self.status, self.said, self.out = time.monotonic() - begun, p.returncode, p.stderr, p.stdout
        print(f"# {self.seconds:.1f} s: {' '.join(args)} {lacks or ''}")
        try:
            self.all = json.loads(p.stdout)
        except ValueError:
            self.all = {}
        self.attacks = {a["attack"]: a for a in self.all.get("attacks", [])}
        self.promises = {f"{x['axis']}.{x['promise']}": x for x in self.all.get("promises", [])}

    def broken(self, promise):
        return set(self.promises.get(promise, {}).get("broken_by", []))

    def __str__(self):
        return "\n".join([f"status {self.status} after {self.seconds:.0f} s {self.said}"] +
                         [f"{k} {v['state']} {v['broken_by']} {v['not_logged']}" for k, v in self.promises.items()
                          if v["state"] != "held"] +
                         [f"{a['attack']} {a['state']} {a.get('detail')}" for a in self.attacks.values() if a["state"] == "unclear"])


def descendants(pid):
    """Command lines of its children and theirs, by their ids."""
    parents, found = {}, {}
    for entry in glob.glob("/proc/[0-9]*"):
        try:
            with open(entry + "/stat", encoding="utf-8") as f:
                parents[int(entry[6:])] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    for one in parents:
        at = one
        while at in parents and at != pid:
            at = parents[at]
        try:
            with open(f"/proc/{one}/cmdline", encoding="utf-8") as f:
                if at == pid:
                    found[one] = f.read().split("\0")
        except OSError:
            pass
    return found


def segments(maker):
    """Those of shared memory that this process made."""
    with open("/proc/sysvipc/shm", encoding="utf-8") as f:
        return [line.split()[1] for line in list(f)[1:] if int(line.split()[4]) == maker]


def open_to_others(directory):
    """Directories below this one that anybody comes to, and may write in."""
    for entry in os.scandir(directory):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IXOTH:
            if mode & stat.S_IWOTH:
                yield entry.path
            yield from open_to_others(entry.path)


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not (got := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return got


def held(what, v):
    check(f"{what}: it holds", v.status == 0 and v.all.get("state") == "held", v)


def breaks(what, v, promise, some):
    """Each of these attacks succeeded, and verify says so."""
    missing = set(some) - v.broken(promise)
    check(f"{what}: {promise} is broken, by {', '.join(some)}", v.status == 1 and not missing, f"not by {missing}\n{v}")


try:
    v = Verify()
    if not v.all and not os.environ.get("PALE_MUST_WORK"):
        print(f"1..0 # SKIP no box here: {v.said.strip()[-200:]}")
        sys.exit(0)
    held("the default policy", v)
    check("within two minutes", v.seconds < 120, v.seconds)
    print(f"# {v.seconds:.1f} s, {len(v.attacks)} attacks")
    check("every promise of it was tried", all(p["attacks"] for p in v.promises.values()), v)
    check("at least 150 attacks were denied", v.all.get("counts", {}).get("held", 0) >= 150, v.all.get("counts"))
    check("each says what it would gain, where it is from, and what became of it",
          all(a.get("gain") and a.get("source") and a.get("state") for a in v.attacks.values()))
    for promise, events in (("kernel.calls", 60), ("network.attempts", 10), ("resources.memory", 5)):
        p = v.promises.get(promise, {})
        check(f"{promise}: what was tried is in the log", p.get("to_be_logged", 0) >= events and
              p["logged"] == p["to_be_logged"], p)
    check("a limit that would take long was lowered, and it says so",
          "limits.wall=1.5s" == v.attacks["wall_sleep"].get("lowered") and "lowered" not in v.attacks["open_files"], v)
    explained = json.loads(subprocess.run([pale, "explain", "--json"], env=env, capture_output=True, check=True).stdout)
    check("it has each promise of pale explain",
          {f"{x['axis']}.{x['promise']}" for x in explained["promises"]} <= set(v.promises))

    if root:
        v = Verify("--axis", "kernel", "-p", "strict")
        held("the strict policy, kernel", v)
        check("and only that was tried", {a["axis"] for a in v.attacks.values()} == {"kernel"})
    v = Verify("--axis", "kernel", "--profile", "nested")
    held("the profile nested", v)
    check("what it permits is not promised", v.attacks["unshare_user"]["state"] == "not promised" and
          v.attacks["add_key"]["state"] == "held", v)
    v = Verify("--attack", "write_usr,write_etc,source_write,read_event,secret_direct", "--set", "audit.files=all")
    held("with audit.files", v)
    check("then refused opens are in the log", v.attacks["write_usr"].get("logged") is True, v.attacks["write_usr"])
    if root or "egress" in must_work:
        v = Verify("--axis", "network", "--allow", "example.com", "--deny", "www.example.com", "--secret", "K=env:NONE@example.com", "--rw", place + "/out:/out")
        held("a policy with a network", v)
        check("its broker is no way to the host", v.attacks["proxy_loopback"]["state"] == "held" and
              v.attacks["secret_value"]["state"] == "held", v)
        check("its rules are kept", all(v.promises[f"network.{p}"]["state"] == "held" for p in ("allow", "caps", "deny", "names", "egress")), v)
        check("connections are counted in a box that may have few",
              v.attacks["connections"].get("lowered") == "network.connections=32", v.attacks["connections"])
        check("and what it collects is not touched", not os.path.exists(place + "/out"))
        breaks("with a broker that counts no connections", Verify("--attack", "connections", "--allow", "example.com", lacks="caps"),
               "network.caps", ["connections"])
    else:
        skip("a policy with a network", "not as this user", "egress")

    v = Verify("--axis", "kernel", lacks="seccomp")
    breaks("without the filter", v, "kernel.calls", ["add_key", "io_uring", "keyctl", "ptrace_seize", "unshare_user", "userfaultfd"])
    check("and what was still denied is not in the log", v.promises["kernel.calls"]["not_logged"], v)
    v = Verify("--attack", "loopback_tcp,loopback_udp,host_sockets,host_name", lacks="network")
    breaks("in the host's network", v, "network.egress", ["loopback_tcp", "loopback_udp", "host_sockets"])
    if root:
        v = Verify("--attack", "add_key,keyctl", lacks="events")
        check("without a listener: they are denied, but not in the log",
              v.status == 1 and v.promises["kernel.calls"]["not_logged"] == ["add_key", "keyctl"], v)
        v = Verify("--axis", "kernel", lacks="seccomp,privileges")
        breaks("with capabilities", v, "kernel.calls", ["chroot", "mount_api", "setns"])
        breaks("with capabilities", v, "kernel.privileges", ["become_group", "capabilities", "no_new_privs"])
        v = Verify("--attack", "hidden_read,hidden_proc_root,secret_direct", lacks="hide")
        breaks("with nothing hidden", v, "files.hide", ["hidden_read", "hidden_proc_root"])
        check("the rest holds", v.promises["files.root"]["state"] == "held", v)
        v = Verify("--attack", "shared_memory,semaphore,sysv_shm", lacks="ipc")
        breaks("with the host's shared memory", v, "kernel.processes", ["shared_memory", "semaphore", "sysv_shm"])
        v = Verify("--attack", "wall_sleep,cpu_spin,memory_private,memory_files,processes_fork,open_files,output_flood,disk_fill,"
                   "disk_inodes,file_size_write,cpus_spin", lacks="limits")
        for promise, some in (("resources.wall", ["wall_sleep"]), ("resources.cpu", ["cpu_spin"]), ("resources.cpus", ["cpus_spin"]),
                              ("resources.memory", ["memory_private", "memory_files"]), ("resources.processes", ["processes_fork"]),
                              ("resources.open_files", ["open_files"]), ("resources.output", ["output_flood"]),
                              ("files.disk", ["disk_fill", "disk_inodes"]), ("files.file_size", ["file_size_write"])):
            breaks("without limits", v, promise, some)

        processors = len(os.sched_getaffinity(0))
        # What others use on a busy machine is no limit, and no limit is not kept from being missed by it.
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * processors)]
        try:
            busy, missing = Verify("--attack", "cpus_spin"), Verify("--attack", "cpus_spin", lacks="limits")
        finally:
            for other in others:
                other.kill()
                other.wait()
        # So busy that nothing was seen is unclear, and no success.
        said = busy.attacks.get("cpus_spin", {})
        check("cpus, on a busy machine: it is not broken", busy.status in (0, 125) and said.get("state") in ("held", "unclear"), busy)
        check("it held only if the kernel let the box wait", said.get("state") != "held" or "held back for" in said["detail"] or
              "EINVAL" in said["detail"], said)
        check("without limits, on a busy machine: it did not hold", missing.status in (1, 125) and
              missing.attacks.get("cpus_spin", {}).get("state") in ("broken", "unclear"), missing)

        v = Verify("--attack", "cpus_spin", "--set", f"limits.cpus={processors}")
        lowered = v.attacks.get("cpus_spin", {}).get("lowered", "=0").split("=")[1]
        check("a limit of all processors is lowered so far that the attack could exceed it",
              0 < float(lowered) * 1.3 + 0.15 < min(processors, 16) * 0.9, v)

    for args, status, words in ((["--axis", "colour"], 2, "there is no axis"), (["--attack", "none"], 2, "there is no attack"),
                                (["--axis", "files", "--attack", "bpf"], 2, "no attack is selected"),
                                (["--attack", ""], 2, "no attack is selected"),
                                (["x"], 2, "no operand"), (["-p", "/nonexistent"], 125, "nonexistent")):
        v = Verify(*args)
        check(f"pale verify {' '.join(args)}: status {status}", v.status == status and words in v.said, v)
    v = Verify("--attack", "allowed_other_port")
    check("where nothing is promised nothing holds: 125", v.status == 125 and v.all.get("state") == "not tried", v)
    v = Verify("--attack", "bpf", PALE_BOX_PROGRAM="/nonexistent/pale-box")
    check("no box can be made: 125", v.status == 125 and "pale-box" in v.said, v)
    v = Verify("--attack", "bpf", PALE_ATTACKS_PROGRAM="/nonexistent/pale-attacks")
    check("no attacks are installed: 125", v.status == 125 and "PALE_ATTACKS_PROGRAM" in v.said, v)
    p = subprocess.run([pale, "verify", "--attack", "wall_sleep,bpf", "-v"], env=env, capture_output=True, text=True, check=False)
    check("for people: axes, promises, attacks, and the limit that was lowered", p.returncode == 0 and
          re.search(r"^kernel\n  calls +held +1 attack +1 of 1 in the log\n +held +bpf +a program in the kernel", p.stdout, re.M) and
          "limits.wall=1.5s" in p.stdout and "\033" not in p.stdout, p.stdout)
    for canary in ({"CANARY": "mine"}, {}):
        p = subprocess.run([caller], env={"PALE_BOX_PROGRAM": os.environ["VERIFY_BOX"]} | env | canary, capture_output=True, text=True, check=False)
        check(f"a program that calls it has its environment back, {canary or 'nothing'}",
              p.stdout.split() == ["1", canary.get("CANARY", "unset"), env["PALE_STATE_DIR"]], p)
    p = subprocess.run([pale, "verify", "--list"], env=env, capture_output=True, text=True, check=False)
    check("--list has them all", p.returncode == 0 and p.stdout.count("\n") >= 150, p.stdout[:300])

    p = subprocess.Popen([pale, "verify", "--axis", "resources"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         start_new_session=True)
    host = wait_for(lambda: next((k for k, v in descendants(p.pid).items() if v[1:2] == ["--host"] and segments(k)), 0))
    check("what the attacks are after is put up", host != 0)
    writable = list(open_to_others(place))
    check("nobody else can write there", not writable, writable)
    # What another has put there leads nowhere.
    os.mkdir(os.path.join(place, "kept"), 0o711)
    with open(os.path.join(place, "kept", "file"), "w", encoding="utf-8"):
        pass
    planted = glob.glob(place + "/pale-verify-*/host/shown/overlay")
    check("another's link is put there", len(planted) == 1, planted)
    for shown in planted:
        os.symlink(os.path.join(place, "kept"), shown + "/link")
        os.rename(shown + "/link", shown + "/../collected/link")
    # As a terminal does.
    os.killpg(p.pid, signal.SIGINT)
    p.communicate(timeout=60)
    check("an interrupt ends it", p.returncode == 130, p.returncode)
    check("and takes down what was put up", host and not segments(host) and not os.path.exists(f"/proc/{host}"), host)
    check("and nothing else", os.path.exists(os.path.join(place, "kept", "file")) and
          os.stat(os.path.join(place, "kept")).st_mode & 0o777 == 0o711)
    check("nothing is left behind", not glob.glob(place + "/pale-verify-*"), os.listdir(place))
    check("and no run is in the log of the caller", not os.path.exists(os.path.join(place, "state", "runs")) or
          not os.listdir(os.path.join(place, "state", "runs")))
finally:
    subprocess.run(["chmod", "-R", "u+rwX", place], check=False)
    subprocess.run(["rm", "-rf", place], check=False)
done()
