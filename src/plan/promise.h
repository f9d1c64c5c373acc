/* The promises of a plan, in words: what each axis holds, by which mechanism, and what a fallback
 * does not cover. Private to src/plan. */
#pragma once

#include "plan/plan.h"

int promise_make(struct plan *p, struct pale_err *err) _must_check_;

/* For the files that make them. The next one, zeroed but for axis and key. */
struct promise *promise_add(struct plan *p, enum axis axis, const char *key);
void promise_say(char *field, size_t size, const char *fmt, ...) _printf_(3, 4);
#define SAY(field, ...) promise_say(field, sizeof(field), __VA_ARGS__)

/* promise_network.c */
void promise_network(struct plan *p);
/* sidechannel.c */
void promise_sidechannel(struct plan *p);
