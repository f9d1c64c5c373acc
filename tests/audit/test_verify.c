/* Each kind of tampering is found, at the right line, and named. */
#include "audit/verify.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "audit/chain.h"

static const char id[] = "01m8kzd46mhybj3hzj5he7f686";
enum { LINES = 6 };

struct log {
	char *line[LINES + 4]; /* with newlines */
	size_t n;
	struct audit_seal seal;
};

static void free_log(struct log *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->line[i]);
}

static struct log make(bool end)
{
	struct chain_head head = {0};
	struct log l = {0};

	chain_genesis(id, head.hash);
	for (int i = 0; i < LINES; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);
		json_t *body = json_pack("{s:i}", "n", i);
		const char *event = i == 0		    ? "box.start"
				    : i == LINES - 1 && end ? "box.end"
							    : "usage";

		assert_int_equal(chain_build(&head, id, "2026-01-31T12:00:00.000000Z", "supervise",
					     event, body, &b),
				 0);
		json_decref(body);
		head.seq++;
		chain_hash(b.data, b.len - 1, head.hash);
		l.line[l.n++] = take_ptr(b.data);
	}
	l.seal = (struct audit_seal){.present = true, .lines = LINES};
	memcpy(l.seal.head, head.hash, AUDIT_HASH_SIZE);
	return l;
}

static struct audit_verdict check(const struct log *l, const char *head,
				  enum audit_state_of_log unfinished)
{
	_cleanup_close_ int fd = memfd_create("log", MFD_CLOEXEC);
	struct audit_verdict v;
	struct pale_err err;

	for (size_t i = 0; i < l->n; i++)
		assert_int_equal(write(fd, l->line[i], strlen(l->line[i])), strlen(l->line[i]));
	assert_int_equal(audit_verify_fd(id, fd, &l->seal, head, unfinished, &v, &err), 0);
	return v;
}

static void expect(const struct log *l, uint64_t line, const char *what)
{
	struct audit_verdict v = check(l, NULL, AUDIT_LOG_SEALED);

	assert_int_equal(v.state, AUDIT_LOG_BROKEN);
	if (!strstr(v.what, what) || v.bad_line != line)
		fail_msg("line %lu: %s; expected line %lu: %s", v.bad_line, v.what, line, what);
}

static void test_whole(void **state)
{
	struct log l = make(true);
	struct audit_verdict v = check(&l, NULL, AUDIT_LOG_SEALED);

	(void)state;
	assert_int_equal(v.state, AUDIT_LOG_SEALED);
	assert_int_equal(v.lines, LINES);
	assert_int_equal(v.end_line, LINES);
	assert_string_equal(v.head, l.seal.head);
	/* A hash that was noted elsewhere is that of a line, or not. */
	v = check(&l, l.seal.head, AUDIT_LOG_SEALED);
	assert_int_equal(v.head_line, LINES);
	char other[AUDIT_HASH_SIZE];

	chain_hash(l.line[2], strlen(l.line[2]) - 1, other);
	assert_int_equal(check(&l, other, AUDIT_LOG_SEALED).head_line, 3);
	other[0] = other[0] == '0' ? '1' : '0';
	assert_int_equal(check(&l, other, AUDIT_LOG_SEALED).state, AUDIT_LOG_BROKEN);
	free_log(&l);
}

static void test_unfinished(void **state)
{
	struct log l = make(false);

	(void)state;
	l.seal.present = false;
	assert_int_equal(check(&l, NULL, AUDIT_LOG_LIVE).state, AUDIT_LOG_LIVE);
	assert_int_equal(check(&l, NULL, AUDIT_LOG_LOST).state, AUDIT_LOG_LOST);
	expect(&l, LINES + 1, "without box.end");
	/* Half a line is normal while one is being written, and not after. */
	l.line[LINES - 1][20] = '\0';
	assert_int_equal(check(&l, NULL, AUDIT_LOG_LIVE).state, AUDIT_LOG_LIVE);
	expect(&l, LINES, "not complete");
	free_log(&l);
}

static void test_changed(void **state)
{
	(void)state;
	for (int i = 0; i < LINES; i++) {
		struct log l = make(true);
		char what[40];

		*strstr(l.line[i], "\"n\":") = '\'';
		expect(&l, (uint64_t)i + 1, "not JSON");
		*strchr(l.line[i], '\'') = '"';
		strstr(l.line[i], "\"n\":")[4] = '9';
		snprintf(what, sizeof(what), "line %d was changed", i + 1);
		expect(&l, (uint64_t)i + 1, what);
		free_log(&l);
	}
}

