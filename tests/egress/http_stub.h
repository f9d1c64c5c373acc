/* The rest of the broker, as the HTTP engine sees it, for programs that have the engine only. */
#pragma once

#include "egress/flow.h"

/* A socket that is connected to whom the flow, or (f NULL or a proxy's) the host, wants; or -1. */
extern int (*stub_dial)(const struct flow *f, const char *host);
extern void (*stub_event)(const struct egress_event *ev); /* NULL: to nobody */
extern size_t stub_nflows;

void stub_recheck(void);
void stub_end_all(void);
