"""Programs that are not in /usr, in boxes: they run, and no more of the home directory is there."""
import glob
import os
import shutil
import subprocess

from case import *

token = "canary in the home directory"
write("home/.ssh/id", token)
write("home/.cargo/credentials.toml", token)
write("home/.netrc", token)
write("home/.local/share/keyrings/x", token)


def no_more(what, *args, **more):
    """Nothing of the home directory that holds a secret is there beside the program."""
    r = box(*args, "--", PYTHON, "-c", f"""
import os
for base, dirs, files in os.walk({home!r}):
    for f in files:
        try: text = open(os.path.join(base, f), errors="replace").read()
        except OSError: continue
        if {token!r} in text: print("LEAK", os.path.join(base, f))
""", **more)
    check(f"{what}: no secrets beside it", "LEAK" not in r.out, r)


@case
def test_virtual_environment():
    venv = os.path.join(home, "venv")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    package = glob.glob(venv + "/lib/python3*/site-packages")[0]
    write(os.path.join(package, "mine.py"), "def main(): print('mine', __file__)\n")
    tool = write("home/venv/bin/tool", f"#!{venv}/bin/python\nimport mine; mine.main()\n", 0o755)
    want = f"mine {package}/mine.py\n"
    same("outside it runs", subprocess.run([tool], capture_output=True, text=True).stdout, want)
    same("a script of a virtual environment", box("--", tool).out, want)
    r = box("--", "python", "-c", "import sys, mine; mine.main(); print(sys.prefix)", more={"PATH": venv + "/bin:" + PATH})
    same("its python, by $PATH", r.out, want + venv + "\n")
    os.makedirs(home + "/.local/bin", exist_ok=True)
    os.symlink("../../venv/bin/tool", home + "/.local/bin/tool")
    r = box("--", "tool", more={"PATH": home + "/.local/bin:" + PATH})
    same("called through a link, as pipx makes it", r.out, want)
    r = box("--ro", work, "--", PYTHON, "-c", f"import os; print(os.path.exists({home!r}))")
    same("without it nothing of the home is there", r.out, "False\n")
    r = box("--", "sh", "-c", f"cat {home}/.ssh/id; ls -A {home}", more={"PATH": venv + "/bin:" + PATH})
    check("nor the secrets beside it", token not in r.out, r)
    code = (f"import os\nprint(sorted(os.listdir({home!r})))\n")
    r = box("--", venv + "/bin/python", "-c", code)
    same("only the environment is there", r.out, "['venv']\n")
    check("outside there is more", len(os.listdir(home)) > 2)
    r = box("--", venv + "/bin/python", "-c", f"open({package!r} + '/evil.py', 'w')")
    check("and it is read-only", r.status == 1 and "Errno" in r.err, r)
    # In a workspace it is part of the overlay.
    shutil.copytree(venv, work + "/.venv", symlinks=True)
    r = box("--overlay", work, "--", ".venv/bin/python", "-c", "import sys; print(sys.prefix)")
    same("one in the workspace", r.out, work + "/.venv\n")
    shutil.rmtree(work + "/.venv")
    write("home/venv/pyvenv.cfg", "home = /nonexistent/bin\n")
    os.unlink(venv + "/bin/python3")
    shutil.copy(PYTHON, venv + "/bin/python3")
    p = run("--", venv + "/bin/python3", "-c", "1")
    check("one whose Python is gone says so", p.returncode == 127 and b"make it again" in p.stderr, p)


