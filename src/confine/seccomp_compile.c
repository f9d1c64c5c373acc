/* From the table to BPF: at build time, in the generator, and in tests. No hostile input.
 *
 * libseccomp gives the call numbers of each architecture. Its own code generator is not used: it
 * has one default action a filter, and so cannot say "socket: these families, anything else
 * EAFNOSUPPORT; ptrace: anything else EPERM"; it drops calls newer than itself on any but the build
 * machine's architecture; and its merging of comparisons has had errors. What is needed is little:
 *
 *   - neighbouring call numbers with equal outcomes become one run, and a binary search over the
 *     runs' starts finds the outcome in about seven comparisons;
 *   - an outcome is a return, or a list of comparisons of arguments (a block) that ends in returns;
 *   - an outcome that does not look at arguments loads nothing but the architecture and the number,
 *     so that the kernel (5.11) recognises it and keeps it in its bitmap of allowed calls, where it
 *     costs nothing.
 *
 * The program is written from its end to its beginning, since BPF jumps forwards only: the target
 * is then always known. A label is the count of instructions from it to the end. */
#include "confine/seccomp_compile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include "confine/seccomp_names.h"

#define MAX_CASES 16
#define MAX_RUNS  (2 * SECCOMP_MAX_NR)
#define NEAR	  200 /* a jump reaches 255; the rest is for what comes between */

struct outcome_case {
	const struct seccomp_case *c;
	uint32_t ret;
};

struct outcome {
	struct outcome_case cases[MAX_CASES];
	unsigned ncases;
	uint32_t otherwise;
	int label; /* where it was written last; 0: nowhere yet */
};

struct emitter {
	struct sock_filter insns[SECCOMP_MAX_INSNS]; /* filled from the end */
	int n;
	bool full;
	struct outcome outcomes[64];
	unsigned noutcomes;
	struct {
		uint32_t ret;
		int label;
	} rets[32];
	unsigned nrets;
	struct {
		uint32_t start;
		unsigned outcome;
	} runs[MAX_RUNS];
	unsigned nruns;
};

uint32_t seccomp_audit_arch(enum seccomp_arch arch)
{
	return arch == SECCOMP_X86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
}

static int number_of(const char *name, enum seccomp_arch arch)
{
	for (size_t i = 0; i < seccomp_nnumbers; i++)
		if (strcmp(seccomp_numbers[i].name, name) == 0)
			return arch == SECCOMP_X86_64 ? seccomp_numbers[i].x86_64
						      : seccomp_numbers[i].aarch64;
	return seccomp_names_number(arch == SECCOMP_AARCH64, name);
}

int seccomp_map_fill(enum seccomp_arch arch, struct seccomp_map *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (int nr = 0; nr < SECCOMP_MAX_NR; nr++)
		seccomp_names_name(arch == SECCOMP_AARCH64, nr, ret->name[nr],
				   sizeof(ret->name[nr]));
	for (size_t i = 0; i < seccomp_nrows; i++) {
		const struct seccomp_row *row = &seccomp_rows[i];
		int nr = number_of(row->name, arch);

		if (nr < 0) {
			if (number_of(row->name, SECCOMP_X86_64) < 0 &&
			    number_of(row->name, SECCOMP_AARCH64) < 0) {
				fprintf(stderr, "seccomp_table.c: no such call: %s\n", row->name);
				return -1;
			}
			continue;
		}
		if (nr >= SECCOMP_MAX_NR || ret->row[nr]) {
			fprintf(stderr, "seccomp_table.c: twice, or too high: %s\n", row->name);
			return -1;
		}
		ret->row[nr] = row;
		memcpy(ret->name[nr], row->name, sizeof(row->name));
	}
	return 0;
}

static uint32_t ret_of(unsigned action, unsigned error, unsigned watch)
{
	bool listener = !(watch & SECCOMP_NO_LISTENER);

	switch ((enum seccomp_action)action) {
	case SECCOMP_ALLOW: return SECCOMP_RET_ALLOW;
	case SECCOMP_SILENT: return SECCOMP_RET_ERRNO | error;
	case SECCOMP_REPORT: return listener ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
	case SECCOMP_PEEK:
	case SECCOMP_REFUSE: break;
	}
	return listener ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | error;
}

