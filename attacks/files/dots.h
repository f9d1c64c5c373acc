/* The secret by a path that leads above any root. */
#pragma once

#include "../attack.h"

#define DOTS10 "../../../../../../../../../../"

static inline const char *dots_to_secret(void)
{
	static char path[700];

	snprintf(path, sizeof(path), DOTS10 DOTS10 DOTS10 DOTS10 "%s", target("secret") + 1);
	return path;
}