@case
def test_programs():
    cc = shutil.which("cc", path=PATH)
    if not cc:
        skip("compiled programs", "there is no C compiler")
        return
    src = write("work/main.c", '#include <stdio.h>\nint f(void);\nint main(void) { printf("%d\\n", f()); return 0; }\n')
    lib = write("work/lib.c", "int f(void) { return 42; }\n")
    os.makedirs(work + "/build/lib")
    subprocess.run([cc, "-shared", "-fPIC", "-o", work + "/build/lib/libf.so.1", lib], check=True)
    os.symlink("libf.so.1", work + "/build/lib/libf.so")
    subprocess.run([cc, "-o", work + "/build/prog", src, "-L", work + "/build/lib", "-lf", "-Wl,-rpath,$ORIGIN/lib"], check=True)
    same("outside it runs", subprocess.run([work + "/build/prog"], capture_output=True).stdout, b"42\n")
    same("a program with libraries of its own", box("--", "build/prog").out, "42\n")
    same("the same in an overlay", box("--overlay", work, "--", "build/prog").out, "42\n")
    r = box("--", "build/prog", "x")
    write("work/secret", token)
    r = box("--", "build/prog")
    listing = box("--ro", work + "/build/prog", "--", "sh", "-c", f"ls -A {work} {work}/build")
    check("only the program is there, not its directory", "secret" not in listing.out and "main.c" not in listing.out, listing)
    os.unlink(work + "/build/lib/libf.so.1")
    r = box("--", "build/prog")
    check("without its library it fails as outside", r.status == 127 and "libf.so" in r.err, r)
    p = run("--", write("work/i386", b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x02\x00\x03\x00" + bytes(40), 0o755))
    check("a 32-bit program: 126 and why", p.returncode == 126 and b"32-bit" in p.stderr, p)


@case
def test_scripts():
    write("work/a.py", "import sys; print('py', sys.argv[1:])\n")
    write("work/b.sh", "echo sh $#\n")
    write("work/c", f"#!{PYTHON} -I\nimport sys; print('c', sys.flags.isolated)\n", 0o755)
    write("work/d.py", "#!/usr/bin/env -S python3 -I\nimport sys; print('d', sys.flags.isolated)\n", 0o755)
    same("script.py, with arguments", box("a.py", "--x", "1").out, "py ['--x', '1']\n")
    same("script.sh", box("b.sh", "1", "2").out, "sh 2\n")
    same("./script by its #! line", box("./c").out, "c 1\n")
    same("env -S", box("./d.py").out, "d 1\n")
    same("script with a #! line, named without a slash", box("d.py").out, "d 1\n")
    same("-c CODE", box("-c", "print(6 * 7)", "--lang", "python").out, "42\n")
    same("-c CODE for a shell", box("-c", "echo $((6 * 7))", "--lang", "bash").out, "42\n")
    same("code on standard input", box("--lang", "python", "-", data=b"print('in')").out, "in\n")
    if shutil.which("node", path=PATH):
        write("work/e.js", "console.log('js', process.argv.length)\n")
        same("script.js", box("--memory", "1GiB", "e.js", "x").out, "js 3\n")
        same("-c CODE for node", box("--memory", "1GiB", "-c", "console.log(6 * 7)", "--lang", "node").out, "42\n")
    else:
        skip("script.js", "node is not installed")
    os.symlink("a.py", work + "/link.py")
    same("a script through a link", box("link.py").out, "py []\n")
    os.symlink(home + "/.ssh/id", work + "/evil.py")
    p = run("evil.py")
    check("a link that an agent left, to a secret, is refused", p.returncode == 125 and token.encode() not in p.stderr + p.stdout, p)
    shown = subprocess.run([PYTHON, "evil.py"], cwd=work, capture_output=True).stderr
    check("outside it is shown", token.encode() in shown, shown)
    write("work/steal", f"#!{home}/.ssh/id\n", 0o755)
    p = run("./steal")
    check("a #! line that names a secret shows nothing of it", p.returncode == 126 and token.encode() not in p.stderr + p.stdout, p)
    no_more("a script", "--ro", work + "/a.py")


@case
def test_toolchains_of_this_machine():
    """Those of the caller's own home, where there are any."""
    real = os.path.expanduser("~")
    if os.path.isdir(real + "/.pyenv/versions") and os.path.exists(real + "/.pyenv/shims/python3"):
        r = box("--", "python3", "-c", "import sys, ssl, sqlite3; print(sys.prefix)",
                more={"PATH": real + "/.pyenv/shims:" + PATH, "HOME": real, "PYENV_ROOT": real + "/.pyenv"})
        check("pyenv's python3", r.status == 0 and r.out.startswith(os.path.realpath(real) + "/.pyenv/versions/"), r)
    else:
        print("# no pyenv in", real)
    if os.path.exists(real + "/.cargo/bin/cargo") and os.path.isdir(real + "/.rustup/toolchains"):
        more = {"PATH": real + "/.cargo/bin:" + PATH, "HOME": real}
        r = box("--memory", "1GiB", "--", "cargo", "--version", more=more)
        check("rustup's cargo", r.status == 0 and r.out.startswith("cargo "), r)
        write("work/hello/Cargo.toml", '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n')
        write("work/hello/src/main.rs", 'fn main() { println!("hello from rust"); }\n')
        r = box("--memory", "2GiB", "--timeout", "90s", "--cpu-time", "90s", "--overlay", work + "/hello", "--", "sh", "-c", "true")
        r = box("--memory", "2GiB", "--timeout", "90s", "--cpu-time", "90s", "--overlay", work + "/hello", "--", "cargo", "run", "-q",
                more=more, cwd=work + "/hello")
        check("and it builds and runs a program", r.out == "hello from rust\n", r)
    else:
        print("# no rustup in", real)
    if os.path.exists("/usr/bin/gcc"):
        r = box("--", "sh", "-c", "cd && echo 'int main(){return 7;}' > a.c && gcc a.c -o a && ./a")
        same("gcc of the image builds and its program runs", r.status, 7)


done()
