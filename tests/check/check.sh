# shellcheck shell=bash disable=SC2154
# ./dev check: every build, every test, as root and as an unprivileged user; sourced by dev.
#
# Each part is one "check" of its own (a build, the formatting, ...) or a run of Meson's tests, whose
# TAP results tests/check/summary.py adds up. The last line is the count over all of it.

checks_passed=0
checks_failed=()
logs=()
again=()
again_max=8 # more than these, and it is not the machine

part() { # NAME COMMAND...: one check
	local name=$1
	shift
	if "$@"; then
		checks_passed=$((checks_passed + 1))
	else
		checks_failed+=("$name")
		return 1
	fi
}

formatting() {
	c_files | xargs -0 -r clang-format-14 --dry-run --Werror
}

scripts() {
	# Those of bench/ordinary are as models write them.
	find "$top" -name '*.sh' -not -path "$top/build*" -not -path '*/corpus/*' -not -path '*/bench/ordinary/*' -print0 |
		xargs -0 shellcheck -S warning "$top/dev" "$top/.ci/run" &&
		find "$top" -name '*.py' -not -path "$top/build*" -print0 |
		PYTHONDONTWRITEBYTECODE=1 xargs -0 -r python3 -c '
import sys
for path in sys.argv[1:]:
    compile(open(path, encoding="utf-8").read(), path, "exec")'
}

# What PALE_MUST_WORK asks of one half: the other half's abilities are no failure to lack.
must_work() { # ABILITY...: without these
	local list=,${PALE_MUST_WORK-}, ability
	for ability in "$@"; do list=${list//,$ability,/,}; done
	list=${list#,}
	printf %s "${list%,}"
}

run_tests() { # DIR LOGNAME [MESON ARGUMENT...]
	local dir=$1 name=$2
	shift 2
	local results=$dir/meson-logs/$name.json
	case " $* " in *" --wrapper "*) results=$dir/meson-logs/$name-setpriv.json ;; esac # Meson's name for it
	rm -f "$results"
	logs+=("$name=$results")
	# Suites: tree (the sources themselves), once (whatever the compiler: gcc only), long (not with clang alone,
	# and with sanitizers only once), vm.
	# A failed test is told by the summary; here only whether Meson could run them at all.
	note "testing: $name"
	local started=$SECONDS log=$scratch_dir/$name.log
	local must
	case $name in
	*-root) must=$(must_work unprivileged) ;;
	*) must=$(must_work root cgroup idmap) ;;
	esac
	PALE_MUST_WORK=$must meson test -C "$dir" --no-rebuild --logbase "$name" --num-processes 2 --print-errorlogs "$@" \
		>"$log" 2>&1 </dev/null
	[ -s "$results" ] || { checks_failed+=("tests: $name"); tail -n 40 "$log" >&2; }
	[ ! -s "$results" ] || run_again "$dir" "$name" "$results" "$must" "$@"
	note "tested: $name ($((SECONDS - started)) s)"
}

# What failed beside others is run again, alone: a few tests only, and the summary tells of each.
run_again() { # DIR LOGNAME RESULTS MUST [MESON ARGUMENT...]
	local dir=$1 name=$2 results=$3 must=$4 failed
	shift 4
	mapfile -t failed < <(python3 "$top/tests/check/summary.py" --names "$results" | sed '/^$/d')
	[ "${#failed[@]}" -gt 0 ] && [ "${#failed[@]}" -le "$again_max" ] || return 0
	note "testing again: ${failed[*]}"
	local second=${results%/*}/$name-again${results##*/"$name"}
	rm -f "$second"
	PALE_MUST_WORK=$must meson test -C "$dir" --no-rebuild --logbase "$name-again" --num-processes 1 --print-errorlogs "$@" \
		"${failed[@]}" >"$scratch_dir/$name-again.log" 2>&1 </dev/null
	[ ! -s "$second" ] || again+=(--again "$name=$second")
}

