"""Man pages and shell completions, from the one table of commands (`pale --dump-commands`).

    generate.py man COMMANDS.json VERSION [NAME]     pale(1), or the page of one subcommand
    generate.py policy-man POLICY.md VERSION         pale-policy(5), from docs/policy.md
    generate.py bash|zsh|fish COMMANDS.json
    generate.py install COMMANDS.json POLICY.md VERSION MANDIR BASHDIR ZSHDIR FISHDIR

Prints to stdout, or writes everything below the directories (Meson runs this when installing, and
$DESTDIR stands before them). Its input is our own.
"""
import json
import os
import pathlib
import re
import sys

SHIPPED = sorted(p.stem for p in (pathlib.Path(__file__).resolve().parent.parent / "policies").glob("*.yaml"))


def flat(commands):
    """Each command that can be run, groups dissolved: name, command."""
    for command in commands:
        if command["subcommands"]:
            yield from flat(command["subcommands"])
        else:
            yield command


# ---------------------------------------------------------------- man pages

def roff(text):
    """A line of text: nothing in it is taken for a request; hyphens can be copied from the page."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith(".") else text


def inline(text):
    """Markdown's `code` and **bold**."""
    out = []
    for part in re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", text):
        if part.startswith("`") and len(part) > 2:
            out.append("\\fB" + roff(part[1:-1]) + "\\fP")
        elif part.startswith("**") and len(part) > 4:
            out.append("\\fB" + roff(part[2:-2]) + "\\fP")
        else:
            out.append(roff(re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", part)))
    text = "".join(out)
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def header(title, section, version, summary):
    return [f'.TH "{roff(title.upper())}" "{section}" "" "Pale {version}" "Pale"', ".nh", ".ad l", ".SH NAME",
            f"{roff(title)} \\- {roff(summary)}"]


def paragraphs(text):
    """Help text as it stands: indented lines are kept as they are, the rest flows."""
    out = []
    kept = False
    for line in text.strip("\n").split("\n"):
        indented = line.startswith(" ")
        if indented != kept:
            out.append(".nf" if indented else ".fi")
            kept = indented
        if line.strip():
            out.append((roff(line) if indented else inline(line)))
        elif kept:
            out.append("")
        else:
            out.append(".PP")
    if kept:
        out.append(".fi")
    return out


def option_rows(options):
    out = []
    for option in options:
        names = ([f"\\fB\\-{option['letter']}\\fP"] if option.get("letter") else []) + [f"\\fB{roff('--' + option['name'])}\\fP"]
        argument = f" \\fI{roff(option['argument'])}\\fP" if option.get("argument") else ""
        out += [".TP", ", ".join(names) + argument, inline(option["help"][0].upper() + option["help"][1:] + ".")]
    return out


def man_command(command, version, heading):
    out = []
    name = command["name"]
    out += [f".{heading} {'SYNOPSIS' if heading == 'SH' else roff('pale ' + name)}",
            f"\\fBpale {roff(name)}\\fP {roff(command.get('usage') or '')}"]
    if heading == "SH":
        out.append(".SH DESCRIPTION")
    else:
        out += [".PP", inline(command["summary"][0].upper() + command["summary"][1:] + ".")]
    if command.get("help"):
        out += paragraphs(command["help"])
    own = [o for o in command["options"] if not o["policy"]]
    shared = [o for o in command["options"] if o["policy"]]
    for title, options in (("OPTIONS", own), ("POLICY OPTIONS", shared)):
        if options:
            out += [f".SH {title}" if heading == "SH" else ".PP"] + option_rows(options)
    return out


def man(commands, version, name):
    if name is None:
        out = header("pale", "1", version, "run code that nobody has reviewed, in a sandbox that holds")
        out += [".SH SYNOPSIS", "\\fBpale\\fP \\fICOMMAND\\fP [\\fIARG\\fP...]", ".SH COMMANDS"]
        for command in commands:
            out += [".TP", f"\\fBpale\\-{roff(command['name'])}\\fP(1)", inline(command["summary"])]
        out += [".SH EXIT STATUS", "Of \\fBpale run\\fP:",
                ".TP", "\\fIN\\fP", "The command's own.", ".TP", "128+\\fIN\\fP", "The command was ended by signal \\fIN\\fP.",
                ".TP", "124", "A limit ended it; the last line names which, with the figures.",
                ".TP", "125", "Pale failed, or was used wrongly: nothing ran, or what ran was ended.",
                ".TP", "126, 127", "The command cannot be executed, or was not found.",
                ".TP", "130", "It was interrupted.",
                ".PP", "Of the other commands: 0; 1 for no, or for not all of it; 2 for wrong usage; 125 if Pale failed or there is no such run. Their "
                "pages say more.",
                ".SH ENVIRONMENT",
                ".TP", "\\fBPALE_STATE_DIR\\fP", "Where runs and their logs are kept. Default: /var/lib/pale for root, "
                "else $XDG_STATE_HOME/pale or ~/.local/state/pale.",
                ".TP", "\\fBNO_COLOR\\fP", "If set, no colour."]
        others = ["pale\\-policy(5)"]
    else:
        command = next(c for c in commands if c["name"] == name)
        out = header(f"pale-{name}", "1", version, command["summary"])
        if command["subcommands"]:
            out += [".SH SYNOPSIS", f"\\fBpale {roff(name)}\\fP \\fICOMMAND\\fP [\\fIARG\\fP...]"]
            if command.get("help"):
                out += [".SH DESCRIPTION", *paragraphs(command["help"])]
            out.append(".SH COMMANDS")
            for sub in flat(command["subcommands"]):
                out += man_command(sub, version, "SS")
        else:
            out += man_command(command, version, "SH")
        others = ["pale(1)", "pale\\-policy(5)"]
    return "\n".join(out + [".SH SEE ALSO", ", ".join(others)]) + "\n"


def policy_man(text, version):
    """The little Markdown that docs/policy.md uses: headings, paragraphs, lists, fences, tables."""
    out = header("pale-policy", "5", version, "what a sandbox may touch")
    code, table = False, None
    for line in re.sub(r"<!--.*?-->\n*", "", text, flags=re.S).split("\n"):
        if line.startswith("```"):
            out.append(".fi" if code else ".nf")
            code = not code
        elif code:
            out.append("    " + roff(line) if line else "")
        elif line.startswith("|"):
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
            if all(re.fullmatch(r":?-+:?", c) for c in cells):
                continue
            head = cells[0]
            if not table:
                table = cells  # the heading row
                continue
            facts = [c if n in ("value", "range") else f"{n} {c}"
                     for n, c in zip(table[1:-1], cells[1:-1]) if c]
            out += [".TP", f"\\fB{inline(head)}\\fP"]
            if facts:
                out += ["(" + inline("; ".join(facts).replace("\\|", "|")) + ")", ".br"]
            out.append(inline(cells[-1].replace("\\|", "|")))
        else:
            table = None
            if line.startswith("# "):
                out.append(".SH DESCRIPTION")
            elif line.startswith("## "):
                out.append(f".SH {inline(line[3:]).upper() if '`' not in line else inline(line[3:])}")
            elif line.startswith("### "):
                out.append(f".SS {inline(line.lstrip('# '))}")
            elif line.startswith(("- ", "* ")):
                out += [".IP \\(bu 2", inline(line[2:])]
            elif line.strip():
                out.append(inline(line.strip()))
            else:
                out.append(".PP")
    return "\n".join(out + [".SH SEE ALSO", "pale(1), pale\\-run(1), pale\\-explain(1)"]) + "\n"


# ---------------------------------------------------------------- completions

def children(command):
    """The words after a group's name: ("check", command)."""
    return [(c["name"].split(" ")[-1], c) for c in command["subcommands"]]


def kind(option):
    if not option.get("argument"):
        return None
    return option.get("complete") or "any"


def operand_kind(command):
    usage = command.get("usage") or ""
    words = re.search(r"\b[a-z]+(\|[a-z]+)+\b", usage)
    if words:
        return words.group(0)
    if "SESSION" in usage:
        return "session-file" if "FILE" in usage else "session"
    if "RUN" in usage:
        return "change" if "PATH" in usage else "run"
    if "[NAME]" in usage:
        return "|".join(SHIPPED)
    if "SCRIPT" in usage or "COMMAND" in usage:
        return "command"
    return "file"


STATE = '''"${PALE_STATE_DIR:-$(if [ "$(id -u)" = 0 ]; then echo /var/lib/pale; else
		echo "${XDG_STATE_HOME:-$HOME/.local/state}/pale"; fi)}'''
RUNS = f'ls -1r {STATE}/runs" 2>/dev/null'
SESSIONS = f'ls -1 {STATE}/names" 2>/dev/null'


def bash(commands):
    out = ["# bash completion for pale; generated from the table of commands.",
           "_pale_runs() {", f"\t{RUNS} | head -50", "}", "_pale_sessions() {", f"\t{SESSIONS}", "}", "",
           "_pale_words() { # KIND: candidates for $cur",
           "\tcase $1 in", "\tfile) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")) ;;",
           "\tdir) compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\")) ;;",
           "\tcommand) compopt -o filenames; COMPREPLY=($(compgen -c -f -- \"$cur\")) ;;",
           "\trun) COMPREPLY=($(compgen -W \"last $(_pale_runs)\" -- \"$cur\")) ;;",
           "\tsession) COMPREPLY=($(compgen -W \"last $(_pale_sessions)\" -- \"$cur\")) ;;",
           "\tsession-file) compopt -o filenames; COMPREPLY=($(compgen -W \"last $(_pale_sessions)\" -f -- \"$cur\")) ;;",
           "\tchange) compopt -o filenames; COMPREPLY=($(compgen -W \"last $(_pale_runs)\" -f -- \"$cur\")) ;;",
           f"\tpolicy) compopt -o filenames; COMPREPLY=($(compgen -W '{' '.join(SHIPPED)}' -f -- \"$cur\")) ;;",
           "\tany) COMPREPLY=() ;;", "\t*) COMPREPLY=($(compgen -W \"${1//|/ }\" -- \"$cur\")) ;;",
           "\tesac", "}", "",
           "_pale() {", "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i",
           "\tCOMPREPLY=()",
           "\t# --name=value arrives as three words.",
           "\t[ \"$cur\" = = ] && cur=",
           "\t[ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}",
           "\tfor ((i = 1; i < COMP_CWORD; i++)); do",
           "\t\t[[ ${COMP_WORDS[i]} == -* ]] && break",
           "\t\tcase \"$command ${COMP_WORDS[i]}\" in"]
    for command in commands:
        out.append(f"\t\t' {command['name']}') command='{command['name']}' ;;")
        for word, sub in children(command):
            out.append(f"\t\t'{command['name']} {word}') command='{sub['name']}' ;;")
    out += ["\t\t*) break ;;", "\t\tesac", "\tdone", "\tcase $command in",
            f"\t'') COMPREPLY=($(compgen -W '{' '.join(c['name'] for c in commands)} --help --version' -- \"$cur\")); return ;;"]
    for command in commands:
        if command["subcommands"]:
            words = " ".join(w for w, _ in children(command))
            out.append(f"\t'{command['name']}') COMPREPLY=($(compgen -W '{words} --help' -- \"$cur\")); return ;;")
    out.append("\tesac")
    out.append("\tcase \"$command:$prev\" in")
    for command in flat(commands):
        for option in command["options"]:
            if kind(option):
                names = [f"'{command['name']}:--{option['name']}'"]
                if option.get("letter"):
                    names.append(f"'{command['name']}:-{option['letter']}'")
                out.append(f"\t{' | '.join(names)}) _pale_words '{kind(option)}'; return ;;")
    out += ["\tesac", "\tcase $command in"]
    for command in flat(commands):
        words = " ".join("--" + o["name"] for o in command["options"])
        out += [f"\t'{command['name']}')", f"\t\tif [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '{words}' -- \"$cur\"))",
                f"\t\telse _pale_words '{operand_kind(command)}'; fi ;;"]
    out += ["\tesac", "}", "complete -F _pale pale"]
    return "\n".join(out) + "\n"


