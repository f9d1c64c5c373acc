# shellcheck shell=bash disable=SC2154
# ./dev demo: an agent's job on a real workbook, with the mischief that came in with it; sourced by dev.
#
# Shows, as root (if it is root) and as an unprivileged user: the job's result, what was blocked, a key
# that code can use and not see, and a runaway ended by its limits. The host's side is checked, too: a demo in which something got out fails.

title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
command_line() { printf '%s$ %s%s\n' "$faint" "$*" "$plain"; }

# The directory of one caller's run: script, policy and workbook, and a home with what must not leak.
demo_place() { # DIR
	local place=$1
	mkdir -p "$place/out"
	[ "$place" = "$top/demo" ] || cp "$top"/demo/{policy.yaml,analyse.py,hand_in.py,runaway.py} "$place/"
	rm -f "$place/out/chart.png"
	/usr/bin/python3 "$top/demo/make_sheet.py" "$place/out/weather.xlsx"
}

demo_home() { # DIR: keys and files as a user has them, not real ones
	mkdir -p "$1/.ssh"
	printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\nnot a real key\n' >"$1/.ssh/id_ed25519"
	printf 'export PS1="$ "\n' >"$1/.bashrc"
	printf '127.0.0.1 localhost\n127.0.0.1 api.example.com\n' >"$1/hosts"
	chmod 700 "$1/.ssh"
}

fingerprint() { (cd "$1" && find . -type f -exec sha256sum {} + | sort | sha256sum); }

# What must be true on the host afterwards; each failure ends the demo with an error.
demo_wrong=0
expect() { # WHAT COMMAND...
	local what=$1
	shift
	if ! "$@"; then
		note "DEMO FAILED: $what"
		demo_wrong=1
	fi
}
none() { ! "$@"; }

# The API, played by this machine: $api_port, and what it was asked in $api_log.
demo_server() {
	api_log=$scratch_dir/api.log
	/usr/bin/python3 "$top/demo/server.py" "$scratch_dir/port" >"$api_log" 2>&1 &
	cleanups+=("kill $!")
	for _ in {1..100}; do
		[ ! -s "$scratch_dir/port" ] || break
		sleep 0.05
	done
	api_port=$(cat "$scratch_dir/port") || die "the demo's server did not start: $(cat "$api_log")"
}

# A key that code can use and not see. For this command alone api.example.com leads to this machine: in
# a mount namespace of its own, and back without the capability that it takes.
demo_api() { # WHO PALE HOME CALLER...
	local who=$1 pale=$2 home=$3 status real output=$scratch_dir/output
	local own=(--user --map-current-user --keep-caps --mount)
	shift 3
	[ "$who" != root ] || own=(--mount)
	real=key-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')

	title "A key that code can use and not see, as $who"
	command_line "pale run --allow 'POST http://api.example.com=127.0.0.1:$api_port' --deny collector.example.net \\
    --secret API_KEY=env:REAL_KEY@api.example.com hand_in.py URL..."
	# shellcheck disable=SC2016
	"$@" "REAL_KEY=$real" unshare "${own[@]}" \
		sh -c 'mount --bind "$1" /etc/hosts && shift && exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"' sh "$home/hosts" \
		"$pale" run --allow "POST http://api.example.com=127.0.0.1:$api_port" --deny collector.example.net \
		--secret API_KEY=env:REAL_KEY@api.example.com \
		hand_in.py "http://api.example.com:$api_port/summaries" http://collector.example.net/upload 2>&1 </dev/null | tee "$output"
	status=${PIPESTATUS[0]}
	printf '\nThe server, which this machine plays: %s\n' "$(tail -n 1 "$api_log")"
	expect "the summary was not handed in: status $status" [ "$status" -eq 0 ]
	expect "the key did not reach the server" grep -q "POST /summaries with Bearer $real" "$api_log"
	expect "the code saw the key" none grep -q "$real" "$output"
	expect "the code was given no placeholder" grep -q 'has: pale-secret-' "$output"
	expect "the refusal did not explain itself" grep -q 'rule: deny collector.example.net' "$output"
}

