# shellcheck shell=bash disable=SC2154
# ./dev bench: builds, then hands over to bench.py; sourced by dev.

bench() {
	local what=start
	case ${1-} in
	start | syscalls | egress | session | speculation | neighbour | ordinary) what=$1; shift ;;
	'' | -*) ;;
	*) die "bench: start, syscalls, egress, session, speculation, neighbour or ordinary, not $1" ;;
	esac
	need build bench
	[ "$what" != ordinary ] || need ordinary
	build_release
	local user=()
	if [ "$(id -u)" -eq 0 ]; then
		make_user || die "cannot make the user $check_user"
		user=(--user "$check_user")
	fi
	if [ "$what" = egress ]; then
		[ "$(id -u)" -eq 0 ] || die "bench egress: root only: it makes network namespaces"
		/usr/bin/python3 "$top/bench/egress.py" --pale "$pale" --peer "$build/bench/bench-egress-peer" \
			"${user[@]}" "$@"
		return
	fi
	if [ "$what" = session ]; then
		/usr/bin/python3 "$top/bench/session.py" --pale "$pale" --client "$build/bench/bench-session" "${user[@]}" "$@"
		return
	fi
	if [ "$what" = speculation ]; then
		/usr/bin/python3 "$top/bench/speculation.py" --pale "$pale" --program "$build/bench/bench-speculation" "$@"
		return
	fi
	if [ "$what" = ordinary ]; then
		/usr/bin/python3 "$top/bench/ordinary/ordinary.py" --pale "$pale" "${user[@]}" "$@"
		return
	fi
	if [ "$what" = neighbour ]; then
		/usr/bin/python3 "$top/bench/neighbour.py" --pale "$pale" --program "$build/bench/bench-neighbour" \
			--bombs "$build/attacks/bombs/take_all" "$@"
		return
	fi
	/usr/bin/python3 "$top/bench/bench.py" "$what" --pale "$pale" --programs "$build/bench" \
		--build "$build" --top "$top" "${user[@]}" "$@"
}
