"""Who is where in the test's internet: addresses, names, and the files of the host that say so."""
import shutil
import subprocess
import tempfile
import urllib.parse

NET4, NET6 = "93.184.216.", "2606:2800:220:1::"
HOST4 = "81.2.69.142"  # a public-looking address of the host's own
RESOLVER4, RESOLVER6 = NET4 + "53", NET6 + "53"
RESOLV_CONF = f"nameserver {RESOLVER4}\noptions timeout:2 attempts:2\n"
HOSTS = ("127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
         f"{NET4}20 from-hosts.example.com\n127.0.0.1 loop-from-hosts.example.com\n")

# Everything below arrives at the same servers, which look at the name they are called by.
NETWORKS4 = [NET4 + "0/24", "169.254.0.0/16", "10.20.30.0/24", "172.16.5.0/24", "192.168.99.0/24", "100.100.0.0/16",
             "198.51.100.0/24", "8.8.8.8/32", "1.1.1.1/32"]
NETWORKS6 = [NET6 + "/64", "fd00:ec2::254/128", "fdaa:bb::/64", "2001:4860:4860::8888/128", "64:ff9b::/96"]

METADATA4, METADATA6 = "169.254.169.254", "fd00:ec2::254"


def npm_registry():
    """The host that npm asks when nobody has told it another."""
    npm = shutil.which("npm", path="/usr/local/bin:/usr/bin:/bin")
    if not npm:
        return "packages.npmjs.org"
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home}
        out = subprocess.run([npm, "config", "get", "registry"], env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True)
    return urllib.parse.urlsplit(out.stdout.strip()).hostname or "packages.npmjs.org"


NPM = npm_registry()

# name -> what the resolver says: the last octet (hex group) of both addresses, or a record.
_hosts = {
    # The many places of an ordinary internet.
    "www.example.com": 10, "api.example.com": 11, "other.example.com": 12, "deep.sub.example.com": 13,
    "example.com": 14, "example.org": 15, "www.example.org": 16, "evil.example.net": 17, "git.example.com": 18,
    "ws.example.com": 19, "grpc.example.com": 21, "h1only.example.com": 22, "expired.example.com": 23,
    "selfsigned.example.com": 24, "wrongname.example.com": 25, "mtls.example.com": 26, "echo.example.com": 27,
    "smtp.example.com": 28, "udp.example.com": 29, "notexample.com": 30, "www.notexample.com": 31,
    "pinned.example.com": 32, "badexample.com": 33, "xn--bcher-kva.example.com": 34, "under_score.example.com": 35,
    # What the presets name.
    "pypi.org": 40, "files.pythonhosted.org": 41, NPM: 42, "github.com": 43, "api.github.com": 44,
    "codeload.github.com": 45, "raw.githubusercontent.com": 46, "objects.githubusercontent.com": 47,
    "index.crates.io": 48, "static.crates.io": 49, "crates.io": 50, "proxy.golang.org": 51, "sum.golang.org": 52,
    "mirror.debian.org": 54, "huggingface.co": 56, "cdn-lfs.huggingface.co": 57,
    "ssh.github.com": 58, "gist.github.com": 59, "uploads.github.com": 60,
}


def both(number, ttl=60):
    return {"a": [NET4 + str(number)], "aaaa": [f"{NET6}{number:x}"], "ttl": ttl}


NAMES = {name: both(number) for name, number in _hosts.items()}
NAMES.update({
    "v4only.example.com": {"a": [NET4 + "70"], "ttl": 60},
    "v6only.example.com": {"aaaa": [NET6 + "71"], "ttl": 60},
    "brokenv6.example.com": {"a": [NET4 + "72"], "aaaa": ["2606:2800:dead::1"], "ttl": 60},  # dropped in silence
    "brokenv4.example.com": {"a": ["198.18.99.99"], "aaaa": [NET6 + "73"], "ttl": 60},
    "many.example.com": {"a": [NET4 + str(n) for n in range(100, 160)], "ttl": 60},  # too much for 512 bytes
    "truncated.example.com": {"a": [NET4 + "74"], "ttl": 60, "how": "truncate"},
    "slow.example.com": {"a": [NET4 + "75"], "ttl": 60, "how": "slow"},
    "mute.example.com": {"how": "drop"},
    "broken.example.com": {"how": "servfail"},
    "cname.example.com": {"cname": "www.example.com", "ttl": 60},
    "cname-out.example.com": {"cname": "evil.example.net", "ttl": 60},
    "cname-loop.example.com": {"cname": "cname-loop.example.com", "ttl": 60},
    "cdn.example.com": {"turns": [{"a": [NET4 + "76"], "ttl": 0}, {"a": [NET4 + "77"], "ttl": 0}]},
    "closed.example.com": {"a": [NET4 + "78"], "ttl": 60},  # and nobody listens on port 444
    # Names that lead where nobody may go.
    "to-loopback.example.com": {"a": ["127.0.0.1"], "aaaa": ["::1"], "ttl": 60},
    "to-metadata.example.com": {"a": [METADATA4], "aaaa": [METADATA6], "ttl": 60},
    "to-private.example.com": {"a": ["10.20.30.40"], "ttl": 60},
    "to-cgnat.example.com": {"a": ["100.100.1.1"], "ttl": 60},
    "to-host.example.com": {"a": [HOST4], "ttl": 60},
    "to-host6.example.com": {"aaaa": ["2a01:4f8:1::2"], "ttl": 60},
    "to-hosts-lan.example.com": {"a": ["192.168.77.2"], "ttl": 60},
    "to-mapped.example.com": {"aaaa": ["::ffff:169.254.169.254"], "ttl": 60},
    "to-nat64.example.com": {"aaaa": ["64:ff9b::a9fe:a9fe"], "ttl": 60},
    "to-6to4.example.com": {"aaaa": ["2002:a9fe:a9fe::1"], "ttl": 60},
    "to-ula.example.com": {"aaaa": ["fdaa:bb::1"], "ttl": 60},
    "to-zero.example.com": {"a": ["0.0.0.0"], "aaaa": ["::"], "ttl": 60},
    "to-multicast.example.com": {"a": ["224.0.0.1"], "ttl": 60},
    "to-synthetic.example.com": {"a": ["198.18.0.1"], "ttl": 60},
    # First a good address, then a bad one; and one of each in the same answer.
    "rebind.example.com": {"turns": [{"a": [NET4 + "79"], "ttl": 0}, {"a": ["127.0.0.1"], "ttl": 0}]},
    "mixed.example.com": {"a": ["127.0.0.1", NET4 + "80"], "ttl": 0},
})

# Names in the certificate of every HTTPS server.
CERTIFICATE_NAMES = sorted({"*." + n.split(".", 1)[1] for n in NAMES if n.count(".") >= 2} |
                           {n for n in NAMES if n.count(".") == 1} | {"example.com"} - {"wrongname.example.com"})
