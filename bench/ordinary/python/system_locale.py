# Locales and encodings.
import locale
import sys

locale.setlocale(locale.LC_ALL, "C.UTF-8")
print(locale.getpreferredencoding(), sys.getfilesystemencoding(), sys.stdout.encoding.lower())
print(sorted(["éclair", "zebra", "apple"], key=locale.strxfrm))
with open("naïve-文件.txt", "w") as f:
    f.write("ünïcödé")
print(open("naïve-文件.txt").read(), "ß".upper(), "İ".lower().encode())
print(b"caf\xe9".decode("latin-1"), "café".encode("utf-16-le"))
