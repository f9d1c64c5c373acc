/* Attempts: see events.h. In the supervisor; everything named here comes from the box, is bounded,
 * and goes through audit_text() before it is written. */
#include "supervise/events_internal.h"

#include <string.h>

#include "base/str.h"

#define MAX_LOOKUPS 512 /* different names and kinds of record told singly */

int events_new(struct audit *log, struct events **ret, struct pale_err *err)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e)
		return err_nomem(err, EVENTS_STAGE);
	e->log = log;
	e->blocked = json_array();
	e->keys = json_object();
	e->lookups = json_object();
	e->asked = json_object();
	e->used = json_array();
	e->used_keys = json_object();
	*ret = e;
	if (!e->blocked || !e->keys || !e->lookups || !e->asked || !e->used || !e->used_keys)
		return err_nomem(err, EVENTS_STAGE);
	return 0;
}

void events_free(struct events *e)
{
	if (!e)
		return;
	json_decref(e->blocked);
	json_decref(e->keys);
	json_decref(e->lookups);
	json_decref(e->asked);
	json_decref(e->used);
	json_decref(e->used_keys);
	free(e);
}

void events_append(struct events *e, const char *stage, const char *name, json_t *body)
{
	struct pale_err err;

	if (audit_append(e->log, stage, name, body, &err) < 0 && e->error.code == PALE_OK)
		e->error = err;
}

void events_text(json_t *o, const char *key, const char *s, size_t max)
{
	if (*s)
		json_object_set_new(o, key, audit_text(s, strlen(s), max));
}

void events_remedy(json_t *o, const struct policy_network *n, const struct network_attempt *a)
{
	char text[NETWORK_REMEDY_TEXT];

	json_object_set_new(o, "allow",
			    network_remedy(n, a, text) ? json_string(text) : json_null());
}

/* One line of the result's list: count is all so far of its key. */
void events_list(struct events *e, int kind, const char *key, json_t *entry, uint64_t count)
{
	json_t *index = json_object_get(e->keys, key);

	/* A share for each kind: noise of one must not push another out. */
	if (!index && e->listed[kind] == EVENTS_MAX_LIST) {
		e->unlisted++;
		json_decref(entry);
		return;
	}
	json_object_set_new(entry, "count", json_integer((json_int_t)count));
	if (!json_object_get(entry, "allow"))
		json_object_set_new(entry, "allow", json_null());
	if (index) {
		json_array_set_new(e->blocked, (size_t)json_integer_value(index), entry);
		return;
	}
	e->listed[kind]++;
	json_object_set_new(e->keys, key, json_integer((json_int_t)json_array_size(e->blocked)));
	json_array_append_new(e->blocked, entry);
}

/* A, AAAA, HTTPS; all else, of which a box may think of many, together. */
static size_t slot_of(unsigned type)
{
	return type == 1 ? 0 : type == 28 ? 1 : type == 65 ? 2 : 3;
}

uint64_t events_lookups(struct events *e, const char *key, unsigned type, uint64_t more)
{
	json_t *times = json_object_get(e->asked, key), *one;
	json_int_t most = 0;
	size_t i;

	if (!times) {
		times = json_pack("[iiii]", 0, 0, 0, 0);
		json_object_set_new(e->asked, key, times);
	}
	one = json_array_get(times, slot_of(type));
	json_integer_set(one, json_integer_value(one) + (json_int_t)more);
	json_array_foreach(times, i, one) if (json_integer_value(one) > most) most =
		json_integer_value(one);
	return (uint64_t)most;
}

uint64_t events_listed(const struct events *e, const char *key)
{
	json_t *index = json_object_get(e->keys, key);
	json_t *entry =
		index ? json_array_get(e->blocked, (size_t)json_integer_value(index)) : NULL;

	return (uint64_t)json_integer_value(json_object_get(entry, "count"));
}

static const char *program_of(const struct notify_event *event)
{
	return event->exe[0] ? event->exe : event->comm;
}

static void add_what(json_t *o, const struct notify_event *event)
{
	events_text(o, "call", event->call, 64);
	events_text(o, "detail", event->detail, 64);
	events_text(o, "op", notify_op_name(event->op), 64);
	events_text(o, "program", program_of(event), 256);
	if (event->kind == NOTIFY_NETWORK) {
		events_text(o, "address", event->address, 64);
		if (event->port)
			json_object_set_new(o, "port", json_integer(event->port));
		events_text(o, "protocol", event->protocol, 16);
	}
	if (event->kind == NOTIFY_FILE)
		events_text(o, "path", event->path, NOTIFY_PATH_SIZE);
	if (event->error) {
		const char *name = strerrorname_np(event->error);

		json_object_set_new(o, "errno", json_string(name ? name : "unknown"));
	}
}

/* A name is all that is known of what was meant. */
static void add_remedy(json_t *o, const struct policy_network *n, const struct notify_event *event)
{
	struct network_attempt a = {.address = event->address, .port = event->port};

	if (strcmp(event->protocol, "udp") == 0)
		a.protocol = NETWORK_UDP;
	else if (strcmp(event->protocol, "tcp") != 0)
		return;
	events_remedy(o, n, &a);
}

