/* Host keys of ssh: see agent_key.h.
 *
 * Runs in the broker. Key and signature come from the box and are hostile; their sizes are bounded
 * before OpenSSL sees them. RFC 4253 6.6, 5656, 8332 and 8709 say what they look like. */
#include "egress/agent_key.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define RSA_MIN_BYTES 128 /* OpenSSH's least, RequiredRSASize */
#define RSA_MAX_BYTES 2048
#define POINT_MAX     133

static void free_pkey(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void free_bignum(BIGNUM **n)
{
	BN_free(*n);
}

static void free_md(EVP_MD_CTX **c)
{
	EVP_MD_CTX_free(*c);
}

#define _cleanup_pkey_ _cleanup_(free_pkey)
#define _cleanup_bn_   _cleanup_(free_bignum)
#define _cleanup_md_   _cleanup_(free_md)

/* 0, -EBADMSG or -ENOMEM. md NULL: the key's own. */
static int verify(EVP_PKEY *key, const EVP_MD *md, const uint8_t *signature, size_t len,
		  struct agent_bytes data)
{
	_cleanup_md_ EVP_MD_CTX *c = EVP_MD_CTX_new();

	if (!c || EVP_DigestVerifyInit(c, NULL, md, NULL, key) != 1)
		return -ENOMEM;
	return EVP_DigestVerify(c, signature, len, data.data, data.len) == 1 ? 0 : -EBADMSG;
}

/* A public key of these parameters; NULL: it is none. Takes params. */
static EVP_PKEY *make_key(const char *type, OSSL_PARAM_BLD *build)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
	EVP_PKEY *key = NULL;

	if (c && params && EVP_PKEY_fromdata_init(c) == 1 &&
	    EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(c);
	return key;
}

static int verify_ed25519(struct agent_bytes key, struct agent_bytes sig, struct agent_bytes data)
{
	_cleanup_pkey_ EVP_PKEY *k = NULL;
	struct agent_bytes point;

	if (!agent_take(&key, &point) || key.len || point.len != 32 || sig.len != 64)
		return -EINVAL;
	k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, point.data, point.len);
	return k ? verify(k, NULL, sig.data, sig.len, data) : -EINVAL;
}

/* A positive integer of so many bytes at most, without the zero before a set top bit. */
static bool take_mpint(struct agent_bytes *from, size_t most, struct agent_bytes *ret)
{
	if (!agent_take(from, ret) || !ret->len || (ret->data[0] & 0x80))
		return false;
	if (ret->data[0] == 0) {
		ret->data++;
		ret->len--;
	}
	return ret->len && ret->len <= most;
}

static int verify_rsa(struct agent_bytes key, const char *digest, struct agent_bytes sig,
		      struct agent_bytes data)
{
	_cleanup_pkey_ EVP_PKEY *k = NULL;
	_cleanup_bn_ BIGNUM *e = NULL, *n = NULL;
	struct agent_bytes exponent, modulus;
	uint8_t padded[RSA_MAX_BYTES] = {0};
	OSSL_PARAM_BLD *build;

	if (!take_mpint(&key, 8, &exponent) || !take_mpint(&key, RSA_MAX_BYTES, &modulus) ||
	    key.len || modulus.len < RSA_MIN_BYTES || sig.len > modulus.len)
		return -EINVAL;
	e = BN_bin2bn(exponent.data, (int)exponent.len, NULL);
	n = BN_bin2bn(modulus.data, (int)modulus.len, NULL);
	build = OSSL_PARAM_BLD_new();
	if (!e || !n || !build || OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) != 1 ||
	    OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) != 1) {
		OSSL_PARAM_BLD_free(build);
		return -ENOMEM;
	}
	k = make_key("RSA", build);
	/* Some leave zeros at the front out. */
	memcpy(padded + modulus.len - sig.len, sig.data, sig.len);
	return k ? verify(k, EVP_get_digestbyname(digest), padded, modulus.len, data) : -EINVAL;
}

/* (r, s) as OpenSSL reads it. The length, or a negative code. */
static int der_of(struct agent_bytes sig, uint8_t **ret)
{
	struct agent_bytes r, s;
	ECDSA_SIG *e = ECDSA_SIG_new();
	BIGNUM *br = NULL, *bs = NULL;
	int len = -EINVAL;

	if (take_mpint(&sig, 66, &r) && take_mpint(&sig, 66, &s) && !sig.len) {
		br = BN_bin2bn(r.data, (int)r.len, NULL);
		bs = BN_bin2bn(s.data, (int)s.len, NULL);
		len = -ENOMEM;
	}
	if (e && br && bs && ECDSA_SIG_set0(e, br, bs) == 1) {
		br = bs = NULL;
		len = i2d_ECDSA_SIG(e, ret);
		if (len <= 0)
			len = -ENOMEM;
	}
	BN_free(br);
	BN_free(bs);
	ECDSA_SIG_free(e);
	return len;
}

