"""An installation into a DESTDIR is complete, and what is generated for it is well-formed. TAP.

    test_install.py BUILD PREFIX
"""
import os
import shutil
import subprocess
import sys
import tempfile

build, prefix = sys.argv[1:]
results = []


def check(what, ok, detail=""):
    results.append(what)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {what}")
    if not ok and detail:
        print("\n".join("# " + line for line in detail.strip().splitlines()[:20]))


def parses(what, command, path):
    """A shell reads the file without running it; loud if the shell is not there."""
    if not shutil.which(command[0]):
        if "shells" in os.environ.get("PALE_MUST_WORK", ""):
            check(what, False, f"{command[0]} is not installed")
            return
        results.append(what)
        print(f"ok {len(results)} - {what} # SKIP {command[0]} is not installed")
        return
    done = subprocess.run(command + [path], capture_output=True, text=True)
    check(what, done.returncode == 0 and not done.stderr.strip(), done.stderr)


with tempfile.TemporaryDirectory(prefix="pale-install.") as destdir:
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", destdir], capture_output=True, text=True)
    check("meson install into a DESTDIR", done.returncode == 0, done.stdout + done.stderr)
    top = destdir + prefix
    listed = sorted(os.path.relpath(os.path.join(d, f), top) for d, _, files in os.walk(top) for f in files)
    check("nothing outside the prefix", all(os.path.commonpath([os.path.join(d, f), top]) == top
                                            for d, _, files in os.walk(destdir) for f in files))
    version = subprocess.run([f"{top}/bin/pale", "--version"], capture_output=True, text=True)
    check("the installed pale runs", version.returncode == 0, version.stderr)

    commands = [line.split()[0] for line in subprocess.run([f"{top}/bin/pale", "--help"], capture_output=True, text=True)
                .stdout.splitlines() if line.startswith("  ") and line[2:3].isalpha()]
    pages = [p for p in listed if p.startswith("share/man/")]
    wanted = ["share/man/man1/pale.1", "share/man/man5/pale-policy.5"] + [f"share/man/man1/pale-{c}.1" for c in commands]
    check("a man page for the command, each subcommand and the policy", sorted(pages) == sorted(wanted),
          f"have {pages}\nwant {wanted}")
    for page in pages:
        done = subprocess.run(["man", "--warnings", "-l", f"{top}/{page}"], capture_output=True, text=True,
                              env=os.environ | {"MANWIDTH": "80", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"})
        check(f"{os.path.basename(page)} formats without warnings",
              done.returncode == 0 and len(done.stdout) > 300 and not done.stderr.strip(), done.stderr or done.stdout)
    parses("the bash completion parses", ["bash", "-n"], f"{top}/share/bash-completion/completions/pale")
    parses("the zsh completion parses", ["zsh", "-n"], f"{top}/share/zsh/site-functions/_pale")
    parses("the fish completion parses", ["fish", "-n"], f"{top}/share/fish/vendor_completions.d/pale.fish")
    for words, wanted in (("policy init", "analysis"), ("audit show", "last"), ("audit list --outcome", "wall-time")):
        done = subprocess.run(["bash", "-c", f'. "$1"; COMP_WORDS=(pale {words} ""); COMP_CWORD={len(words.split()) + 1}; _pale 2>/dev/null; '
                               'printf "%s\\n" "${COMPREPLY[@]}"', "bash", f"{top}/share/bash-completion/completions/pale"],
                              capture_output=True, text=True)
        check(f"after {words} it offers {wanted}", wanted in done.stdout.split(), done.stdout + done.stderr)
    offers = subprocess.run(["bash", "-c", '. "$1"; COMP_WORDS=(pale pol); COMP_CWORD=1; _pale; printf %s "${COMPREPLY[*]}"',
                             "bash", f"{top}/share/bash-completion/completions/pale"], capture_output=True, text=True)
    check("the bash completion offers a command", offers.stdout == "policy", offers.stdout + offers.stderr)
    profile = f"{top}/share/pale/apparmor/pale"
    check("the AppArmor profile names the installed program",
          os.path.exists(profile) and f"profile pale {prefix}/bin/pale " in open(profile, encoding="utf-8").read())
print(f"1..{len(results)}")
