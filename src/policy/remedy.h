/* Which rule would have allowed what was refused: for people, and for programs that ask people. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/network.h"

struct network_attempt {
	const char *host;    /* hostile; NULL or empty: an address */
	const char *address; /* hostile, as text; or NULL or empty */
	/* The rules allow the rest, and that is where the host leads: an address that none of them
	 * names. Without a host: an address that a rule has, but not by itself. */
	bool unfit;
	uint16_t port;			/* 0: a name that was looked up */
	enum network_protocol protocol; /* 0: not known */
	const char *method, *path;	/* hostile; of a request; or NULL or empty */
};

#define NETWORK_REMEDY_TEXT 640

/* The narrowest rule, in the form of `--allow`, which beside those of n (NULL: none) lets the
 * attempt through; plain characters only, so that it can stand between quotes in a shell's line.
 * False, and out empty: no further rule does. A rule that denies stands in the way, the rules
 * allow it and something else is wrong with it, or what is asked for cannot be had in a box.
 *
 * What it cannot know is whether an address is one of the host's own. Allocates nothing. */
bool network_remedy(const struct policy_network *n, const struct network_attempt *a,
		    char out[static NETWORK_REMEDY_TEXT]);
