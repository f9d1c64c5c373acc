#!/bin/bash
# Runs inside the test machine, as root, from a unit: each test program in each of the places in the
# control group tree that a caller of Pale can be in. One TAP line a program and place; what it
# printed stands before it as comments. /pale holds the build: see run.py.
exec >/dev/ttyS1 2>&1
n=0
limit=100
export PALE_MUST_WORK=cgroup,speculation
uid=$(id -u tester)

report() { # NAME STATUS OUTPUT
	n=$((n + 1))
	sed 's/^/# /' "$3"
	if [ "$2" = 0 ] && ! grep -q '^not ok' "$3"; then echo "ok $n - $1"; else echo "not ok $n - $1 (status $2)"; fi
}

in_place() { # NAME KIND COMMAND...
	local name=$1
	shift 2
	timeout -k 1 "$limit" "$@" >/run/out 2>&1
	report "$name" $? /run/out
}

cgroup=/pale/test-cgroup-live
vars="PALE_MUST_WORK=cgroup"
run="systemd-run --quiet --wait --pipe --collect"
session="$run -p User=tester -p PAMName=login"

: "a user manager that lingers is there a moment after boot"
for _ in $(seq 100); do [ -S "/run/user/$uid/bus" ] && break; sleep 0.1; done

# 2: directly in the tree; 3: a scope that systemd makes; see cgroup.h.
in_place "root, in a unit that is systemd's" 3 $run env $vars PALE_TEST_CGROUP_KIND=3 $cgroup
in_place "root, alone in a delegated unit" 2 $run -p Delegate=yes env $vars PALE_TEST_CGROUP_KIND=2 $cgroup
in_place "user, in a login session" 3 $session env $vars PALE_TEST_CGROUP_KIND=3 $cgroup
in_place "user, lingering, no XDG_RUNTIME_DIR" 3 $run -p User=tester env $vars PALE_TEST_CGROUP_KIND=3 $cgroup
in_place "user, in a delegated unit of the system" 2 $run -p User=tester -p Delegate=yes \
	env $vars PALE_TEST_CGROUP_KIND=2 $cgroup
# The user manager of systemd 252 does not mark what it delegates, so this is the same as without.
in_place "user, in a delegated scope of the user manager" 3 $session \
	systemd-run --user --scope --quiet -p Delegate=yes env $vars PALE_TEST_CGROUP_KIND=3 $cgroup
in_place "a user without a manager is told what to do" 0 $run -p User=stranger \
	env PALE_TEST_CGROUP_KIND=0 PALE_TEST_CGROUP_WHY=enable-linger $cgroup

left() { # systemd removes an empty scope a moment later
	for _ in $(seq 50); do
		[ -z "$(find /sys/fs/cgroup -name 'pale-*' -name '*-*-*')" ] && return 0
		sleep 0.1
	done
	find /sys/fs/cgroup -name 'pale-*' -name '*-*-*'
	return 1
}
left >/run/out
report "nothing is left behind" $? /run/out

# Programs that drive the command line, each as root and as the user in a session. An emulated machine
# is some fifteen times slower than a real one.
limit=400
export PALE_TEST_SLOW=15
kernel_limits() { # WHERE COMMAND...: no limit is kept by less than a control group
	local name=$1
	shift
	timeout 60 "$@" /pale/pale run -q -- true >/run/out 2>&1
	timeout 60 "$@" /pale/pale audit show last --json >>/run/out 2>&1
	grep '"event":"box.ready"' /run/out | grep '"fallbacks":\[' | grep -qvE '"(memory|cpu|cpus|processes)"'
	report "pale run: $name" $? /run/out
}
kernel_limits "root, in a unit that is systemd's" $run
kernel_limits "root, alone in a delegated unit" $run -p Delegate=yes
kernel_limits "user, in a login session" $session
for t in /pale/extra/*; do
	[ -x "$t" ] || continue
	for who in "$run" "$session"; do
		in_place "${t##*/}, ${who##*-p }" - $who -E PALE_MUST_WORK -E PALE_TEST_SLOW -E PALE_TEST_LIMITS -E PALE_BIN=/pale/pale "$t"
	done
done
echo "1..$n"
echo "# end"
sync
systemctl --force --force poweroff
