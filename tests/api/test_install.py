"""The installed library: exactly the names of pale.h, and the examples build against it through
pkg-config, shared and static, and run, as root and as an ordinary user. TAP.

    test_install.py BUILD SOURCE PREFIX plain|sanitized
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

build, source, prefix, kind = sys.argv[1:]
count = 0


def check(what, ok, detail=""):
    global count
    count += 1
    print(f"{'ok' if ok else 'not ok'} {count} - {what}")
    if not ok:
        print("\n".join("# " + line for line in str(detail).strip().splitlines()[:30]))


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


header = open(f"{source}/include/pale.h", encoding="utf-8").read()
declared = sorted(re.findall(r"^PALE_EXPORT [^;(]*?\b(pale_\w+)\(", header, re.M))
mapped = sorted(re.findall(r"^\t(pale_\w+);", open(f"{source}/src/api/libpale.map", encoding="utf-8").read(), re.M))
check("the symbol map lists what pale.h declares", declared == mapped, set(declared) ^ set(mapped))

with tempfile.TemporaryDirectory(prefix="pale-lib.") as top:
    os.chmod(top, 0o755)
    done = run("meson", "install", "-C", build, "--no-rebuild", "--destdir", top)
    check("meson install into a DESTDIR", done.returncode == 0, done.stdout + done.stderr)
    pc = [os.path.join(d, "libpale.pc") for d, _, files in os.walk(top) if "libpale.pc" in files]
    check("there is one libpale.pc", len(pc) == 1, pc)
    lib = os.path.dirname(os.path.dirname(pc[0]))
    nm = run("nm", "-D", "--defined-only", f"{lib}/libpale.so.0").stdout
    names = sorted(re.findall(r"[TWDBR] (\w+)@@PALE_0", nm))
    check("libpale.so.0 has these names only", names == declared, set(names) ^ set(declared))
    nm = run("nm", "-g", "--defined-only", f"{lib}/libpale.a").stdout
    names = sorted(set(re.findall(r"^\w+ [A-Z] (\w+)$", nm, re.M)))
    check("libpale.a has these names only", names == declared or kind == "sanitized", set(names) ^ set(declared))
    check("nothing in the library refers to the build", build not in open(pc[0], encoding="utf-8").read())

    env = os.environ | {"PKG_CONFIG_PATH": os.path.dirname(pc[0]), "PKG_CONFIG_SYSROOT_DIR": "", "LC_ALL": "C",
                        "PALE_BOX_PROGRAM": f"{top}{prefix}/libexec/pale/pale-box"}
    env.pop("LD_PRELOAD", None)
    if not os.path.exists(env["PALE_BOX_PROGRAM"]):
        check("pale-box is installed", False, env["PALE_BOX_PROGRAM"])

    def flags(*options):
        # The prefix of this installation is DESTDIR's.
        done = run("pkg-config", f"--define-variable=prefix={top}{prefix}", "--cflags", "--libs", *options, "libpale", env=env)
        check(f"pkg-config {' '.join(options) or '(shared)'}", done.returncode == 0, done.stderr)
        return done.stdout.split()

    users = [("", {})] if os.getuid() else [(" as root", {}), (" as nobody", {"user": 65534, "group": 65534, "extra_groups": []})]
    for how, options, link in (() if kind == "sanitized" else
                               (("shared", [], [f"-Wl,-rpath,{lib}"]), ("static", ["--static"], ["-static"]))):
        program = f"{top}/run-{how}"
        done = run("gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"{source}/examples/run.c", "-o", program,
                   *link, *flags(*options), env=env)
        # glibc's own warnings about static programs are the user's to read, not errors.
        check(f"examples/run.c builds, {how}", done.returncode == 0, done.stderr)
        if done.returncode:
            continue
        for who, user in users:
            state = tempfile.mkdtemp(prefix="pale-state.")
            if user:
                os.chown(state, user["user"], user["group"])
            mine = env | {"PALE_STATE_DIR": state, "HOME": state}
            code = "import socket\nprint(6 * 7)\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError: pass\nraise SystemExit(5)"
            done = run(program, code, env=mine, cwd="/", **user)
            check(f"it runs{who}, {how}", done.returncode == 5 and done.stdout == "42\n" and "exit status 5" in done.stderr,
                  f"{done.returncode} {done.stdout} {done.stderr}")
            check(f"it tells of an attempt{who}, {how}", "network.blocked" in done.stderr, done.stderr)
            done = run(program, "while True: pass", env=mine | {"PALE_BOX_PROGRAM": "/nonexistent"}, cwd="/", **user)
            check(f"without its supervisor it fails{who}, {how}", done.returncode == 125 and "/nonexistent" in done.stderr, done)
            shutil.rmtree(state)
        held = f"{top}/session-{how}"
        done = run("gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"{source}/examples/session.c", "-o", held,
                   *link, *flags(*options), "-ljansson", env=env)
        check(f"examples/session.c builds, {how}", done.returncode == 0, done.stderr)
        for who, user in users if done.returncode == 0 else ():
            state = tempfile.mkdtemp(prefix="pale-state.")
            if user:
                os.chown(state, user["user"], user["group"])
            done = run(held, env=env | {"PALE_STATE_DIR": state, "HOME": state}, cwd="/", input="x = 6 * 7\nx\nwhile True: pass\nx + 1\n1 / 0\n", **user)
            check(f"it holds a session{who}, {how}", done.returncode == 0 and done.stdout.splitlines() == [
                "-- ok, variables: kept", "42", "-- ok, variables: kept", "KeyboardInterrupt: ", "-- timeout, variables: kept", "43",
                "-- ok, variables: kept", "ZeroDivisionError: division by zero", "-- error, variables: kept"],
                f"{done.returncode} {done.stdout} {done.stderr}")
            shutil.rmtree(state, ignore_errors=True)
    if shutil.which("g++"):
        done = run("g++", "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{source}/include",
                   "-include", "pale.h", "/dev/null")
        check("pale.h is C++ as well", done.returncode == 0, done.stderr)
    else:
        count += 1
        print(f"ok {count} - pale.h is C++ as well # SKIP g++ is not installed")
    shown = open(f"{source}/examples/run.c", encoding="utf-8").read()
    check("the example is 40 lines", shown.count("\n") <= 40, shown.count("\n"))
    shown = open(f"{source}/examples/session.c", encoding="utf-8").read()
    check("that of a session 80", shown.count("\n") <= 80, shown.count("\n"))
print(f"1..{count}")