struct curve {
	const char *type, *name, *openssl, *digest;
};

static int verify_ecdsa(struct agent_bytes key, const struct curve *c, struct agent_bytes sig,
			struct agent_bytes data)
{
	_cleanup_pkey_ EVP_PKEY *k = NULL;
	struct agent_bytes name, point;
	uint8_t *der = NULL;
	OSSL_PARAM_BLD *build;
	int len, r;

	if (!agent_take(&key, &name) || !agent_is(name, c->name) || !agent_take(&key, &point) ||
	    key.len || !point.len || point.len > POINT_MAX)
		return -EINVAL;
	build = OSSL_PARAM_BLD_new();
	if (!build ||
	    OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, c->openssl, 0) !=
		    1 ||
	    OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point.data,
					     point.len) != 1) {
		OSSL_PARAM_BLD_free(build);
		return -ENOMEM;
	}
	k = make_key("EC", build);
	if (!k)
		return -EINVAL;
	len = der_of(sig, &der);
	r = len < 0 ? len : verify(k, EVP_get_digestbyname(c->digest), der, (size_t)len, data);
	OPENSSL_free(der);
	return r;
}

int agent_key_verify(struct agent_bytes key, struct agent_bytes signature, struct agent_bytes data)
{
	static const struct curve curves[] = {
		{"ecdsa-sha2-nistp256", "nistp256", "prime256v1", "SHA256"},
		{"ecdsa-sha2-nistp384", "nistp384", "secp384r1", "SHA384"},
		{"ecdsa-sha2-nistp521", "nistp521", "secp521r1", "SHA512"},
	};
	struct agent_bytes type, algorithm, sig;

	if (!agent_take(&key, &type) || !agent_take(&signature, &algorithm) ||
	    !agent_take(&signature, &sig) || signature.len)
		return -EINVAL;
	if (agent_is(type, "ssh-ed25519"))
		return agent_is(algorithm, "ssh-ed25519") ? verify_ed25519(key, sig, data)
							  : -ENOTSUP;
	/* SHA-1, which "ssh-rsa" means as an algorithm, proves nothing any more. */
	if (agent_is(type, "ssh-rsa") && agent_is(algorithm, "rsa-sha2-512"))
		return verify_rsa(key, "SHA512", sig, data);
	if (agent_is(type, "ssh-rsa") && agent_is(algorithm, "rsa-sha2-256"))
		return verify_rsa(key, "SHA256", sig, data);
	for (size_t i = 0; i < ARRAY_SIZE(curves); i++)
		if (agent_is(type, curves[i].type))
			return agent_is(algorithm, curves[i].type)
				       ? verify_ecdsa(key, &curves[i], sig, data)
				       : -ENOTSUP;
	return -ENOTSUP;
}

void agent_key_fingerprint(struct agent_bytes key, char ret[static AGENT_FINGERPRINT])
{
	unsigned char digest[EVP_MAX_MD_SIZE], text[4 * EVP_MAX_MD_SIZE / 3 + 8];
	unsigned len = 0;
	int n;

	*ret = '\0';
	if (EVP_Digest(key.data, key.len, digest, &len, EVP_sha256(), NULL) != 1)
		return;
	n = EVP_EncodeBlock(text, digest, (int)len);
	while (n > 0 && text[n - 1] == '=')
		n--;
	snprintf(ret, AGENT_FINGERPRINT, "SHA256:%.*s", n, (char *)text);
}

int agent_key_prepare(void)
{
	/* RFC 8709's and 8032's first test: an empty message. Nothing depends on the outcome but
	 * that the algorithm is there. */
	static const uint8_t key[] = {
		0,    0,    0,	  11,	's',  's',  'h',  '-',	'e',  'd',  '2',  '5',	'5',
		'1',  '9',  0,	  0,	0,    32,   0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a,
		0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3,
		0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
	static const char *const digests[] = {"SHA256", "SHA384", "SHA512"};
	static const char *const types[] = {"RSA", "EC"};
	uint8_t sig[4 + 11 + 4 + 64] = {0,   0,	  0,   11,  's', 's', 'h', '-', 'e', 'd',
					'2', '5', '5', '1', '9', 0,   0,   0,	64};
	int r = agent_key_verify((struct agent_bytes){key, sizeof(key)},
				 (struct agent_bytes){sig, sizeof(sig)},
				 (struct agent_bytes){(const uint8_t *)"", 0});

	for (size_t i = 0; i < ARRAY_SIZE(digests); i++)
		if (!EVP_get_digestbyname(digests[i]))
			return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, types[i], NULL);

		if (!c)
			return -ENOMEM;
		EVP_PKEY_CTX_free(c);
	}
	return r == -EBADMSG ? 0 : -ENOMEM;
}