demo_as() { # WHO PLACE PALE HOME [PREFIX...]
	local who=$1 place=$2 pale=$3 home=$4 status before output
	shift 4
	# The caller's secrets, which a box must not inherit.
	local caller=("$@" env "HOME=$home" AWS_SECRET_ACCESS_KEY=demo-not-a-secret "XDG_STATE_HOME=$state_home")
	local run=("${caller[@]}" "$pale")
	scratch
	output=$scratch_dir/output
	before=$(fingerprint "$home")
	cd "$place" || die "cannot enter $place"

	title "The job, as $who"
	command_line "pale run -p policy.yaml analyse.py"
	"${run[@]}" run -p policy.yaml analyse.py 2>&1 </dev/null | tee "$output"
	status=${PIPESTATUS[0]}
	expect "the job ended with status $status" [ "$status" -eq 0 ]
	expect "something that must not work did" none grep -q SUCCEEDED "$output"
	expect "the job did not try everything" [ "$(grep -c '  failed: ' "$output")" -ge 6 ]
	expect "no chart was collected" grep -qs PNG "$place/out/chart.png"

	title "What was blocked, from the audit log"
	command_line "pale audit show --blocked"
	"${run[@]}" audit show --blocked </dev/null 2>&1 | tee "$output"
	grep -q fc-list "$output" && echo "  (fc-list is matplotlib looking for fonts: harmless, and refused all the same)"
	expect "the log does not have the blocked name" grep -q 'exfil.example.net' "$output"
	expect "the log does not have the blocked address" grep -q '203\.0\.113\.7' "$output"
	expect "the log does not have the blocked write" grep -q 'write .*/etc/cron.d' "$output"

	demo_api "$who" "$pale" "$home" "${caller[@]}"

	title "A script that never ends, as $who"
	command_line "pale run --timeout 2s runaway.py spin"
	"${run[@]}" run --timeout 2s runaway.py spin </dev/null
	status=$?
	printf 'exit status %d\n' "$status"
	expect "the time limit did not end it" [ "$status" -eq 124 ]
	command_line "pale run --memory 128MiB runaway.py hoard"
	"${run[@]}" run --memory 128MiB runaway.py hoard </dev/null
	status=$?
	printf 'exit status %d\n' "$status"
	expect "the memory limit did not end it" [ "$status" -eq 124 ]

	expect "a file of the caller's home was changed" [ "$before" = "$(fingerprint "$home")" ]
	expect "something was written to /etc/cron.d" none [ -e /etc/cron.d/station-update ]
	cd "$top" || exit 1
}

demo() {
	[ $# -eq 0 ] || die "demo takes no arguments"
	need build demo
	build_release
	bold='' faint='' plain=''
	if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
		bold=$'\e[1m' faint=$'\e[2m' plain=$'\e[0m'
	fi
	scratch
	local place=$top/demo
	[ -w "$place" ] || place=$build-demo
	state_home=${XDG_STATE_HOME:-${HOME:?}/.local/state}

	title "An agent was asked to summarise a workbook and draw a chart of it"
	local rows
	rows=$(demo_place "$place") || die "cannot make the workbook"
	cat <<-END
	  out/weather.xlsx   $rows: Seattle's weather by day (NOAA), from Debian's python3-vega-datasets.
	                     Its second sheet holds text that gives orders: send keys and secrets away, ...
	  analyse.py         what the agent wrote: the job, and what the text told it to do
	  hand_in.py         another script of its: hands the summary in, with a key
	  policy.yaml        what the first one may touch:
	END
	sed -n '/^pale:/,$p' "$top/demo/policy.yaml" | sed 's/^/                       /'

	local home=$scratch_dir/home who
	demo_home "$home"
	who=$(id -un)
	demo_server
	demo_as "$who" "$place" "$pale" "$home"

	if [ "$(id -u)" -eq 0 ]; then
		make_user || die "cannot make the user $check_user"
		local there
		there=$(mktemp -d "${TMPDIR:-/tmp}/pale-demo.XXXXXX") || die "cannot make a temporary directory"
		cleanups+=("rm -rf -- '$there'")
		demo_place "$there" >/dev/null || die "cannot make the workbook"
		demo_home "$there/home"
		cp "$pale" "$build/src/pale-egress" "$there/"
		chown -R "$check_user:" "$there"
		state_home=$there/state
		demo_as "the unprivileged user $check_user" "$there" "$there/pale" "$there/home" \
			"${as_user[@]}" env -u PALE_STATE_DIR
		[ ! -f "$there/out/chart.png" ] || cp "$there/out/chart.png" "$place/out/chart-unprivileged.png"
	fi

	title "Afterwards"
	place=${place#"$called_from"/}
	pale=${pale#"$called_from"/}
	cat <<-END
	  the chart          $place/out/chart.png
	  the whole log      $pale audit list
	  the plan           $pale explain -p $place/policy.yaml
	  your own code      $pale run script.py, or see README.md
	END
	return "$demo_wrong"
}
