#!/usr/bin/python3
"""kernel.speculation, kernel.l1d_flush and kernel.core_scheduling on whatever host this is: a box has what
its policy asks for and cannot get out of it; without the key it is as the host; what the host cannot do
stops the launch. In the test machine (tests/vm) the speculation controls are there.

usage: side_channels.py [PALE]     (else $PALE_BIN; PALE_MUST_WORK=speculation,core_scheduling: they must be)
"""
import ctypes, json, os, re, subprocess, sys, tempfile

PALE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.environ.get('PALE_BIN', 'pale')
must_work = os.environ.get('PALE_MUST_WORK', '').split(',')
number = 0
prctl = ctypes.CDLL(None, use_errno=True).prctl
GET, SET, CORE = 52, 53, 62
FIELDS = {'store bypass': ('Speculation_Store_Bypass', 0), 'indirect branch': ('SpeculationIndirectBranch', 1)}

# Tells what it is, tries to get rid of it, and tells again; a child and an executed program, too.
INSIDE = r'''
import ctypes, json, os, re, subprocess, sys
prctl = ctypes.CDLL(None, use_errno=True).prctl
def status():
    return dict(re.findall(r'^(Specul\S+):\s*(.*)$', open('/proc/self/status').read(), re.M))
def call(*a):
    r = prctl(*a, *[0] * (5 - len(a)))
    return ctypes.get_errno() if r < 0 else 0
told = {'before': status()}
told['undo'] = [call(53, which, how) for which in (0, 1) for how in (2, 16)]
told['after'] = status()
told['child'] = json.loads(subprocess.run([sys.executable, '-c', 'import re, json; print(json.dumps(dict(re.findall('
    r'r"^(Specul\S+):\s*(.*)$", open("/proc/self/status").read(), re.M))))'], capture_output=True, check=True).stdout)
cookie = ctypes.c_uint64()
told['core'] = [call(62, 1, 0, 0, 0), call(62, 0, 0, 0, ctypes.byref(cookie))]
print(json.dumps(told))
'''


def check(what, ok, detail=''):
    global number
    number += 1
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    if not ok:
        print(f'# {detail!r}'[:1000])
    sys.stdout.flush()


def skip(what, why, ability):
    global number
    number += 1
    print(f'not ok {number} - {what}: {why}' if ability in must_work else f'ok {number} - {what} # SKIP {why}')


def run(kernel, *more):
    p = subprocess.run([PALE, 'run', '--json', '-q', '-p', '-', *more, '-c', INSIDE, '--lang', 'python'],
                       input='pale: 1\nkernel: {' + kernel + '}\n', capture_output=True, text=True, timeout=240)
    try:
        result = json.loads(p.stdout)
    except ValueError:
        return p, None, None
    try:
        return p, result, json.loads(result.get('stdout', ''))
    except ValueError:
        return p, result, None


def explained(kernel, *more):
    p = subprocess.run([PALE, 'explain', '--json', '-p', '-', *more, '--', 'true'], capture_output=True, text=True,
                       input='pale: 1\nkernel: {' + kernel + '}\n', timeout=240)
    plan = json.loads(p.stdout)
    return {x['promise']: x for x in plan.get('promises', plan.get('plan', {}).get('promises', []))}


def status():
    return dict(re.findall(r'^(Specul\S+):\s*(.*)$', open('/proc/self/status').read(), re.M))


ours = status()
had = {name: prctl(GET, which, 0, 0, 0) for name, (_, which) in FIELDS.items()}
lacks = [name for name, r in had.items() if r < 0 or (r & 2 and not r & 1)]
p, result, told = run('')
check('without the key the box is as the host', told and told['before'] == ours, (told, ours, p.stderr))
check('and promises nothing', not {'speculation', 'core_scheduling', 'l1d_flush'} & set(explained('')))

p, result, told = run('speculation: strict')
if lacks:
    check('what the host cannot do stops the launch, with the remedy',
          p.returncode == 125 and 'kernel.speculation: this host cannot do' in p.stderr and
          'best_effort: [speculation]' in p.stderr, (p.returncode, p.stderr))
    p, result, told = run('speculation: strict', '--best-effort', 'speculation')
    check('best_effort lets it be weaker, and the result says so',
          told and [x for x in result['best_effort'] if x['item'] == 'speculation' and lacks[0] in x['got']],
          (p.stderr, result))
    skip('strict speculation', f'this processor offers no control of: {", ".join(lacks)}', 'speculation')
else:
    controlled = [name for name, r in had.items() if r & 1]
    for name in controlled:
        field = FIELDS[name][0]
        check(f'{name} is off in the box, and for good',
              told and all('force mitigated' in told[at].get(field, '') or
                           'conditional force disabled' in told[at].get(field, '')
                           for at in ('before', 'after', 'child')), (told, p.stderr))
        check(f'{name}: the host is not so by itself', 'force' not in ours[field], ours)
    check('undoing it is refused', told and all(told['undo']), told)
    check('the plan names the mechanism',
          not controlled or 'PR_SET_SPECULATION_CTRL' in explained('speculation: strict')['speculation']['mechanism'])
    if not controlled:
        skip('strict speculation', 'this processor is not affected', 'speculation')

cookie = ctypes.c_uint64()
offered = prctl(CORE, 0, 0, 0, ctypes.byref(cookie)) == 0
threads = not offered and open('/sys/devices/system/cpu/smt/active').read().strip() != '0'
p, result, told = run('core_scheduling: true')
promise = None if threads else explained('core_scheduling: true')['core_scheduling']
if threads:
    check('a kernel that lacks core scheduling stops the launch', p.returncode == 125 and
          'best_effort: [core_scheduling]' in p.stderr, p.stderr)
else:
    check('a box of core scheduling runs, and cannot choose its cookie',
          told and told['core'] == [22, 22], (told, p.stderr))
    check('the plan names the mechanism', ('PR_SCHED_CORE' in promise['mechanism']) == offered and
          promise.get('not_covered'), promise)
if offered:
    # Its cookie is seen from outside, through the box's process in the host's /proc.
    def cookies(kernel):
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as f:
            f.write('pale: 1\nkernel: {' + kernel + '}\n')
            f.flush()
            box = subprocess.Popen([PALE, 'run', '-q', '-p', f.name, '--', 'sh', '-c', 'echo ready; read x'],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            box.stdout.readline()
            found, todo = set(), [box.pid]
            while todo:
                pid = todo.pop()
                children = open(f'/proc/{pid}/task/{pid}/children').read().split()
                todo += map(int, children)
                if pid != box.pid and prctl(CORE, 0, pid, 0, ctypes.byref(cookie)) == 0:
                    found.add(cookie.value)
            box.communicate('\n')
            return found
    if os.geteuid() == 0:
        a, b, none = cookies('core_scheduling: true'), cookies('core_scheduling: true'), cookies('')
        check('all of a box has one cookie, another box another, and without the key there is none',
              len(a) == len(b) == 1 and a != b and 0 not in a | b and none == {0}, (a, b, none))
else:
    skip('core scheduling', 'this kernel lacks it, or no core has threads', 'core_scheduling')
print(f'1..{number}')
