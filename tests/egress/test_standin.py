"""The fixture itself: a test of egress means nothing if its servers, names and canaries don't work.
Everything here is done by plain clients, without Pale. usage: test_standin.py"""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import standin
from tap import *
from world import zone

begun = time.monotonic()
before = sorted(x for x in os.listdir("/tmp") if x.startswith("pale-standin."))
namespaces = [os.readlink(f"/proc/self/ns/{n}") for n in ("net", "mnt")]
try:
    world = standin.enter()
except standin.NotHere as e:
    skip("a test internet", str(e), "egress")
    done()
check("it is there at once", time.monotonic() - begun < 10, time.monotonic() - begun)
check("in namespaces of its own", all(a != os.readlink(f"/proc/self/ns/{n}")
                                      for a, n in zip(namespaces, ("net", "mnt"))))


def sh(line, **more):
    p = world.run(["sh", "-c", line], env={**os.environ, "HOME": world.place, "PLACE": world.place, "ME": world.ssh_user,
                                           "ALL_PROXY": "", "GIT_CONFIG_NOSYSTEM": "1", **more})
    return (p.stdout + p.stderr).decode(errors="replace").strip()


@case
def names():
    same("an A record", sh("dig +short www.example.com"), zone.NET4 + "10")
    same("an AAAA record", sh("dig +short +tcp AAAA www.example.com"), zone.NET6 + "a")
    check("no such name", "NXDOMAIN" in sh("dig nothing.example.com"))
    check("too much for a datagram comes over TCP", sh("dig +short many.example.com").count("\n") > 50)
    same("truncated", sh("dig +short truncated.example.com"), zone.NET4 + "74")
    same("turns", sh("dig +short rebind.example.com; dig +short rebind.example.com; dig +short rebind.example.com").split(),
         [zone.NET4 + "79", "127.0.0.1", "127.0.0.1"])
    world.answer("www.example.org", a=["93.184.216.99"], ttl=1)
    same("changed while it runs", sh("dig +short www.example.org"), "93.184.216.99")
    same("by the host's file", sh("getent hosts from-hosts.example.com").split()[:1], [zone.NET4 + "20"])
    check("lookups are told", world.seen("lookup", name="nothing.example.com"))


@case
def web():
    same("HTTP", sh("curl -s http://www.example.com/x"), "hello from www.example.com: GET /x by HTTP/1.1")
    same("HTTPS, HTTP/2, verified", sh("curl -sS https://www.example.com/x"), "hello from www.example.com: GET /x by HTTP/2")
    same("HTTPS, HTTP/1", sh("curl -sS --http1.1 https://www.example.com/"), "hello from www.example.com: GET / by HTTP/1.1")
    same("IPv6", sh("curl -sS -6 https://v6only.example.com/").split(":")[0], "hello from v6only.example.com")
    for name in ("expired", "selfsigned", "wrongname"):
        check(f"a bad certificate: {name}", "SSL" in sh(f"curl -sS https://{name}.example.com/"))
    same("a client's certificate", sh("curl -sS -E $PLACE/tls/client.pem https://mtls.example.com/").split(":")[0],
         "hello from mtls.example.com")
    check("without it", "hello" not in sh("curl -sS https://mtls.example.com/"))
    same("a large body", sh("curl -sS https://www.example.com/bytes/3000000 | wc -c"), "3000000")
    same("a streamed one", sh("curl -sS --http1.1 https://www.example.com/stream/3").split("\n")[-1], "line 2")
    same("posted", sh("curl -sS -d hello https://www.example.com/echo"), "hello")
    check("requests are told", world.seen("request", host="www.example.com", path="/x", version="HTTP/2"))


@case
def the_others():
    same("server speaks first", sh("printf 'a\\nquit\\n' | nc -N smtp.example.com 2525").splitlines()[:2],
         ["220 smtp.example.com ready", "250 a"])
    same("echo", sh("echo hi | nc -N echo.example.com 7"), "hi")
    same("UDP", sh("echo hi | nc -u -w1 udp.example.com 7"), "hi")
    check("a port where nobody listens", "refused" in sh("nc -zv closed.example.com 444"))
    ssh = "ssh -i $PLACE/ssh/client -o UserKnownHostsFile=$PLACE/ssh/known_hosts"
    same("ssh", sh(f"{ssh} $ME@git.example.com echo in"), "in")
    same("git over https", sh("cd $HOME; git clone -q https://github.com/a/project.git a; cat a/README"),
         "a repository of the test's internet")
    same("git over ssh", sh("cd $HOME; git clone -q ssh://$ME@git.example.com$PLACE/git/project.git b; cat b/README",
                            GIT_SSH_COMMAND=ssh.replace("$PLACE", world.place)), "a repository of the test's internet")
    check("a push", "main -> main" in sh("cd $HOME/a && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x && git push 2>&1"))
    check("pip's index", zone.NAMES["pypi.org"] and "standin_package" in sh("curl -sS https://pypi.org/simple/standin-package/"))
    check("npm's", "dist-tags" in sh(f"curl -sS https://{zone.NPM}/standin-package"))
    check("an API", "It works" in sh("curl -sS https://api.github.com/repos/a/b/issues"))


@case
def canaries():
    for where in ("127.0.0.1", "[::1]", zone.HOST4, "192.168.77.2", "[2a01:4f8:1::2]"):
        same(f"the host's own service at {where}", sh(f"curl -s http://{where}:8081/"), "HOST-CANARY")
    same("told", len(world.seen("canary")), 5)
    same("metadata", sh("curl -s http://169.254.169.254/"), "METADATA-CANARY")
    world.clear()
    same("forgotten", world.seen(), [])


@case
def nobody_else_sees_it():
    p = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "standin.py"), "pwd"],
                       capture_output=True, check=False, env={**os.environ, "TMPDIR": world.place})
    same("run as a program, in a world of its own", (p.returncode, p.stderr), (0, b""))
    same("nothing is left", [x for x in os.listdir(world.place) if x.startswith("pale-standin.")], [])


done()
