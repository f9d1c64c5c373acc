# Text: wrapping, templates, tables, case, unicode.
import string
import textwrap
import unicodedata

text = "The quick brown fox jumps over the lazy dog. " * 3
print(textwrap.fill(text, 40, initial_indent="* ", subsequent_indent="  "))
print(string.Template("$who owes ${amount}€").substitute(who="Ann", amount=5))
for name, price in (("tea", 2.5), ("coffee", 13)):
    print(f"{name:<10}|{price:>8.2f}|{price:e}")
print(unicodedata.normalize("NFKD", "déjà vu").encode("ascii", "ignore").decode(), unicodedata.name("€"))
