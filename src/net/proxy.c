#include "net/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool plain_address(const char *text, struct in6_addr *ret) {
    struct in_addr v4;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        *ret = (struct in6_addr){0};
        ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
        memcpy(&ret->s6_addr[12], &v4, 4);
        return true;
    }
    return inet_pton(AF_INET6, text, ret) == 1;
}

bool proxies_address(const char *text, size_t len, struct in6_addr *ret) {
    char one[64];
    while (len && (*text == ' ' || *text == '\t')) text++, len--;
    while (len && (text[len - 1] == ' ' || text[len - 1] == '\t')) len--;
    if (!len || len >= sizeof one) return false;
    memcpy(one, text, len);
    one[len] = 0;
    if (one[0] == '[') {
        char *close = strchr(one, ']');
        if (!close || (close[1] && close[1] != ':')) return false;
        *close = 0;
        return plain_address(one + 1, ret);
    }
    char *colon = strchr(one, ':');
    if (colon && !strchr(colon + 1, ':')) *colon = 0; /* one colon: a port */
    return plain_address(one, ret);
}

static int parse_one(const char *text, struct proxies *p, struct error *e) {
    char one[64];
    struct in6_addr a;
    unsigned long bits = 0;
    snprintf(one, sizeof one, "%s", text);
    char *slash = strchr(one, '/'), *end = NULL;
    if (slash) *slash++ = 0;
    if (!plain_address(one, &a))
        return fail(e, -EINVAL, "server.trusted_proxies: %.60s is no address or network", text);
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&a) && !strchr(one, ':');
    unsigned long most = is_v4 ? 32 : 128;
    bits = slash ? strtoul(slash, &end, 10) : most;
    if (slash && (!*slash || *end || strspn(slash, "0123456789") != strlen(slash) || bits > most))
        return fail(e, -EINVAL, "server.trusted_proxies: %.60s: the length is a number from 0 to %lu", text, most);
    if (p->count == PROXIES_MAX) return fail(e, -EINVAL, "server.trusted_proxies: more than %d", PROXIES_MAX);
    p->of[p->count].address = a;
    p->of[p->count++].bits = (unsigned)bits + (is_v4 ? 96 : 0);
    return 0;
}

int proxies_parse(const char *text, struct proxies *ret, struct error *e) {
    struct proxies p = {0};
    while (*text) {
        text += strspn(text, ", ");
        size_t n = strcspn(text, ", ");
        char one[64];
        if (!n) break;
        if (n >= sizeof one) return fail(e, -EINVAL, "server.trusted_proxies: %.60s is no address or network", text);
        memcpy(one, text, n);
        one[n] = 0;
        int r = parse_one(one, &p, e);
        if (r < 0) return r;
        text += n;
    }
    *ret = p;
    return 0;
}

bool proxies_trust(const struct proxies *p, const struct in6_addr *address) {
    for (size_t i = 0; i < p->count; i++) {
        unsigned whole = p->of[i].bits / 8, rest = p->of[i].bits % 8;
        const uint8_t *a = p->of[i].address.s6_addr, *b = address->s6_addr;
        if (memcmp(a, b, whole) != 0) continue;
        if (!rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0) return true;
    }
    return false;
}

/* The last address of a list, and the list without it; false: it is empty. */
static bool last_of(const char *list, size_t *len, const char **ret, size_t *ret_len) {
    if (!*len) return false;
    size_t from = *len;
    while (from > 0 && list[from - 1] != ',') from--;
    *ret = list + from;
    *ret_len = *len - from;
    *len = from > 0 ? from - 1 : 0;
    return true;
}

bool proxies_origin(const struct proxies *p, const struct http_head *h, struct in6_addr *address, bool *is_tls) {
    if (!proxies_trust(p, address)) return false;
    const char *proto = http_field(h, "x-forwarded-proto");
    if (proto) *is_tls = strcasecmp(proto, "https") == 0;
    bool has_any = false;
    for (unsigned i = h->count; i-- > 0;) { /* several lines are one list */
        if (strcmp(h->field[i].name, "x-forwarded-for") != 0) continue;
        size_t len = strlen(h->field[i].value), one_len;
        const char *one;
        while (last_of(h->field[i].value, &len, &one, &one_len)) {
            struct in6_addr a;
            if (!proxies_address(one, one_len, &a)) return has_any; /* nobody vouches for what is before nonsense */
            *address = a;
            has_any = true;
            if (!proxies_trust(p, &a)) return true;
        }
    }
    return has_any;
}
