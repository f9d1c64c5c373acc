# Write a text file, append to it, read it back line by line.
with open("notes.txt", "w", encoding="utf-8") as f:
    f.write("first line\nsecond line\n")
with open("notes.txt", "a", encoding="utf-8") as f:
    f.write("third: äöü €\n")
with open("notes.txt", encoding="utf-8") as f:
    for number, line in enumerate(f, 1):
        print(number, line.rstrip())
