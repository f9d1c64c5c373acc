/* Where a symbolic link leads, by its text. */
#pragma once

#include <stdbool.h>

/* Whether a link at path (relative to the top of a tree) with this target may lead out of the tree:
 * it is absolute, climbs higher than the top, or climbs after it went down, where a name may be a
 * link itself and the text says nothing. */
bool link_leads_out(const char *path, const char *target);
