/* Whose a connection is: the inode of the client's socket in the box, by which the supervisor, who
 * saw the program connect, knows it again. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* diag: EGRESS_DIAG; from: the client's name; to: where it connected to, as it sees it. 0: not
 * known (it has closed already, or the kernel does not tell). Never waits. */
uint32_t client_inode(int diag, int protocol, const struct sockaddr_storage *from,
		      const struct sockaddr_storage *to);
