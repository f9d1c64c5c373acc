"""The documents agree with the tree and with the program. TAP.

    docs.py TOP COMMANDS.json
"""
import fnmatch
import json
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
commands = {}
results = []


def add(command):
    commands[command["name"]] = command
    for sub in command["subcommands"]:
        add(sub)


for entry in json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")):
    add(entry)


def check(what, problems):
    results.append(what)
    problems = sorted(set(problems))
    print(f"{'not ok' if problems else 'ok'} {len(results)} - {what}")
    for problem in problems:
        print(f"# {problem}")


def text(name):
    return (top / name).read_text(encoding="utf-8")


PAGES = [p for p in ("README.md", "SECURITY.md", "HACKING.md", "docs/ARCHITECTURE.md", "docs/THREAT-MODEL.md",
                     "docs/DEPENDENCIES.md", "docs/control-protocol.md", "docs/network.md", "docs/result.md", "docs/sessions.md", "docs/jupyter.md", "docs/ORDINARY.md", "docs/kernels.md",
                     "docs/HARDENING.md", "docs/verify.md") if (top / p).exists()]
check("README, SECURITY, HACKING, LICENSE and the three documents are there",
      [f"{p} is missing" for p in ("README.md", "SECURITY.md", "HACKING.md", "LICENSE", "docs/ARCHITECTURE.md",
                                   "docs/THREAT-MODEL.md", "docs/DEPENDENCIES.md") if not (top / p).exists()])

# What a document names of this tree exists: links, and words that look like paths.
broken = []
for page in PAGES:
    here = text(page)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", here):
        if "://" not in link and not (top / page).parent.joinpath(link).exists():
            broken.append(f"{page}: the link {link}")
    for path in re.findall(r"(?<![\w/.~-])((?:src|tests|docs|policies|schema|packaging|demo|bench|fuzz|attacks|examples|include)"
                           r"/[\w./*-]*[\w*/])", here):
        if not list(top.glob(path.rstrip("/"))):
            broken.append(f"{page}: {path}")
check("what the documents name exists", broken)

# The lists of packages and of libraries, and the page that says why.
dependencies = text("docs/DEPENDENCIES.md")
wanted = set(re.findall(r"^[a-z]+ +(\S+)", text("packaging/packages"), re.M))
if (top / "tests/packages").exists():
    wanted |= {line.split("#")[0].strip() for line in text("tests/packages").splitlines()} - {""}
check("docs/DEPENDENCIES.md has each package", [f"{p} is not named" for p in wanted if f"`{p}`" not in dependencies])
LIBRARIES = {"yaml-0.1": "libyaml-dev", "jansson": "libjansson-dev", "libevent_core": "libevent-dev", "libmd": "libmd-dev",
             "sqlite3": "libsqlite3-dev", "libseccomp": "libseccomp-dev", "libgit2": "libgit2-dev",
             "cmocka": "libcmocka-dev", "threads": "libc6-dev", "libnftnl": "libnftnl-dev", "libmnl": "libmnl-dev",
             "libcares": "libc-ares-dev", "openssl": "libssl-dev", "libssl": "libssl-dev", "libcrypto": "libssl-dev",
             "libnghttp2": "libnghttp2-dev", "libevent_openssl": "libevent-dev", "libedit": "libedit-dev"}
used = {name for path in [top / "meson.build", *top.glob("src/**/meson.build"), *top.glob("tests/**/meson.build")]
        for name in re.findall(r"\bdependency\('([^']+)'", path.read_text(encoding="utf-8"))}
check("each library of the build is a package of the list",
      [f"dependency('{u}') is not in packaging/packages" for u in used if LIBRARIES.get(u) not in wanted])

# The control protocol: its commands and its codes.
protocol = text("docs/control-protocol.md")
commands_of = re.findall(r'^\t\{"([a-z.]+)", DOOR_', text("src/supervise/door_commands.c"), re.M)
codes_of = re.findall(r'^\t\[CONTROL_\w+\] = "(\w+)"', text("src/supervise/control.c"), re.M)
check("docs/control-protocol.md has the commands", [] if commands_of and
      commands_of == re.findall(r"^### `([a-z.]+)`$", protocol, re.M) else [f"there are {commands_of}"])
check("and the codes of errors", [] if codes_of and codes_of == re.findall(r"^\| `(\w+)` \| [^|]+ \|$", protocol.split("| code |")[1], re.M)[:len(codes_of)]
      else [f"there are {codes_of}"])

