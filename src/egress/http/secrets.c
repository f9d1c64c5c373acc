/* Secrets: see secrets.h.
 *
 * Process: the broker, confined and not dumpable; the supervisor is the only other process that has
 * the values. Hostile: requests (the box may send a placeholder anywhere) and answers (a server may
 * repeat what it was sent).
 *
 * What this holds, and what not: a placeholder is worth nothing, so one that leaves in a form that
 * is not looked for (compressed, encrypted, reversed) gives nothing away; finding it is a trip
 * wire. Masking answers protects against servers that repeat a request in plain words, URL-encoded,
 * as a JSON string, in hex or in base64. A server that computes something else from the value, or
 * hands it out in pieces, can't be stopped: the policy's owner has named that host as one that may
 * know the value. */
#include "egress/http/secrets.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "egress/http/encode.h"
#include "egress/http/search.h"

#define STAGE	    "egress"
#define FORMS_MAX   20
#define SCRATCH_MAX (4 * HEAD_MAX_BYTES)

struct secret {
	char *placeholder, *value, *label, *name;
	char **hosts;
	enum network_secret_place place;
};

struct secrets {
	size_t n;
	struct secret secret[SECRETS_MAX];
	struct search *placeholders, *values;
	/* Of each needle of the two above: whose it is, and how long. */
	uint8_t sent_owner[SECRETS_MAX * FORMS_MAX];
	uint16_t value_len[SECRETS_MAX * FORMS_MAX];
};

/* ---------------------------------------------------------------- forms to look for */

struct forms {
	size_t n;
	struct buf form[FORMS_MAX];
};

static void forms_done(struct forms *f)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->form[i].data)
			explicit_bzero(f->form[i].data, f->form[i].cap);
		buf_done(&f->form[i]);
	}
}

static struct buf *form_begin(struct forms *f)
{
	f->form[f->n] = BUF_INIT(8 * SECRETS_VALUE_MAX);
	return &f->form[f->n];
}

/* Keeps the form that was begun, unless it is there already or too short to mean anything. */
static void form_keep(struct forms *f)
{
	struct buf *b = &f->form[f->n];

	for (size_t i = 0; i < f->n; i++)
		if (f->form[i].len == b->len && memcmp(f->form[i].data, b->data, b->len) == 0)
			b->len = 0;
	if (b->len >= SECRETS_VALUE_MIN && f->n + 1 < FORMS_MAX)
		f->n++;
	else
		buf_done(b);
}

/* Within a longer text that is encoded as base64, a value's own characters stand at one of three
 * shifts; the characters at its ends depend on the neighbours too and are left off. */
static int forms_base64(struct forms *f, const char *v, size_t len)
{
	static const size_t skip[] = {0, 2, 3};

	for (size_t shift = 0; shift < 3; shift++)
		for (int url = 0; url < 2; url++) {
			_cleanup_buf_ struct buf in = BUF_INIT(2 * SECRETS_VALUE_MAX);
			struct buf *b = form_begin(f);
			size_t whole = (shift + len) * 8 / 6;

			if (buf_add(&in, "\0\0", shift) < 0 || buf_add(&in, v, len) < 0 ||
			    encode_base64(b, in.data, in.len, url) < 0)
				return -ENOMEM;
			explicit_bzero(in.data, in.len);
			b->len = whole - skip[shift];
			memmove(b->data, b->data + skip[shift], b->len);
			form_keep(f);
		}
	return 0;
}

static int forms_make(struct forms *f, const char *v)
{
	size_t len = strlen(v);
	struct buf *b = form_begin(f);
	int r = buf_add(b, v, len);

	form_keep(f);
	b = form_begin(f);
	r = r ? r : encode_percent(b, v, len);
	form_keep(f);
	b = form_begin(f); /* the same with small hex digits */
	r = r ? r : encode_percent(b, v, len);
	for (size_t i = 0; r == 0 && i + 2 < b->len; i++)
		if (b->data[i] == '%')
			for (size_t k = 1; k < 3; k++)
				b->data[i + k] |= b->data[i + k] >= 'A' ? 0x20 : 0;
	form_keep(f);
	for (int slash = 0; slash < 2; slash++) { /* in a JSON string */
		b = form_begin(f);
		for (size_t i = 0; r == 0 && i < len; i++) {
			if (v[i] == '"' || v[i] == '\\' || (slash && v[i] == '/'))
				r = buf_add(b, "\\", 1);
			r = r ? r : buf_add(b, v + i, 1);
		}
		form_keep(f);
	}
	/* Long ones (tokens with claims in them) are not told in hex by anybody, and would make the
	 * table large. */
	for (int upper = 0; upper < 2 && len <= 256; upper++) {
		b = form_begin(f);
		for (size_t i = 0; r == 0 && i < len; i++)
			r = buf_addf(b, upper ? "%02X" : "%02x", (unsigned char)v[i]);
		form_keep(f);
	}
	return r ? r : forms_base64(f, v, len);
}

