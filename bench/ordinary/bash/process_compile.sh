#!/bin/bash
# gcc and make.
set -eu
printf '#include <stdio.h>\nint main(int c, char **v) { printf("%%s %%d\\n", v[1], c); return 0; }\n' >m.c
printf 'all: m\nm: m.o\n\tgcc -o $@ $^\n%%.o: %%.c\n\tgcc -O1 -c $<\nclean:\n\trm -f m m.o\n' >Makefile
make -s -j2; ./m hello; make -s clean; ls; echo 'int main(void) { return x; }' >bad.c; gcc bad.c 2>/dev/null || echo 'does not compile'