static void test_changed_prev(void **state)
{
	(void)state;
	for (int i = 0; i < LINES - 1; i++) {
		struct log l = make(true);
		char *hash = strstr(l.line[i], "\"prev\":\"") + 8;

		*hash = *hash == '0' ? '1' : '0';
		expect(&l, (uint64_t)i + 1, "changed");
		free_log(&l);
	}
}

static void drop(struct log *l, size_t at)
{
	free(l->line[at]);
	memmove(&l->line[at], &l->line[at + 1], (l->n - at - 1) * sizeof(l->line[0]));
	l->n--;
}

static void test_removed(void **state)
{
	(void)state;
	for (size_t i = 0; i < LINES - 1; i++) {
		struct log l = make(true);

		drop(&l, i);
		expect(&l, i + 1, "1 line was removed");
		free_log(&l);
	}
	struct log l = make(true);

	drop(&l, 2);
	drop(&l, 2);
	expect(&l, 3, "2 lines were removed");
	free_log(&l);
}

static void test_truncated(void **state)
{
	struct log l = make(true);

	(void)state;
	drop(&l, LINES - 1);
	expect(&l, LINES, "its end was removed");
	free_log(&l);

	/* What was appended after the end is covered by the seal. */
	l = make(true);
	l.seal.lines++;
	expect(&l, LINES + 1, "1 line was removed at the end");
	l.seal.present = false;
	expect(&l, LINES, "seal is missing");
	free_log(&l);
}

static void test_swapped(void **state)
{
	(void)state;
	for (size_t i = 0; i + 1 < LINES; i++) {
		struct log l = make(true);
		char *t = l.line[i];
		char what[40];

		l.line[i] = l.line[i + 1];
		l.line[i + 1] = t;
		snprintf(what, sizeof(what), "lines %zu and %zu were swapped", i + 1, i + 2);
		expect(&l, i + 1, what);
		free_log(&l);
	}
}

static void insert(struct log *l, size_t at, char *line)
{
	memmove(&l->line[at + 1], &l->line[at], (l->n - at) * sizeof(l->line[0]));
	l->line[at] = line;
	l->n++;
}

static void test_inserted(void **state)
{
	struct log l = make(true);
	struct chain_head head = {.seq = 2};
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	(void)state;
	/* A repeated line. */
	insert(&l, 3, strdup(l.line[2]));
	expect(&l, 4, "inserted or repeated");
	free_log(&l);
	/* A made-up line that fits the one before it. */
	l = make(true);
	chain_hash(l.line[1], strlen(l.line[1]) - 1, head.hash);
	assert_int_equal(
		chain_build(&head, id, "2026-01-31T12:00:00.000000Z", "x", "usage", NULL, &b), 0);
	insert(&l, 2, strdup(b.data));
	expect(&l, 4, "inserted or repeated");
	free_log(&l);
	/* One that does not. */
	l = make(true);
	memset(head.hash, 'a', 64);
	assert_int_equal(
		chain_build(&head, id, "2026-01-31T12:00:00.000000Z", "x", "usage", NULL, &b), 0);
	insert(&l, 2, strdup(b.data));
	expect(&l, 3, "line 3 was inserted");
	free_log(&l);
	/* At the end, in order, by somebody who knows the rules but not the seal. */
	l = make(true);
	head.seq = LINES;
	memcpy(head.hash, l.seal.head, sizeof(head.hash));
	assert_int_equal(
		chain_build(&head, id, "2026-01-31T12:00:00.000000Z", "x", "apply.done", NULL, &b),
		0);
	insert(&l, LINES, strdup(b.data));
	expect(&l, LINES + 1, "added after the seal");
	free_log(&l);
	/* And what cannot follow an end. */
	l = make(true);
	assert_int_equal(
		chain_build(&head, id, "2026-01-31T12:00:00.000000Z", "x", "usage", NULL, &b), 0);
	insert(&l, LINES, strdup(b.data));
	expect(&l, LINES + 1, "cannot follow");
	free_log(&l);
}

static void test_other_run(void **state)
{
	struct log l = make(true);
	char *at = strstr(l.line[3], id);

	(void)state;
	at[0] = '7';
	expect(&l, 4, "belongs to run");
	free_log(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	  cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_changed),	  cmocka_unit_test(test_changed_prev),
		cmocka_unit_test(test_removed),	  cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_swapped),	  cmocka_unit_test(test_inserted),
		cmocka_unit_test(test_other_run),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
