/* filtered PROFILE COMMAND...: runs the command under the filter and nothing else, without a
 * listener, so that tests can show what the filter alone does to it. 77: no filter can be installed
 * here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "confine/seccomp.h"

int main(int argc, char **argv)
{
	static const char *const names[] = {"default", "strict", "nested"};
	int listener, r = -EINVAL;

	for (int p = 0; argc > 2 && p < 3; p++)
		if (strcmp(argv[1], names[p]) == 0) {
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			r = seccomp_install((enum policy_profile)p, SECCOMP_NO_LISTENER, &listener);
		}
	if (r < 0) {
		fprintf(stderr, "filtered: %s\n", strerror(-r));
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
