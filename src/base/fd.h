/* Descriptors: opening beneath a trusted directory, passing over sockets, whole reads and writes.
 * Everything is close-on-exec from birth. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/openat2.h>

#include "cleanup.h"

/* Opens path beneath dirfd with openat2: never through a symbolic link at its end, never out of
 * dirfd, never through a magic link. flags as for open(2) (O_CLOEXEC is added).
 * Returns a descriptor or a negative errno; -EXDEV means that the path leads out. */
int fd_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/* openat2 with the given RESOLVE_* flags (O_CLOEXEC is added). A descriptor or a negative errno. */
int fd_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve);

/* Writes all of it, retrying on EINTR and short writes. 0 or a negative errno. */
int fd_write_all(int fd, const void *data, size_t len) _must_check_;

/* Reads exactly len bytes unless the end comes first; the count or a negative errno. */
ssize_t fd_read_full(int fd, void *data, size_t len) _must_check_;

/* The same from an offset, which stays where it is. */
ssize_t fd_pread_full(int fd, void *data, size_t len, int64_t at) _must_check_;

/* Sends one message with nfds (at most 64) descriptors. 0 or a negative errno. */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t nfds) _must_check_;

/* The same, without waiting: -EAGAIN if the other side is behind. */
int fd_send_now(int sock, const void *data, size_t len, const int *fds, size_t nfds) _must_check_;

/* Receives one message of at most len bytes; descriptors are close-on-exec and owned by the caller;
 * more than max_fds are closed and -EMSGSIZE returned. The byte count (0 at the end) or a negative
 * errno. *ret_nfds may be NULL only if max_fds is 0. */
ssize_t fd_recv(int sock, void *data, size_t len, int *fds, size_t max_fds,
		size_t *ret_nfds) _must_check_;

int fd_set_nonblock(int fd, bool on);

/* Moves a descriptor away if it is one of the standard streams, which are about to be replaced: 0
 * or a negative errno. */
int fd_off_stdio(int *fd) _must_check_;
