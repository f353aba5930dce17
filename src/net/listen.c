#include "net/listen.h"

#include <errno.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define BACKLOG 1024

bool listen_is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    if (address->sa_family != AF_INET6) return false;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

int listen_tcp(struct event_base *base, const char *address, listen_fn each, void *ctx, struct error *e) {
    char host[128];
    const char *port = strrchr(address, ':');
    if (!port || (size_t)(port - address) >= sizeof host) return fail(e, -EINVAL, "%s is not HOST:PORT", address);
    bool has_brackets = address[0] == '[' && port > address + 1 && port[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(port - address) - 2 * has_brackets, address + has_brackets);
    struct addrinfo want = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int r = getaddrinfo(*host && strcmp(host, "*") != 0 ? host : NULL, port + 1, &want, &found);
    if (r) return fail(e, -EINVAL, "listen: %s: %s", address, gai_strerror(r));
    int opened = 0, failed = EADDRNOTAVAIL;
    for (const struct addrinfo *a = found; a; a = a->ai_next) {
        errno = 0;
        struct evconnlistener *l =
            evconnlistener_new_bind(base, NULL, NULL,
                                    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE |
                                        (a->ai_family == AF_INET6 ? LEV_OPT_BIND_IPV6ONLY : 0),
                                    BACKLOG, a->ai_addr, (int)a->ai_addrlen);
        if (!l) {
            failed = errno ? errno : EIO;
            continue;
        }
        each(ctx, l, a->ai_addr);
        opened++;
    }
    freeaddrinfo(found);
    return opened ? 0 : fail_errno(e, failed, "listen: %s", address);
}