void events_notify(struct events *e, const struct policy_network *n,
		   const struct notify_event *event)
{
	static const char *const kinds[] = {"call", "network", "file"};
	static const char *const names[] = {"call.denied", "network.blocked", "file.blocked"};
	json_t *body = json_object(), *entry = json_object();
	_cleanup_buf_ struct buf key = BUF_INIT(8192);

	if (event->is_total) {
		json_object_set_new(body, "of", json_string(names[event->kind]));
		json_object_set_new(body, "count", json_integer((json_int_t)event->count));
	}
	add_what(body, event);
	if (event->pid)
		json_object_set_new(body, "pid", json_integer(event->pid));
	if (event->comm[0] && event->exe[0])
		events_text(body, "comm", event->comm, 64);
	events_append(e, event->is_total ? "supervise" : "confine",
		      event->is_total ? "events.suppressed" : names[event->kind], body);

	json_object_set_new(entry, "kind", json_string(kinds[event->kind]));
	add_what(entry, event);
	if (event->kind == NOTIFY_NETWORK)
		add_remedy(entry, n, event);
	buf_addf(&key, "%s/%d/", kinds[event->kind], (int)event->op);
	str_escape(&key, event->call, strlen(event->call));
	buf_addf(&key, "/%s/%s/%u/%s/", event->detail, event->address, event->port,
		 event->protocol);
	str_escape(&key, event->path, strlen(event->path));
	buf_adds(&key, "/");
	str_escape(&key, program_of(event), strlen(program_of(event)));
	events_list(e, (int)event->kind, key.data, entry,
		    event->is_overflow ? event->count : event->total);
}

static void log_lookup(struct events *e, const struct init_message *m, const char *name,
		       const char *program)
{
	_cleanup_buf_ struct buf key = BUF_INIT(2048);
	json_t *before, *times, *body;

	buf_addf(&key, "%zu/%s", slot_of(m->type), name);
	before = json_object_get(e->lookups, key.data);
	if (before) {
		times = json_array_get(before, 2);
		json_integer_set(times, json_integer_value(times) + 1);
		return;
	}
	if (json_object_size(e->lookups) >= MAX_LOOKUPS) {
		e->more_lookups++;
		return;
	}
	json_object_set_new(e->lookups, key.data, json_pack("[sIi]", name, (json_int_t)m->type, 0));
	body = json_object();
	json_object_set_new(body, "name", audit_text(m->text, m->text_len, sizeof(m->text)));
	json_object_set_new(body, "type", json_integer(m->type));
	events_text(body, "program", program, 256);
	events_append(e, "init", "dns.blocked", body);
}

void events_lookup(struct events *e, const struct init_message *m, const char *program)
{
	_cleanup_buf_ struct buf name = BUF_INIT(2048), key = BUF_INIT(4096);
	char host[sizeof(m->text) + 1];
	json_t *entry;

	buf_add(&name, "", 0);
	str_escape(&name, m->text, m->text_len);
	log_lookup(e, m, name.data, program);
	buf_addf(&key, "dns/%s", name.data);
	if (!json_object_get(e->keys, key.data) && e->listed[EVENTS_DNS] == EVENTS_MAX_LIST) {
		e->others[EVENTS_DNS]++;
		return;
	}
	entry = json_object();
	json_object_set_new(entry, "kind", json_string("dns"));
	json_object_set_new(entry, "name", audit_text(m->text, m->text_len, sizeof(m->text)));
	events_text(entry, "program", program, 256);
	snprintf(host, sizeof(host), "%.*s", (int)m->text_len, m->text);
	/* Where there are rules, the broker answers. */
	if (strlen(host) == m->text_len)
		events_remedy(entry, NULL, &(struct network_attempt){.host = host});
	events_list(e, EVENTS_DNS, key.data, entry, events_lookups(e, key.data, m->type, 1));
}

void events_flush(struct events *e)
{
	const char *key;
	json_t *before;

	json_object_foreach(e->lookups, key, before)
	{
		json_t *times = json_array_get(before, 2);

		if (json_integer_value(times) == 0)
			continue;
		events_append(e, "supervise", "events.suppressed",
			      json_pack("{ss sO sO sO}", "of", "dns.blocked", "key",
					json_array_get(before, 0), "type",
					json_array_get(before, 1), "count", times));
	}
	json_object_clear(e->lookups);
	if (e->more_lookups)
		events_append(e, "supervise", "events.suppressed",
			      json_pack("{ss ss sI}", "of", "dns.blocked", "key", "other names",
					"count", (json_int_t)e->more_lookups));
	e->more_lookups = 0;
}

int events_failed(const struct events *e, struct pale_err *err)
{
	if (e->error.code == PALE_OK)
		return 0;
	if (err)
		*err = e->error;
	return -(int)e->error.code;
}

json_t *events_blocked(const struct events *e)
{
	json_t *a = json_deep_copy(e->blocked);

	for (int kind = 0; a && kind < EVENTS_KINDS; kind++)
		if (e->others[kind])
			json_array_append_new(a, json_pack("{ss sb sI sn}", "kind",
							   kind == EVENTS_DNS ? "dns" : "network",
							   "others", true, "count",
							   (json_int_t)e->others[kind], "allow"));
	if (a && e->unlisted)
		json_array_append_new(a, json_pack("{ss sI sn}", "kind", "more", "count",
						   (json_int_t)e->unlisted, "allow"));
	return a;
}
