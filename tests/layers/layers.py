"""docs/ARCHITECTURE.md is true: includes follow its order of layers, and what it names exists.

The order is the one line of the document that has the form `base < ... < cli`. TAP on stdout.
"""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
document = (top / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
results = []


def check(what, problems):
    results.append((what, problems))


orders = re.findall(r"^\s*(base(?: < [a-z_]+)+)\s*$", document, re.M)
order = orders[0].split(" < ") if len(orders) == 1 else []
check("the document gives one order of layers", [] if order else [f"found {len(orders)} lines of the form base < ..."])

folders = sorted(p.name for p in (top / "src").iterdir() if p.is_dir())
check("the order and the folders of src/ are the same",
      [f"src/{f}/ is not in the order" for f in folders if f not in order]
      + [f"{f} is in the order, but there is no src/{f}/" for f in order if f not in folders])
check("each folder of src/ is described", [f"src/{f}/ is not named" for f in folders if f"src/{f}/" not in document])

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
wrong = []
for path in sorted((top / "src").glob("*/**/*.[ch]")):
    here = path.relative_to(top / "src").parts[0]
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        there = name.split("/")[0] if "/" in name else here
        if ".." in name.split("/"):
            wrong.append(f"{path.relative_to(top)}: {name}: include by the path from src/")
        elif here in order and there in order and order.index(there) > order.index(here):
            wrong.append(f"{path.relative_to(top)}: {here} must not use {name}")
check("includes follow the order", wrong)
# The command line is a user of the library like any other; what it shares is the helpers of base/.
check("the command line uses the public interface only",
      [f"{path.relative_to(top)}: {name}" for path in sorted((top / "src/cli").glob("*.[ch]"))
       for name in INCLUDE.findall(path.read_text(encoding="utf-8"))
       if "/" in name and name.split("/")[0] not in ("cli", "base")])

# Backquoted names that look like paths of this tree.
ROOTS = {p.name for p in top.iterdir()} | {"src", "tests", "docs"}
named = {n for n in re.findall(r"`([^`\s]+)`", document)
         if "/" in n and not n.startswith(("/", "~", "$")) and n.split("/")[0] in ROOTS and "<" not in n}
check("each path that the document names exists",
      sorted(f"{n} does not exist" for n in named
             if not (list(top.glob(n.rstrip("/"))) if "*" in n else (top / n).exists())))

print(f"1..{len(results)}")
for number, (what, problems) in enumerate(results, 1):
    print(f"{'not ok' if problems else 'ok'} {number} - {what}")
    for problem in problems:
        print(f"# {problem}")
sys.exit(any(problems for _, problems in results))