# The threat model: each row of its claims has a mechanism and a test that exists.
rows = [[c.strip() for c in line.strip("\n ").strip()[1:-1].split("|")] for line in text("docs/THREAT-MODEL.md").splitlines()
        if line.startswith("|") and not set(line) <= set("|-: ")]
claims = [r for r in rows if len(r) in (3, 4) and r[0] not in ("claim", "")]
check("the threat model makes claims", [] if len(claims) >= 20 else [f"found {len(claims)} rows"])
lacking = []
for claim, mechanism, tests, *_ in claims:
    files = re.findall(r"`((?:tests|attacks|fuzz)/[^`]+)`", tests)
    if not files:
        lacking.append(f"no test: {claim}")
    lacking += [f"{claim}: {f} does not exist" for f in files if not list(top.glob(f))]
check("each claim of the threat model names tests that exist", lacking)

# Its last column: attacks of `pale verify`, or promises at which they are aimed.
aims = {}
for path in top.glob("attacks/*/*.c"):
    aim = re.search(r'^ATTACK\((\w+), "([\w-]+)"', path.read_text(encoding="utf-8"), re.M)
    if aim and path.parent.name in ("files", "network", "kernel", "resources"):
        aims[path.stem] = f"{aim[1].lower()}.{aim[2]}"
named, unknown_attacks = set(), []
for row in claims:
    for word in re.findall(r"`([^`]+)`", row[3] if len(row) == 4 else ""):
        meant = {name for name, promise in aims.items() if promise == word or fnmatch.fnmatchcase(name, word)}
        named |= meant
        if not meant:
            unknown_attacks.append(f"{row[0]}: there is no attack {word}")
check("the attacks that the threat model names exist", unknown_attacks)
check("and each attack is aimed at one of its claims", [f"attacks/{aims[a].split('.')[0]}/{a}.c" for a in set(aims) - named])

# docs/HARDENING.md and the doctor: each check that it names is one, and each side channel that a policy may speak of has
# its row, with the check that shows it.
doctor, hardening = text("src/isolation/doctor.c"), text("docs/HARDENING.md")
shown = {name.strip() for name in re.findall(r'\b(?:note|check_mount|check_controller)\(\s*x, "([^"]+)"', doctor)}
columns = []
for table in re.findall(r"(?:^\|.*\n)+", hardening, re.M):
    rows_of = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()]
    if rows_of[0][-1] == "`pale doctor`":
        columns += [(row[0], re.findall(r"`([^`]+)`", row[-1])) for row in rows_of[2:]]
mentioned = {name for _, names in columns for name in names}
mentioned |= {re.split("  ", name)[0] for name in
              re.findall(r"`pale doctor`(?: shows it as|:| says) `([\w ]+?)`", hardening.replace("\n", " "))}
check("the checks of pale doctor that docs/HARDENING.md names exist",
      [f"{name} is none of {sorted(shown)}" for name in mentioned - shown] +
      ([] if len(shown) >= 20 and len(mentioned) >= 12 else [f"found {len(mentioned)} of {len(shown)}"]))
keys = set(re.findall(r"kernel: \{(\w+):", " ".join(re.findall(r'"([^"\n]*)"', doctor))))
keys.discard("profile")
check("and it has each side channel that the doctor speaks of, with its check",
      [f"kernel.{key} has no row with a check" for key in keys
       if not any(f"kernel: {{{key}:" in first and names for first, names in columns)] +
      ([] if len(keys) == 3 else [f"found {keys}"]))

# Commands in code blocks: the command exists, and so does each long option.
unknown = []
if commands:
    for page in PAGES:
        for block in re.findall(r"^```[^\n]*\n(.*?)^```", text(page), re.M | re.S) + \
                re.findall(r"(?:^(?:    |\t)[^\n]*\n)+", text(page), re.M):
            for line in re.findall(r"^(?:\s|\$|sudo )*pale (.*)$", block, re.M):
                line = line.split("#")[0]
                words = line.split(" -- ")[0].split()
                if not words or words[0].startswith("-"):
                    continue
                name = " ".join(words[:2]) if " ".join(words[:2]) in commands else words[0]
                if name not in commands:
                    unknown.append(f"{page}: pale {name}")
                    continue
                command = commands[name]
                known = {"--" + o["name"] for o in command["options"]} | {"--help"}
                for sub in command["subcommands"]:
                    known |= {"--" + o["name"] for o in sub["options"]}
                for option in re.findall(r"(?<!\S)--[a-z-]+", " ".join(words)):
                    if option not in known:
                        unknown.append(f"{page}: pale {name} {option}")
check("the documents' commands and options exist", unknown)
print(f"1..{len(results)}")
