#include "client/text.h"

#include <stdbool.h>

static bool is_start(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

int text_width(const char *s) {
    int n = 0;
    for (; *s; s++) n += is_start(*s);
    return n;
}

void text_pad(struct buf *b, const char *s, int width) {
    buf_puts(b, s);
    for (int n = text_width(s); n < width; n++) buf_putc(b, ' ');
}

void text_cut(struct buf *b, const char *s, int width) {
    if (width <= 0) return;
    bool is_long = text_width(s) > width;
    int room = is_long ? width - 1 : width;
    for (int n = 0; *s; s++) {
        if (is_start(*s) && n++ == room) break;
        buf_putc(b, *s);
    }
    if (is_long) buf_putc(b, '~');
}
