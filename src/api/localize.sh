#!/bin/sh
# libpale.a: one object whose only global names are those of pale.h.
#   localize.sh CORE.a OUTPUT.a DIRECTORY
set -eu
mkdir -p "$3"
ld -r -o "$3/libpale.o" --whole-archive "$1"
objcopy --localize-hidden "$3/libpale.o"
rm -f "$2"
ar rcsD "$2" "$3/libpale.o"