static void outcome_of(const struct seccomp_row *row, enum policy_profile profile, unsigned watch,
		       struct outcome *ret)
{
	*ret = (struct outcome){.otherwise = ret_of(SECCOMP_REFUSE, SECCOMP_UNKNOWN_ERRNO, watch)};
	if (!row)
		return;
	ret->otherwise = ret_of(row->action[profile], row->error, watch);
	for (const struct seccomp_case *c = seccomp_row_cases(row); c->profiles; c++) {
		if (!(c->profiles & (1u << profile)) || (c->watch && !(c->watch & watch)))
			continue;
		if (c->ntests == 0) {
			ret->otherwise = ret_of(c->action, c->error, watch);
			break;
		}
		if (ret->ncases < MAX_CASES)
			ret->cases[ret->ncases++] =
				(struct outcome_case){c, ret_of(c->action, c->error, watch)};
		else
			ret->ncases = MAX_CASES + 1; /* found by the caller */
	}
	if (ret->ncases <= MAX_CASES)
		while (ret->ncases && ret->cases[ret->ncases - 1].ret == ret->otherwise)
			ret->ncases--;
}

static bool tests_equal(const struct seccomp_case *a, const struct seccomp_case *b)
{
	if (a->ntests != b->ntests)
		return false;
	for (unsigned i = 0; i < a->ntests; i++)
		if (a->tests[i].arg != b->tests[i].arg || a->tests[i].op != b->tests[i].op ||
		    a->tests[i].mask != b->tests[i].mask || a->tests[i].value != b->tests[i].value)
			return false;
	return true;
}

static bool outcomes_equal(const struct outcome *a, const struct outcome *b)
{
	if (a->ncases != b->ncases || a->otherwise != b->otherwise)
		return false;
	for (unsigned i = 0; i < a->ncases; i++)
		if (a->cases[i].ret != b->cases[i].ret ||
		    !tests_equal(a->cases[i].c, b->cases[i].c))
			return false;
	return true;
}

/* Writes the instruction before all that is there; its label. */
static int emit(struct emitter *e, uint16_t code, int jt, int jf, uint32_t k)
{
	if (e->n >= SECCOMP_MAX_INSNS || jt > 255 || jf > 255) {
		e->full = true;
		return 1;
	}
	e->n++;
	e->insns[SECCOMP_MAX_INSNS - e->n] =
		(struct sock_filter){code, (uint8_t)jt, (uint8_t)jf, k};
	return e->n;
}

/* A label that a conditional jump written next, or soon, can reach. */
static int near_label(struct emitter *e, int label)
{
	if (e->n - label <= NEAR)
		return label;
	return emit(e, BPF_JMP | BPF_JA, 0, 0, (uint32_t)(e->n - label));
}

static int emit_ret(struct emitter *e, uint32_t ret)
{
	unsigned i = 0;

	while (i < e->nrets && e->rets[i].ret != ret)
		i++;
	if (i == ARRAY_SIZE(e->rets)) {
		e->full = true;
		return 1;
	}
	if (i == e->nrets)
		e->rets[e->nrets++].ret = ret;
	else if (e->n - e->rets[i].label <= NEAR / 2)
		return e->rets[i].label;
	return e->rets[i].label = emit(e, BPF_RET | BPF_K, 0, 0, ret);
}

/* The next instruction compares with k: where to go if equal, and if not. */
static int emit_equal(struct emitter *e, uint32_t k, int yes, int no)
{
	yes = near_label(e, yes);
	no = near_label(e, no);
	return emit(e, BPF_JMP | BPF_JEQ | BPF_K, e->n - yes, e->n - no, k);
}