def zsh_quote(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_action(what):
    return {"file": "_files", "dir": "_files -/", "command": "_command_names -e", "run": "_pale_runs",
            "policy": "_pale_policies", "session": "_pale_sessions", "any": " "}.get(what) or "(" + what.replace("|", " ") + ")"


def zsh(commands):
    out = ["#compdef pale", "# zsh completion for pale; generated from the table of commands.", "",
           "_pale_runs() {", "\tlocal -a runs", f"\truns=(last ${{(f)\"$({RUNS} | head -50)\"}})", "\tcompadd -V runs -a runs", "}",
           "_pale_sessions() {", "\tlocal -a sessions", f"\tsessions=(last ${{(f)\"$({SESSIONS})\"}})", "\tcompadd -a sessions", "}",
           f"_pale_policies() {{ compadd {' '.join(SHIPPED)}; _files -g '*.(yaml|yml|json)(-.)' }}",
           "_pale_operands() { _files; _command_names -e }", "_pale_changes() { _pale_runs; _files }",
           "_pale_sessions_files() { _pale_sessions; _files }", ""]

    def arguments(command):
        specs = []
        for o in command["options"]:
            text = f"[{zsh_quote(o['help'])}]" + (f":{zsh_quote(o['argument'])}:{zsh_action(kind(o))}" if kind(o) else "")
            equals = "=" if kind(o) else ""
            specs.append(f"'*--{o['name']}{equals}{text}'")
            if o.get("letter"):
                specs.append(f"'*-{o['letter']}{'+' if kind(o) else ''}{text}'")
        operand = operand_kind(command)
        rest = {"command": "_pale_operands", "change": "_pale_changes", "session-file": "_pale_sessions_files"}.get(operand) or zsh_action(operand)
        specs.append(f"'*:operand:{rest}'")
        return "_arguments -s " + " ".join(specs)

    def choose(commands_, depth, name, indent):
        pad = "\t" * indent
        lines = [f"{pad}if (( CURRENT == {depth} )); then", f"{pad}\tlocal -a words", f"{pad}\twords=("]
        for word, command in commands_:
            lines.append(f"{pad}\t\t'{word}:{zsh_quote(command['summary'])}'")
        lines += [f"{pad}\t)", f"{pad}\t_describe command words", f"{pad}\treturn", f"{pad}fi", f"{pad}case $words[{depth}] in"]
        for word, command in commands_:
            lines.append(f"{pad}{word})")
            if command["subcommands"]:
                lines += choose(children(command), depth + 1, word, indent + 1)
            else:
                lines += [f"{pad}\tshift {depth - 1} words; (( CURRENT -= {depth - 1} ))", f"{pad}\t{arguments(command)}"]
            lines.append(f"{pad}\t;;")
        return lines + [f"{pad}esac"]

    out += ["_pale() {"] + choose([(c["name"], c) for c in commands], 2, "", 1) + ["}", "", '_pale "$@"']
    return "\n".join(out) + "\n"


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(commands):
    out = ["# fish completion for pale; generated from the table of commands.", "",
           "function __pale_state", "\tset -l dir $PALE_STATE_DIR", "\ttest -n \"$dir\"; or set dir /var/lib/pale",
           "\tif test -z \"$PALE_STATE_DIR\" -a (id -u) != 0", "\t\tset dir $HOME/.local/state/pale",
           "\t\ttest -n \"$XDG_STATE_HOME\"; and set dir $XDG_STATE_HOME/pale", "\tend", "\techo $dir", "end",
           "function __pale_runs", "\techo last", "\tcommand ls -1r (__pale_state)/runs 2>/dev/null | head -50", "end",
           "function __pale_sessions", "\techo last", "\tcommand ls -1 (__pale_state)/names 2>/dev/null", "end", "",
           "# Whether the words so far, options aside, begin with these; at the top: whether there are none.",
           "function __pale_at", "\tset -l words (commandline -opc)[2..-1]", "\tset -l plain",
           "\tfor word in $words", "\t\tstring match -q -- '-*' $word; and break", "\t\tset -a plain $word", "\tend",
           "\tif test (count $argv) -eq 0", "\t\ttest (count $plain) -eq 0", "\t\treturn", "\tend",
           "\ttest (count $plain) -ge (count $argv); and test \"$plain[1..\"(count $argv)\"]\" = \"$argv\"", "end",
           "function __pale_group", "\tset -l words (commandline -opc)[2..-1]", "\ttest \"$words\" = \"$argv\"", "end", "",
           "complete -c pale -f"]
    actions = {"file": "-F", "dir": "-xa '(__fish_complete_directories)'", "command": "-F", "run": "-xa '(__pale_runs)'",
               "policy": f"-Fa '{' '.join(SHIPPED)}'", "any": "-x"}
    for command in commands:
        out.append(f"complete -c pale -n __pale_at -a {command['name']} -d {fish_quote(command['summary'])}")
        for word, sub in children(command):
            out.append(f"complete -c pale -n '__pale_group {command['name']}' -a {word} -d {fish_quote(sub['summary'])}")
    for command in flat(commands):
        at = f"complete -c pale -n '__pale_at {command['name']}'"
        for o in command["options"]:
            letter = f" -s {o['letter']}" if o.get("letter") else ""
            what = kind(o)
            action = "" if not what else " -r " + (actions.get(what) or f"-xa '{what.replace('|', ' ')}'")
            out.append(f"{at}{letter} -l {o['name']}{action} -d {fish_quote(o['help'])}")
        operand = operand_kind(command)
        actions["change"] = "-Fa '(__pale_runs)'"
        actions["session"] = "-xa '(__pale_sessions)'"
        actions["session-file"] = "-Fa '(__pale_sessions)'"
        out.append(f"{at} {actions.get(operand) or '-xa ' + repr(operand.replace('|', ' '))}")
    return "\n".join(out) + "\n"


def install(commands, policy, version, man_dir, bash_dir, zsh_dir, fish_dir):
    files = {f"{man_dir}/man1/pale.1": man(commands, version, None),
             f"{man_dir}/man5/pale-policy.5": policy_man(policy, version),
             f"{bash_dir}/pale": bash(commands), f"{zsh_dir}/_pale": zsh(commands), f"{fish_dir}/pale.fish": fish(commands)}
    for command in commands:
        files[f"{man_dir}/man1/pale-{command['name']}.1"] = man(commands, version, command["name"])
    for name, text in files.items():
        path = pathlib.Path(os.environ.get("DESTDIR", "") + name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)


def main():
    what, path, *rest = sys.argv[1:]
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if what == "policy-man":
        sys.stdout.write(policy_man(text, rest[0]))
        return
    commands = json.loads(text)
    if what == "man":
        sys.stdout.write(man(commands, rest[0], rest[1] if len(rest) > 1 else None))
    elif what == "install":
        install(commands, pathlib.Path(rest[0]).read_text(encoding="utf-8"), *rest[1:])
    else:
        sys.stdout.write({"bash": bash, "zsh": zsh, "fish": fish}[what](commands))


if __name__ == "__main__":
    main()