/* ---------------------------------------------------------------- making */

static int add_value(struct secrets *s, const struct network_secret *from,
		     const struct config_secret *v, struct pale_err *err)
{
	struct secret *to = &s->secret[s->n];
	const char *label = from->env ? from->env : from->file ? from->file : "a secret";
	size_t len = strlen(v->value), nhosts = 0;

	if (len < SECRETS_VALUE_MIN || len > SECRETS_VALUE_MAX)
		return err_set(
			err, PALE_E_POLICY, STAGE, 0,
			"the value of secret %s (%s) has %zu bytes: it must have %d to %u, or "
			"answers that repeat it can't be masked",
			label, from->where, len, SECRETS_VALUE_MIN, SECRETS_VALUE_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)v->value[i] < ' ' || v->value[i] == 0x7f)
			return err_set(err, PALE_E_POLICY, STAGE, 0,
				       "the value of secret %s (%s) holds a line break or another "
				       "control character, so it can't be sent in a header",
				       label, from->where);
	if (strlen(v->placeholder) < 16 || strlen(v->placeholder) > 256)
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "the placeholder of secret %s has not 16 to 256 bytes", label);
	while (from->hosts[nhosts])
		nhosts++;
	s->n++;
	to->place = from->place;
	to->label = strdup(label);
	to->name = from->name ? strdup(from->name) : NULL;
	to->placeholder = strdup(v->placeholder);
	to->value = strdup(v->value);
	to->hosts = calloc(nhosts + 1, sizeof(*to->hosts));
	if (!to->label || (from->name && !to->name) || !to->placeholder || !to->value || !to->hosts)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < nhosts; i++) {
		to->hosts[i] = strdup(from->hosts[i]);
		if (!to->hosts[i])
			return err_nomem(err, STAGE);
	}
	return 0;
}

/* Every byte as %XX, as nobody has to write a placeholder, who has nothing to hide. */
static int forms_percent(struct forms *f, const char *v)
{
	int r = 0;

	for (int upper = 0; upper < 2; upper++) {
		struct buf *b = form_begin(f);

		for (const char *c = v; r == 0 && *c; c++)
			r = buf_addf(b, upper ? "%%%02X" : "%%%02x", (unsigned char)*c);
		form_keep(f);
	}
	return r;
}

static int make_search(struct secrets *s, bool values, struct search **ret)
{
	_cleanup_free_ struct forms *f = calloc(s->n + 1, sizeof(*f));
	struct search_needle needles[SECRETS_MAX * FORMS_MAX];
	size_t n = 0;
	int r = f ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < s->n; i++) {
		r = forms_make(&f[i], values ? s->secret[i].value : s->secret[i].placeholder);
		if (r == 0 && !values)
			r = forms_percent(&f[i], s->secret[i].placeholder);
		for (size_t k = 0; r == 0 && k < f[i].n; k++) {
			if (values)
				s->value_len[n] = (uint16_t)f[i].form[k].len;
			else
				s->sent_owner[n] = (uint8_t)i;
			needles[n++] = (struct search_needle){f[i].form[k].data, f[i].form[k].len};
		}
	}
	if (r == 0)
		r = search_new(needles, n, ret);
	for (size_t i = 0; f && i < s->n; i++)
		forms_done(&f[i]);
	return r;
}

int secrets_new(const struct policy_network *n, const struct config_secret *values, size_t nvalues,
		struct secrets **ret, struct pale_err *err)
{
	struct secrets *s = calloc(1, sizeof(*s));
	int r = 0;

