/* Proxies in front of us: whose word counts about where a request came from. Pure. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/http_parse.h"

#define PROXIES_MAX 32

struct proxies {
    struct {
        struct in6_addr address;
        unsigned bits; /* of 128; IPv4 networks lie below ::ffff:0:0/96 */
    } of[PROXIES_MAX];
    size_t count;
};

/* "10.0.0.0/8, 192.0.2.1, 2001:db8::/32"; empty: none. */
int proxies_parse(const char *text, struct proxies *ret, struct error *e) MUST_CHECK;

bool proxies_trust(const struct proxies *p, const struct in6_addr *address);

/* Where a request came from and how, as far as trusted proxies tell: from the peer backwards through X-Forwarded-For, up to
 * the first address that is not a trusted proxy's. *is_tls is set by the X-Forwarded-Proto of a trusted peer. False: the peer is
 * no trusted proxy, or it says nothing; both are as they were. */
bool proxies_origin(const struct proxies *p, const struct http_head *h, struct in6_addr *address, bool *is_tls);

/* An address as it stands in X-Forwarded-For: with or without a port, brackets round IPv6. */
bool proxies_address(const char *text, size_t len, struct in6_addr *ret);
