/* The box's certificate authority: see ca.h.
 *
 * Process: the broker. ca_new() before, the rest after it has locked itself in: keys and
 * certificates need memory and randomness only. Hostile: the names, which have been normalised and
 * allowed by a rule before they come here.
 *
 * One key serves all leaves: it is made once, lives in this process only, and a box that could get
 * at it could get at the authority's too. P-256, because making a key costs 20 us and a signature
 * 20 us; RSA would cost 200 ms. */
#include "egress/http/ca.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#define STAGE "egress"

/* Clocks inside may be behind or ahead (a restored snapshot, libfaketime, a time zone taken for
 * UTC); the key is gone when the box is, so the end need only be later than any box lives. */
#define BEFORE_S     (48 * 3600)
#define AFTER_S	     (90 * 24 * 3600)
/* Leaves end a little earlier: some checkers want them within their issuer's time. */
#define LEAF_AFTER_S (89 * 24 * 3600)

struct leaf {
	TAILQ_ENTRY(leaf) entry;
	X509 *cert;
	char name[];
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	char *pem;
	time_t made;
	size_t nleaves;
	TAILQ_HEAD(leaves, leaf) leaves; /* the most recently used first */
};

static bool set_serial(X509 *x)
{
	unsigned char bytes[16];
	BIGNUM *n = NULL;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and of one length */
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
	BN_free(n);
	return ok;
}

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = e && X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return ok;
}

/* The one name, put in by structure: in the text form of add_extension() a comma in a name would
 * begin another one. */
static bool add_alt_name(X509 *x, const char *name)
{
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	GENERAL_NAME *g = GENERAL_NAME_new();
	ASN1_STRING *s = NULL;
	unsigned char address[16];
	int len = inet_pton(AF_INET, name, address) == 1    ? 4
		  : inet_pton(AF_INET6, name, address) == 1 ? 16
							    : 0;
	bool ok = false;

	if (names && g) {
		s = len ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
		ok = s && ASN1_STRING_set(s, len ? (const void *)address : name,
					  len ? len : (int)strlen(name));
	}
	if (ok) {
		GENERAL_NAME_set0_value(g, len ? GEN_IPADD : GEN_DNS, s);
		s = NULL;
		ok = sk_GENERAL_NAME_push(names, g) > 0;
		if (ok)
			g = NULL;
	}
	ok = ok && X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0) == 1;
	ASN1_STRING_free(s);
	GENERAL_NAME_free(g);
	sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
	return ok;
}

static X509 *begin(const struct ca *ca, EVP_PKEY *key, const char *cn, time_t after_s)
{
	X509 *x = X509_new();
	X509_NAME *name = x ? X509_get_subject_name(x) : NULL;
	char cut[65]; /* a common name has at most 64 characters; the SAN is what counts */

	snprintf(cut, sizeof(cut), "%s", cn);
	if (x && X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
	    ASN1_TIME_set(X509_getm_notBefore(x), ca->made - BEFORE_S) &&
	    ASN1_TIME_set(X509_getm_notAfter(x), ca->made + after_s) &&
	    X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Pale", -1,
				       -1, 0) &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (unsigned char *)cut, -1, -1, 0) &&
	    X509_set_pubkey(x, key))
		return x;
	X509_free(x);
	return NULL;
}

static bool make_authority(struct ca *ca)
{
	unsigned char id[4];
	char cn[64];
	X509 *x;

	if (RAND_bytes(id, sizeof(id)) != 1)
		return false;
	/* Two boxes' authorities must not have one name: a store with both (a collected file, say)
	 * would take the wrong one. */
	snprintf(cn, sizeof(cn), "Pale sandbox authority %02x%02x%02x%02x", id[0], id[1], id[2],
		 id[3]);
	x = ca->cert = begin(ca, ca->key, cn, AFTER_S);
	return x && X509_set_issuer_name(x, X509_get_subject_name(x)) &&
	       add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       add_extension(x, x, NID_subject_key_identifier, "hash") &&
	       add_extension(x, x, NID_authority_key_identifier, "keyid:always") &&
	       X509_sign(x, ca->key, EVP_sha256()) > 0;
}

static bool make_pem(struct ca *ca)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	long len;

	if (bio && PEM_write_bio_X509(bio, ca->cert) && (len = BIO_get_mem_data(bio, &data)) > 0)
		ca->pem = strndup(data, (size_t)len);
	BIO_free(bio);
	return ca->pem != NULL;
}

int ca_new(struct ca **ret, struct pale_err *err)
{
	struct ca *ca = calloc(1, sizeof(*ca));

	*ret = NULL;
	if (!ca)
		return err_nomem(err, STAGE);
	TAILQ_INIT(&ca->leaves);
	ca->made = time(NULL);
	ca->key = EVP_EC_gen("P-256");
	ca->leaf_key = EVP_EC_gen("P-256");
	if (!ca->key || !ca->leaf_key || !make_authority(ca) || !make_pem(ca)) {
		ca_free(ca);
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "cannot make the box's certificate authority");
	}
	*ret = ca;
	return 0;
}

static void leaf_free(struct ca *ca, struct leaf *l)
{
	TAILQ_REMOVE(&ca->leaves, l, entry);
	ca->nleaves--;
	X509_free(l->cert);
	free(l);
}

void ca_free(struct ca *ca)
{
	if (!ca)
		return;
	while (!TAILQ_EMPTY(&ca->leaves))
		leaf_free(ca, TAILQ_FIRST(&ca->leaves));
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key); /* wipes */
	EVP_PKEY_free(ca->leaf_key);
	free(ca->pem);
	free(ca);
}

const char *ca_pem(const struct ca *ca)
{
	return ca->pem;
}

X509 *ca_certificate(const struct ca *ca)
{
	return ca->cert;
}

EVP_PKEY *ca_leaf_key(const struct ca *ca)
{
	return ca->leaf_key;
}

static X509 *make_leaf(const struct ca *ca, const char *name)
{
	X509 *x = begin(ca, ca->leaf_key, name, LEAF_AFTER_S);

	if (x && X509_set_issuer_name(x, X509_get_subject_name(ca->cert)) &&
	    add_extension(x, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(x, ca->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(x, ca->cert, NID_ext_key_usage, "serverAuth") &&
	    add_extension(x, ca->cert, NID_subject_key_identifier, "hash") &&
	    add_extension(x, ca->cert, NID_authority_key_identifier, "keyid:always") &&
	    add_alt_name(x, name) && X509_sign(x, ca->key, EVP_sha256()) > 0)
		return x;
	X509_free(x);
	return NULL;
}

X509 *ca_leaf(struct ca *ca, const char *name)
{
	size_t len = strlen(name);
	struct leaf *l;

	TAILQ_FOREACH(l, &ca->leaves, entry)
	{
		if (strcmp(l->name, name) != 0)
			continue;
		TAILQ_REMOVE(&ca->leaves, l, entry);
		TAILQ_INSERT_HEAD(&ca->leaves, l, entry);
		X509_up_ref(l->cert);
		return l->cert;
	}
	l = calloc(1, sizeof(*l) + len + 1);
	if (!l)
		return NULL;
	l->cert = make_leaf(ca, name);
	if (!l->cert) {
		free(l);
		return NULL;
	}
	memcpy(l->name, name, len + 1);
	if (ca->nleaves == CA_LEAVES)
		leaf_free(ca, TAILQ_LAST(&ca->leaves, leaves));
	TAILQ_INSERT_HEAD(&ca->leaves, l, entry);
	ca->nleaves++;
	X509_up_ref(l->cert);
	return l->cert;
}
