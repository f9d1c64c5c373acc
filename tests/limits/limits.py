#!/usr/bin/python3
"""Each limit of the policy, exceeded for real through the command line, as whoever runs this.

usage: limits.py PALE

For each: the outcome, the figures in --json, that the box was gone within 100 ms of the limit by the
times in the audit log, and that the same program gets through where the limit is out of its way. Then a
neighbour: a box that wants to run each 10 ms while another does its worst. Prints TAP.
"""
import json, os, signal, shutil, subprocess, sys, tempfile, time
from datetime import datetime

PALE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.environ.get('PALE_BIN', 'pale')
MIB = 1 << 20
SLOW = float(os.environ.get('PALE_TEST_SLOW', '1'))  # how many times slower than a real machine this one is
GONE_MS = 100 * SLOW
ROOT = os.geteuid() == 0
number = failed = 0


def report(name, problems):
    global number, failed
    number += 1
    failed += bool(problems)
    print(f'{"not ok" if problems else "ok"} {number} - {name}')
    for p in problems:
        print('#  ' + str(p).replace('\n', '\n#  '))
    sys.stdout.flush()


def pale(*args, timeout=60):
    return subprocess.run([PALE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout)


class Run:
    """One box: what came out of it, and when."""

    def __init__(self, options, code, lang='python'):
        command = ['-c', code, '--lang', lang] if lang else ['--', *code]
        start = time.monotonic()
        r = pale('run', '--json', '-q', *options, *command)
        self.elapsed_ms = (time.monotonic() - start) * 1000
        self.status, self.stderr = r.returncode, r.stderr.decode(errors='replace')
        try:
            self.json = json.loads(r.stdout)
        except ValueError:
            self.json = {}
        self.outcome = self.json.get('outcome', f'no result: {self.stderr[:400]}')
        self.usage = self.json.get('usage', {})
        self.hit = {h['limit']: h for h in self.json.get('limits_hit', [])}
        self.out = self.json.get('stdout', '')

    def events(self):
        text = pale('audit', 'show', self.json['audit_id'], '--json').stdout.decode()
        return [json.loads(line) for line in text.splitlines()]

    def gone_ms(self, limit):
        """From the event of the limit to that of the end, which is written when the box is dead."""
        at = {}
        for e in self.events():
            t = datetime.fromisoformat(e['time'].replace('Z', '+00:00')).timestamp() * 1000
            if e['event'] == 'box.end' or (e['event'] == 'limit.hit' and e['limit'] == limit):
                at.setdefault(e['event'], t)
        return at['box.end'] - at['limit.hit']


def ended(name, options, code, limit, outcome=None, lang='python', checks=()):
    """The limit ends the box: outcome, figures, exit status, and the time it took."""
    for attempt in range(3):  # what depends on time only: the machine may be busy with others
        r = Run(options, code, lang)
        p = []
        if r.outcome != (outcome or limit):
            p.append(f'outcome {r.outcome!r}: {r.json.get("summary")} {r.stderr[:300]} {r.json.get("stderr", "")[-300:]}')
        elif limit not in r.hit:
            p.append(f'limits_hit has no {limit}: {r.json.get("limits_hit")}')
        else:
            h = r.hit[limit]
            p += [f'status {r.status}'] if r.status != 124 else []
            p += [f'not marked as what ended it: {h}'] if not h['ended'] else []
            p += [f'used {h["used"]} of {h["max"]}'] if h['used'] < h['max'] * 0.95 else []
        if p:
            break
        p += [m for m in (c(r, h) for c in checks) if m]
        if p:
            continue
        late = r.gone_ms(limit)
        if late <= GONE_MS:
            break
        p.append(f'gone after {late:.0f} ms')
    report(name, p)
    return r


def passes(name, options, code, lang='python', checks=()):
    """With the limit out of its way, the same program ends by itself: the test before can fail."""
    r = Run(options, code, lang)
    p = [] if r.outcome == 'exit' and r.status == 0 else [f'{r.outcome} {r.status}: {r.stderr[-300:]} '
                                                           f'{r.json.get("stderr", "")[-300:]}']
    p += [f'{h} was hit' for h in r.hit]
    p += [m for m in (c(r) for c in checks) if m]
    report(name, p)


def refused(name, options, code, limit, want, lang='python'):
    """The kernel refuses what goes over, the program sees the ordinary error and the run goes on."""
    r = Run(options, code, lang)
    p = [] if r.outcome == 'exit' and r.out.strip() == want else [
        f'outcome {r.outcome!r}, printed {r.out.strip()[-300:]!r} instead of {want!r}; {r.json.get("stderr", "")[-300:]}']
    if limit and limit not in r.hit:
        p.append(f'limits_hit has no {limit}: {r.json.get("limits_hit")}')
    elif limit and r.hit[limit]['ended']:
        p.append('it is said to have ended the run')
    report(name, p)


# ---------------------------------------------------------------- time

def test_time():
    ended('wall: a sleeper', ['--timeout', '300ms'], 'import time; time.sleep(20)', 'wall', 'wall time',
          checks=[lambda r, h: f'{r.usage["wall_ms"]} ms' if r.usage['wall_ms'] > 300 + GONE_MS else ''])
    ended('wall: children in sessions of their own that ignore every signal', ['--timeout', '400ms'], '''
import os, signal, time
for s in range(1, 32):
    if s not in (9, 17, 19): signal.signal(s, signal.SIG_IGN)
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        time.sleep(20)
time.sleep(20)''', 'wall', 'wall time')
    passes('wall: a shorter sleep', ['--timeout', '10s'], 'import time; time.sleep(.05)')
    ended('cpu: one process', ['--cpu-time', '300ms'], 'while True: pass', 'cpu', 'cpu time',
          checks=[lambda r, h: f'{h["used"]} ms of 300' if h['used'] > 300 + GONE_MS else ''])
    ended('cpu: spread over children that come and go', ['--cpu-time', '400ms'], '''
import os, time
while True:
    if os.fork() == 0:
        t = time.process_time()
        while time.process_time() - t < .02: pass
        os._exit(0)
    os.wait()''', 'cpu', 'cpu time')
    passes('cpu: waiting is free', ['--cpu-time', '2s'], 'import time; time.sleep(.5)',
           checks=[lambda r: f'{r.usage["cpu_ms"]} ms' if r.usage['cpu_ms'] > 400 * min(SLOW, 4.9) else ''])
    # Four that spin for a wall-clock second get no more than the share between them.
    r = Run(['--cpus', '1', '--cpu-time', '20s'], '''
import os, time
for _ in range(4):
    if os.fork() == 0:
        t = time.monotonic()
        while time.monotonic() - t < 1: pass
        os._exit(0)
for _ in range(4): os.wait()''')
    busy = r.usage.get('cpu_ms', 0) / max(r.usage.get('wall_ms', 1), 1)
    report('cpus: four that spin share one processor',
           [f'{r.outcome}, {busy:.2f} processors'] if r.outcome != 'exit' or not .05 < busy < 1.25 + (SLOW > 1) / 4 else [])


# ---------------------------------------------------------------- memory

ANONYMOUS = 'x = [bytearray(b"x" * (1 << 20)) for _ in range({mib})]'
SHARED = '''
import mmap
m = mmap.mmap(-1, {mib} << 20)
for i in range({mib}): m[i << 20:(i + 1) << 20] = b"x" * (1 << 20)'''
MEMFD = '''
import os
for _ in range({mib} // 16):
    f = os.memfd_create("x")
    os.write(f, b"x" * (16 << 20))'''
MANY = '''
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(b"x" * ({mib} // 8 << 20))
        time.sleep({sleep})
        os._exit(0)
for _ in range(8): os.wait()'''
TMPFS = '''
for i in range({mib} // 16): open(f"{dir}/x{{i}}", "wb").write(b"x" * (16 << 20))
import time; time.sleep({sleep})'''


def test_memory():
    mem = ['--memory', '96MiB', '--disk', '512MiB']
    over = [lambda r, h: f'{h["used"] // MIB} MiB of 96 before it was seen' if h['used'] > 160 * MIB else '']
    for name, code in (('anonymous', ANONYMOUS), ('shared', SHARED), ('memory files that nobody maps', MEMFD),
                       ('eight processes together', MANY), ('/tmp', TMPFS), ('/dev/shm', TMPFS)):
        args = {'mib': 320, 'sleep': 5, 'dir': name}
        ended(f'memory: {name}', mem, code.format(**args), 'memory', checks=over)
        args.update(mib=32, sleep=0)
        passes(f'memory: {name}, a little', mem, code.format(**args))
    passes('memory: what forked children share counts once', mem, '''
import os, time
x = bytearray(b"x" * (24 << 20))
for _ in range(8):
    if os.fork() == 0:
        time.sleep(.3)
        os._exit(0)
for _ in range(8): os.wait()''')


# ---------------------------------------------------------------- counts

FORKS = '''
import os, time
n = 0
try:
    while n < {n}:
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
        n += 1
except OSError as e:
    print(e.strerror)
time.sleep(.3)
print(n)'''
THREADS = '''
import threading, time
n = 0
try:
    while n < {n}:
        threading.Thread(target=time.sleep, args=(.5,), daemon=True).start()
        n += 1
except RuntimeError:
    print("refused")
time.sleep(.3)
print(n)'''


def test_counts():
    few = ['--processes', '20']
    refused('processes: forks', few, FORKS.format(n=100), 'processes', 'Resource temporarily unavailable\n19')
    refused('processes: threads', few, THREADS.format(n=100), 'processes', 'refused\n19')
    # Without a group that counts refusals, being full is all that can be seen from outside.
    passes('processes: nearly as many as are allowed', few, FORKS.format(n=16))
    r = Run(['--processes', '60', '--timeout', '800ms', '--cpu-time', '10s'], 'bomb() { bomb | bomb & }; bomb; wait; sleep 10',
            'bash')
    report('processes: a fork bomb is ended by the clock',
           [] if r.outcome == 'wall time' and r.gone_ms('wall') <= 2 * GONE_MS else
           [f'{r.outcome} {r.json.get("summary")}, gone after {r.gone_ms("wall") if "wall" in r.hit else "-"} ms'])
    refused('open files', ['--set', 'limits.open_files=50'], '''
n = 0
try:
    f = []
    while n < 1000:
        f.append(open("/dev/null")); n += 1
except OSError as e: print(e.strerror, n < 50)''', None, 'Too many open files True')


# ---------------------------------------------------------------- files and output

FILL = '''
import os
try:
    for d in ("/tmp", "/dev/shm", os.environ["HOME"]):
        for i in range(4): open(f"{d}/x{i}", "wb").write(b"x" * (1 << 20))
    print("all")
except OSError as e: print(e.strerror)'''
INODES = '''
import os
try:
    for d in ("/tmp", "/dev/shm", os.environ["HOME"]):
        for i in range(100): open(f"{d}/x{i}", "w")
    print("all")
except OSError as e: print(e.strerror)
import time; time.sleep(.1)'''
FILE = '''
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    open("/tmp/x", "wb").write(b"x" * (3 << 20))
    print("all")
except OSError as e: print(e.strerror)'''


def test_files():
    refused('disk: all writable places together', ['--disk', '8MiB'], FILL, 'disk', 'No space left on device')
    refused('disk: enough', ['--disk', '16MiB'], FILL, None, 'all')
    refused('inodes: all writable places together', ['--set', 'limits.inodes=256'], INODES, 'inodes',
            'No space left on device')
    refused('inodes: enough', ['--set', 'limits.inodes=400'], INODES, None, 'all')
    refused('file size: an error for who asks', ['--set', 'limits.file_size=2MiB'], FILE, None, 'File too large')
    refused('file size: enough', ['--set', 'limits.file_size=4MiB'], FILE, None, 'all')
    r = Run(['--set', 'limits.file_size=2MiB'], ['sh', '-c', 'exec head -c 3M /dev/zero >/tmp/x'], None)
    report('file size: a program that does not ask is ended, and the outcome says by what',
           [] if r.outcome == 'file size' and r.status == 124 and 'file_size' in r.hit else [f'{r.outcome} {r.status} {r.hit}'])
    ended('output: a flood', ['--set', 'limits.output=64KiB', '--set', 'limits.output_total=4MiB', '--timeout', '20s'],
          ['sh', '-c', 'yes'], 'output_total', 'output', lang=None,
          checks=[lambda r, h: f'{len(r.out)} bytes kept' if len(r.out) > 80 << 10 else ''])
    r = Run(['--set', 'limits.output=64KiB', '--set', 'limits.output_total=4MiB'],
            ['sh', '-c', 'echo first; head -c 1M /dev/zero | tr "\\0" x; echo last'], None)
    report('output: the head and the tail are kept, and the run goes on',
           [] if r.outcome == 'exit' and r.out.startswith('first') and r.out.rstrip().endswith('last') and
           len(r.out) < 80 << 10 else [f'{r.outcome} {len(r.out)} {r.out[:20]!r} {r.out[-20:]!r}'])


# ---------------------------------------------------------------- neighbours

TICKER = '''
import time
worst, end = 0, time.monotonic() + 2
while time.monotonic() < end:
    t = time.monotonic()
    time.sleep(.01)
    worst = max(worst, time.monotonic() - t - .01)
print(int(worst * 1000))'''
BOMBS = {
    'a fork bomb': ('bash', 'bomb() { bomb | bomb & }; bomb; wait; sleep 10'),
    'one that eats memory': ('python', 'x = []\nwhile True: x.append(bytearray(b"x" * (1 << 20)))'),
    'one that floods': ('bash', 'yes'),
    'one that fills the disk': ('bash', 'while :; do head -c 20M /dev/zero >/tmp/$RANDOM 2>/dev/null; rm -f /tmp/*; done'),
}


def test_neighbours():
    for name, (lang, code) in BOMBS.items():
        for _ in range(3):  # the machine may be busy with others as well
            bomb = subprocess.Popen([PALE, 'run', '-q', '--timeout', '1500ms', '--cpu-time', '10s', '--memory', '96MiB',
                                     '-c', code, '--lang', lang], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            r = Run(['--timeout', '15s'], TICKER)
            bomb.wait()
            worst = int(r.out) if r.out.strip().isdigit() else 10**6
            print(f'# beside {name}: at worst {worst} ms late')
            if worst < 500 * SLOW:
                break
        report(f'neighbour: runs beside {name}',
               [] if r.outcome == 'exit' and worst < 500 * SLOW else [f'{r.outcome}, {worst} ms late'])


def test_left_behind(state):
    """No process of any of these boxes is alive (all had code in their arguments), no group is left."""
    p = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            line = open(f'/proc/{pid}/cmdline').read()
        except OSError:
            continue
        if 'bomb | bomb' in line or 'range(8): os.wait' in line:
            p.append(f'{pid}: {line[:80]!r}')
    ids = {i.lower() for i in os.listdir(f'{state}/runs')}  # others may have boxes of their own
    for top, dirs, _ in os.walk('/sys/fs/cgroup'):
        p += [f'group {top}/{d}' for d in dirs if d.startswith('pale-') and d[5:].split('.')[0].lower() in ids]
    p += [] if ids else ['the runs were not found']
    report('nothing is left behind', p)


def main():
    state = tempfile.mkdtemp(prefix='pale-limits.')
    os.environ['PALE_STATE_DIR'] = state
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        only = (os.environ.get('PALE_TEST_LIMITS') or 'time memory counts files neighbours').split()
        for name in only:
            globals()[f'test_{name}']()
        time.sleep(.2)
        test_left_behind(state)
    finally:
        shutil.rmtree(state, ignore_errors=True)
    print(f'1..{number}')
    sys.exit(bool(failed))


main()
