/* Caps on bytes: see cap.h. Runs in the broker; counts only. A rate is kept by a clock of its own:
 * each byte moves the moment on until which its share of time is used up. */
#include "egress/cap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct cap {
	uint64_t rate, total; /* 0: none */
	uint64_t moved;
	uint64_t busy_until_us;
};

struct caps {
	struct cap box;
	struct cap *rules;
	size_t nrules;
};

static void set(struct cap *c, uint64_t rate, uint64_t total)
{
	c->rate = rate;
	c->total = total;
}

int caps_new(const struct policy_network *n, struct caps **ret)
{
	struct caps *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (caps_rules(c, NULL, n) < 0) {
		free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void caps_free(struct caps *c)
{
	if (!c)
		return;
	free(c->rules);
	free(c);
}

static bool text_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_rule(const struct network_rule *a, const struct network_rule *b)
{
	if (!text_equal(a->host, b->host) || a->deny != b->deny || a->protocols != b->protocols ||
	    a->nports != b->nports || !a->cidr != !b->cidr)
		return false;
	if (a->cidr && (a->cidr->family != b->cidr->family || a->cidr->bits != b->cidr->bits ||
			memcmp(&a->cidr->address, &b->cidr->address, sizeof(a->cidr->address))))
		return false;
	for (size_t i = 0; i < a->nports; i++)
		if (a->ports[i].first != b->ports[i].first || a->ports[i].last != b->ports[i].last)
			return false;
	return true;
}

int caps_rules(struct caps *c, const struct policy_network *before,
	       const struct policy_network *now)
{
	struct cap *rules = calloc(now->nrules ? now->nrules : 1, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < now->nrules; i++) {
		for (size_t j = 0; before && j < before->nrules; j++)
			if (same_rule(&before->rules[j], &now->rules[i])) {
				rules[i] = c->rules[j];
				break;
			}
		set(&rules[i], now->rules[i].rate_bytes, now->rules[i].total_bytes);
	}
	set(&c->box, now->rate_bytes, now->total_bytes);
	free(c->rules);
	c->rules = rules;
	c->nrules = now->nrules;
	return 0;
}

static struct cap *cap_of(const struct caps *c, int rule)
{
	return rule >= 0 && (size_t)rule < c->nrules ? &c->rules[rule] : NULL;
}

static bool reached(const struct cap *c)
{
	return c && c->total && c->moved >= c->total;
}

static void move(struct cap *c, uint64_t bytes, uint64_t now_us)
{
	c->moved += bytes;
	if (!c->rate)
		return;
	if (c->busy_until_us < now_us)
		c->busy_until_us = now_us;
	/* Bytes of one step are few, so that the product fits. */
	c->busy_until_us += bytes * 1000000 / c->rate;
}

int caps_account(struct caps *c, int rule, uint64_t bytes)
{
	struct cap *r = cap_of(c, rule);
	uint64_t now_us = c->box.rate || (r && r->rate) ? clock_mono_us() : 0;

	move(&c->box, bytes, now_us);
	if (r)
		move(r, bytes, now_us);
	return reached(&c->box) || reached(r) ? -EDQUOT : 0;
}

bool caps_reached(const struct caps *c, int rule)
{
	return reached(&c->box) || reached(cap_of(c, rule));
}

uint64_t caps_pause_us(const struct caps *c, int rule)
{
	const struct cap *r = cap_of(c, rule);
	uint64_t until_us = c->box.rate ? c->box.busy_until_us : 0, now_us;

	if (r && r->rate && r->busy_until_us > until_us)
		until_us = r->busy_until_us;
	if (!until_us)
		return 0;
	now_us = clock_mono_us();
	return until_us > now_us ? until_us - now_us : 0;
}

const char *caps_quota_detail(const struct caps *c, int rule)
{
	return reached(cap_of(c, rule)) ? "the rule's cap on bytes is reached"
					: "the box's cap on bytes is reached";
}
