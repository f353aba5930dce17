#include "base/json_scan.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

struct level {
    bool is_list;
    char key[JSON_SCAN_KEY + 2]; /* a long one keeps one byte more than any name that is asked for */
};

struct scan {
    const char *begin, *at, *end;
    unsigned depth; /* open objects and lists */
    bool is_new;    /* the innermost has no item yet */
    json_scan_fn each;
    void *ctx;
    struct level level[JSON_SCAN_DEPTH];
    char text[JSON_SCAN_TEXT + 1];
};

static int wrong(const struct scan *s, const char *what, struct error *e) {
    return fail(e, -EINVAL, "not JSON: %s at byte %zu", what, (size_t)(s->at - s->begin));
}

static void skip_blanks(struct scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) s->at++;
}

static bool takes(struct scan *s, char c) {
    if (s->at >= s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static void tell(struct scan *s, enum json_scan_type type, const char *text, size_t len, bool is_cut) {
    struct json_scan_value v = {.type = type, .depth = s->depth, .text = text, .len = len, .is_cut = is_cut};
    for (unsigned i = 0; i < s->depth && i < JSON_SCAN_KEYS; i++) v.key[i] = s->level[i].key;
    s->each(s->ctx, &v);
}

/* ---- strings ---- */

static int hex4(struct scan *s, uint32_t *ret) {
    uint32_t v = 0;
    if (s->end - s->at < 4) return -EINVAL;
    for (int i = 0; i < 4; i++) {
        char c = *s->at++;
        if (c >= '0' && c <= '9')
            v = v * 16 + (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            v = v * 16 + (uint32_t)((c | 32) - 'a' + 10);
        else
            return -EINVAL;
    }
    *ret = v;
    return 0;
}

static size_t utf8(uint32_t c, char out[4]) {
    if (c < 0x80) return out[0] = (char)c, 1;
    if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)),
               3;
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* After "\u". Half of a pair alone stands for nothing: U+FFFD. */
static int unicode(struct scan *s, char out[4], size_t *ret, struct error *e) {
    uint32_t c, low;
    if (hex4(s, &c) < 0) return wrong(s, "\\u without four digits", e);
    if (c >= 0xd800 && c < 0xdc00 && s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u') {
        const char *before = s->at;
        s->at += 2;
        if (hex4(s, &low) < 0) return wrong(s, "\\u without four digits", e);
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        else
            s->at = before;
    }
    if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
    *ret = utf8(c, out);
    return 0;
}

static int escape(struct scan *s, char out[4], size_t *ret, struct error *e) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->at >= s->end) return wrong(s, "a string without an end", e);
    char c = *s->at++;
    if (c == 'u') return unicode(s, out, ret, e);
    const char *p = c ? strchr(from, c) : NULL;
    if (!p) return wrong(s, "an unknown escape", e);
    out[0] = to[p - from];
    *ret = 1;
    return 0;
}

/* The opening quote is taken. Pieces that do not fit whole end the text; the rest is only checked. */
static int string(struct scan *s, char *out, size_t room, size_t *ret_len, bool *ret_is_cut, struct error *e) {
    size_t len = 0;
    bool is_cut = false;
    for (;;) {
        char piece[4];
        size_t n = 1;
        if (s->at >= s->end) return wrong(s, "a string without an end", e);
        char c = *s->at++;
        if (c == '"') break;
        if ((unsigned char)c < 0x20) return wrong(s, "a control character in a string", e);
        piece[0] = c;
        if (c == '\\') {
            int r = escape(s, piece, &n, e);
            if (r < 0) return r;
        }
        is_cut |= len + n >= room;
        if (is_cut) continue;
        memcpy(out + len, piece, n);
        len += n;
    }
    out[len] = 0;
    *ret_len = len;
    *ret_is_cut = is_cut;
    return 0;
}

/* ---- the other values ---- */

static size_t digits(struct scan *s) {
    const char *from = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') s->at++;
    return (size_t)(s->at - from);
}