	*ret = NULL;
	if (!s)
		return err_nomem(err, STAGE);
	if (n->nsecrets != nvalues || nvalues > SECRETS_MAX)
		r = err_set(err, PALE_E_POLICY, STAGE, 0,
			    "more than %d secrets, or not one value each", SECRETS_MAX);
	for (size_t i = 0; r == 0 && i < nvalues; i++)
		r = add_value(s, &n->secrets[i], &values[i], err);
	if (r == 0) {
		r = make_search(s, false, &s->placeholders);
		if (r == 0)
			r = make_search(s, true, &s->values);
		if (r == -E2BIG)
			r = err_set(err, PALE_E_POLICY, STAGE, 0,
				    "the secrets are too large together");
		else if (r < 0)
			r = err_nomem(err, STAGE);
	}
	if (r < 0) {
		secrets_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void secrets_free(struct secrets *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		struct secret *x = &s->secret[i];

		if (x->value)
			explicit_bzero(x->value, strlen(x->value));
		for (size_t k = 0; x->hosts && x->hosts[k]; k++)
			free(x->hosts[k]);
		free(x->hosts);
		free(x->value);
		free(x->placeholder);
		free(x->label);
		free(x->name);
	}
	search_free(s->placeholders);
	search_free(s->values);
	free(s);
}

static bool belongs(const struct secret *x, const char *host)
{
	for (size_t i = 0; x->hosts[i]; i++)
		if (network_host_matches(x->hosts[i], host))
			return true;
	return false;
}

bool secrets_belong(const struct secrets *s, const char *host)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (belongs(&s->secret[i], host))
			return true;
	return false;
}

/* ---------------------------------------------------------------- putting in */

/* Copies text with each placeholder replaced. 1: there was one; 0; -ENOMEM. */
static int replaced(struct buf *b, const struct secret *x, const char *text, size_t len)
{
	size_t plen = strlen(x->placeholder);
	const char *end = text + len, *hit;
	int any = 0;

	while ((hit = memmem(text, (size_t)(end - text), x->placeholder, plen))) {
		if (buf_add(b, text, (size_t)(hit - text)) < 0 || buf_adds(b, x->value) < 0)
			return -ENOMEM;
		text = hit + plen;
		any = 1;
	}
	return buf_add(b, text, (size_t)(end - text)) < 0 ? -ENOMEM : any;
}

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}
#define _cleanup_wipe_ _cleanup_(wipe)

