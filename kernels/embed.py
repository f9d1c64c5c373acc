"""Writes the drivers as C arrays that end in a NUL: embed.py OUTPUT KERNEL/driver.X..."""
import os
import sys
from binascii import b2a_base64
from importlib.util import MAGIC_NUMBER
from marshal import dumps


def packed(source, magic=MAGIC_NUMBER):
    """A driver in Python, with its bytecode for the Python that runs this; another one compiles it.

    The interpreter keeps no bytecode of a script, and compiling a driver takes it almost as long as
    starting.
    """
    code = b2a_base64(dumps(compile(source, "<pale>", "exec", dont_inherit=True)), newline=False)
    return f"""\
from binascii import a2b_base64
from _frozen_importlib_external import MAGIC_NUMBER
if MAGIC_NUMBER == {magic!r}:
    from marshal import loads
    code = loads(a2b_base64({code!r}))
else:
    code = compile(a2b_base64({b2a_base64(source, newline=False)!r}), "<pale>", "exec", 0, True)
exec(code)
""".encode()


def main(output, paths):
    with open(output + ".new", "w") as out:
        out.write("/* Generated from kernels/: do not edit. */\n")
        for path in paths:
            name = os.path.basename(os.path.dirname(path))
            with open(path, "rb") as f:
                data = f.read()
            if path.endswith(".py"):
                data = packed(data)
            assert b"\0" not in data, path
            out.write(f"static const unsigned char kernel_{name}[] = {{\n")
            for i in range(0, len(data), 16):
                out.write(",".join(str(b) for b in data[i:i + 16]) + ",\n")
            out.write("0};\n")
    os.replace(output + ".new", output)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
