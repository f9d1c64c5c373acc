"""Does not end by itself: `spin` keeps a processor busy for ever, `hoard` eats memory as well."""
import sys

hoard = []
while True:
    if sys.argv[1:] == ["hoard"]:
        hoard.append(bytearray(b"x" * (4 << 20)))
