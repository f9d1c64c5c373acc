/* Host keys: see known_hosts.h.
 *
 * In the supervisor while it plans, with the caller's rights. The files are the caller's own, as
 * sshd(8) describes them under "SSH_KNOWN_HOSTS FILE FORMAT"; a line that is not as described there
 * is passed over, as ssh does. What is kept of them are public keys, of the hosts in question. */
#include "plan/known_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#define STAGE	  "plan"
#define FILE_MAX  (8u << 20)
#define TEXT_MAX  (256u << 10) /* of all that is found */
#define PORTS_MAX 64	       /* of rules, of which other names are made */
#define BLOCK	  64	       /* SHA-1's */

struct field {
	const char *text;
	size_t len;
};

/* --- names -------------------------------------------------------------------------------------
 */

static int value_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Of 20 bytes, as those in a hashed name are: 28 characters of base64. */
static bool decode_digest(const char *text, size_t len, uint8_t ret[static SHA1_DIGEST_LENGTH])
{
	uint32_t bits = 0;
	size_t n = 0;

	if (len != 28 || text[27] != '=')
		return false;
	for (size_t i = 0; i < 27; i++) {
		int v = value_of(text[i]);

		if (v < 0)
			return false;
		bits = bits << 6 | (uint32_t)v;
		/* The bytes that are whole after this character. */
		if (i % 4 != 0 && n < SHA1_DIGEST_LENGTH)
			ret[n++] = (uint8_t)(bits >> (i % 4 == 1 ? 4 : i % 4 == 2 ? 2 : 0));
	}
	return n == SHA1_DIGEST_LENGTH;
}

/* HMAC-SHA1 (RFC 2104) with a key of one digest's length. */
static void hmac(const uint8_t key[static SHA1_DIGEST_LENGTH], const char *text,
		 uint8_t ret[static SHA1_DIGEST_LENGTH])
{
	uint8_t pad[BLOCK];
	SHA1_CTX c;

	for (int outer = 0; outer < 2; outer++) {
		memset(pad, outer ? 0x5c : 0x36, sizeof(pad));
		for (size_t i = 0; i < SHA1_DIGEST_LENGTH; i++)
			pad[i] ^= key[i];
		SHA1Init(&c);
		SHA1Update(&c, pad, sizeof(pad));
		if (outer)
			SHA1Update(&c, ret, SHA1_DIGEST_LENGTH);
		else
			SHA1Update(&c, (const uint8_t *)text, strlen(text));
		SHA1Final(ret, &c);
	}
}

/* "|1|SALT|HASH" */
static bool hash_covers(const char *field, size_t len, const char *name)
{
	uint8_t salt[SHA1_DIGEST_LENGTH], want[SHA1_DIGEST_LENGTH], got[SHA1_DIGEST_LENGTH];

	if (len != 3 + 28 + 1 + 28 || field[31] != '|' || !decode_digest(field + 3, 28, salt) ||
	    !decode_digest(field + 32, 28, want))
		return false;
	hmac(salt, name, got);
	return memcmp(got, want, sizeof(got)) == 0;
}

/* `*` and `?`, in any case. */
static bool glob_covers(const char *glob, size_t len, const char *name)
{
	const char *star = NULL, *again = NULL, *end = glob + len;

	while (*name) {
		if (glob < end && *glob == '*') {
			star = ++glob;
			again = name;
		} else if (glob < end && (*glob == '?' || tolower((unsigned char)*glob) == *name)) {
			glob++;
			name++;
		} else if (star) {
			glob = star;
			name = ++again;
		} else {
			return false;
		}
	}
	while (glob < end && *glob == '*')
		glob++;
	return glob == end;
}

bool known_hosts_covers(const char *field, size_t len, const char *name)
{
	bool covered = false;

	if (len > 3 && memcmp(field, "|1|", 3) == 0)
		return hash_covers(field, len, name);
	while (len) {
		const char *comma = memchr(field, ',', len);
		size_t n = comma ? (size_t)(comma - field) : len;
		bool not = n && *field == '!';

		if (glob_covers(field + not, n - not, name)) {
			if (not )
				return false;
			covered = true;
		}
		field += n;
		len -= n;
		if (len) {
			field++;
			len--;
		}
	}
	return covered;
}

/* --- lines -------------------------------------------------------------------------------------
 */

static struct field next_field(const char **at, const char *end)
{
	struct field f;

	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	f.text = *at;
	while (*at < end && **at != ' ' && **at != '\t' && **at != '\r')
		++*at;
	f.len = (size_t)(*at - f.text);
	return f;
}

struct line {
	bool revoked;
	struct field names, type, key;
};

static bool is_plain(struct field f, const char *besides)
{
	for (size_t i = 0; i < f.len; i++)
		if (!f.text[i] ||
		    (!isalnum((unsigned char)f.text[i]) && !strchr(besides, f.text[i])))
			return false;
	return f.len > 0 && f.len < 8192;
}

