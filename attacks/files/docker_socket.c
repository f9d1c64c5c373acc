/* A container with all of the host in it. */
#include "../attack.h"

ATTACK(FILES, "root", .gain = "a container with all of the host in it",
       .source = "docker.sock in a container", .works = SOME_KERNELS, .needs = "that service")
{
	static const char *const paths[] = {"/run/docker.sock", "/var/run/docker.sock",
					    "/run/containerd/containerd.sock",
					    "/run/podman/podman.sock"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (access(paths[i], F_OK) == 0)
			return 0;
	return denied(ENOENT);
}
