/* The ssh agent's protocol: see agent_wire.h. In the broker; all of the input is hostile. */
#include "egress/agent_wire.h"

#include <errno.h>
#include <string.h>

#define SESSION_ID_MIN	 16 /* the shortest hash of a key exchange has 20 */
#define SESSION_ID_MAX	 128
#define USERAUTH_REQUEST 50
#define IDENTITIES_MAX	 2048 /* as OpenSSH's */

static uint32_t u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool agent_take_u32(struct agent_bytes *from, uint32_t *ret)
{
	if (from->len < 4)
		return false;
	*ret = u32(from->data);
	from->data += 4;
	from->len -= 4;
	return true;
}

bool agent_take_byte(struct agent_bytes *from, uint8_t *ret)
{
	if (from->len < 1)
		return false;
	*ret = *from->data++;
	from->len--;
	return true;
}

bool agent_take(struct agent_bytes *from, struct agent_bytes *ret)
{
	struct agent_bytes rest = *from;
	uint32_t len;

	if (!agent_take_u32(&rest, &len) || len > rest.len)
		return false;
	*ret = (struct agent_bytes){rest.data, len};
	*from = (struct agent_bytes){rest.data + len, rest.len - len};
	return true;
}

bool agent_is(struct agent_bytes b, const char *text)
{
	return b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
}

bool agent_same(struct agent_bytes a, struct agent_bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

uint32_t agent_length(const uint8_t head[static 4])
{
	uint32_t len = u32(head);

	return len <= AGENT_MESSAGE_MAX ? len : 0;
}

const char *agent_request_name(uint8_t type)
{
	static const char *const names[] = {
		[AGENT_REQUEST_IDENTITIES] = "list",
		[AGENT_SIGN_REQUEST] = "sign",
		[17] = "add-identity",
		[18] = "remove-identity",
		[19] = "remove-all",
		[20] = "add-smartcard",
		[21] = "remove-smartcard",
		[22] = "lock",
		[23] = "unlock",
		[25] = "add-constrained",
		[26] = "add-smartcard",
		[AGENT_EXTENSION] = "extension",
	};

	return type < sizeof(names) / sizeof(*names) && names[type] ? names[type] : "unknown";
}

int agent_parse_bind(struct agent_bytes m, struct agent_bind *ret)
{
	struct agent_bytes name;
	uint8_t type, forwarding;

	if (!agent_take_byte(&m, &type) || type != AGENT_EXTENSION || !agent_take(&m, &name))
		return -EINVAL;
	if (!agent_is(name, "session-bind@openssh.com"))
		return -ENOTSUP;
	if (!agent_take(&m, &ret->host_key) || !agent_take(&m, &ret->session_id) ||
	    !agent_take(&m, &ret->signature) || !agent_take_byte(&m, &forwarding) || m.len)
		return -EINVAL;
	if (ret->session_id.len < SESSION_ID_MIN || ret->session_id.len > SESSION_ID_MAX)
		return -EINVAL;
	ret->forwarding = forwarding != 0;
	return 0;
}

int agent_parse_sign(struct agent_bytes m, struct agent_sign *ret)
{
	uint8_t type;

	if (!agent_take_byte(&m, &type) || type != AGENT_SIGN_REQUEST ||
	    !agent_take(&m, &ret->key) || !agent_take(&m, &ret->data) ||
	    !agent_take_u32(&m, &ret->flags) || m.len)
		return -EINVAL;
	return 0;
}

int agent_parse_login(const struct agent_sign *sign, struct agent_login *ret)
{
	struct agent_bytes d = sign->data, service, method, algorithm, key;
	uint8_t type, has_signature;
	bool bound;

	ret->host_key = (struct agent_bytes){NULL, 0};
	if (!agent_take(&d, &ret->session_id) || !agent_take_byte(&d, &type) ||
	    type != USERAUTH_REQUEST || !agent_take(&d, &ret->user) || !agent_take(&d, &service) ||
	    !agent_is(service, "ssh-connection") || !agent_take(&d, &method))
		return -EINVAL;
	bound = agent_is(method, "publickey-hostbound-v00@openssh.com");
	if (!bound && !agent_is(method, "publickey"))
		return -EINVAL;
	if (!agent_take_byte(&d, &has_signature) || has_signature != 1 ||
	    !agent_take(&d, &algorithm) || !agent_take(&d, &key) || !agent_same(key, sign->key))
		return -EINVAL;
	if (bound && !agent_take(&d, &ret->host_key))
		return -EINVAL;
	return d.len ? -EINVAL : 0;
}

static void put_u32(struct buf *b, uint32_t value)
{
	const uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16),
				 (uint8_t)(value >> 8), (uint8_t)value};

	buf_add(b, bytes, sizeof(bytes));
}

int agent_without_comments(struct agent_bytes m, struct buf *ret)
{
	struct agent_bytes keys, key, comment;
	uint32_t n, len = 1 + 4;
	uint8_t type;

	if (!agent_take_byte(&m, &type) || type != AGENT_IDENTITIES_ANSWER ||
	    !agent_take_u32(&m, &n) || n > IDENTITIES_MAX)
		return -EINVAL;
	keys = m;
	for (uint32_t i = 0; i < n; i++) {
		if (!agent_take(&m, &key) || !agent_take(&m, &comment))
			return -EINVAL;
		len += 4 + (uint32_t)key.len + 4;
	}
	if (m.len)
		return -EINVAL;
	put_u32(ret, len);
	buf_add(ret, &type, 1);
	put_u32(ret, n);
	for (uint32_t i = 0; i < n; i++) {
		/* Both are there: they were above. */
		if (!agent_take(&keys, &key) || !agent_take(&keys, &comment))
			return -EINVAL;
		put_u32(ret, (uint32_t)key.len);
		buf_add(ret, key.data, key.len);
		put_u32(ret, 0);
	}
	return ret->failed ? -ENOMEM : 0;
}