static bool parse_line(const char *text, const char *end, struct line *ret)
{
	struct field first = next_field(&text, end);

	ret->revoked = false;
	if (!first.len || *first.text == '#')
		return false;
	if (*first.text == '@') {
		ret->revoked = first.len == 8 && memcmp(first.text, "@revoked", 8) == 0;
		if (!ret->revoked)
			return false;
		first = next_field(&text, end);
	}
	ret->names = first;
	ret->type = next_field(&text, end);
	ret->key = next_field(&text, end);
	return is_plain(ret->type, "-@.") && is_plain(ret->key, "+/=") && ret->key.len % 4 == 0;
}

/* Calls fn for each line. */
static void each_line(const struct buf *files, void (*fn)(const struct line *l, void *arg),
		      void *arg)
{
	const char *at = files->data, *end;

	if (!files->len)
		return; /* and no buffer, whose end could be computed */
	for (end = at + files->len; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		struct line l;

		if (parse_line(at, stop, &l))
			fn(&l, arg);
		at = newline ? newline + 1 : end;
	}
}

/* --- the search --------------------------------------------------------------------------------
 */

struct search {
	const struct buf *files;
	const char *name;
	const struct line *candidate; /* is it revoked? */
	bool revoked;
	size_t found;
	struct buf *out;
};

static void see_revoked(const struct line *l, void *arg)
{
	struct search *s = arg;

	if (l->revoked && l->key.len == s->candidate->key.len &&
	    memcmp(l->key.text, s->candidate->key.text, l->key.len) == 0 &&
	    known_hosts_covers(l->names.text, l->names.len, s->name))
		s->revoked = true;
}

static void take(const struct line *l, void *arg)
{
	struct search *s = arg;

	if (l->revoked || !known_hosts_covers(l->names.text, l->names.len, s->name))
		return;
	s->candidate = l;
	s->revoked = false;
	each_line(s->files, see_revoked, s);
	if (s->revoked)
		return;
	s->found++;
	buf_addf(s->out, "%s %.*s %.*s\n", s->name, (int)l->type.len, l->type.text, (int)l->key.len,
		 l->key.text);
}

/* Under this name; the count. */
static size_t find(const struct buf *files, const char *name, struct buf *out)
{
	struct search s = {.files = files, .name = name, .out = out};

	each_line(files, take, &s);
	return s.found;
}

/* Under the names of the ports to which rules let it be spoken: 22 has the plain one. */
static size_t find_host(const struct policy_network *n, const struct buf *files, const char *host,
			struct buf *out)
{
	size_t found = find(files, host, out);
	unsigned ports = 0;

	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (r->deny || !(r->protocols & NETWORK_TCP) || !r->host ||
		    !network_host_matches(r->host, host))
			continue;
		for (size_t j = 0; j < r->nports; j++)
			for (unsigned p = r->ports[j].first;
			     p <= r->ports[j].last && ports < PORTS_MAX; p++) {
				char name[NETWORK_HOST_MAX + 10];

				ports++;
				if (p == 22)
					continue;
				snprintf(name, sizeof(name), "[%s]:%u", host, p);
				found += find(files, name, out);
			}
	}
	return found;
}

/* A file that is not there holds nothing. */
static int add_file(struct buf *b, const char *path, struct pale_err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno, "cannot read %s", QUOTED(path));
	if (!S_ISREG(st.st_mode))
		return 0;
	r = buf_read_fd(b, fd);
	if (r == 0)
		buf_adds(b, "\n");
	return r < 0 || b->failed ? err_set(err, PALE_E_HOST, STAGE, r < 0 ? -r : ENOMEM,
					    "cannot read %s", QUOTED(path))
				  : 0;
}

static int read_files(struct buf *b, const char *home, struct pale_err *err)
{
	static const char *const names[] = {"known_hosts", "known_hosts2"};
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
		if (home && *home == '/' &&
		    snprintf(path, sizeof(path), "%s/.ssh/%s", home, names[i]) < (int)sizeof(path))
			r = add_file(b, path, err);
		snprintf(path, sizeof(path), "/etc/ssh/ssh_%s", names[i]);
		if (r == 0)
			r = add_file(b, path, err);
	}
	return r;
}

int known_hosts_find(const struct policy_network *n, const char *home, char **ret,
		     struct pale_err *err)
{
	_cleanup_buf_ struct buf files = BUF_INIT(FILE_MAX), out = BUF_INIT(TEXT_MAX);
	int r = read_files(&files, home, err);

	for (char **host = n->ssh_agent_hosts; r == 0 && *host; host++)
		if (find_host(n, &files, *host, &out) == 0)
			r = err_set(err, PALE_E_POLICY, STAGE, 0,
				    "network.ssh_agent: known_hosts has no key of %s, by which it "
				    "would be known again: connect to it once with ssh, outside",
				    *host);
	if (r < 0)
		return r;
	if (out.failed)
		return err_nomem(err, STAGE);
	*ret = take_ptr(out.data);
	return 0;
}
