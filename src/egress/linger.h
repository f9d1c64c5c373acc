/* Closing a connection so that what was written last arrives: a socket that is closed with unread
 * bytes resets the connection, and the peer may lose the refusal that explains itself. */
#pragma once

#include "egress/egress.h"

/* Takes fd: ends the sending side, reads and drops what comes until the peer closes (for at most
 * two seconds and a bounded number of bytes), then closes. */
void linger_close(struct egress *e, int fd);
/* Closes with a reset. */
void linger_reset(int fd);
/* Closes all at once, at the end. */
void linger_stop(struct egress *e);
