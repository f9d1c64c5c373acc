"""Writes the drivers as C arrays that end in a NUL: embed.py OUTPUT KERNEL/driver.X..."""
import os
import sys

with open(sys.argv[1] + ".new", "w") as out:
    out.write("/* Generated from kernels/: do not edit. */\n")
    for path in sys.argv[2:]:
        name = os.path.basename(os.path.dirname(path))
        data = open(path, "rb").read()
        assert b"\0" not in data, path
        out.write(f"static const unsigned char kernel_{name}[] = {{\n")
        for i in range(0, len(data), 16):
            out.write(",".join(str(b) for b in data[i : i + 16]) + ",\n")
        out.write("0};\n")
os.replace(sys.argv[1] + ".new", sys.argv[1])
