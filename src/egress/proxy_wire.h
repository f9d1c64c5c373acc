/* What clients say to a proxy: SOCKS 4, 4a and 5 (RFC 1928), and the first line of HTTP (RFC 9112).
 * No sockets. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/network.h"

#define PROXY_HEAD_MAX 16384

enum proxy_parsed {
	PROXY_MORE,   /* so far it may become one */
	PROXY_BROKEN, /* none of these protocols */
	PROXY_OK,
	PROXY_BAD_NAME, /* well-formed, but the host is none */
};

struct proxy_target {
	char host[NETWORK_HOST_MAX + 1]; /* normalised; or empty: */
	int family;			 /* of a literal address */
	struct in6_addr address;	 /* AF_INET: in the first four bytes */
	uint16_t port;
	size_t len; /* bytes that said so */
};

/* A host as text (name, IPv4, IPv6 with or without brackets); false: none. NUL, controls and
 * notations of addresses other than the usual ones are refused. */
bool proxy_host(const char *text, size_t len, struct proxy_target *ret);
/* "host:port" */
bool proxy_authority(const char *text, size_t len, struct proxy_target *ret);

/* *ret_method: 0 (no authentication), 2 (user name and password, of which any are taken), or 255 if
 * the client offers neither. *ret_len: of the greeting. */
enum proxy_parsed socks5_greeting(const uint8_t *data, size_t len, uint8_t *ret_method,
				  size_t *ret_len);
/* User name and password (RFC 1929). */
enum proxy_parsed socks5_login(const uint8_t *data, size_t len, size_t *ret_len);
/* *ret_command: 1 is CONNECT. */
enum proxy_parsed socks5_request(const uint8_t *data, size_t len, uint8_t *ret_command,
				 struct proxy_target *ret);
enum proxy_parsed socks4_request(const uint8_t *data, size_t len, uint8_t *ret_command,
				 struct proxy_target *ret);

enum proxy_form { FORM_CONNECT, FORM_ABSOLUTE, FORM_ORIGIN };
/* The whole head must be there. ret: of FORM_CONNECT only. */
enum proxy_parsed http_proxy_head(const char *data, size_t len, enum proxy_form *ret_form,
				  struct proxy_target *ret);
