# A real build for ./dev bench syscalls: Pale's own C files, one compiler run each, then an archive.
#   make -f bench/build.mk TOP=<tree> OUT=<directory>
sources := $(wildcard $(TOP)/src/*/*.c $(TOP)/src/*/*/*.c)
objects := $(patsubst $(TOP)/%.c,$(OUT)/%.o,$(sources))

$(OUT)/all.a: $(objects)
	ar rcs $@ $^

# A file that needs a generated header is only preprocessed as far as it goes: hence -k in spirit, by
# taking a failing compilation for an empty object. What was done is the same inside and outside.
$(OUT)/%.o: $(TOP)/%.c
	@mkdir -p $(dir $@)
	gcc -std=gnu17 -D_GNU_SOURCE -DPALE_VERSION='"bench"' -DPALE_LIBEXECDIR='"/"' -DPALE_DATADIR='"/"' \
		-O1 -w -I$(TOP)/include -I$(TOP)/src -c -o $@ $< 2>/dev/null || : >$@.c && gcc -c -o $@ -x c /dev/null
