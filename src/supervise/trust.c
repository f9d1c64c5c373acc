/* What a box trusts: see trust.h.
 *
 * In the supervisor, between the broker's certificate and the opening of the gate. The host's
 * bundles are trusted; the certificate comes from the broker before that has read anything of the
 * box. */
#include "supervise/trust.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sha1.h>
#include <time.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#define STAGE	  "supervise"
#define MAX_BYTES (8u << 20)

static int read_host(const char *path, struct buf *b, struct pale_err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : buf_read_fd(b, fd);

	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot read %s, the host's certificate authorities", QUOTED(path))
		     : 0;
}

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The bytes between the lines of a PEM certificate. */
static int pem_decode(const char *pem, struct buf *out)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	const char *at = strstr(pem, begin);
	uint32_t bits = 0;
	unsigned n = 0;

	if (!at)
		return -EINVAL;
	for (at += strlen(begin); *at && *at != '-' && *at != '='; at++) {
		int digit = base64_digit(*at);
		char byte;

		if (digit < 0)
			continue;
		bits = bits << 6 | (uint32_t)digit;
		n += 6;
		if (n < 8)
			continue;
		n -= 8;
		byte = (char)(bits >> n);
		if (buf_add(out, &byte, 1) < 0)
			return -ENOMEM;
	}
	return out->len ? 0 : -EINVAL;
}

/* --- Java's store, of the kind JKS: no other is written here, and none is found on Linux's
 * distributions
 * --- */

#define JKS_MAGIC    0xfeedfeedu
#define JKS_VERSION  2
#define JKS_TRUSTED  2 /* the kind of an entry */
#define JKS_HEADER   12
#define JKS_PASSWORD "changeit"

static void put32(struct buf *b, uint32_t v)
{
	v = htonl(v);
	buf_add(b, &v, sizeof(v));
}

static void put_utf(struct buf *b, const char *s)
{
	uint16_t len = htons((uint16_t)strlen(s));

	buf_add(b, &len, sizeof(len));
	buf_adds(b, s);
}

static uint32_t get32(const char *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return ntohl(v);
}

/* Over the password in UTF-16, a phrase, and all the rest. */
static void jks_digest(const struct buf *b, uint8_t ret[static SHA1_DIGEST_LENGTH])
{
	SHA1_CTX c;

	SHA1Init(&c);
	for (const char *p = JKS_PASSWORD; *p; p++) {
		const uint8_t wide[2] = {0, (uint8_t)*p};

		SHA1Update(&c, wide, sizeof(wide));
	}
	SHA1Update(&c, (const uint8_t *)"Mighty Aphrodite", 16);
	SHA1Update(&c, (const uint8_t *)b->data, b->len);
	SHA1Final(ret, &c);
}

/* The store with one more entry; as it is if it is of another kind. */
static int jks_add(const struct buf *host, const struct buf *certificate, struct buf *out)
{
	uint64_t now_ms = (uint64_t)time(NULL) * 1000;
	uint8_t digest[SHA1_DIGEST_LENGTH];

	if (host->len < JKS_HEADER + SHA1_DIGEST_LENGTH || get32(host->data) != JKS_MAGIC ||
	    get32(host->data + 4) != JKS_VERSION)
		return buf_add(out, host->data, host->len);
	buf_add(out, host->data, 8);
	put32(out, get32(host->data + 8) + 1);
	buf_add(out, host->data + JKS_HEADER, host->len - JKS_HEADER - SHA1_DIGEST_LENGTH);
	put32(out, JKS_TRUSTED);
	put_utf(out, "pale");
	put32(out, (uint32_t)(now_ms >> 32));
	put32(out, (uint32_t)now_ms);
	put_utf(out, "X.509");
	put32(out, (uint32_t)certificate->len);
	buf_add(out, certificate->data, certificate->len);
	if (out->failed)
		return -ENOMEM;
	jks_digest(out, digest);
	return buf_add(out, digest, sizeof(digest));
}

int trust_views(const struct plan *plan, const char *ca_pem, struct views *v, struct pale_err *err)
{
	_cleanup_buf_ struct buf der = BUF_INIT(16384), store = BUF_INIT(MAX_BYTES);
	struct buf *bundle = &v->text[VIEW_CA_BUNDLE], *java = &v->text[VIEW_JAVA];
	int r = 0;

	*bundle = BUF_INIT(MAX_BYTES);
	*java = BUF_INIT(MAX_BYTES);
	v->text[VIEW_CA] = BUF_INIT(16384);
	if (strcmp(plan->ca_bundle, TRUST_BUNDLE) != 0)
		r = read_host(plan->ca_bundle, bundle, err);
	if (r == 0 && plan->java_store)
		r = read_host(plan->java_store, &store, err);
	if (r < 0)
		return r;
	/* The broker says nothing of one where it turned out that nothing is opened. */
	if (!ca_pem)
		return plan->java_store && buf_add(java, store.data, store.len) < 0
			       ? err_nomem(err, STAGE)
			       : 0;
	buf_adds(bundle, "\n");
	buf_adds(bundle, ca_pem);
	buf_adds(&v->text[VIEW_CA], ca_pem);
	r = pem_decode(ca_pem, &der);
	if (r == 0 && plan->java_store)
		r = jks_add(&store, &der, java);
	if (r == 0 && (bundle->failed || v->text[VIEW_CA].failed))
		r = -ENOMEM;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot make the certificate authorities of the box")
		     : 0;
}
