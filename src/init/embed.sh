#!/bin/sh
# Writes FILE as a C array: embed.sh FILE OUTPUT NAME
set -eu
{
	echo "/* Generated from a program of the build: do not edit. */"
	echo "static const unsigned char $3[] = {"
	od -An -v -tx1 "$1" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
	echo "};"
} >"$2.new"
mv "$2.new" "$2"
