#!/usr/bin/python3
"""A box that keeps its processor busy counts little beside others, and as much as any when it does so no more.

usage: test_share.py PALE PALE-BOX
"""
import json, os, shutil, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'egress'))
from tap import *  # noqa: E402, F401, F403

PALE = os.path.abspath(sys.argv[1])


def weight_of(pid):
    """(its weight, that of an ordinary group) of the group of a process."""
    for line in open(f'/proc/{pid}/cgroup'):
        _, controllers, path = line.rstrip('\n').split(':', 2)
        if 'cpu' in controllers.split(',') and 'pale-' in path:
            for top in ('/sys/fs/cgroup/cpu', '/sys/fs/cgroup/cpu,cpuacct'):
                if os.path.exists(f'{top}{path}/cpu.shares'):
                    return int(open(f'{top}{path}/cpu.shares').read()), 1024
        if controllers == '' and 'pale-' in path:
            for top in ('/sys/fs/cgroup', '/sys/fs/cgroup/unified'):
                for up in (path, os.path.dirname(path)):
                    if os.path.exists(f'{top}{up}/cpu.weight'):
                        return int(open(f'{top}{up}/cpu.weight').read()), 100
    return None


def child_of(pid):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = open(f'/proc/{pid}/task/{pid}/children').read().split()
        if found:
            return int(found[0])
        time.sleep(0.01)
    raise Exception('no box')


def within(seconds, condition):
    until = time.monotonic() + seconds
    while not (ok := condition()) and time.monotonic() < until:
        time.sleep(0.02)
    return ok


state = tempfile.mkdtemp(prefix='pale-share.')
env = {**os.environ, 'PALE_STATE_DIR': state, 'HOME': state, 'PALE_BOX_PROGRAM': os.path.abspath(sys.argv[2])}
box = subprocess.Popen([PALE, 'run', '-q', '--cpu-time', '100s', '--timeout', '100s', '--', 'sh', '-c',
                        'echo ready; read x; while :; do :; done & read x; kill $!; read x'],
                       env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
try:
    box.stdout.readline()
    inside = child_of(box.pid)
    seen = weight_of(inside)
    if seen is None:
        skip('the weight of a box', 'no control group of its own for processors here', 'cgroup')
    else:
        check('a box begins as any other group', seen[0] == seen[1], seen)
        time.sleep(0.7)
        check('and stays so while it does little', weight_of(inside) == seen, weight_of(inside))
        box.stdin.write('work\n')
        box.stdin.flush()
        check('one that is busy counts little', within(20, lambda: weight_of(inside)[0] * 5 < seen[1]), weight_of(inside))
        box.stdin.write('rest\n')
        box.stdin.flush()
        check('until it is so no more', within(40, lambda: weight_of(inside) == seen), weight_of(inside))
    # A session that works is heard when it is interrupted.
    if seen is not None:
        subprocess.run([PALE, 'session', 'new', '--name', 's', '--cpu-time', '100s'], env=env, check=True, stdout=subprocess.DEVNULL)
        info = json.loads(subprocess.run([PALE, 'session', 'show', 's', '--json'], env=env, check=True, stdout=subprocess.PIPE).stdout)
        inside = info['pid']
        works = subprocess.Popen([PALE, 'session', 'exec', 's', '-c', 'while True: pass'], env=env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        check('so does a session', within(20, lambda: weight_of(inside)[0] * 5 < seen[1]), weight_of(inside))
        subprocess.run([PALE, 'session', 'interrupt', 's'], env=env, check=True, stdout=subprocess.DEVNULL)
        works.wait(30)
        check('but not when it is interrupted', weight_of(inside) == seen, weight_of(inside))
        subprocess.run([PALE, 'session', 'rm', 's'], env=env, check=True, stdout=subprocess.DEVNULL)
finally:
    subprocess.run([PALE, 'session', 'rm', '--all'], env=env, check=False, capture_output=True)
    box.stdin.close()
    box.wait(30)
    shutil.rmtree(state, ignore_errors=True)
done()
