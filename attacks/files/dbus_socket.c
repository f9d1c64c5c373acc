/* Services of the host that start programs for whoever asks. */
#include "../attack.h"

ATTACK(FILES, "root", .gain = "services of the host that start programs for whoever asks",
       .source = "docker.sock in a container", .works = SOME_KERNELS, .needs = "that service")
{
	static const char *const paths[] = {"/run/dbus/system_bus_socket", "/run/systemd/private",
					    "/run/systemd/journal/socket"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (access(paths[i], F_OK) == 0)
			return 0;
	return denied(ENOENT);
}
