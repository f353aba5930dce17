#include "base/json_slice.h"

#include <stdint.h>
#include <string.h>

static size_t blanks(const char *s, size_t at, size_t end) {
    while (at < end && strchr(" \t\r\n,:", s[at]) && s[at]) at++;
    return at;
}

/* Behind the string that begins at `at`. */
static size_t over_string(const char *s, size_t at, size_t end) {
    for (at++; at < end && s[at] != '"'; at++)
        if (s[at] == '\\') at++;
    return at < end ? at + 1 : end;
}

static size_t over_value(const char *s, size_t at, size_t end) {
    size_t depth = 0;
    while (at < end) {
        if (s[at] == '"') {
            at = over_string(s, at, end);
        } else if (s[at] == '{' || s[at] == '[') {
            depth++;
            at++;
        } else if (s[at] == '}' || s[at] == ']') {
            if (!depth) return at;
            depth--;
            at++;
        } else if (depth) {
            at++;
            continue;
        } else {
            while (at < end && !strchr(",]} \t\r\n", s[at])) at++;
        }
        if (!depth) return at;
    }
    return end;
}

bool json_slice_next(struct json_slice of, size_t *at, struct json_slice *ret_key, struct json_slice *ret_value) {
    size_t first = blanks(of.s, 0, of.len);
    if (first >= of.len || (of.s[first] != '{' && of.s[first] != '[')) return false;
    bool is_object = of.s[first] == '{';
    size_t from = blanks(of.s, *at ? *at : first + 1, of.len);
    if (from >= of.len || of.s[from] == '}' || of.s[from] == ']') return false;
    *ret_key = (struct json_slice){0};
    if (is_object) {
        size_t end = over_string(of.s, from, of.len);
        *ret_key = (struct json_slice){of.s + from, end - from};
        from = blanks(of.s, end, of.len);
    }
    *at = over_value(of.s, from, of.len);
    *ret_value = (struct json_slice){of.s + from, *at - from};
    return ret_value->len > 0;
}

struct json_slice json_slice_get(struct json_slice object, const char *key) {
    struct json_slice name, value;
    size_t n = strlen(key);
    for (size_t at = 0; json_slice_next(object, &at, &name, &value);)
        if (name.len == n + 2 && memcmp(name.s + 1, key, n) == 0) return value;
    return (struct json_slice){0};
}

bool json_slice_is(struct json_slice v, const char *text) {
    return v.len == strlen(text) && memcmp(v.s, text, v.len) == 0;
}

/* ---- strings ---- */

static uint32_t hex4(const char *s, size_t left) {
    uint32_t v = 0;
    for (size_t i = 0; i < 4 && i < left; i++) {
        char c = s[i];
        v = v * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return v;
}

static void put_code(struct buf *b, uint32_t c) {
    if (c == 0) c = '?';
    if (c < 0x80) {
        buf_putc(b, (char)c);
        return;
    }
    if (c >= 0x10000) {
        buf_putc(b, (char)(0xf0 | c >> 18));
        buf_putc(b, (char)(0x80 | (c >> 12 & 63)));
    } else if (c >= 0x800) {
        buf_putc(b, (char)(0xe0 | c >> 12));
    }
    buf_putc(b, (char)(c < 0x800 ? 0xc0 | c >> 6 : 0x80 | (c >> 6 & 63)));
    buf_putc(b, (char)(0x80 | (c & 63)));
}

/* The digits behind "\u" at `at`; returns how many bytes they and their second half take. */
static size_t put_unicode(struct json_slice v, size_t at, struct buf *b) {
    uint32_t c = hex4(v.s + at, v.len - at);
    bool has_low = c >= 0xd800 && c < 0xdc00 && at + 10 < v.len && v.s[at + 4] == '\\' && v.s[at + 5] == 'u';
    uint32_t low = has_low ? hex4(v.s + at + 6, v.len - at - 6) : 0;
    if (low >= 0xdc00 && low < 0xe000) {
        put_code(b, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        return 10;
    }
    put_code(b, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return 4;
}

void json_slice_text(struct json_slice v, struct buf *b) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (v.len < 2 || v.s[0] != '"') return;
    for (size_t i = 1; i + 1 < v.len; i++) {
        if (v.s[i] != '\\') {
            buf_putc(b, v.s[i]);
            continue;
        }
        i++;
        const char *p = strchr(from, v.s[i]);
        if (v.s[i] == 'u')
            i += put_unicode(v, i + 1, b);
        else if (p && *p)
            buf_putc(b, to[p - from]);
    }
}

void json_slice_put(struct json_slice v, struct buf *b) {
    char last = b->len ? b->s[b->len - 1] : '{';
    if (!strchr("{[:,", last)) buf_putc(b, ',');
    buf_add(b, v.s, v.len);
}
