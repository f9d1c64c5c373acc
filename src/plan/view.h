/* What a box sees of the machine's size: the kernel's own texts, cut down to the box's limits. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* The processors that a box with this share sees: whole ones, at least one, at most the host's.
 * cpus_milli 0 means no limit. */
unsigned view_cpus(uint64_t cpus_milli, unsigned host_cpus);

/* For each: appends the text to out. 0, or -ENOSPC or -ENOMEM. host is the kernel's text. */

/* /sys/devices/system/cpu/{online,present,possible}: "0-3\n". */
int view_cpu_list(struct buf *out, unsigned cpus) _must_check_;
/* /proc/meminfo with memory_bytes (0: no limit) in all, all of it free, no swap. */
int view_meminfo(struct buf *out, const char *host, uint64_t memory_bytes) _must_check_;
/* /proc/cpuinfo: the first processors, numbered from 0. */
int view_cpuinfo(struct buf *out, const char *host, unsigned cpus) _must_check_;
/* /proc/stat: the first processors and their sum; nothing of what the host does besides. */
int view_stat(struct buf *out, const char *host, unsigned cpus) _must_check_;
