# A pipeline of three programs, and talking to one line by line.
import subprocess

first = subprocess.Popen(["seq", "1", "100"], stdout=subprocess.PIPE)
second = subprocess.Popen(["grep", "7"], stdin=first.stdout, stdout=subprocess.PIPE)
first.stdout.close()
third = subprocess.run(["wc", "-l"], stdin=second.stdout, capture_output=True, text=True)
second.wait()
print(third.stdout.strip(), first.wait(), second.returncode)
with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as cat:
    for word in ("one", "two"):
        cat.stdin.write(word + "\n")
        print("echo", cat.stdout.readline().strip())
    cat.stdin.close()
