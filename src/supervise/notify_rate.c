/* How many events of each sort there were: exactly, in bounded memory, whatever the box does.
 *
 * Events that are alike (kind, call, operation, destination, path, program) share an entry; a box
 * that makes more sorts than there are entries has the rest counted together per kind. Each kind
 * has its share of the entries, so that noise of one kind does not hide another. In the supervisor.
 * The strings are hostile, and a box may aim at one slot of the table with all of them: the hash is
 * keyed with random bytes, and a look-up takes at most PROBES steps. */
#include "supervise/notify_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define ENTRIES 512
#define SHARE	(ENTRIES / NOTIFY_KINDS)
#define PROBES	32

struct entry {
	uint64_t hash; /* 0: free */
	uint64_t total, told;
	struct notify_event ev;
};

struct notify_rate {
	uint64_t key[2];
	uint64_t overflow[NOTIFY_KINDS], overflow_told[NOTIFY_KINDS];
	size_t used, share[NOTIFY_KINDS];
	struct entry entries[ENTRIES];
};

/* SipHash-2-4, incremental by words: short and made for hostile keys. */
struct sip {
	uint64_t v[4];
};
#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
static void sip_round(uint64_t *v)
{
	v[0] += v[1];
	v[1] = ROTL(v[1], 13) ^ v[0];
	v[0] = ROTL(v[0], 32);
	v[2] += v[3];
	v[3] = ROTL(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = ROTL(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = ROTL(v[1], 17) ^ v[2];
	v[2] = ROTL(v[2], 32);
}

static void sip_word(struct sip *s, uint64_t m)
{
	s->v[3] ^= m;
	sip_round(s->v);
	sip_round(s->v);
	s->v[0] ^= m;
}

static void sip_string(struct sip *s, const char *text)
{
	size_t len = strlen(text);

	sip_word(s, len);
	for (size_t i = 0; i < len; i += 8) {
		uint64_t m = 0;

		memcpy(&m, text + i, len - i < 8 ? len - i : 8);
		sip_word(s, m);
	}
}

static uint64_t hash(const struct notify_rate *r, const struct notify_event *ev)
{
	struct sip s = {{r->key[0] ^ 0x736f6d6570736575, r->key[1] ^ 0x646f72616e646f6d,
			 r->key[0] ^ 0x6c7967656e657261, r->key[1] ^ 0x7465646279746573}};
	uint64_t h;

	sip_word(&s, (uint64_t)ev->kind | (uint64_t)ev->op << 8 | (uint64_t)ev->port << 16 |
			     (uint64_t)(uint32_t)ev->error << 32);
	sip_string(&s, ev->call);
	sip_string(&s, ev->detail);
	sip_string(&s, ev->comm);
	sip_string(&s, ev->exe);
	sip_string(&s, ev->address);
	sip_string(&s, ev->protocol);
	sip_string(&s, ev->path);
	s.v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(s.v);
	h = s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
	return h ? h : 1;
}

struct notify_rate *notify_rate_new(void)
{
	/* Under a megabyte of addresses; memory only for what is used. */
	struct notify_rate *r = calloc(1, sizeof(*r));

	if (r && getrandom(r->key, sizeof(r->key), 0) != sizeof(r->key)) {
		free(r);
		return NULL;
	}
	return r;
}

void notify_rate_free(struct notify_rate *r)
{
	free(r);
}

bool notify_rate_count(struct notify_rate *r, struct notify_event *ev, unsigned singly)
{
	uint64_t h = hash(r, ev);

	for (unsigned i = 0; i < PROBES; i++) {
		struct entry *e = &r->entries[(h + i) % ENTRIES];

		if (!e->hash) {
			if (r->share[ev->kind] == SHARE)
				break;
			r->share[ev->kind]++;
			*e = (struct entry){.hash = h, .ev = *ev};
			r->used++;
		}
		/* 64 keyed bits stand for the event: that two differ in it is not to be feared. */
		if (e->hash != h)
			continue;
		ev->total = ++e->total;
		if (e->total > singly)
			return false;
		e->told++;
		return true;
	}
	r->overflow[ev->kind]++;
	return false;
}

void notify_rate_flush(struct notify_rate *r, notify_sink *sink, void *arg,
		       struct notify_event *scratch)
{
	for (size_t i = 0; r->used && i < ENTRIES; i++) {
		struct entry *e = &r->entries[i];

		if (!e->hash || e->told == e->total)
			continue;
		*scratch = e->ev;
		scratch->pid = 0;
		scratch->count = e->total - e->told;
		scratch->total = e->total;
		scratch->is_total = true;
		e->told = e->total;
		sink(arg, scratch);
	}
	for (int k = 0; k < NOTIFY_KINDS; k++) {
		if (r->overflow_told[k] == r->overflow[k])
			continue;
		*scratch = (struct notify_event){.kind = (enum notify_kind)k,
						 .protocol = "",
						 .count = r->overflow[k] - r->overflow_told[k],
						 .total = r->overflow[k],
						 .is_total = true,
						 .is_overflow = true};
		r->overflow_told[k] = r->overflow[k];
		sink(arg, scratch);
	}
}