static int emit_load(struct emitter *e, unsigned arg, bool high)
{
	size_t offset = offsetof(struct seccomp_data, args) + 8u * arg + (high ? 4 : 0);

	return emit(e, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* *ret_loaded: the label behind the load of the (low half of the) argument. */
static int emit_test(struct emitter *e, const struct seccomp_test *t, int yes, int no,
		     int *ret_loaded)
{
	if (t->op == SECCOMP_POINTER) {
		emit_equal(e, 0, no, yes);
		int high = emit_load(e, t->arg, true);

		*ret_loaded = emit_equal(e, 0, high, yes);
		return emit_load(e, t->arg, false);
	}
	*ret_loaded = t->op == SECCOMP_EQ ? emit_equal(e, t->value, yes, no)
					  : emit_equal(e, t->value, no, yes);
	if (t->mask != 0xffffffffu)
		*ret_loaded = emit(e, BPF_ALU | BPF_AND | BPF_K, 0, 0, t->mask);
	return emit_load(e, t->arg, false);
}

static int emit_outcome(struct emitter *e, struct outcome *o)
{
	int next, next_loaded = 0;

	if (!o->ncases)
		return emit_ret(e, o->otherwise);
	if (o->label && e->n - o->label <= NEAR / 2)
		return o->label;
	next = emit_ret(e, o->otherwise);
	for (unsigned i = o->ncases; i-- > 0;) {
		const struct seccomp_case *c = o->cases[i].c;
		int yes = emit_ret(e, o->cases[i].ret), loaded = 0, no = next;

		/* A lone comparison of the bare argument leaves it loaded for the next case. */
		if (c->ntests == 1 && c->tests[0].mask == 0xffffffffu && next_loaded &&
		    o->cases[i + 1].c->tests[0].arg == c->tests[0].arg)
			no = next_loaded;
		for (unsigned t = c->ntests; t-- > 0;)
			yes = emit_test(e, &c->tests[t], yes, no, &loaded);
		next = yes;
		next_loaded = loaded;
	}
	return o->label = next;
}

static int emit_tree(struct emitter *e, unsigned first, unsigned count)
{
	if (count == 1)
		return emit_outcome(e, &e->outcomes[e->runs[first].outcome]);

	unsigned left = count / 2;
	int above = emit_tree(e, first + left, count - left);
	int below = emit_tree(e, first, left);

	above = near_label(e, above);
	below = near_label(e, below);
	return emit(e, BPF_JMP | BPF_JGE | BPF_K, e->n - above, e->n - below,
		    e->runs[first + left].start);
}

static int add_run(struct emitter *e, uint32_t nr, const struct outcome *o)
{
	unsigned i = 0;

	while (i < e->noutcomes && !outcomes_equal(&e->outcomes[i], o))
		i++;
	if (i == ARRAY_SIZE(e->outcomes) || o->ncases > MAX_CASES)
		return -1;
	if (i == e->noutcomes)
		e->outcomes[e->noutcomes++] = *o;
	if (e->nruns && e->runs[e->nruns - 1].outcome == i)
		return 0;
	e->runs[e->nruns].start = nr;
	e->runs[e->nruns++].outcome = i;
	return 0;
}

int seccomp_compile(enum seccomp_arch arch, const struct seccomp_map *map,
		    enum policy_profile profile, unsigned watch,
		    struct sock_filter ret[static SECCOMP_MAX_INSNS])
{
	static struct emitter emitter;
	struct emitter *e = &emitter;
	struct outcome o;

	memset(e, 0, sizeof(*e));
	for (uint32_t nr = 0; nr < SECCOMP_MAX_NR; nr++) {
		outcome_of(map->row[nr], profile, watch, &o);
		if (add_run(e, nr, &o) < 0)
			return -1;
	}
	/* Above all known numbers: unknown calls, and the x32 ones (which have bit 30 set). */
	outcome_of(NULL, profile, watch, &o);
	if (add_run(e, SECCOMP_MAX_NR, &o) < 0)
		return -1;

	/* Another architecture's calls (int 0x80) are answered as a kernel without them would, and
	 * are reported, which killing would not be. */
	int foreign = emit_ret(e, o.otherwise);
	int tree = emit_tree(e, 0, e->nruns);

	if (tree != e->n)
		return -1;
	int own = emit(e, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));

	emit_equal(e, seccomp_audit_arch(arch), own, foreign);
	emit(e, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	if (e->full)
		return -1;
	memcpy(ret, e->insns + SECCOMP_MAX_INSNS - e->n, (size_t)e->n * sizeof(*ret));
	return e->n;
}
