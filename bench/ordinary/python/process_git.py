# A repository: commits, a branch, a merge, the log.
import subprocess


def git(*args):
    done = subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *args], cwd="repo",
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


subprocess.run(["git", "init", "-q", "-b", "main", "repo"], check=True)
for number in (1, 2):
    with open("repo/file.txt", "a") as f:
        f.write(f"line {number}\n")
    git("add", "-A")
    git("commit", "-q", "-m", f"commit {number}")
git("checkout", "-q", "-b", "topic")
with open("repo/other.txt", "w") as f:
    f.write("other\n")
git("add", "other.txt")
git("commit", "-q", "-m", "topic")
git("checkout", "-q", "main")
git("merge", "-q", "--no-ff", "-m", "merge", "topic")
print(sorted(git("log", "--format=%s").split("\n")))
print(git("ls-files").split(), git("diff", "--stat", "HEAD~1"))
