#!/usr/bin/env python3
"""Boots Debian's kernel with systemd and control groups version 2 in QEMU (no KVM needed), and runs
test programs of the build in it, as root and as a user in a real login session; then once more without
Landlock. Prints their TAP.

usage: run.py BUILD_DIR [EXTRA_PROGRAM...]

The kernel and the root file system are made once, from the distribution's packages, and kept in
$PALE_VM_CACHE (default: BUILD_DIR/vm). Needs root, qemu-system-x86, mmdebstrap and erofs-utils; what
is missing is a loud skip, or a failure if PALE_MUST_WORK names vm (else PALE_VM=1 asks for it). Never takes longer than
$PALE_VM_TIMEOUT seconds (600) after the images are there.
"""
import fcntl, glob, hashlib, os, re, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = 'bookworm'
KERNEL = 'linux-image-cloud-amd64'
PACKAGES = ('systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,passwd,util-linux,'
            'procps,libcmocka0,libjansson4,libyaml-0-2,libevent-core-2.1-7,libmd0,libsqlite3-0')
MODULES = ('virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk '
           'crc32c_generic libcrc32c erofs overlay').split()
PROGRAMS = {'test-cgroup-live': 'tests/cgroup/test-cgroup-live', 'pale': 'src/cli/pale', 'pale-box': 'src/pale-box',
            'pale-attacks': 'attacks/pale-attacks',
            'inject': 'tests/faults/inject'}
# Each boot: what the kernel is told besides, by which guest.sh knows what to do.
BOOTS = ('', 'lsm=lockdown,yama,apparmor,bpf')


class Skip(Exception):
    pass


def sh(*argv, **kw):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **kw)
    if r.returncode:
        raise Skip(f'{argv[0]}: {r.stdout[-600:]}')
    return r.stdout


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(text)
    os.chmod(path, mode)