static int put_header(const struct secret *x, struct head *h)
{
	for (size_t i = 0; i < h->nfields; i++) {
		_cleanup_wipe_ struct buf b = BUF_INIT(SCRATCH_MAX);
		int r;

		if (!head_is(h, i, x->name))
			continue;
		r = replaced(&b, x, head_value(h, i), h->fields[i].value_len);
		if (r > 0) {
			r = head_set_value(h, i, b.data, b.len);
			h->fields[i].secret = true;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int put_basic(const struct secret *x, struct head *h)
{
	for (size_t i = 0; i < h->nfields; i++) {
		_cleanup_wipe_ struct buf plain = BUF_INIT(SCRATCH_MAX);
		_cleanup_wipe_ struct buf put = BUF_INIT(SCRATCH_MAX);
		_cleanup_wipe_ struct buf out = BUF_INIT(SCRATCH_MAX);
		const char *v = head_value(h, i);
		int r;

		if (!head_is(h, i, "authorization") || strncasecmp(v, "basic ", 6) != 0)
			continue;
		v += 6 + strspn(v + 6, " ");
		if (decode_base64(&plain, v, strlen(v)) < 0 || plain.len == 0)
			continue; /* whatever it is, there is no placeholder in it to replace */
		r = replaced(&put, x, plain.data, plain.len);
		if (r > 0) {
			r = buf_adds(&out, "Basic ");
			if (r == 0)
				r = encode_base64(&out, put.data, put.len, false);
			if (r == 0)
				r = head_set_value(h, i, out.data, out.len);
			h->fields[i].secret = true;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* The query's field of that name, if its value is the placeholder. */
static int put_query(const struct secret *x, struct head *h)
{
	_cleanup_wipe_ struct buf out = BUF_INIT(SCRATCH_MAX);
	const char *target = head_text(h, h->target), *at = strchr(target, '?');
	bool any = false;
	int r;

	if (!at)
		return 0;
	r = buf_add(&out, target, (size_t)(++at - target));
	while (r == 0) {
		_cleanup_buf_ struct buf name = BUF_INIT(HEAD_MAX_BYTES);
		_cleanup_buf_ struct buf value = BUF_INIT(HEAD_MAX_BYTES);
		size_t len = strcspn(at, "&"), name_len = strcspn(at, "=&");

		r = decode_percent(&name, at, name_len, true);
		if (r == 0 && name_len < len)
			r = decode_percent(&value, at + name_len + 1, len - name_len - 1, true);
		if (r < 0)
			return r;
		if (name.data && value.data && strcmp(name.data, x->name) == 0 &&
		    value.len == strlen(value.data) && strcmp(value.data, x->placeholder) == 0) {
			r = buf_add(&out, at, name_len + 1);
			if (r == 0)
				r = encode_percent(&out, x->value, strlen(x->value));
			any = true;
		} else {
			r = buf_add(&out, at, len);
		}
		at += len;
		if (!*at)
			break;
		if (r == 0)
			r = buf_add(&out, at++, 1);
	}
	if (r == 0 && any)
		r = head_store(h, out.data, out.len, &h->target);
	h->target_secret = h->target_secret || any;
	return r;
}

/* Is a placeholder in text, as it stands or percent-decoded (twice: frameworks do it too)? */
static size_t find_sent(const struct secrets *s, const char *text, size_t len)
{
	_cleanup_buf_ struct buf once = BUF_INIT(SCRATCH_MAX);
	_cleanup_buf_ struct buf twice = BUF_INIT(SCRATCH_MAX);
	size_t hit = search_finds(s->placeholders, text, len);

	if (hit || !memchr(text, '%', len))
		return hit;
	if (decode_percent(&once, text, len, true) < 0 || !once.data)
		return 0;
	hit = search_finds(s->placeholders, once.data, once.len);
	if (hit || decode_percent(&twice, once.data, once.len, true) < 0 || !twice.data)
		return hit;
	return search_finds(s->placeholders, twice.data, twice.len);
}

static int sent_wrongly(const struct secrets *s, size_t hit, const char *where, char *detail)
{
	snprintf(detail, 160, "the placeholder of %.48s in %.48s, where it does not belong",
		 s->secret[s->sent_owner[hit - 1]].label, where);
	return -EPERM;
}

/* Any that is left. */
static int check_left(const struct secrets *s, const struct head *h, char *detail)
{
	const char *target = head_text(h, h->target), *authority = head_text(h, h->authority);
	size_t hit = target ? find_sent(s, target, strlen(target)) : 0;

	if (hit)
		return sent_wrongly(s, hit, "the path or query", detail);
	hit = authority ? find_sent(s, authority, strlen(authority)) : 0;
	if (hit)
		return sent_wrongly(s, hit, "the host", detail);
	hit = h->method ? find_sent(s, head_text(h, h->method), strlen(head_text(h, h->method)))
			: 0;
	if (hit)
		return sent_wrongly(s, hit, "the method", detail);
	for (size_t i = 0; i < h->nfields; i++) {
		_cleanup_buf_ struct buf plain = BUF_INIT(SCRATCH_MAX);
		const char *v = head_value(h, i);
		char where[64];

		hit = find_sent(s, v, h->fields[i].value_len);
		if (!hit)
			hit = find_sent(s, head_name(h, i), h->fields[i].name_len);
		if (!hit && strncasecmp(v, "basic ", 6) == 0 &&
		    decode_base64(&plain, v + 6, strlen(v + 6)) == 0 && plain.data)
			hit = find_sent(s, plain.data, plain.len);
		if (!hit)
			continue;
		snprintf(where, sizeof(where), "header %.48s", head_name(h, i));
		return sent_wrongly(s, hit, where, detail);
	}
	return 0;
}

int secrets_put(const struct secrets *s, const char *host, bool put, struct head *h,
		char detail[static 160])
{
	detail[0] = '\0';
	if (!s || s->n == 0)
		return 0;
	for (size_t i = 0; put && i < s->n; i++) {
		const struct secret *x = &s->secret[i];
		int r = 0;

		if (!belongs(x, host))
			continue;
		if (x->place == SECRET_HEADER)
			r = put_header(x, h);
		else if (x->place == SECRET_BASIC)
			r = put_basic(x, h);
		else if (h->target)
			r = put_query(x, h);
		if (r < 0)
			return r;
	}
	return check_left(s, h, detail);
}

bool secrets_sent(const struct secrets *s, uint32_t *state, const void *data, size_t len)
{
	size_t at = 0;

	return s && s->n && search_next(s->placeholders, state, data, len, &at) > 0;
}

static bool form_byte(const struct secrets *s, struct secrets_form *f, char c)
{
	return secrets_sent(s, &f->state, c == '+' ? " " : &c, 1);
}

/* What was held is no triple. */
static bool form_release(const struct secrets *s, struct secrets_form *f)
{
	bool hit = false;

	for (uint8_t i = 0; i < f->nheld && !hit; i++)
		hit = form_byte(s, f, f->held[i]);
	f->nheld = 0;
	return hit;
}

bool secrets_sent_form(const struct secrets *s, struct secrets_form *f, const void *data,
		       size_t len)
{
	const char *in = data;

	if (!s || !s->n)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (f->nheld == 2 && encode_hex_value(in[i]) >= 0) {
			f->nheld = 0;
			if (form_byte(s, f,
				      (char)(encode_hex_value(f->held[1]) << 4 |
					     encode_hex_value(in[i]))))
				return true;
		} else if (f->nheld == 1 && encode_hex_value(in[i]) >= 0) {
			f->held[f->nheld++] = in[i];
		} else {
			if (form_release(s, f))
				return true;
			if (in[i] == '%')
				f->held[f->nheld++] = in[i];
			else if (form_byte(s, f, in[i]))
				return true;
		}
	}
	return false;
}

void secrets_tell(const struct secrets *s, uint32_t state, const char *where,
		  char detail[static 160])
{
	size_t hit = search_ended(s->placeholders, state);

	if (hit)
		sent_wrongly(s, hit, where, detail);
	else
		snprintf(detail, 160, "a secret's placeholder in %.64s", where);
}

/* ---------------------------------------------------------------- masking */

/* Searches from `from` on, and writes asterisks over what ends there, from the beginning of data
 * at most. Where the last of them ended; 0: there is none. */
static size_t mask_bytes(const struct secrets *s, uint32_t *state, char *data, size_t len,
			 size_t from)
{
	size_t hit, end = 0;

	while ((hit = search_next(s->values, state, data, len, &from))) {
		size_t n = s->value_len[hit - 1] < from ? s->value_len[hit - 1] : from;

		memset(data + from - n, '*', n);
		end = from;
	}
	return end;
}

void secrets_mask_head(const struct secrets *s, struct head *h)
{
	for (size_t i = 0; s && i < h->nfields; i++) {
		const struct head_field *f = &h->fields[i];
		uint32_t state = 0;

		mask_bytes(s, &state, h->text.data + f->name, f->name_len, 0);
		state = 0;
		mask_bytes(s, &state, h->text.data + f->value, f->value_len, 0);
	}
	if (s && h->reason) {
		char *reason = h->text.data + h->reason;
		uint32_t state = 0;

		mask_bytes(s, &state, reason, strlen(reason), 0);
	}
}

void mask_init(struct mask *m, const struct secrets *s)
{
	*m = (struct mask){.s = s, .held = BUF_INIT(8 * SECRETS_VALUE_MAX + (64u << 10))};
}

void mask_done(struct mask *m)
{
	wipe(&m->held);
}

int mask_add(struct mask *m, const void *data, size_t len, struct evbuffer *to)
{
	const char *p = data;

	if (!m->s)
		return evbuffer_add(to, data, len) < 0 ? -ENOMEM : 0;
	while (len) {
		size_t n = len < (32u << 10) ? len : (32u << 10), before = m->held.len;
		size_t keep, end;

		if (buf_add(&m->held, p, n) < 0)
			return -ENOMEM;
		end = mask_bytes(m->s, &m->state, m->held.data, m->held.len, before);
		keep = search_pending(m->s->values, m->state);
		if (keep <= MASK_SLACK)
			keep = 0;
		/* What is masked already need not wait; what has been let through can't. */
		if (keep > m->held.len - end)
			keep = m->held.len - end;
		if (evbuffer_add(to, m->held.data, m->held.len - keep) < 0)
			return -ENOMEM;
		memmove(m->held.data, m->held.data + m->held.len - keep, keep);
		m->held.len = keep;
		p += n;
		len -= n;
	}
	return 0;
}

int mask_move(struct mask *m, struct evbuffer *from, struct evbuffer *to)
{
	if (!m->s)
		return evbuffer_add_buffer(to, from) < 0 ? -ENOMEM : 0;
	while (evbuffer_get_length(from)) {
		size_t n = evbuffer_get_contiguous_space(from);
		int r = mask_add(m, evbuffer_pullup(from, (ev_ssize_t)n), n, to);

		if (r < 0)
			return r;
		evbuffer_drain(from, n);
	}
	return 0;
}

int mask_end(struct mask *m, struct evbuffer *to)
{
	size_t len = m->held.len;

	m->held.len = 0;
	m->state = 0;
	return len && evbuffer_add(to, m->held.data, len) < 0 ? -ENOMEM : 0;
}
