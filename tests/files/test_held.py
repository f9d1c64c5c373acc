"""What apply holds back, class by class, and what it lets through. usage: as test_workspace.py"""
import json
import os
import pathlib
import shutil
import subprocess

from overlay import cli, entries, finish, fresh, run, test, tool, top, home, works

works()



@test("docs/workspaces.md has the table that the program has")
def _():
    table = subprocess.run([tool, "held"], capture_output=True, text=True, check=True).stdout
    assert (pathlib.Path(__file__).parents[2] / "docs/workspaces.md").read_text().endswith(table), \
        "run: files-tool held, and put it at the end"


CLASSES = {
    "git": [".git/hooks/pre-commit", ".git/hooks/post-checkout", ".git/config", ".git/config.worktree", ".git/info/attributes",
            ".git/objects/info/alternates", ".git/modules/x/config", ".git/modules/x/hooks/update", ".git/commondir",
            ".git/rebase-merge/git-rebase-todo", ".gitmodules", ".gitattributes", "sub/.gitattributes", ".husky/pre-commit",
            ".githooks/commit-msg", ".pre-commit-config.yaml", "lefthook.yml", ".hg/hgrc", "sub/deep/.git/hooks/pre-push",
            ".lintstagedrc.json", ".git/worktrees/w/gitdir"],
    "editor": [".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", "sub/.vscode/extensions.json",
               ".idea/workspace.xml", ".vimrc", ".exrc", ".nvim.lua", ".nvimrc", ".vim/plugin/x.vim", ".dir-locals.el",
               ".emacs.d/init.el", ".devcontainer/devcontainer.json", ".zed/tasks.json", "x.code-workspace", "build.rs",
               "eslint.config.mjs", ".eslintrc.cjs", "x.sublime-project", ".helix/config.toml"],
    "shell": [".envrc", ".env", ".env.local", ".bashrc", ".profile", ".zshrc", ".bash_profile", ".tool-versions",
              "mise.toml", ".python-version", ".config/fish/config.fish", ".venv/bin/activate", "pyvenv.cfg", ".inputrc"],
    "ci": [".github/workflows/ci.yml", ".github/actions/a/action.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile",
           "azure-pipelines.yml", ".travis.yml", "bitbucket-pipelines.yml", ".buildkite/pipeline.yml", ".drone.yml", ".ci/run"],
    "package": ["setup.py", ".npmrc", ".yarnrc.yml", ".cargo/config.toml", "rust-toolchain.toml", ".mvn/extensions.xml",
                "gradle/wrapper/gradle-wrapper.properties", "binding.gyp", ".pnpmfile.cjs", "pip.conf"],
    "agent": [".claude/settings.json", "CLAUDE.md", "AGENTS.md", ".cursor/mcp.json", ".cursorrules", ".mcp.json",
              ".codex/config.toml", ".gemini/settings.json", ".github/copilot-instructions.md", ".aider.conf.yml"],
    "tool": [".gdbinit", ".lldbinit", ".pdbrc", "sitecustomize.py", "x.pth", ".Rprofile", ".irbrc", "x.desktop"],
    "login": [".ssh/authorized_keys", ".ssh/config", ".config/autostart/x", ".config/systemd/user/x.service",
              ".local/bin/ls", ".netrc"],
}
ORDINARY = ["src/main.c", "Makefile", "CMakeLists.txt", "Dockerfile", "compose.yaml", "README.md", "tests/conftest.py",
            "a.py", "bin/tool", "x/config", "hooks/useState.js", "info/x", "modules/m/main.tf", ".gitignore", ".editorconfig",
            "docs/claude-notes.md", "package/x.json", "git/hooks/x", "environment.yml", "requirements.txt", "Cargo.toml",
            ".git/HEAD", ".git/refs/heads/x", ".git/objects/ab/cdef", ".git/logs/HEAD", ".git/index", ".git/COMMIT_EDITMSG",
            "github/workflows/x.yml", "node_modules/x/index.js", "x.vscode", "objects/o", "refs/r"]


def write(paths, mode=0o755):
    return f"""
for p in {paths!r}:
    os.makedirs(os.path.dirname(p) or ".", exist_ok=True)
    open(p, "w").write("run me\\n"); os.chmod(p, {mode})
"""


@test("each class is held back on its first write (nothing of the name was there), and applied when named")
def _():
    for name, paths in CLASSES.items():
        d = fresh("lower")
        run_id, _, _ = run(d, write(paths))
        got = entries(run_id)
        for p in paths:
            assert got[p]["verdict"] == "held", (name, p, got[p])
            assert got[p]["class"] == name, (name, p, got[p])
        out = json.loads(cli("apply", "--json", run_id, status=1))
        assert out["applied"] == 0 and out["held"] == len(paths), out
        assert not list(d.iterdir()), f"{name}: something was made: {list(d.iterdir())}"
        cli("apply", run_id, *paths)
        assert all((d / p).read_text() == "run me\n" for p in paths)


