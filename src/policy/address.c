/* Addresses and ranges of them: see network.h. Runs in the supervisor, and in the egress broker on
 * the answers of resolvers and on what the box connects to, both hostile; fixed sizes only.
 *
 * Sources: the IANA registries of special-purpose addresses; RFC 6052 and 8215 (NAT64), 3056
 * (6to4), 4380 (Teredo), 5214 (ISATAP). */
#include "policy/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b};

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

int network_cidr_parse(const char *text, struct network_cidr *ret)
{
	const char *slash = strchr(text, '/');
	struct network_cidr c = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
	unsigned most = c.family == AF_INET ? 32 : 128;
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char address[INET6_ADDRSTRLEN];
	uint64_t bits = most;

	if (n >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, n);
	address[n] = '\0';
	/* inet_pton() takes four decimal numbers without leading zeros, and no zone ("%eth0"). */
	if (inet_pton(c.family, address, &c.address) != 1 ||
	    (slash && num_parse_u64(slash + 1, most, &bits) < 0))
		return -EINVAL;
	c.bits = (unsigned)bits;
	for (unsigned i = c.bits; i < most; i++)
		if (c.address.s6_addr[i / 8] & (0x80u >> (i % 8)))
			return -EINVAL;
	*ret = c;
	return 0;
}

const char *network_cidr_format(const struct network_cidr *c, char out[static NETWORK_CIDR_TEXT])
{
	char address[INET6_ADDRSTRLEN] = "?";

	inet_ntop(c->family, &c->address, address, sizeof(address));
	if (c->bits == (c->family == AF_INET ? 32 : 128))
		snprintf(out, NETWORK_CIDR_TEXT, "%s", address);
	else
		snprintf(out, NETWORK_CIDR_TEXT, "%s/%u", address, c->bits & 0xff);
	return out;
}

bool network_cidr_contains(const struct network_cidr *c, int family, const void *address)
{
	const unsigned char *a = address;

	if (family == AF_INET6 && c->family == AF_INET && memcmp(a, mapped, 12) == 0)
		return same_bits(c->address.s6_addr, a + 12, c->bits);
	return family == c->family && same_bits(c->address.s6_addr, a, c->bits);
}

/* What nobody on the public network has. */
static const struct {
	unsigned char address[4];
	unsigned bits;
} special4[] = {
	{{0, 0, 0, 0}, 8},	  /* this host */
	{{10, 0, 0, 0}, 8},	  /* private */
	{{100, 64, 0, 0}, 10},	  /* shared by carriers; metadata at 100.100.100.200 */
	{{127, 0, 0, 0}, 8},	  /* loopback */
	{{168, 63, 129, 16}, 32}, /* a cloud's host agent, looks public */
	{{169, 254, 0, 0}, 16},	  /* link-local; metadata at 169.254.169.254 */
	{{172, 16, 0, 0}, 12},	  /* private */
	{{192, 0, 0, 0}, 24},	  /* protocol assignments; metadata at 192.0.0.192 */
	{{192, 0, 2, 0}, 24},	  /* documentation */
	{{192, 88, 99, 0}, 24},	  /* relays of 6to4 */
	{{192, 168, 0, 0}, 16},	  /* private */
	{{198, 18, 0, 0}, 15},	  /* benchmarks */
	{{198, 51, 100, 0}, 24},  /* documentation */
	{{203, 0, 113, 0}, 24},	  /* documentation */
	{{224, 0, 0, 0}, 4},	  /* multicast */
	{{240, 0, 0, 0}, 4},	  /* reserved, broadcast */
};

static bool public4(const unsigned char *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(special4); i++)
		if (same_bits(a, special4[i].address, special4[i].bits))
			return false;
	return true;
}

/* Of 2000::/3, the only part that is in public use. */
static const struct {
	unsigned char address[4];
	unsigned bits;
} special6[] = {
	{{0x20, 0x01, 0x00, 0x00}, 23}, /* protocol assignments, benchmarks, ORCHID */
	{{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
	{{0x3f, 0xff, 0x00, 0x00}, 20}, /* documentation */
};

static bool teredo(const unsigned char *a)
{
	static const unsigned char prefix[4] = {0x20, 0x01};

	return memcmp(a, prefix, 4) == 0;
}

/* The IPv4 addresses to which a packet for this IPv6 address may be delivered: up to two. */
static size_t embedded4(const unsigned char *a, unsigned char ret[2][4])
{
	static const unsigned char isatap[3] = {0x00, 0x5e, 0xfe};

	if (memcmp(a, mapped, 12) == 0 || memcmp(a, nat64, 12) == 0) {
		memcpy(ret[0], a + 12, 4);
		return 1;
	}
	if (a[0] == 0x20 && a[1] == 0x02) { /* 6to4 */
		memcpy(ret[0], a + 2, 4);
		return 1;
	}
	if (teredo(a)) { /* the server, and the client behind it, with its bits inverted */
		memcpy(ret[0], a + 4, 4);
		for (size_t i = 0; i < 4; i++)
			ret[1][i] = (unsigned char)~a[12 + i];
		return 2;
	}
	if ((a[8] == 0x00 || a[8] == 0x02) && memcmp(a + 9, isatap, 3) == 0) {
		memcpy(ret[0], a + 12, 4);
		return 1;
	}
	return 0;
}

static bool public6(const unsigned char *a)
{
	unsigned char inner[2][4];
	size_t n = embedded4(a, inner);

	for (size_t i = 0; i < n; i++)
		if (!public4(inner[i]))
			return false;
	if (memcmp(a, mapped, 12) == 0 || memcmp(a, nat64, 12) == 0 || teredo(a))
		return true;
	/* Everything outside is unassigned or local: loopback, fe80::/10, fc00::/7, ff00::/8,
	 * 64:ff9b:1::/48 (whose embedded addresses nobody outside can tell), 100::/64 and so on. */
	if ((a[0] & 0xe0) != 0x20)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(special6); i++)
		if (same_bits(a, special6[i].address, special6[i].bits))
			return false;
	return true;
}

bool network_address_public(int family, const void *address)
{
	if (family == AF_INET)
		return public4(address);
	return family == AF_INET6 && public6(address);
}

bool network_cidr_reaches(const struct network_cidr *c, int family, const void *address)
{
	unsigned char inner[2][4];
	size_t n = family == AF_INET6 ? embedded4(address, inner) : 0;

	for (size_t i = 0; i < n; i++)
		if (network_cidr_contains(c, AF_INET, inner[i]))
			return true;
	return network_cidr_contains(c, family, address);
}
