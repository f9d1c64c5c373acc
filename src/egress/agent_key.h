/* Host keys of ssh: whether one made a signature, and its fingerprint. */
#pragma once

#include "egress/agent_wire.h"

/* To be called before the process locks itself in: what OpenSSL gets ready when it is first used. 0
 * or -ENOMEM. */
int agent_key_prepare(void) _must_check_;
/* Ed25519, RSA with SHA-2, ECDSA on the NIST curves. 0: the key made the signature; -EBADMSG: it
 * did not; -EINVAL: one of them is malformed; -ENOTSUP: another kind of key or signature. */
int agent_key_verify(struct agent_bytes key, struct agent_bytes signature,
		     struct agent_bytes signed_data) _must_check_;
/* "SHA256:...", as OpenSSH writes it; empty if it cannot be computed. */
#define AGENT_FINGERPRINT 64
void agent_key_fingerprint(struct agent_bytes key, char ret[static AGENT_FINGERPRINT]);
