/* The certificate authority of one box: it is trusted inside that box and nowhere else, and its
 * private key never leaves the broker. */
#pragma once

#include <openssl/x509.h>

#include "base/err.h"

#define CA_LEAVES 256 /* certificates kept; the least recently used goes */

struct ca;

/* Makes keys (P-256) and the certificate. Needs randomness, no files. */
int ca_new(struct ca **ret, struct pale_err *err) _must_check_;
void ca_free(struct ca *ca);

/* The certificate as PEM; the ca's. */
const char *ca_pem(const struct ca *ca);
X509 *ca_certificate(const struct ca *ca);
/* A certificate for exactly this name (normalised) or address as text; made or from the cache. The
 * caller's reference. NULL: out of memory. */
X509 *ca_leaf(struct ca *ca, const char *name);
/* The key of all leaves; the ca's. */
EVP_PKEY *ca_leaf_key(const struct ca *ca);
