/* Rules and secrets as one text, as a command line has them: see policy.h. Runs with the caller's
 * rights; the texts are the caller's own. They become rows of the same lists as the entries of a
 * file, and are checked as these are. */
#include "policy/policy.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "policy/rules.h"

/* Reads a value by its row of the options table. */
static int set(struct rule_row *row, const char *name, const char *text, struct pale_err *err)
{
	char key[64];

	snprintf(key, sizeof(key), "%s.%s", list_allow.entries, name);
	return option_parse(option_find(key), text, row, err);
}

static int set_secret(struct secret_row *row, const char *name, const char *text,
		      struct pale_err *err)
{
	char key[64];

	snprintf(key, sizeof(key), "%s.%s", list_secrets.entries, name);
	return option_parse(option_find(key), text, row, err);
}

/* "GET,HEAD REST": the methods. *text goes on to the rest. */
static int take_methods(struct rule_row *row, char **text, struct pale_err *err)
{
	char *blank = strchr(*text, ' '), *save = NULL;
	int r = 0;

	if (!blank)
		return 0;
	*blank = '\0';
	for (char *m = strtok_r(*text, ",", &save); m && r >= 0; m = strtok_r(NULL, ",", &save))
		r = set(row, "methods", m, err);
	*text = blank + 1 + strspn(blank + 1, " ");
	return r;
}

/* "tls://REST", and what people call it. */
static int take_protocol(struct rule_row *row, char **text, struct pale_err *err)
{
	static const struct {
		const char *written, *protocol;
	} schemes[] = {{"https", "tls"}, {"wss", "tls"}, {"ws", "http"}, {"ssh", "tcp"}};
	char *end = strstr(*text, "://");
	const char *protocol = *text;
	int r;

	if (!end || memchr(*text, '/', (size_t)(end - *text)))
		return 0;
	*end = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strcmp(*text, schemes[i].written) == 0)
			protocol = schemes[i].protocol;
	r = set(row, "protocol", protocol, err);
	/* It stands for its port. */
	if (r >= 0 && strcmp(*text, "ssh") == 0 && !strrchr(end + 3, ':'))
		r = set(row, "port", "22", err);
	*text = end + 3;
	return r;
}

/* HOST, or an address, which may be a range and, if of IPv6, stands in brackets. *text goes on to
 * what follows: ":PORT" or "/PATH". */
static int take_host(struct rule_row *row, char **text, struct pale_err *err)
{
	char *end = *text + strcspn(*text, ":/"), after = *end, name[OPTION_TEXT_MAX];
	struct network_cidr cidr;
	size_t digits;
	int r;

	if (**text == '[') {
		end = strchr(*text, ']');
		if (!end)
			return err_set(err, PALE_E_POLICY, "policy", 0, "%s: `]` is missing",
				       QUOTED(*text));
		*end = '\0';
		r = set(row, "address", *text + 1, err);
		*text = end + 1;
		return r;
	}
	if ((size_t)(end - *text) >= sizeof(name))
		return err_set(err, PALE_E_POLICY, "policy", 0, "the host is too long");
	if (*end == ':' && strspn(*text, "0123456789abcdefABCDEF:.") == strlen(*text) &&
	    strchr(end + 1, ':'))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: an address of IPv6 is written in brackets: [2001:db8::1]:443",
			       QUOTED(*text));
	*end = '\0';
	snprintf(name, sizeof(name), "%s", *text);
	*end = after;
	*text = end;
	if (network_cidr_parse(name, &cidr) < 0)
		return set(row, "host", name, err);
	digits = *end == '/' ? strspn(end + 1, "0123456789") : 0;
	if (digits && (end[1 + digits] == '\0' || end[1 + digits] == ':')) {
		size_t n = strlen(name);

		snprintf(name + n, sizeof(name) - n, "%.*s", (int)digits + 1, end);
		*text = end + 1 + digits;
	}
	return set(row, "address", name, err);
}

/* HOST=ADDRESS: a host, and where it may lead, as for a server that is not on the internet. */
static int take_place(struct rule_row *row, char **text, struct pale_err *err)
{
	char *equals = *text + strcspn(*text, "=:/[");
	int r;

	if (*equals != '=')
		return take_host(row, text, err);
	*equals = '\0';
	r = set(row, "host", *text, err);
	*text = equals + 1;
	if (r < 0)
		return r;
	equals = *text + (**text == '[') +
		 strspn(*text + (**text == '['), "0123456789abcdefABCDEF:.");
	if (equals == *text || (*equals && !strchr("]/", *equals)))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: expected an address or a range after `=`, such as 10.0.0.0/8",
			       QUOTED(*text));
	return take_host(row, text, err);
}

