/* The files by which a box trusts the certificate authority of its broker. */
#pragma once

#include "base/err.h"
#include "supervise/views.h"

/* Makes their texts from the host's and the certificate (PEM); views_write() puts them in place. */
int trust_views(const struct plan *plan, const char *ca_pem, struct views *v,
		struct pale_err *err) _must_check_;
