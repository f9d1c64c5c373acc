/* The standard streams between the caller and the box: pipes or one pty, binary and unchanged.
 *
 * Nothing here blocks: a slow reader outside makes the box wait, never the supervisor, whose timers
 * must go on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "isolation/isolation.h"
#include "supervise/output.h"

struct event_base;
struct streams;

/* Everything that the box prints, as it comes. */
typedef void streams_data(void *arg, enum output_stream stream, const char *data, size_t len);
/* Something moved on: both streams may have come to their end. */
typedef void streams_progress(void *arg);

struct streams_config {
	struct event_base *base;
	struct box *box;  /* its stream descriptors are used and closed here */
	int in, out, err; /* the caller's, borrowed; -1: none (input then ends at once) */
	streams_data *data;
	streams_progress *progress;
	void *arg;
};

int streams_new(const struct streams_config *c, struct streams **ret,
		struct pale_err *err) _must_check_;
void streams_free(struct streams *s);

/* A process of the box is about to write to one of its streams: what both hold now came before
 * that. */
void streams_before_write(struct streams *s);
/* The box is dead: what is still in its pipes is all there will be; when it is passed on,
 * `progress` is called and streams_done() is true. */
void streams_box_ended(struct streams *s);
bool streams_done(const struct streams *s);
/* Why some of the output was lost, other than by a reader who has gone: an errno, or 0. */
int streams_error(const struct streams *s);
/* The pty's master, borrowed, or -1. */
int streams_tty(const struct streams *s);
/* Stops passing anything on (a limit ended the box, and the reader outside may never read). */
void streams_abandon(struct streams *s);
