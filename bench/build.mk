# A real build for ./dev bench syscalls: Pale's own C files, one compiler run each, then an archive.
#   make -f bench/build.mk TOP=<tree, with generated headers in generated/> OUT=<directory>
sources := $(wildcard $(TOP)/src/*/*.c $(TOP)/src/*/*/*.c)
objects := $(patsubst $(TOP)/%.c,$(OUT)/%.o,$(sources))
include := $(addprefix -I,$(TOP)/include $(TOP)/src $(TOP)/generated $(wildcard $(TOP)/generated/*/ $(TOP)/generated/*/*/))

$(OUT)/all.a: $(objects)
	ar rcs $@ $^

$(OUT)/%.o: $(TOP)/%.c
	@mkdir -p $(dir $@)
	gcc -std=gnu17 -D_GNU_SOURCE -DPALE_VERSION='"bench"' -DPALE_LIBEXECDIR='"/"' -DPALE_DATADIR='"/"' \
		-O1 -w $(include) -c -o $@ $<
