/* Events to the supervisor: what was tried, and what came of it.
 *
 * Whatever is inside can make blocked attempts faster than anybody can read them. So each kind of
 * attempt (outcome, what, host, address, port, protocol, query, rule, detail) is told singly a few
 * times, and then counted and told a few times a second with its `count`: the sum over the events
 * is exact as long as the kinds fit the table; beyond that the address and then the host are left
 * empty, and the sum is exact still. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "egress/wire.h"
#include "base/err.h"

struct egress;
struct events;

int events_new(struct egress *e, struct events **ret) _must_check_;
void events_free(struct events *v);

/* Tells, or counts; count 0 means 1. Strings must be NUL-terminated within their arrays. */
void event_tell(struct egress *e, const struct egress_event *ev);
/* Copies text into one of an event's arrays, cut where it does not fit. */
void event_text(char *to, size_t size, const char *text);
#define EVENT_TEXT(array, text) event_text(array, sizeof(array), text)
/* Everything that is counted but not told yet, waiting for the supervisor; at the end. */
void events_flush(struct egress *e);
