"""The resolver of the test's internet: just enough DNS, with answers that can be made to misbehave.

A record: {"a": [...], "aaaa": [...], "cname": name, "ttl": seconds, "how": ...}, or
{"turns": [record, record, ...]}: one for each lookup, the last for ever. how:
  truncate   over UDP only the flag TC: the client must come again over TCP
  slow       half a second late
  drop       no answer at all
  servfail   the server's fault
"""
import socket
import struct
import threading
import time

A, NS, CNAME, SOA, TXT, AAAA, HTTPS, ANY = 1, 2, 5, 6, 16, 28, 65, 255
TYPES = {A: "A", CNAME: "CNAME", AAAA: "AAAA", TXT: "TXT", HTTPS: "HTTPS"}


def encode(name):
    return b"".join(bytes([len(x)]) + x for x in name.encode().split(b".") if x) + b"\0"


def question(packet):
    """The name asked for (as it came, with its case), its type, and where the question ends."""
    at, labels = 12, []
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]])
        at += 1 + packet[at]
    kind, = struct.unpack_from("!H", packet, at + 1)
    return b".".join(labels).decode("latin-1"), kind, at + 5


class Resolver:
    def __init__(self, names, record):
        self.names = {n.lower(): dict(r) for n, r in names.items()}
        self.record = record
        self.lock = threading.Lock()

    def set(self, name, record):
        with self.lock:
            self.names[name.lower()] = record

    def find(self, name, kind):
        with self.lock:
            found = self.names.get(name)
            if found and "turns" in found:
                # A turn is one lookup of either family: both are asked for at once.
                turns = found["turns"]
                if kind == A or not any("a" in t for t in turns):
                    found["asked"] = found.get("asked", 0) + 1
                    return turns[min(found["asked"], len(turns)) - 1]
                return turns[min(max(found.get("asked", 0), 1), len(turns)) - 1]
            return found

    def answer(self, packet, tcp):
        name, kind, end = question(packet)
        self.record("lookup", name=name, type=TYPES.get(kind, kind), tcp=tcp)
        answers, code, seen, at = [], 0, set(), name.lower()
        while True:
            found = self.find(at, kind)
            if found is None:
                code = 3
                break
            if "cname" in found and at not in seen:
                answers.append((at, CNAME, found.get("ttl", 60), encode(found["cname"])))
                seen.add(at)
                at = found["cname"].lower()
                continue
            break
        found = found or {}
        how = found.get("how")
        if how == "drop":
            return None
        if how == "slow":
            time.sleep(0.5)
        if how == "servfail":
            code = 2
        if kind in (A, ANY):
            answers += [(at, A, found.get("ttl", 60), socket.inet_pton(socket.AF_INET, a)) for a in found.get("a", [])]
        if kind in (AAAA, ANY):
            answers += [(at, AAAA, found.get("ttl", 60), socket.inet_pton(socket.AF_INET6, a)) for a in found.get("aaaa", [])]
        body = b"".join(encode(n) + struct.pack("!HHIH", t, 1, ttl, len(data)) + data for n, t, ttl, data in answers)
        flags = 0x8580 | code
        count = len(answers)
        if not tcp and (how == "truncate" or end + len(body) > 512):
            flags, count, body = flags | 0x200, 0, b""
        return packet[:2] + struct.pack("!HHHHH", flags, 1, count, 0, 0) + packet[12:end] + body

    def udp(self, s):
        while True:
            packet, peer = s.recvfrom(4096)
            threading.Thread(target=self.one_udp, args=(s, packet, peer), daemon=True).start()

    def one_udp(self, s, packet, peer):
        try:
            reply = self.answer(packet, False)
            if reply:
                s.sendto(reply, peer)
        except (IndexError, struct.error, OSError) as e:
            self.record("broken-lookup", error=repr(e))

    def tcp(self, s):
        f = s.makefile("rb")
        while True:
            length = f.read(2)
            if len(length) < 2:
                return
            reply = self.answer(f.read(struct.unpack("!H", length)[0]), True)
            if reply:
                s.sendall(struct.pack("!H", len(reply)) + reply)
