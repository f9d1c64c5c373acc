# sqlite3 with a write-ahead log (shared memory) and two threads.
import sqlite3
import threading

db = sqlite3.connect("w.db")
print(db.execute("PRAGMA journal_mode=WAL").fetchone()[0])
db.execute("CREATE TABLE n (i INTEGER)")
db.commit()


def write(start):
    own = sqlite3.connect("w.db", timeout=20)
    for i in range(start, start + 50):
        with own:
            own.execute("INSERT INTO n VALUES (?)", (i,))
    own.close()


threads = [threading.Thread(target=write, args=(s,)) for s in (0, 50)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(db.execute("SELECT count(*), sum(i) FROM n").fetchone())
