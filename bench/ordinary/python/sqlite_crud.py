# sqlite3: create, insert, update, query, delete.
import sqlite3

with sqlite3.connect("shop.db") as db:
    db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL)")
    db.executemany("INSERT INTO item (name, price) VALUES (?, ?)", [("pen", 1.5), ("ink", 7.25), ("pad", 3)])
    db.execute("UPDATE item SET price = price * 2 WHERE name = ?", ("pen",))
    db.execute("DELETE FROM item WHERE name = 'pad'")
db.close()
db = sqlite3.connect("shop.db")
db.row_factory = sqlite3.Row
for row in db.execute("SELECT * FROM item ORDER BY price"):
    print(dict(row))
try:
    db.execute("INSERT INTO item (name) VALUES ('ink')")
except sqlite3.IntegrityError as e:
    print(e)
