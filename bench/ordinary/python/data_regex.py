# Parse a log with regular expressions.
import re
from collections import Counter

log = """10.0.0.1 - [01/Jan/2024] "GET /a HTTP/1.1" 200 512
10.0.0.2 - [01/Jan/2024] "POST /b HTTP/1.1" 500 12
10.0.0.1 - [02/Jan/2024] "GET /c?x=1 HTTP/1.1" 404 0
"""
line = re.compile(r'(?P<ip>\S+) - \[(?P<day>[^]]+)\] "(?P<method>\w+) (?P<path>\S+)[^"]*" (?P<status>\d{3})')
rows = [m.groupdict() for m in line.finditer(log)]
print(Counter(r["ip"] for r in rows).most_common(), [r["path"] for r in rows if int(r["status"]) >= 400])
print(re.sub(r"(\d+)\.(\d+)", lambda m: m[2] + "." + m[1], "1.2 3.4"), re.split(r"[,;]\s*", "a, b;c"))
