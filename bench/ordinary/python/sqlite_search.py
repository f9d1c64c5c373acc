# sqlite3: window functions, JSON, functions of one's own, a backup.
import sqlite3

db = sqlite3.connect(":memory:")
db.create_function("vowels", 1, lambda s: sum(c in "aeiou" for c in s))
db.execute("CREATE TABLE w (t TEXT, n INT)")
db.executemany("INSERT INTO w VALUES (?, ?)", [("sequoia", 5), ("rhythm", 2), ("audio", 9)])
print(db.execute("SELECT t, vowels(t), rank() OVER (ORDER BY n) FROM w ORDER BY t").fetchall())
print(db.execute("""SELECT json_extract('{"a": [1, 2, 3]}', '$.a[1]')""").fetchone())
db.commit()
target = sqlite3.connect("copy.db")
db.backup(target)
print(target.execute("SELECT max(n) FROM w").fetchone())
