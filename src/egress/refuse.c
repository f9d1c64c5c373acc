/* Refusals in words: see refuse.h. Runs in the broker. Host, method, path and detail come from the
 * box; they are escaped before they go into a text, and the texts are bounded. Nothing of the
 * policy is told but the one rule that decided: its place, its reason. */
#include "egress/refuse.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "policy/remedy.h"

#define FINAL                                                                                  \
	"This is the sandbox's policy and final: another attempt, or another way to the same " \
	"place, will be refused as well."

static const struct network_rule *rule_of(const struct policy_network *n, const struct refusal *r)
{
	return r->rule >= 0 && (size_t)r->rule < n->nrules ? &n->rules[r->rule] : NULL;
}

static const char *scheme(enum network_protocol protocol)
{
	switch (protocol) {
	case NETWORK_TLS: return "https";
	case NETWORK_HTTP: return "http";
	case NETWORK_TCP: return "tcp";
	case NETWORK_UDP: return "udp";
	}
	return "";
}

struct words {
	char host[300], what[1100], rule[600], reason[300], remedy[800];
};

static bool remedy_of(const struct policy_network *n, const struct refusal *r,
		      char out[static NETWORK_REMEDY_TEXT])
{
	struct network_cidr literal;
	bool is_address = network_cidr_parse(r->host, &literal) == 0;
	const struct network_attempt a = {
		.host = is_address ? NULL : r->host,
		.address = is_address ? r->host : r->unfit,
		.unfit = r->unfit != NULL,
		.port = r->port,
		.protocol = r->protocol,
		.method = r->method,
		.path = r->path,
	};

	return network_remedy(n, &a, out);
}

static void words_of(const struct policy_network *n, const struct refusal *r, struct words *w)
{
	const struct network_rule *rule = rule_of(n, r);
	char path[600] = "", method[40] = "", text[NETWORK_RULE_TEXT], escaped[300],
	     allow[NETWORK_REMEDY_TEXT];
	bool v6;

	str_escape_into(w->host, sizeof(w->host), r->host, strlen(r->host));
	v6 = strchr(w->host, ':');
	if (r->path)
		str_escape_into(path, sizeof(path), r->path, strlen(r->path));
	if (r->method)
		str_escape_into(method, sizeof(method), r->method, strlen(r->method));
	snprintf(w->what, sizeof(w->what), "%s%s%s%s%s%s%s:%u%s", method, *method ? " " : "",
		 scheme(r->protocol), r->protocol ? "://" : "", v6 ? "[" : "", w->host,
		 v6 ? "]" : "", r->port, path);
	w->reason[0] = '\0';
	if (!rule) {
		snprintf(w->rule, sizeof(w->rule), "no rule allows it");
		if (remedy_of(n, r, allow))
			snprintf(w->remedy, sizeof(w->remedy),
				 "whoever starts this sandbox can allow it: pale run --allow "
				 "'%s', or an entry in the policy's network.allow",
				 allow);
		else
			snprintf(w->remedy, sizeof(w->remedy),
				 "none: no rule would allow it as it is");
		return;
	}
	network_rule_text(rule, text);
	str_escape_into(escaped, sizeof(escaped), text, strlen(text));
	snprintf(w->rule, sizeof(w->rule), "%s (%s)", escaped, rule->where ? rule->where : "?");
	if (rule->reason)
		str_escape_into(w->reason, sizeof(w->reason), rule->reason, strlen(rule->reason));
	snprintf(w->remedy, sizeof(w->remedy),
		 "whoever starts this sandbox would have to change that rule");
}

int refuse_json(struct buf *b, const struct policy_network *n, const struct refusal *r)
{
	struct words w;
	json_t *o;
	char *text;
	int result;

	words_of(n, r, &w);
	o = json_pack("{s:s, s:s, s:b, s:s, s:s, s:i, s:s, s:s*, s:s*, s:s, s:s}", "error",
		      "blocked_by_policy", "source", "pale", "final", 1, "blocked", w.what, "host",
		      w.host, "port", (int)r->port, "rule", w.rule, "reason",
		      w.reason[0] ? w.reason : NULL, "detail",
		      r->detail && r->detail[0] ? r->detail : NULL, "message", FINAL, "remedy",
		      w.remedy);
	if (!o)
		return -ENOMEM;
	text = json_dumps(o, JSON_INDENT(1));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	result = buf_adds(b, text);
	if (result == 0)
		result = buf_adds(b, "\n");
	free(text);
	return result;
}

int refuse_text(struct buf *b, const struct policy_network *n, const struct refusal *r)
{
	struct words w;

	words_of(n, r, &w);
	buf_addf(b, "Blocked by Pale, by the sandbox's policy: %s\nrule: %s\n", w.what, w.rule);
	if (w.reason[0])
		buf_addf(b, "reason: %s\n", w.reason);
	if (r->detail && r->detail[0])
		buf_addf(b, "detail: %s\n", r->detail);
	buf_addf(b, "%s\nremedy: %s\n", FINAL, w.remedy);
	return b->failed ? -ENOMEM : 0;
}

void refuse_line(char *out, size_t size, const struct policy_network *n, const struct refusal *r)
{
	struct words w;

	words_of(n, r, &w);
	snprintf(out, size, "blocked by Pale, by the sandbox's policy (final): %s: %s%s%s%s%s",
		 w.what, w.rule, w.reason[0] ? ": " : "", w.reason,
		 r->detail && r->detail[0] ? "; " : "", r->detail ? r->detail : "");
}

bool refuse_wants_json(const char *accept)
{
	const char *json, *text;

	if (!accept)
		return false;
	json = strcasestr(accept, "json");
	text = strcasestr(accept, "text/");
	return json && (!text || json < text);
}

int refuse_http(struct buf *b, const struct policy_network *n, const struct refusal *r,
		const char *accept, bool head_only)
{
	_cleanup_buf_ struct buf body = BUF_INIT(8192);
	bool json = refuse_wants_json(accept);
	int result = json ? refuse_json(&body, n, r) : refuse_text(&body, n, r);

	if (result < 0)
		return result;
	buf_addf(b,
		 "HTTP/1.1 403 Forbidden\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		 "Cache-Control: no-store\r\nX-Pale-Blocked: policy\r\nConnection: close\r\n\r\n",
		 json ? "application/json" : "text/plain; charset=utf-8", body.len);
	if (!head_only)
		buf_add(b, body.data, body.len);
	return b->failed ? -ENOMEM : 0;
}
