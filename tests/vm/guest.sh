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
attacks="-E PALE_BOX_PROGRAM=/pale/pale-box -E PALE_ATTACKS_PROGRAM=/pale/pale-attacks"

end() {
	echo "1..$n"
	echo "# end"
	sync
	systemctl --force --force poweroff
	exit
}

: "a user manager that lingers is there a moment after boot"
for _ in $(seq 100); do [ -S "/run/user/$uid/bus" ] && break; sleep 0.1; done

# Booted with lsm= that lacks Landlock: nothing starts without it, unless the policy says that it may.
if grep -q ' lsm=' /proc/cmdline; then
	says() { # WHAT STATUS WORDS COMMAND...
		local what=$1 wanted=$2 words=$3
		shift 3
		timeout 100 "$@" >/run/out 2>&1
		local status=$?
		[ "$status" = "$wanted" ] && tr -s '\n ' ' ' </run/out | grep -q -- "$words"
		report "without Landlock, $what" $? /run/out
	}
	for who in "$run" "$session"; do
		says "a run is refused, ${who##*-p }" 125 'no Landlock.*lsm=landlock' $who /pale/pale run -q -- true
		says "and named where it may be missing, ${who##*-p }" 0 '"item": *"second-lock"' \
			$who /pale/pale run --best-effort landlock --json -- true
		says "the attacks have no box, ${who##*-p }" 125 'no Landlock' $who $attacks /pale/pale verify --attack bpf
	done
	says "what holds is what is left" 0 'held: ' $run $attacks /pale/pale verify --best-effort landlock --axis kernel
	end
fi

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

# As before Linux 5.14: what is in a box is killed one by one. The report says that the file was asked for.
cat >/run/without-kill <<'END'
report=$(mktemp)
/pale/inject -r "$report" -u sh -m 'openat:ENOENT:$/cgroup.kill' -m 'access:ENOENT:$/cgroup.kill' \
	/pale/pale run -q --timeout 2s -- sh -c 'trap "" TERM; for i in 1 2 3 4 5 6 7 8; do setsid sleep 1000 & done; wait; wait'
status=$?
cat "$report"; echo "status $status"
[ $status = 124 ] && grep -q '^failed.*ENOENT' "$report" && ! grep -q '^left' "$report"
END
in_place "a box ends without cgroup.kill: root" - $run bash /run/without-kill
in_place "a box ends without cgroup.kill: user" - $session bash /run/without-kill

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
# Of what pale verify tries, what does not take minutes on an emulated machine: limits.py below exceeds the limits. Files as
# the user only: this kernel has no file system here that can be mapped for root's boxes, but the read-only ones.
for who in "kernel $run" "network $run" "kernel $session" "files $session"; do
	in_place "pale verify --axis ${who%% *}, ${who##*-p }" - ${who#* } $attacks /pale/pale verify --axis "${who%% *}"
done
for t in /pale/extra/*; do
	[ -x "$t" ] || continue
	for who in "$run" "$session"; do
		in_place "${t##*/}, ${who##*-p }" - $who -E PALE_MUST_WORK -E PALE_TEST_SLOW -E PALE_TEST_LIMITS -E PALE_BIN=/pale/pale "$t"
	done
done
end