static int take_rule(struct rule_row *row, char *text, struct pale_err *err)
{
	char *slash;
	int r = take_methods(row, &text, err);

	if (r >= 0 && str_starts(text, "preset:"))
		return set(row, "preset", text + strlen("preset:"), err);
	if (r >= 0)
		r = take_protocol(row, &text, err);
	if (r >= 0)
		r = take_place(row, &text, err);
	if (r < 0)
		return r;
	slash = strchr(text, '/');
	/* "https://host/" as it is copied from a browser means the host. */
	if (slash && slash[1])
		r = set(row, "paths", slash, err);
	if (slash)
		*slash = '\0';
	if (r >= 0 && *text == ':')
		r = set(row, "port", text + 1, err);
	else if (r >= 0 && *text)
		r = err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected :PORT or /PATH",
			    QUOTED(text));
	return r;
}

int policy_add_rule(struct policy *p, bool deny, const char *text, const char *where,
		    struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(text), *cwd = getcwd(NULL, 0);
	struct option_place at = {cwd, where, false};
	struct rule_row row = {0};
	int r;

	if (!copy || !cwd)
		return err_nomem(err, "policy");
	r = take_rule(&row, copy, err);
	if (r >= 0) {
		r = rule_append(p, &row, deny, &at, err);
		if (r == -PALE_E_POLICY && row.port && !row.protocols && err)
			err_add(err, ": tls://%s:%s, or tcp:// and so on",
				row.host ? row.host : row.address, row.port);
	}
	option_row_done(&list_allow, &row);
	return r < 0 ? policy_at_place(err, where, r) : 0;
}

/* "HOST,HOST,header=NAME": where it may go, and in which place. */
static int take_targets(struct secret_row *row, char *text, struct pale_err *err)
{
	char *save = NULL;
	int r = 0;

	for (char *t = strtok_r(text, ",", &save); t && r >= 0; t = strtok_r(NULL, ",", &save)) {
		if (str_starts(t, "header="))
			r = set_secret(row, "header", t + strlen("header="), err);
		else if (str_starts(t, "query="))
			r = set_secret(row, "query", t + strlen("query="), err);
		else if (strcmp(t, "basic") == 0)
			row->basic = BOOL_TRUE;
		else
			r = set_secret(row, "hosts", t, err);
	}
	if (r >= 0 && !row->header && !row->query && row->basic != BOOL_TRUE)
		r = set_secret(row, "header", "authorization", err);
	return r;
}

int policy_add_secret(struct policy *p, const char *text, const char *where, struct pale_err *err)
{
	_cleanup_free_ char *copy = strdup(text), *cwd = getcwd(NULL, 0), *same = NULL;
	char *at_sign = copy ? strrchr(copy, '@') : NULL, *equals;
	struct option_place at = {cwd, where, false};
	struct secret_row row = {0};
	int r;

	if (!copy || !cwd)
		return err_nomem(err, "policy");
	/* Not quoted: it may hold the secret itself. */
	if (!at_sign || !at_sign[1])
		return policy_at_place(err, where,
				       err_set(err, PALE_E_POLICY, "policy", 0,
					       "expected NAME[=SOURCE]@HOST, such as "
					       "API_KEY=env:REAL_KEY@api.example.com"));
	*at_sign = '\0';
	equals = strchr(copy, '=');
	if (equals)
		*equals = '\0';
	else if (asprintf(&same, "env:%s", copy) < 0)
		return err_nomem(err, "policy");
	r = set_secret(&row, *copy == '/' ? "file" : "env", copy, err);
	if (r >= 0)
		r = set_secret(&row, "value_from", equals ? equals + 1 : same, err);
	if (r >= 0)
		r = take_targets(&row, at_sign + 1, err);
	if (r >= 0)
		r = secret_append(p, &row, &at, err);
	option_row_done(&list_secrets, &row);
	return r < 0 ? policy_at_place(err, where, r) : 0;
}
