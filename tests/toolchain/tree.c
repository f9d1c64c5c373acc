/* Fake homes and toolchains: see tree.h. */
#include "tree.h"

#include <elf.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

char tree_root[64];

int tree_setup(void **state)
{
	(void)state;
	snprintf(tree_root, sizeof(tree_root), "/tmp/pale-tools-XXXXXX");
	if (!mkdtemp(tree_root))
		return -1;
	tree_file("home/bin/", NULL, 0);
	tree_file("home/.local/bin/", NULL, 0);
	tree_file("work/", NULL, 0);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int tree_teardown(void **state)
{
	(void)state;
	return nftw(tree_root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* T/x is below the root. */
static void expand(char out[PATH_MAX], const char *text)
{
	size_t used = 0;

	for (; *text && used < PATH_MAX - 1; text++) {
		if (strncmp(text, "T/", 2) == 0 && (used == 0 || strchr(" :!'\"=", out[used - 1])))
			used += (size_t)snprintf(out + used, PATH_MAX - used, "%s", tree_root);
		else
			out[used++] = *text;
	}
	out[used] = '\0';
}

static void full(char out[PATH_MAX], const char *path)
{
	snprintf(out, PATH_MAX, "%s/%s", tree_root, path);
	for (char *at = out + strlen(tree_root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(out, 0755);
		*at = '/';
	}
}

static void write_file(const char *path, const void *data, size_t len, mode_t mode)
{
	char name[PATH_MAX];
	int fd;

	full(name, path);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

void tree_file(const char *path, const char *content, unsigned mode)
{
	char text[PATH_MAX];

	if (str_ends(path, "/")) {
		full(text, path);
		return;
	}
	expand(text, content);
	write_file(path, text, strlen(text), mode);
}

void tree_link(const char *path, const char *target)
{
	char name[PATH_MAX], to[PATH_MAX];

	full(name, path);
	expand(to, target);
	unlink(name);
	assert_int_equal(symlink(to, name), 0);
}

void tree_remove(const char *path)
{
	char name[PATH_MAX];

	full(name, path);
	assert_int_equal(remove(name), 0);
}

static void elf(const char *path, uint16_t type, const char *interp, const char *runpath,
		const char *needed)
{
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr p[3];
		Elf64_Dyn d[16];
		char interp[256];
		char strings[1024];
	} f = {0};
	size_t at = 1, n = 0;
	char text[PATH_MAX];

	memcpy(f.h.e_ident, ELFMAG, SELFMAG);
	f.h.e_ident[EI_CLASS] = ELFCLASS64;
	f.h.e_ident[EI_DATA] = ELFDATA2LSB;
	f.h.e_ident[EI_VERSION] = EV_CURRENT;
	f.h.e_type = type;
	f.h.e_machine = MACHINE;
	f.h.e_version = EV_CURRENT;
	f.h.e_phoff = sizeof(f.h);
	f.h.e_ehsize = sizeof(f.h);
	f.h.e_phentsize = sizeof(Elf64_Phdr);
	f.p[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof(f), .p_memsz = sizeof(f)};
	f.p[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
			      .p_offset = (uint64_t)((char *)f.d - (char *)&f),
			      .p_filesz = sizeof(f.d)};
	f.h.e_phnum = 2;
	if (interp) {
		f.p[2] = (Elf64_Phdr){.p_type = PT_INTERP,
				      .p_offset = (uint64_t)(f.interp - (char *)&f),
				      .p_filesz = sizeof(f.interp)};
		f.h.e_phnum = 3;
		expand(text, interp);
		snprintf(f.interp, sizeof(f.interp), "%.200s", text);
	}
	f.d[n++] = (Elf64_Dyn){DT_STRTAB, {0x1000 + (uint64_t)(f.strings - (char *)&f)}};
	if (runpath) {
		expand(text, runpath);
		f.d[n++] = (Elf64_Dyn){DT_RUNPATH, {at}};
		at += (size_t)snprintf(f.strings + at, sizeof(f.strings) - at, "%.300s", text) + 1;
	}
	while (needed && *needed) {
		size_t len = strcspn(needed, ":");

		f.d[n++] = (Elf64_Dyn){DT_NEEDED, {at}};
		at += (size_t)snprintf(f.strings + at, sizeof(f.strings) - at, "%.*s", (int)len,
				       needed) +
		      1;
		needed += len + (needed[len] == ':');
	}
	write_file(path, &f, sizeof(f), 0755);
}

void tree_elf(const char *path, const char *interp, const char *runpath, const char *needed)
{
	elf(path, ET_EXEC, interp, runpath, needed);
}

void tree_elf_lib(const char *path, const char *runpath, const char *needed)
{
	elf(path, ET_DYN, NULL, runpath, needed);
}

/* Appends text with the root as T, where it is a path. */
static void show(struct buf *b, const char *text)
{
	const char *at;

	while ((at = strstr(text, tree_root))) {
		buf_add(b, text, (size_t)(at - text));
		buf_adds(b, "T");
		text = at + strlen(tree_root);
	}
	buf_adds(b, text);
}

const char *tree_find(const char *command, const char *script, const char *const *env)
{
	static char out[8192];
	char home[PATH_MAX], cwd[PATH_MAX], path[PATH_MAX], cmd[PATH_MAX], scr[PATH_MAX],
		vis[PATH_MAX];
	char texts[8][PATH_MAX], *list[9] = {NULL};
	const char *visible[] = {vis}, *first_arg = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(out) - 1);
	struct pale_err err;
	struct toolchain t;
	size_t nvisible = 0;
	bool is_file = false;
	int r;

	expand(home, "T/home");
	expand(cwd, "T/work");
	expand(path, "T/home/bin:T/home/.local/bin:/usr/bin:/bin");
	expand(cmd, command);
	if (script)
		expand(scr, script);
	for (size_t i = 0; env && env[i]; i++) {
		expand(texts[i], env[i]);
		list[i] = texts[i];
		if (str_starts(texts[i], "PATH="))
			snprintf(path, sizeof(path), "%s", texts[i] + 5);
		if (str_starts(texts[i], "CWD="))
			snprintf(cwd, sizeof(cwd), "%s", texts[i] + 4);
		if (str_starts(texts[i], "HOME="))
			snprintf(home, sizeof(home), "%s", texts[i] + 5);
		if (str_starts(texts[i], "VISIBLE="))
			nvisible = (size_t)(snprintf(vis, sizeof(vis), "%s", texts[i] + 8) > 0);
		if (strcmp(texts[i], "IS_FILE=1") == 0)
			is_file = true;
		if (str_starts(texts[i], "ARG="))
			first_arg = texts[i] + 4;
	}
	struct toolchain_request req = {.command = cmd,
					.is_file = is_file,
					.first_arg = first_arg,
					.path_env = path,
					.home = home,
					.cwd = cwd,
					.script = script ? scr : NULL,
					.env = list,
					.visible = visible,
					.nvisible = nvisible};

	r = toolchain_find(&req, &t, &err);
	if (r < 0) {
		assert_int_equal(r, -(int)err.code);
		if (r == -PALE_E_NOTFOUND)
			buf_adds(&b, err.sys == ENOENT	 ? "127 "
				     : err.sys == EACCES ? "126 "
							 : "? ");
		else
			buf_adds(&b, r == -PALE_E_HOST ? "refused " : "failed ");
		show(&b, err.message);
	} else {
		buf_adds(&b, "run ");
		show(&b, t.program);
		for (size_t i = 0; i < t.nitems; i++) {
			const struct toolchain_item *it = &t.items[i];

			buf_adds(&b, it->type == TOOLCHAIN_LINK ? "\nlink "
				     : it->directory		? "\nbind/ "
								: "\nbind ");
			show(&b, it->path);
			if (it->type == TOOLCHAIN_LINK) {
				buf_adds(&b, " -> ");
				show(&b, it->data);
			} else {
				assert_string_equal(it->path, it->data);
			}
		}
		for (size_t i = 0; i < t.npath_dirs; i++) {
			buf_adds(&b, "\npath ");
			show(&b, t.path_dirs[i]);
		}
		for (size_t i = 0; i < t.nenv; i++) {
			buf_addf(&b, "\nenv %s=", t.env[i].name);
			show(&b, t.env[i].value);
		}
		if (t.script) {
			buf_adds(&b, "\nscript ");
			show(&b, t.script);
		}
		if (t.drop_args)
			buf_addf(&b, "\ndrop %u", t.drop_args);
		if (*t.hint)
			buf_adds(&b, "\nhint");
	}
	toolchain_done(&t);
	assert_false(b.failed);
	snprintf(out, sizeof(out), "%s", b.data);
	return out;
}
