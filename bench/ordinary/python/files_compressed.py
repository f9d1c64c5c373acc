# gzip, bz2 and lzma.
import bz2
import gzip
import lzma

data = b"the same words again and again\n" * 2000
for name, module in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
    with module.open(f"data.{name}", "wb") as f:
        f.write(data)
    with module.open(f"data.{name}", "rb") as f:
        assert f.read() == data
    with open(f"data.{name}", "rb") as f:
        print(name, len(f.read()) < len(data) // 10)
