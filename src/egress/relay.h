/* Bytes both ways, unread: raw TCP, and TLS that is not opened. */
#pragma once

#include "egress/flow.h"

/* Takes the flow over; dials if f->upstream is -1. f->protocol and f->rule are set. */
void relay_start(struct flow *f);
/* Frees the spare pipes. */
void relay_stop(void);