@test("ordinary source is not held back")
def _():
    d = fresh("lower")
    run_id, _, _ = run(d, write(ORDINARY, 0o755))
    got = entries(run_id)
    for p in ORDINARY:
        assert got[p]["verdict"] == "applicable", (p, got[p])
    cli("apply", run_id)


@test("changed, deleted, made executable, replaced by a link: held back as well")
def _():
    d = fresh("lower")
    for p in (".git/hooks/a", ".git/hooks/b", ".vscode/tasks.json", ".envrc", ".github/workflows/x.yml"):
        (d / p).parent.mkdir(parents=True, exist_ok=True)
        (d / p).write_text("old")
    run_id, _, _ = run(d, """
os.chmod(".git/hooks/a", 0o755); os.unlink(".git/hooks/b"); open(".vscode/tasks.json", "a").write("new")
os.unlink(".envrc"); os.symlink("x", ".envrc"); shutil.rmtree(".github"); os.symlink("y", ".github")
os.makedirs("y/workflows"); open("y/workflows/x.yml", "w").write("evil")
""")
    got = entries(run_id)
    for p in (".git/hooks/a", ".git/hooks/b", ".vscode/tasks.json", ".envrc", ".github", ".github/workflows/x.yml"):
        assert got[p]["verdict"] == "held", (p, got[p])
    cli("apply", run_id, status=1)
    assert (d / ".github/workflows/x.yml").read_text() == "old" and (d / ".git/hooks/b").exists()


@test("links that stand for a held directory, and .git as a file")
def _():
    d = fresh("lower")
    names = [".git", ".vscode", ".husky", ".claude", ".idea", ".github", ".cargo", ".ssh", ".devcontainer"]
    run_id, _, _ = run(d, f"""
os.mkdir("x")
for n in {names!r}: os.symlink("x", n)
os.mkdir("sub"); open("sub/.git", "w").write("gitdir: ../evil")
""")
    got = entries(run_id)
    for n in names + ["sub/.git"]:
        assert got[n]["verdict"] == "held", (n, got[n])


@test("the case of letters, characters that file systems leave out, and Windows' short names change nothing")
def _():
    d = fresh("lower")
    names = [".GIT/hooks/pre-commit", ".Git/CONFIG", ".VSCode/Tasks.json", ".ENVRC", "JENKINSFILE", ".g\u200cit/hooks/x",
             ".GitHub/Workflows/a.yml", ".v\u017fcode/tasks.json", "git~1/hooks/x", ".git /hooks/x", ".git./config", ".envrc\u200d",
             "claude.MD", ".\ufeffclaude/settings.json", ".hu\u017f\u212ay/pre-commit", "Package.json", ".BASHRC"]
    run_id, _, _ = run(d, write(names))
    got = entries(run_id)
    for n in names:
        if n == "Package.json":
            continue  # "run me" is no JSON: held as well
        assert got[n]["verdict"] == "held", (n, got[n])
    assert got["Package.json"]["verdict"] == "held"


@test("a directory that git would take for a bare repository")
def _():
    d = fresh("lower")
    (d / "half").mkdir()
    (d / "half/HEAD").write_text("ref: refs/heads/main\n")
    (d / "half/objects").mkdir()
    run_id, _, _ = run(d, """
for n in ("HEAD", "config", "hooks/pre-commit", "objects/x", "refs/x", "info/attributes"):
    os.makedirs(os.path.dirname("bare/" + n), exist_ok=True); open("bare/" + n, "w").write("x")
os.makedirs("half/refs"); open("half/refs/x", "w").write("x"); open("half/config", "w").write("[core]")
open("config", "w").write("x"); os.mkdir("plain"); open("plain/config", "w").write("x"); open("plain/HEAD", "w").write("x")
""")
    got = entries(run_id)
    for n in ("bare/config", "bare/hooks/pre-commit", "bare/info/attributes", "half/config"):
        assert got[n]["verdict"] == "held", (n, got[n])
    for n in ("bare/HEAD", "config", "plain/config", "plain/HEAD"):
        assert got[n]["verdict"] == "applicable", (n, got[n])


