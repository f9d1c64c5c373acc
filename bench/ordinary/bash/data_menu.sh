#!/bin/bash
# A to-do list in a file: add, list, done, count.
set -u
todo() {
	case ${1-} in
	add) shift; printf '[ ] %s\n' "$*" >>todo.txt ;;
	done) sed -i "${2}s/\[ \]/[x]/" todo.txt ;;
	list) nl -w1 -s'. ' todo.txt ;;
	count) grep -c '^\[ \]' todo.txt ;;
	*) echo "usage: todo add|done|list|count" >&2; return 64 ;;
	esac
}
todo add write code; todo add "test it"; todo add 'ship $it'; todo done 2; todo list; todo count; todo nothing 2>&1; echo $?
