# dbm, a key-value store that is locked, and array.
import array
import dbm.dumb
import json

with dbm.dumb.open("kv", "c") as db:
    for word in ("red", "green", "blue"):
        db[word] = json.dumps({"length": len(word)})
with dbm.dumb.open("kv", "r") as db:
    print(sorted((k.decode(), json.loads(db[k])["length"]) for k in db.keys()))
numbers = array.array("d", (x / 2 for x in range(5)))
with open("numbers.bin", "wb") as f:
    numbers.tofile(f)
again = array.array("d")
with open("numbers.bin", "rb") as f:
    again.fromfile(f, 5)
print(again.tolist(), again.itemsize, memoryview(again)[1:3].tolist())
