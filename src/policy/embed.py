#!/usr/bin/env python3
"""Writes a C table of policies' texts. usage: embed.py OUTPUT TABLE FILE.yaml..."""
import os
import sys


def literal(text):
    out = []
    for line in text.splitlines(keepends=True):
        line = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        out.append('\t "%s"' % line)
    return "\n".join(out)


def main():
    output, table, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(output, "w", encoding="utf-8") as f:
        f.write('/* Made by embed.py from policies/; do not edit. */\n#include "policy/model.h"\n\n')
        f.write("const struct policy_shipped %s[] = {\n" % table)
        for name in files:
            with open(name, encoding="ascii") as source:
                text = source.read()
            f.write('\t{"%s",\n%s},\n' % (os.path.basename(name)[:-len(".yaml")], literal(text)))
        f.write("\t{0},\n};\n")


main()
