#include "client/text.h"

#include <stdbool.h>
#include <string.h>

#include "base/json.h"

static bool is_start(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

int text_width(const char *s) {
    int n = 0;
    for (; *s; s++) n += is_start(*s);
    return n;
}

void text_put(struct buf *b, const char *s, size_t len) {
    for (size_t at = 0; at < len && s[at];) {
        size_t n = json_shown_len(s + at);
        if (n && at + n <= len)
            buf_add(b, s + at, n);
        else
            buf_putc(b, '?');
        if (!n) n = json_utf8_len(s + at);
        at += n ? n : 1;
    }
}

void text_pad(struct buf *b, const char *s, int width) {
    text_put(b, s, strlen(s));
    for (int n = text_width(s); n < width; n++) buf_putc(b, ' ');
}

void text_cut(struct buf *b, const char *s, int width) {
    if (width <= 0) return;
    bool is_long = text_width(s) > width;
    int room = is_long ? width - 1 : width;
    size_t len = 0;
    for (int n = 0; s[len]; len++)
        if (is_start(s[len]) && n++ == room) break;
    text_put(b, s, len);
    if (is_long) buf_putc(b, '~');
}

/* Bytes of the first line of s, and where the next begins. */
static size_t first_line(const char *s, int width, size_t *ret_next) {
    size_t i = 0, blank = 0;
    for (int n = 0; s[i]; i++) {
        if (is_start(s[i]) && n++ == width) break;
        if (s[i] == ' ') blank = i;
    }
    size_t len = !s[i] || s[i] == ' ' || !blank ? i : blank;
    for (*ret_next = len; s[*ret_next] == ' ';) ++*ret_next;
    return len;
}

void text_wrap(struct buf *b, const char *s, int width, int indent) {
    if (width < 8) width = 8; /* no screen is that narrow: it only has to end */
    for (bool is_first = true; is_first || *s; is_first = false) {
        size_t next, len = first_line(s, width, &next);
        for (int i = 0; !is_first && i < indent; i++) buf_putc(b, ' ');
        text_put(b, s, len);
        buf_putc(b, '\n');
        s += next;
    }
}
