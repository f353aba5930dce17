#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

/* A comma is due unless we stand at the very start, after an opening bracket, or after a key. */
static void separate(struct buf *b) {
    char last = b->len ? b->s[b->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':' && last != ',' && last != '\n') buf_putc(b, ',');
}

void json_open(struct buf *b, char bracket) {
    separate(b);
    buf_putc(b, bracket);
}

void json_close(struct buf *b, char bracket) { buf_putc(b, bracket); }

size_t json_utf8_len(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return 1;
    if (s[0] >= 0xc2 && s[0] < 0xe0) return (s[1] & 0xc0) == 0x80 ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] < 0xf0) {
        if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80) return 0;
        unsigned point = (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
        return point >= 0x800 && (point < 0xd800 || point > 0xdfff) ? 3 : 0;
    }
    if (s[0] >= 0xf0 && s[0] < 0xf5) {
        if ((s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80) return 0;
        unsigned point = (s[0] & 7u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
        return point >= 0x10000 && point <= 0x10ffff ? 4 : 0;
    }
    return 0;
}

size_t json_shown_len(const char *s) {
    static const char *const turns[] = {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                        "\u2066", "\u2067", "\u2068", "\u2069"};
    unsigned char c = (unsigned char)*s;
    if (c < 0x80) return c >= 0x20 && c != 0x7f;
    size_t n = json_utf8_len(s);
    if (n == 2 && c == 0xc2 && (unsigned char)s[1] < 0xa0) return 0; /* control characters of eight bits */
    for (size_t i = 0; n == 3 && i < ARRAY_LEN(turns); i++)
        if (memcmp(s, turns[i], 3) == 0) return 0;
    return n;
}

void json_utf8_end(char *s) {
    size_t n = strlen(s), at = n;
    while (at && n - at < 3 && ((unsigned char)s[at - 1] & 0xc0) == 0x80) at--;
    if (at && (unsigned char)s[at - 1] >= 0xc0 && json_utf8_len(s + at - 1) != n - at + 1) s[at - 1] = '\0';
}

static void quoted(struct buf *b, const char *text) {
    buf_putc(b, '"');
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        const unsigned char *plain = s;
        while (*s >= 0x20 && *s < 0x80 && *s != '"' && *s != '\\') s++;
        if (s > plain) {
            buf_add(b, plain, (size_t)(s - plain));
            continue;
        }
        size_t n = json_utf8_len((const char *)s);
        if (!n) {
            buf_puts(b, "\xef\xbf\xbd");
            s++;
            continue;
        }
        if (*s == '"' || *s == '\\') buf_putc(b, '\\');
        if (*s < 0x20)
            buf_printf(b, "\\u%04x", *s);
        else
            buf_add(b, s, n);
        s += n;
    }
    buf_putc(b, '"');
}

void json_key(struct buf *b, const char *key) {
    separate(b);
    quoted(b, key);
    buf_putc(b, ':');
}

void json_str(struct buf *b, const char *s) {
    separate(b);
    quoted(b, s);
}

void json_num(struct buf *b, double v) {
    separate(b);
    if (!isfinite(v)) {
        buf_puts(b, "null");
        return;
    }
    char text[DECIMAL_MAX];
    buf_add(b, text, decimal_put(text, v));
}

void json_int(struct buf *b, int64_t v) {
    separate(b);
    buf_printf(b, "%lld", (long long)v);
}

void json_uint(struct buf *b, uint64_t v) {
    separate(b);
    buf_printf(b, "%llu", (unsigned long long)v);
}

void json_bool(struct buf *b, bool v) {
    separate(b);
    buf_puts(b, v ? "true" : "false");
}

void json_nil(struct buf *b) {
    separate(b);
    buf_puts(b, "null");
}

void json_pair_str(struct buf *b, const char *key, const char *s) {
    json_key(b, key);
    json_str(b, s);
}

void json_pair_num(struct buf *b, const char *key, double v) {
    json_key(b, key);
    json_num(b, v);
}

void json_pair_int(struct buf *b, const char *key, int64_t v) {
    json_key(b, key);
    json_int(b, v);
}

void json_pair_bool(struct buf *b, const char *key, bool v) {
    json_key(b, key);
    json_bool(b, v);
}

void json_pair_text(struct buf *b, const char *key, const char *text) {
    json_key(b, key);
    if (text && *text)
        json_str(b, text);
    else
        json_nil(b);
}

void json_pair_time(struct buf *b, const char *key, int64_t real_ns) {
    json_key(b, key);
    if (real_ns > 0)
        json_num(b, (double)(real_ns / 1000000) / 1e3);
    else
        json_nil(b);
}
