/* The lists of a policy (`files`, `network.allow` and so on): what an entry's row means, and the
 * row of an entry. Runs wherever a policy is read, with the caller's rights; rows may come from
 * hostile texts, of which each value was checked by its row in the options table. */
#include "policy/model.h"

#include <string.h>

#include "policy/options.h"
#include "policy/rules.h"

static int copy_text(char **ret, const char *text)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* ---- files ---- */

static size_t files_count(const struct policy *p)
{
	return p->nfiles;
}

static int files_view(const struct policy *p, size_t i, void *row)
{
	const struct policy_file *f = &p->files[i];
	struct policy_file *r = row;

	r->access = f->access;
	r->size_bytes = f->size_bytes;
	if (copy_text(&r->path, f->path) < 0 || copy_text(&r->from, f->from) < 0)
		return -ENOMEM;
	return copy_text(&r->collect, f->collect);
}

static int files_append(struct policy *p, const void *row, const struct option_place *at,
			struct pale_err *err)
{
	const struct policy_file *r = row;
	struct file_request q = {r->access,	r->path,  r->from,  r->collect,
				 r->size_bytes, at->base, at->where};

	return policy_append_file(p, &q, err);
}

const struct option_list list_files = {
	.entries = "files[]",
	.size = sizeof(struct policy_file),
	.count = files_count,
	.view = files_view,
	.append = files_append,
	.example = "{path: /data, from: ./data, access: read}",
	.flags = "--ro, --rw, --overlay and --hide",
	.one_of = "path from collect",
};

/* ---- network.allow, network.deny: one array, the allowing rules first ---- */

static size_t rules_count(const struct policy *p, bool deny)
{
	size_t n = 0;

	for (size_t i = 0; i < p->network.nrules; i++)
		n += p->network.rules[i].deny == deny;
	return n;
}

static size_t allow_count(const struct policy *p)
{
	return rules_count(p, false);
}

static size_t deny_count(const struct policy *p)
{
	return rules_count(p, true);
}

static int allow_view(const struct policy *p, size_t i, void *row)
{
	return rule_view(&p->network.rules[i], row);
}

static int deny_view(const struct policy *p, size_t i, void *row)
{
	return rule_view(&p->network.rules[allow_count(p) + i], row);
}

static int allow_append(struct policy *p, const void *row, const struct option_place *at,
			struct pale_err *err)
{
	return rule_append(p, row, false, at, err);
}

static int deny_append(struct policy *p, const void *row, const struct option_place *at,
		       struct pale_err *err)
{
	return rule_append(p, row, true, at, err);
}

const struct option_list list_allow = {
	.entries = "network.allow[]",
	.size = sizeof(struct rule_row),
	.count = allow_count,
	.view = allow_view,
	.append = allow_append,
	.example = "{host: api.example.com, port: 443}",
	.flags = "--allow",
	.one_of = "host address preset",
};

const struct option_list list_deny = {
	.entries = "network.allow[]",
	.size = sizeof(struct rule_row),
	.count = deny_count,
	.view = deny_view,
	.append = deny_append,
	.example = "{host: \"*.example.com\", reason: use the mirror}",
	.flags = "--deny",
	.one_of = "host address",
};

/* ---- network.secrets ---- */

static size_t secrets_count(const struct policy *p)
{
	return p->network.nsecrets;
}

static int secrets_view(const struct policy *p, size_t i, void *row)
{
	const struct network_secret *s = &p->network.secrets[i];
	struct secret_row *r = row;

	r->basic = s->place == SECRET_BASIC ? BOOL_TRUE : BOOL_NOT_GIVEN;
	if (copy_text(&r->env, s->env) < 0 || copy_text(&r->file, s->file) < 0 ||
	    copy_text(&r->value_from, s->value_from) < 0 || texts_copy(&r->hosts, s->hosts) < 0)
		return -ENOMEM;
	if (s->place == SECRET_HEADER)
		return copy_text(&r->header, s->name);
	return s->place == SECRET_QUERY ? copy_text(&r->query, s->name) : 0;
}

static int secrets_append(struct policy *p, const void *row, const struct option_place *at,
			  struct pale_err *err)
{
	return secret_append(p, row, at, err);
}

const struct option_list list_secrets = {
	.entries = "network.secrets[]",
	.size = sizeof(struct secret_row),
	.count = secrets_count,
	.view = secrets_view,
	.append = secrets_append,
	.example = "{env: API_KEY, value_from: \"env:REAL_KEY\", hosts: api.example.com, header: "
		   "authorization}",
	.flags = "--secret",
	.one_of = "env file",
	.needs = "value_from hosts",
};

/* ---- network.publish ---- */

static size_t publish_count(const struct policy *p)
{
	return p->network.npublish;
}

static int publish_view(const struct policy *p, size_t i, void *row)
{
	const struct network_publish *e = &p->network.publish[i];
	struct publish_row *r = row;

	r->port = e->port;
	r->host_port = e->host_port;
	return copy_text(&r->path, e->path);
}

static int append_publish(struct policy *p, const void *row, const struct option_place *at,
			  struct pale_err *err)
{
	return publish_append(p, row, at, err);
}

const struct option_list list_publish = {
	.entries = "network.publish[]",
	.size = sizeof(struct publish_row),
	.count = publish_count,
	.view = publish_view,
	.append = append_publish,
	.example = "{port: 8080}",
	.flags = "--publish",
	.one_of = "port",
	.needs = "port",
};
