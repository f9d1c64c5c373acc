# Build a small tree with pathlib and search it.
from pathlib import Path

base = Path("project")
for name in ("src/main.py", "src/util/text.py", "docs/readme.md", "data/a.csv"):
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {name}\n")
for path in sorted(base.rglob("*.py")):
    print(path, path.stat().st_size, path.suffix, path.read_text().strip())
(base / "docs/readme.md").rename(base / "README.md")
print(sorted(p.name for p in base.iterdir()))
