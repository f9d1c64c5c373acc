# JSON to a file and back, with an atomic replacement.
import json
import os

config = {"name": "démo", "values": [1, 2.5, None, True], "nested": {"k": "v"}}
with open("config.json.tmp", "w", encoding="utf-8") as f:
    json.dump(config, f, ensure_ascii=False, indent=2, sort_keys=True)
    f.flush()
    os.fsync(f.fileno())
os.replace("config.json.tmp", "config.json")
with open("config.json", encoding="utf-8") as f:
    again = json.load(f)
assert again == config
print(open("config.json", encoding="utf-8").read())
