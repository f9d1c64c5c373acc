/* What verify tells: for programs and for people. */
#pragma once

#include <jansson.h>

#include "verify/corpus.h"
#include "verify/judge.h"

/* own: the plan's promises without verify's own files; part: only some attacks were tried, and the
 * other promises are left out; ret_state: as pale_verify() returns. NULL:
 * out of memory. A new reference. */
json_t *report_json(const struct corpus *c, const struct promised *p, json_t *own, bool part,
		    int *ret_state);
