/* Trust in the broker's certificate authority: see trust.h.
 *
 * In the supervisor while it plans; looks at the host's bundles only. The certificate does not
 * exist yet: the files are mounted empty and filled before the gate opens (src/supervise/trust.c),
 * so that the plan is the same from run to run. */
#include "plan/trust.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "plan/layout_impl.h"

#define STAGE "plan"

/* Where distributions keep them: Debian, Fedora, Alpine. */
static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
				      "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};
static const char *const java_stores[] = {"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts"};

/* Programs that bring their own bundle, or read a directory of single certificates. */
static const struct {
	const char *name;
	bool alone; /* added to their own: the one certificate, which costs no time to read */
	const char *who;
} variables[] = {
	{"SSL_CERT_FILE", false, "OpenSSL, Python's ssl, httpx, Go, Ruby"},
	{"CURL_CA_BUNDLE", false, "curl of other makes, requests"},
	{"REQUESTS_CA_BUNDLE", false, "Python's requests"},
	{"PIP_CERT", false, "pip"},
	{"CARGO_HTTP_CAINFO", false, "cargo"},
	{"GIT_SSL_CAINFO", false, "git of other makes"},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", false, "gRPC"},
	{"AWS_CA_BUNDLE", false, "the AWS tools"},
	{"NODE_EXTRA_CA_CERTS", true, "Node, npm"},
	{"DENO_CERT", true, "Deno"},
};

/* The file itself, where it lies in what the box sees of the host. */
static char *find(const char *const *paths, size_t n)
{
	char real[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < n; i++)
		if (realpath(paths[i], real) && stat(real, &st) == 0 && S_ISREG(st.st_mode) &&
		    (str_starts(real, "/etc/") || str_starts(real, "/usr/")))
			return strdup(real);
	return NULL;
}

int trust_find(struct plan *p, struct pale_err *err)
{
	if (!p->intercepts)
		return 0;
	p->ca_bundle = find(bundles, ARRAY_SIZE(bundles));
	p->java_store = find(java_stores, ARRAY_SIZE(java_stores));
	if (!p->ca_bundle)
		p->ca_bundle = strdup(TRUST_BUNDLE);
	return p->ca_bundle ? 0 : err_nomem(err, STAGE);
}

const char *trust_variable(const struct plan *p, size_t i, const char **ret_value)
{
	if (!p->intercepts || i >= ARRAY_SIZE(variables))
		return NULL;
	*ret_value = variables[i].alone ? TRUST_ALONE : p->ca_bundle;
	return variables[i].name;
}

static int cover(struct plan *p, const char *path, enum plan_view view, bool make,
		 struct pale_err *err)
{
	struct step *s = make ? plan_add_step(p, STEP_FILE, NULL, path, "") : NULL;

	if (make && !s)
		return err_nomem(err, STAGE);
	if (s)
		s->mode = 0444;
	s = plan_add_step(p, STEP_COVER, NULL, path, NULL);
	if (!s)
		return err_nomem(err, STAGE);
	s->index = view;
	s->nested = !make;
	s->is_file = true;
	return 0;
}

int trust_steps(struct plan *p, struct pale_err *err)
{
	int r;

	if (!p->intercepts)
		return 0;
	r = cover(p, p->ca_bundle, VIEW_CA_BUNDLE, strcmp(p->ca_bundle, TRUST_BUNDLE) == 0, err);
	if (r == 0)
		r = cover(p, TRUST_ALONE, VIEW_CA, true, err);
	if (r == 0 && p->java_store)
		r = cover(p, p->java_store, VIEW_JAVA, false, err);
	return r;
}
