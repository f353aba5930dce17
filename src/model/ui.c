#include "model/ui.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ui_check_path(const char *path, struct error *e) {
    if (*path != '/') return fail(e, -EINVAL, "the path must begin with a slash");
    if (path[1] == '/') return fail(e, -EINVAL, "the path begins with two slashes: that would be another machine");
    if (strlen(path) >= UI_PATH_MAX) return fail(e, -EINVAL, "the path is longer than %d bytes", UI_PATH_MAX - 1);
    for (const char *s = path; *s; s++)
        if ((unsigned char)*s <= 0x20 || (unsigned char)*s >= 0x7f || strchr("#\"<>\\^`{|}", *s))
            return fail(e, -EINVAL, "a character in the path that must be encoded");
    return 0;
}

int ui_parse(const char *text, struct ui *ret, struct error *e) {
    struct ui u = {.path = "/"};
    size_t digits = strspn(text, "0123456789"), n = strncmp(text, "auto", 4) == 0 ? 4 : digits;
    if (digits) u.port = digits <= 5 ? (unsigned)strtoul(text, NULL, 10) : 0;
    if (!n || (text[n] && text[n] != '/') || (digits && (u.port < 1 || u.port > 65535 || *text == '0')))
        return fail(e, -EINVAL, "\"%.60s\" is not PORT, PORT/PATH or auto, as in 8888/lab", text);
    if (text[n]) {
        int r = ui_check_path(text + n, e);
        if (r < 0) return r;
        memcpy(u.path, text + n, strlen(text + n) + 1);
    }
    *ret = u;
    return 0;
}

void ui_text(const struct ui *u, struct buf *b) {
    if (u->port)
        buf_printf(b, "%u", u->port);
    else
        buf_puts(b, "auto");
    if (u->path[0] && strcmp(u->path, "/") != 0) buf_puts(b, u->path);
}

int ui_origin(const char *pattern, const char *name, struct buf *origin, struct error *e) {
    const char *at = strstr(pattern, "://{ui}."), *end = at ? at + 8 + strcspn(at + 8, "/") : NULL;
    if (!at || (strncmp(pattern, "http://", 7) != 0 && strncmp(pattern, "https://", 8) != 0) || end == at + 8 ||
        (*end && end[1]) || strchr(at + 8, '{'))
        return fail(e, -EINVAL, "ui.url: %.80s is not like https://{ui}.example.org/", pattern);
    buf_printf(origin, "%.*s://%s.%.*s", (int)(at - pattern), pattern, name, (int)(end - at - 8), at + 8);
    return 0;
}

int ui_ports(const char *text, unsigned *ret_first, unsigned *ret_last, struct error *e) {
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
