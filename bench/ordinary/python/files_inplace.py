# Change lines of a file in place, and show the difference.
import difflib
import fileinput

before = "alpha\nbeta\ngamma\n"
with open("list.txt", "w") as f:
    f.write(before)
with fileinput.input("list.txt", inplace=True, backup=".bak") as lines:
    for line in lines:
        print(line.rstrip().upper() if line.startswith("b") else line.rstrip())
after = open("list.txt").read()
print("".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "list.txt.bak", "list.txt")))
