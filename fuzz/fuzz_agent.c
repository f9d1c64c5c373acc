/* What a box may say to the caller's ssh agent, and what that agent may answer; the first byte
 * chooses: requests (of which a session-bind goes on to its key and signature), lists of keys, and
 * the names of known_hosts, which are the caller's. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/agent_key.h"
#include "egress/agent_wire.h"
#include "plan/known_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
	if (!ok)
		__builtin_trap();
}

static void inside(struct agent_bytes part, struct agent_bytes whole)
{
	must(part.data >= whole.data && part.len <= whole.len &&
	     part.data + part.len <= whole.data + whole.len);
}

static void request(struct agent_bytes m)
{
	char fingerprint[AGENT_FINGERPRINT];
	struct agent_bind bind;
	struct agent_login login;
	struct agent_sign sign;

	if (agent_parse_bind(m, &bind) == 0) {
		inside(bind.host_key, m);
		inside(bind.session_id, m);
		inside(bind.signature, m);
		must(bind.session_id.len <= 128);
		(void)!agent_key_verify(bind.host_key, bind.signature, bind.session_id);
		agent_key_fingerprint(bind.host_key, fingerprint);
		must(strlen(fingerprint) == 50);
	}
	if (agent_parse_sign(m, &sign) == 0) {
		inside(sign.key, m);
		inside(sign.data, m);
		if (agent_parse_login(&sign, &login) == 0) {
			inside(login.session_id, sign.data);
			inside(login.user, sign.data);
		}
	}
	must(*agent_request_name(m.len ? m.data[0] : 0) != '\0');
}

/* What is passed on is itself a list without comments, of the length that it says. */
static void list(struct agent_bytes m)
{
	_cleanup_buf_ struct buf once = BUF_INIT(1 << 20), twice = BUF_INIT(1 << 20);

	if (agent_without_comments(m, &once) < 0)
		return;
	must(once.len >= 9);
	must(agent_without_comments(
		     (struct agent_bytes){(const uint8_t *)once.data + 4, once.len - 4}, &twice) ==
	     0);
	must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	must(agent_length((const uint8_t *)once.data) == once.len - 4 ||
	     once.len - 4 > AGENT_MESSAGE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;

	struct agent_bytes m = {data + 1, size - 1};

	if (data[0] == 'r')
		request(m);
	else if (data[0] == 'l')
		list(m);
	else
		(void)known_hosts_covers((const char *)m.data, m.len, "git.example.com");
	return 0;
}
