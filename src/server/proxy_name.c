#include "server/proxy_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int proxy_pattern(const char *pattern, const char *name, struct buf *origin, struct error *e) {
    const char *at = strstr(pattern, "://{ui}."), *end = at ? at + 8 + strcspn(at + 8, "/") : NULL;
    if (!at || (strncmp(pattern, "http://", 7) != 0 && strncmp(pattern, "https://", 8) != 0) || end == at + 8 ||
        (*end && end[1]) || strchr(at + 8, '{'))
        return fail(e, -EINVAL, "ui.url: %.80s is not like https://{ui}.example.org/", pattern);
    buf_printf(origin, "%.*s://%s.%.*s", (int)(at - pattern), pattern, name, (int)(end - at - 8), at + 8);
    return 0;
}

int proxy_ports(const char *text, unsigned *ret_first, unsigned *ret_last, struct error *e) {
    unsigned first = 0, last = 0;
    int used = 0;
    *ret_first = *ret_last = 0;
    if (!*text) return 0;
    bool is_range = sscanf(text, "%5u-%5u%n", &first, &last, &used) == 2 && !text[used];
    if (!is_range && sscanf(text, "%5u%n", &first, &used) == 1 && !text[used]) last = first, is_range = true;
    if (!is_range || first < 1 || last > 65535 || first > last || last - first >= 1000)
        return fail(e, -EINVAL, "ui.ports: \"%.40s\" is not a range of at most 1000 ports, as in 7100-7199", text);
    *ret_first = first;
    *ret_last = last;
    return 0;
}
