/* The static command loads no code at run time: SQLite's loader of extensions, linked in with the
 * rest of it, finds nothing here. Only linked into the static command. (The linker still warns of
 * dlopen in a static program: glibc's start-up code has its own reference. Nothing calls it.) */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return 0;
}

char *dlerror(void)
{
	static char why[] = "this program loads no code";

	return why;
}