@test("package.json and pyproject.toml: held back only if what is run changed")
def _():
    def verdict(name, old, new):
        d = fresh("lower")
        if old is not None:
            (d / name).write_text(old)
        run_id, _, _ = run(d, f"open({name!r}, 'w').write({new!r})")
        return entries(run_id)[name]["verdict"]

    plain, scripts = '{"name": "x", "version": "1"}', '{"name": "x", "scripts": {"postinstall": "evil"}}'
    assert verdict("package.json", plain, '{"name": "x", "version": "2", "dependencies": {"y": "1"}}') == "applicable"
    assert verdict("package.json", plain, scripts) == "held"
    assert verdict("package.json", scripts, scripts + "\n") == "applicable"
    assert verdict("package.json", scripts, plain) == "held"
    assert verdict("package.json", None, scripts) == "held"
    assert verdict("package.json", None, plain) == "applicable"
    assert verdict("package.json", plain, "{" * 100000) == "held"
    assert verdict("package.json", plain, plain + "\x00") == "held"
    assert verdict("composer.json", plain, scripts) == "held"
    base = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n[project]\nname = "x"\n'
    assert verdict("pyproject.toml", base, base + 'dependencies = ["y"]\n') == "applicable"
    assert verdict("pyproject.toml", base, base.replace("setuptools.build_meta", "evil")) == "held"
    assert verdict("pyproject.toml", base, base.replace('"]\n', '"]\nbackend-path = ["."]\n')) == "held"
    assert verdict("pyproject.toml", None, base) == "held"
    assert verdict("pyproject.toml", base, base + "[tool.hatch.build.hooks.custom]\npath = 'x'\n") == "held"


@test("a workspace that is itself a held directory, or lies in one")
def _():
    base = fresh("base")
    for path, name, want in ((".git/hooks", "pre-commit", "held"), (".git", "config", "held"), (".git", "HEAD", "applicable"),
                             (".github", "workflows/x.yml", "held"), (".vscode", "tasks.json", "held"),
                             (".claude/worktrees/x", "src/a.c", "applicable"), (".claude/worktrees/x", ".envrc", "held"),
                             (".cursor/worktrees/a/b", "main.py", "applicable")):
        d = base / path
        d.mkdir(parents=True, exist_ok=True)
        run_id, _, _ = run(d, write([name]))
        assert entries(run_id)[name]["verdict"] == want, (path, name, entries(run_id)[name])
    run_id, _, _ = run(home, write(["bin/ls", ".config/x", "work/bin/x"]))
    got = {p: e["verdict"] for p, e in entries(run_id).items() if e["type"] == "file"}
    assert got == {"bin/ls": "held", ".config/x": "held", "work/bin/x": "applicable"}, got


@test("naming: the path itself, a directory that is held as such, a pattern, all; not a parent by chance")
def _():
    d = fresh("lower")
    paths = [".vscode/tasks.json", ".vscode/settings.json", "sub/.envrc", ".git/hooks/x", "a"]
    run_id, _, _ = run(d, write(paths))

    def dry(*args):
        out = json.loads(cli("apply", "--dry-run", "--json", run_id, *args, status=None))
        return sorted(e["path"] for o in out["overlays"] for e in o["entries"]
                      if e["verdict"] == "applicable" and e["type"] == "file")

    assert dry() == ["a"]
    assert dry(".vscode") == [".vscode/settings.json", ".vscode/tasks.json"]
    assert dry("sub") == [] and dry("sub/.envrc") == ["sub/.envrc"]
    assert dry(".") == ["a"] and dry(d) == ["a"]
    assert dry(".git/hooks") == [".git/hooks/x"] and dry(".git") == []
    assert dry("--include", "*.json") == [".vscode/settings.json", ".vscode/tasks.json", "a"]
    assert dry("--include", "sub/.envrc", "sub") == ["sub/.envrc"]
    assert dry("--all-held") == sorted(paths)


@test("a real repository: commits made in the box arrive, hooks and configuration do not")
def _():
    d = fresh("repo")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q", str(d)], check=True)
    (d / "f").write_text("one\n")
    subprocess.run([*git, "-C", str(d), "add", "f"], check=True)
    subprocess.run([*git, "-C", str(d), "commit", "-qm", "one"], check=True)
    run_id, _, _ = run(d, f"""
open("f", "a").write("two\\n")
subprocess.run({git!r} + ["-c", "safe.directory=*", "commit", "-qam", "two"], check=True)
subprocess.run({git!r} + ["-c", "safe.directory=*", "config", "core.fsmonitor", "touch /tmp/pale-owned"], check=True)
open(".git/hooks/post-commit", "w").write("#!/bin/sh"); os.chmod(".git/hooks/post-commit", 0o755)
""")
    held = {p for p, e in entries(run_id).items() if e["verdict"] == "held"}
    assert held == {".git/config", ".git/hooks/post-commit"}, held
    cli("apply", run_id, status=1)
    log = subprocess.run(["git", "-C", str(d), "log", "--format=%s"], capture_output=True, text=True, check=True).stdout
    assert log == "two\none\n"
    assert subprocess.run(["git", "-C", str(d), "status", "--porcelain"], capture_output=True, text=True).stdout == ""
    assert subprocess.run(["git", "-C", str(d), "fsck"], capture_output=True).returncode == 0


finish()