static int number(struct scan *s, struct error *e) {
    const char *from = s->at;
    takes(s, '-');
    bool has_zero = s->at < s->end && *s->at == '0';
    size_t n = digits(s);
    if (n == 0 || (has_zero && n > 1)) return wrong(s, "a number that is none", e);
    if (takes(s, '.') && digits(s) == 0) return wrong(s, "a number that is none", e);
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (!takes(s, '+')) takes(s, '-');
        if (digits(s) == 0) return wrong(s, "a number that is none", e);
    }
    size_t len = (size_t)(s->at - from);
    bool is_cut = len > JSON_SCAN_TEXT;
    if (is_cut) len = JSON_SCAN_TEXT;
    memcpy(s->text, from, len);
    s->text[len] = 0;
    tell(s, JSON_SCAN_NUMBER, s->text, len, is_cut);
    return 0;
}

static int word(struct scan *s, struct error *e) {
    static const struct {
        const char *text;
        enum json_scan_type type;
    } words[] = {
        {"true",  JSON_SCAN_TRUE },
        {"false", JSON_SCAN_FALSE},
        {"null",  JSON_SCAN_NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i].text);
        if ((size_t)(s->end - s->at) < n || memcmp(s->at, words[i].text, n) != 0) continue;
        s->at += n;
        tell(s, words[i].type, "", 0, false);
        return 0;
    }
    return wrong(s, "no value", e);
}

static int open_level(struct scan *s, bool is_list, struct error *e) {
    if (s->depth == JSON_SCAN_DEPTH) return wrong(s, "deeper nesting than anybody means", e);
    tell(s, is_list ? JSON_SCAN_LIST : JSON_SCAN_OBJECT, "", 0, false);
    s->level[s->depth].is_list = is_list;
    s->level[s->depth++].key[0] = 0;
    s->is_new = true;
    return 0;
}

static int value(struct scan *s, struct error *e) {
    skip_blanks(s);
    if (s->at >= s->end) return wrong(s, "the end", e);
    char c = *s->at;
    if (c == '{' || c == '[') return s->at++, open_level(s, c == '[', e);
    if (c == '-' || (c >= '0' && c <= '9')) return number(s, e);
    if (c != '"') return word(s, e);
    size_t len = 0;
    bool is_cut = false;
    s->at++;
    int r = string(s, s->text, sizeof s->text, &len, &is_cut, e);
    if (r < 0) return r;
    tell(s, JSON_SCAN_STRING, s->text, len, is_cut);
    return 0;
}

/* Inside an object or list: its end, or its next item. */
static int item(struct scan *s, struct error *e) {
    struct level *l = &s->level[s->depth - 1];
    bool is_first = s->is_new;
    size_t len = 0;
    bool is_cut = false;
    s->is_new = false;
    skip_blanks(s);
    if (takes(s, l->is_list ? ']' : '}')) return s->depth--, 0;
    if (!is_first && !takes(s, ',')) return wrong(s, "no comma", e);
    if (l->is_list) return value(s, e);
    skip_blanks(s);
    if (!takes(s, '"')) return wrong(s, "no key", e);
    int r = string(s, l->key, sizeof l->key, &len, &is_cut, e);
    if (r < 0) return r;
    skip_blanks(s);
    return takes(s, ':') ? value(s, e) : wrong(s, "no colon", e);
}

int json_scan(const char *text, size_t len, json_scan_fn each, void *ctx, struct error *e) {
    struct scan s = {.begin = text, .at = text, .end = text + len, .each = each, .ctx = ctx};
    int r = value(&s, e);
    while (r >= 0 && s.depth) r = item(&s, e);
    if (r < 0) return r;
    skip_blanks(&s);
    return s.at == s.end ? 0 : wrong(&s, "more text", e);
}

bool json_scan_is(const struct json_scan_value *v, unsigned depth, ...) {
    va_list keys;
    bool is = v->depth == depth && depth <= JSON_SCAN_KEYS;
    va_start(keys, depth);
    for (unsigned i = 0; is && i < depth; i++) is = strcmp(v->key[i], va_arg(keys, const char *)) == 0;
    va_end(keys);
    return is;
}
