"""TLS hellos as no library would make them."""
import os
import socket
import struct
import sys


def extension(kind, data):
    return struct.pack("!HH", kind, len(data)) + data


def server_name(name):
    return extension(0, struct.pack("!HBH", len(name) + 3, 0, len(name)) + name)


def client_hello(name=None, more=b"", alpn=None, raw=False):
    """A hello that an ordinary server answers. name: None: no server_name at all; a list: several."""
    extensions = b""
    if isinstance(name, list):
        entries = b"".join(struct.pack("!BH", 0, len(n)) + n for n in name)
        extensions += extension(0, struct.pack("!H", len(entries)) + entries)
    elif name is not None:
        extensions += server_name(name)
    extensions += extension(10, struct.pack("!HHH", 4, 0x1d, 0x17)) + extension(11, b"\1\0")
    extensions += extension(13, struct.pack("!HHHH", 6, 0x0403, 0x0804, 0x0401)) + extension(43, b"\2\3\3") + extension(23, b"")
    if alpn:
        extensions += extension(16, struct.pack("!HB", len(alpn) + 1, len(alpn)) + alpn)
    extensions += more
    body = (b"\3\3" + os.urandom(32) + b"\0" + struct.pack("!HHHH", 6, 0xc02b, 0xc02f, 0xc009) + b"\1\0" +
            struct.pack("!H", len(extensions)) + extensions)
    message = b"\1" + struct.pack("!I", len(body))[1:] + body
    return message if raw else record(message)


def record(data, size=16384):
    return b"".join(b"\x16\3\1" + struct.pack("!H", len(data[i:i + size])) + data[i:i + size] for i in range(0, len(data), size))