check() {
	[ $# -eq 0 ] || die "check takes no arguments"
	scratch
	[ "$(id -u)" -eq 0 ] || [ -z "${PALE_MUST_WORK-}" ] || case ",$PALE_MUST_WORK," in
	*,root,*) die "PALE_MUST_WORK names root, and this is not root: the root half cannot run" ;;
	esac
	need build check demo bench tests
	[ "${PALE_VM-}" != 1 ] || need vm
	local root=
	if [ "$(id -u)" -eq 0 ]; then
		root=yes
		make_user || die "cannot make the user $check_user"
		if ! "${as_user[@]}" test -r "$top/dev" -a -x "$top"; then
			elsewhere
			return
		fi
	fi
	build_base
	if [ -n "$root" ] && ! "${as_user[@]}" sh -c 'cd "$1"' sh "$(dirname "$build")"; then
		die "$check_user cannot reach $build: name another directory in PALE_BUILD"
	fi

	local ok_gcc='' ok_clang='' ok_asan=''
	CC=gcc part "build: gcc, release" build_in "$build" "gcc" -Dbuildtype=release -Dwerror=true && ok_gcc=yes
	CC=clang-14 part "build: clang, release" build_in "$build-clang" "clang" -Dbuildtype=release \
		-Dwerror=true && ok_clang=yes
	CC=clang-14 part "build: clang, ASan and UBSan" build_in "$build-asan" "sanitizers" \
		-Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true && ok_asan=yes
	part "formatting (./dev fmt)" step formatting formatting
	part "scripts" step scripts scripts

	export ASAN_OPTIONS=${ASAN_OPTIONS-abort_on_error=1:detect_stack_use_after_return=1:allocator_may_return_null=1}
	export UBSAN_OPTIONS=${UBSAN_OPTIONS-halt_on_error=1:abort_on_error=1:print_stacktrace=1}
	local who=user before
	before=$(traces)
	if [ -n "$root" ]; then
		local home=/var/lib/$check_user
		local drop=("${as_user[@]}" env -u XDG_RUNTIME_DIR -u XDG_STATE_HOME -u XDG_CACHE_HOME -u XDG_CONFIG_HOME
			"HOME=$home" "USER=$check_user" "LOGNAME=$check_user")
		local wrapper=${drop[*]}
		[ -z "$ok_gcc" ] || run_tests "$build" gcc-root
		[ -z "$ok_gcc" ] || run_tests "$build" gcc-unprivileged --no-suite tree --no-suite vm --wrapper "$wrapper"
		[ -z "$ok_clang" ] || run_tests "$build-clang" clang-unprivileged --no-suite tree --no-suite vm --no-suite once --no-suite long --wrapper "$wrapper"
		[ -z "$ok_asan" ] || run_tests "$build-asan" sanitizers-root --no-suite tree --no-suite vm --no-suite once -t 4
		[ -z "$ok_asan" ] || run_tests "$build-asan" sanitizers-unprivileged --no-suite tree --no-suite vm --no-suite once --no-suite long -t 4 --wrapper "$wrapper"
	else
		[ -z "$ok_gcc" ] || run_tests "$build" gcc-$who
		[ -z "$ok_clang" ] || run_tests "$build-clang" clang-$who --no-suite tree --no-suite vm --no-suite once --no-suite long
		[ -z "$ok_asan" ] || run_tests "$build-asan" sanitizers-$who --no-suite tree --no-suite vm --no-suite once -t 4
	fi
	[ -z "$ok_gcc" ] || PALE_STATE_DIR=$scratch_dir/state PALE_BUILD=$build part "demo (./dev demo)" \
		step "demo" "$top/dev" demo
	left_behind "$before"

	local name failed=()
	for name in "${checks_failed[@]}"; do failed+=(--failed "$name"); done
	[ -n "$root" ] || failed+=(--skipped "THE WHOLE ROOT HALF: run ./dev check as root for it")
	python3 "$top/tests/check/summary.py" --passed "$checks_passed" "${failed[@]}" "${again[@]}" "${logs[@]}"
}

# What a run of the tests must not leave on the machine: mounts, control groups, processes, runtime
# directories, files.
traces() {
	{
		grep -E '[/ ]pale[-/]' /proc/self/mounts
		find /sys/fs/cgroup -maxdepth 6 -type d -name 'pale-*' 2>/dev/null
		pgrep -u "$check_user" -a . 2>/dev/null
		find /run/pale -mindepth 1 -maxdepth 1 ! -name uids 2>/dev/null
		find /tmp /var/tmp /dev/shm -maxdepth 1 \( -name 'pale*' -o -user "$check_user" ! -name 'hsperfdata_*' \) 2>/dev/null
	} | sort
}

left_behind() { # TRACES-BEFORE
	local left
	for _ in {1..10}; do # what is being taken down is given a moment
		left=$(comm -13 <(printf '%s\n' "$1") <(traces))
		[ -n "$left" ] || break
		sleep 1
	done
	if [ -n "$left" ]; then
		note "left behind by the tests:"
		printf '%s\n' "$left" | head -20 | sed 's/^/  | /' >&2
		checks_failed+=("nothing left behind: $(printf %s "$left" | tr '\n' ' ' | cut -c1-600)")
	else
		checks_passed=$((checks_passed + 1))
	fi
}

# The tree lies where the unprivileged user cannot read it (below /root, say): check a copy.
elsewhere() {
	local copy
	copy=$(mktemp -d /var/tmp/pale-check.XXXXXX) || die "cannot make a directory in /var/tmp"
	cleanups+=("rm -rf -- '$copy'")
	chmod 755 "$copy"
	note "$check_user cannot read $top: checking a copy in $copy"
	tar -C "$top" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$copy" --no-same-owner -xf - || die "cannot copy the tree"
	PALE_BUILD='' "$copy/dev" check
}