def cpio(entries):
    """A newc archive of {name: (mode, bytes)}."""
    out = bytearray()
    for i, (name, (mode, data)) in enumerate(list(entries.items()) + [('TRAILER!!!', (0, b''))]):
        fields = [i + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b'070701' + b''.join(b'%08x' % f for f in fields) + name.encode() + b'\0'
        out += b'\0' * (-len(out) % 4) + data
        out += b'\0' * (-len(out) % 4)
    return bytes(out)


def make_kernel(cache, tmp):
    depends = sh('apt-cache', 'depends', KERNEL)
    package = re.search(r'Depends: (linux-image-\S+)', depends)
    if not package:
        raise Skip(f'{KERNEL} is not in the package lists: apt-get update')
    sh('apt-get', '-o', 'APT::Sandbox::User=root', 'download', package[1], cwd=tmp)
    sh('dpkg-deb', '-x', glob.glob(f'{tmp}/linux-image*.deb')[0], f'{tmp}/kernel')
    sh('gcc', '-O2', '-static', '-o', f'{tmp}/init', f'{HERE}/init.c')
    entries = {'modules': (0o40755, b''), 'dev': (0o40755, b''), 'dev/console': (0o20600, b''),
               'init': (0o100755, open(f'{tmp}/init', 'rb').read())}
    del entries['dev/console']
    for m in MODULES:
        found = glob.glob(f'{tmp}/kernel/lib/modules/*/kernel/**/{m}.ko', recursive=True)
        if found:
            entries[f'modules/{m}.ko'] = (0o100644, open(found[0], 'rb').read())
    with open(f'{cache}/initrd.new', 'wb') as f:
        f.write(cpio(entries))
    shutil.copy(glob.glob(f'{tmp}/kernel/boot/vmlinuz-*')[0], f'{cache}/vmlinuz')
    os.rename(f'{cache}/initrd.new', f'{cache}/initrd')


def make_root(cache, tmp):
    root = f'{tmp}/root'
    sh('mmdebstrap', '--quiet', '--variant=minbase', f'--include={PACKAGES}',
       '--dpkgopt=path-exclude=/usr/share/man/*', '--dpkgopt=path-exclude=/usr/share/locale/*',
       '--dpkgopt=path-exclude=/usr/share/doc/*', SUITE, root)
    for name in ('tester', 'stranger'):
        sh('chroot', root, 'useradd', '-m', '-s', '/bin/bash', name)
    write(f'{root}/var/lib/systemd/linger/tester', '')
    write(f'{root}/etc/systemd/system/pale-tests.service',
          '[Unit]\nAfter=multi-user.target systemd-logind.service\nConflicts=shutdown.target\n'
          '[Service]\nType=exec\nExecStart=/pale/guest.sh\nFailureAction=poweroff-immediate\n')
    os.makedirs(f'{root}/etc/systemd/system/graphical.target.wants', exist_ok=True)
    os.symlink('../pale-tests.service', f'{root}/etc/systemd/system/graphical.target.wants/pale-tests.service')
    # Nothing that only costs time: no logins, no clean-up, no journal on disk, no time from the network.
    for unit in ('getty.target', 'serial-getty@ttyS0.service', 'systemd-timesyncd.service', 'apt-daily.timer',
                 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer', 'fstrim.timer',
                 'systemd-journal-flush.service', 'systemd-udev-settle.service', 'systemd-random-seed.service',
                 'systemd-tmpfiles-clean.timer', 'console-getty.service', 'systemd-pcrphase.service',
                 'systemd-pcrphase-sysinit.service', 'systemd-hwdb-update.service', 'ldconfig.service'):
        link = f'{root}/etc/systemd/system/{unit}'
        if not os.path.lexists(link):
            os.symlink('/dev/null', link)
    write(f'{root}/etc/machine-id', '0123456789abcdef0123456789abcdef\n')
    write(f'{root}/etc/fstab', '')
    for d in ('var/cache/apt', 'var/lib/apt/lists', 'usr/share/i18n'):
        shutil.rmtree(f'{root}/{d}', ignore_errors=True)
    sh('mkfs.erofs', f'{cache}/root.new', root)
    os.rename(f'{cache}/root.new', f'{cache}/root.erofs')


def images(cache):
    """Made anew only when what they are made from changed."""
    os.makedirs(cache, exist_ok=True)
    with open(f'{cache}/lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = b''.join(open(f'{HERE}/{f}', 'rb').read() for f in ('init.c', 'run.py'))
        stamp = hashlib.sha256(source).hexdigest()
        try:
            if open(f'{cache}/stamp').read() == stamp:
                return
        except FileNotFoundError:
            pass
        with tempfile.TemporaryDirectory(dir=cache) as tmp:
            make_kernel(cache, tmp)
            make_root(cache, tmp)
        write(f'{cache}/stamp', stamp)


def payload(build, extra, tmp):
    """The second disk: the programs of this build."""
    stage = f'{tmp}/stage'
    os.makedirs(f'{stage}/extra')
    for name, path in PROGRAMS.items():
        if os.path.exists(f'{build}/{path}'):
            shutil.copy(f'{build}/{path}', f'{stage}/{name}')
    for path in extra:
        shutil.copy(path, f'{stage}/extra/')
    shutil.copy(f'{HERE}/guest.sh', stage)
    os.chmod(f'{stage}/guest.sh', 0o755)
    sh('mkfs.erofs', f'{tmp}/payload.erofs', stage)


def cpu_khz():
    m = re.search(r'cpu MHz\s*: ([\d.]+)', open('/proc/cpuinfo').read())
    return int(float(m[1]) * 1000) if m else 2000000


def boot(cache, tmp, timeout, besides):
    """The guest's TAP, or None if it did not come up in time."""
    # tsc_early_khz: without it the kernel measures the emulated counter, and hangs one boot in three;
    # no_timer_check: on a busy host the emulated timer looks broken to it.
    append = (f'console=ttyS0 tsc_early_khz={cpu_khz()} no_timer_check panic=-1 quiet nopti nokaslr '
              'systemd.unified_cgroup_hierarchy=1 systemd.show_status=0 systemd.mask=tmp.mount ' + besides)
    # A processor that is affected by speculation and offers its controls (which the emulation only counts:
    # QEMU warns of them), with two threads on its core.
    cpu = 'max,vendor=GenuineIntel,x-force-features=on,+ssbd,+spec-ctrl,+stibp'
    argv = ['qemu-system-x86_64', '-M', 'q35', '-accel', 'tcg,thread=multi,tb-size=256', '-cpu', cpu,
            '-smp', '2,cores=1,threads=2', '-m', '1024', '-display', 'none', '-nodefaults', '-no-reboot',
            '-kernel', f'{cache}/vmlinuz', '-initrd', f'{cache}/initrd', '-append', append,
            '-drive', f'file={cache}/root.erofs,if=virtio,format=raw,readonly=on',
            '-drive', f'file={tmp}/payload.erofs,if=virtio,format=raw,readonly=on',
            '-serial', f'file:{tmp}/console', '-serial', f'file:{tmp}/tap']
    try:
        subprocess.run(argv, timeout=timeout, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        pass
    text = open(f'{tmp}/tap', errors='replace').read().replace('\r', '')
    return text if '\n# end\n' in text else None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    must = os.environ.get('PALE_MUST_WORK', '').split(',')
    if 'vm' not in must and os.environ.get('PALE_VM') != '1':
        raise Skip('takes a minute or two: set PALE_VM=1, or PALE_MUST_WORK=vm')
    build, extra = os.path.abspath(sys.argv[1]), sys.argv[2:]
    cache = os.environ.get('PALE_VM_CACHE') or f'{build}/vm'
    timeout = int(os.environ.get('PALE_VM_TIMEOUT', '600'))
    start = time.monotonic()
    if os.geteuid() != 0:
        raise Skip('making the root file system needs root')
    for tool in ('qemu-system-x86_64', 'mmdebstrap', 'mkfs.erofs', 'gcc', 'dpkg-deb'):
        if not shutil.which(tool):
            raise Skip(f'{tool} is not installed: apt-get install qemu-system-x86 mmdebstrap erofs-utils')
    images(cache)
    print(f'# images ready after {time.monotonic() - start:.1f} s', flush=True)
    with tempfile.TemporaryDirectory(dir=cache) as tmp:
        payload(build, extra, tmp)
        count = failed = 0
        for besides in BOOTS:
            text = boot(cache, tmp, timeout - 5 - (time.monotonic() - start), besides)
            print(f'# the machine was done after {time.monotonic() - start:.1f} s {besides}')
            if text is None:
                for name in ('console', 'tap'):
                    tail = open(f'{tmp}/{name}', errors='replace').read()[-4000:]
                    print(''.join(f'# {name}: {line}\n' for line in tail.splitlines()))
                text = 'not ok 1 - the test machine did not finish\n'
            # One after the other, as one.
            for line in text.splitlines():
                result = re.match(r'(ok|not ok) \d+(.*)', line)
                count += bool(result)
                failed += bool(result and result[1] != 'ok')
                if not line.startswith('1..'):
                    print(f'{result[1]} {count}{result[2]}' if result else line)
            sys.stdout.flush()
        print(f'1..{count}')
        sys.exit(failed > 0)


if __name__ == '__main__':
    try:
        main()
    except (Skip, subprocess.TimeoutExpired) as e:
        must = 'vm' in os.environ.get('PALE_MUST_WORK', '').split(',')
        reason = ' '.join(str(e).split())
        print(f'1..1\nnot ok 1 - test machine: {reason}' if must else f'1..1\nok 1 # SKIP test machine: {reason}')
        sys.exit(1 if must else 0)
