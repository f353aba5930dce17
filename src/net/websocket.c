#include "net/websocket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

#define KEY_LEN 24
#define SHA1_BYTES 20

/* ---- the hand-shake's hash: SHA-1, which protects nothing here but shows that both speak the same ---- */

static uint32_t turn(uint32_t v, int by) { return v << by | v >> (32 - by); }

static void sha1_block(uint32_t h[5], const uint8_t *block) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = turn(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = turn(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

/* Of at most 119 bytes: a key and the constant of the RFC are 60. */
static void sha1(const char *text, size_t n, uint8_t ret[SHA1_BYTES]) {
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t blocks[128] = {0};
    size_t total = n < 56 ? 64 : 128;
    memcpy(blocks, text, n);
    blocks[n] = 0x80;
    blocks[total - 2] = (uint8_t)(n * 8 >> 8);
    blocks[total - 1] = (uint8_t)(n * 8);
    for (size_t at = 0; at < total; at += 64) sha1_block(h, blocks + at);
    for (int i = 0; i < SHA1_BYTES; i++) ret[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

void websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT]) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[KEY_LEN + 40];
    uint8_t hash[SHA1_BYTES + 1] = {0};
    int n = snprintf(text, sizeof text, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    sha1(text, (size_t)n, hash);
    for (int i = 0; i < 7; i++) { /* 21 bytes, of which the last is none of the hash */
        const uint8_t *p = hash + 3 * i;
        ret[4 * i] = letters[p[0] >> 2];
        ret[4 * i + 1] = letters[(p[0] & 3) << 4 | p[1] >> 4];
        ret[4 * i + 2] = letters[(p[1] & 15) << 2 | p[2] >> 6];
        ret[4 * i + 3] = letters[p[2] & 63];
    }
    ret[WEBSOCKET_ACCEPT - 2] = '=';
    ret[WEBSOCKET_ACCEPT - 1] = 0;
}

int websocket_asked(const struct http_head *h, struct error *e) {
    const char *key = http_field(h, "sec-websocket-key"), *version = http_field(h, "sec-websocket-version");
    if (!http_list_has(http_field(h, "upgrade"), "websocket") || !http_list_has(http_field(h, "connection"), "upgrade"))
        return fail(e, -EINVAL, "this address is for a WebSocket, and that was not asked for");
    if (h->method != HTTP_GET || h->minor == 0) return fail(e, -EINVAL, "a WebSocket is asked for by GET of HTTP/1.1");
    if (!key || strlen(key) != KEY_LEN || strcmp(key + KEY_LEN - 2, "==") != 0)
        return fail(e, -EINVAL, "Sec-WebSocket-Key is not 16 bytes in base64");
    if (!version || strcmp(version, "13") != 0)
        return fail(e, -EINVAL, "the only version of WebSocket known here is 13");
    return 0;
}

/* ---- frames that go out ---- */

void websocket_put(struct buf *b, enum websocket_opcode opcode, const void *bytes, size_t n) {
    if (opcode >= WEBSOCKET_CLOSE && n > WEBSOCKET_CONTROL_MAX) n = WEBSOCKET_CONTROL_MAX;
    buf_putc(b, (char)(0x80 | opcode));
    if (n < 126) {
        buf_putc(b, (char)n);
    } else if (n < 65536) {
        buf_putc(b, 126);
        buf_putc(b, (char)(n >> 8));
        buf_putc(b, (char)n);
    } else {
        buf_putc(b, 127);
        for (int i = 7; i >= 0; i--) buf_putc(b, (char)((uint64_t)n >> (8 * i)));
    }
    if (n) buf_add(b, bytes, n);
}

void websocket_put_close(struct buf *b, int code, const char *reason) {
    char text[WEBSOCKET_CONTROL_MAX + 1];
    if (code == WEBSOCKET_NO_CODE) {
        websocket_put(b, WEBSOCKET_CLOSE, NULL, 0);
        return;
    }
    text[0] = (char)(code >> 8);
    text[1] = (char)code;
    size_t n = 2;
    for (size_t step; *reason && (step = json_utf8_len(reason)) && n + step <= WEBSOCKET_CONTROL_MAX; reason += step) {
        memcpy(text + n, reason, step); /* whole characters, as far as they fit */
        n += step;
    }
    websocket_put(b, WEBSOCKET_CLOSE, text, n);
}

/* ---- frames that come in ---- */

void websocket_done(struct websocket *w) {
    buf_done(&w->message);
    buf_done(&w->control);
}

static int refuse(int code, int *ret_code, struct error *e, const char *sentence) {
    *ret_code = code;
    return fail(e, code == WEBSOCKET_TOO_BIG ? -EFBIG : -EPROTO, "%s", sentence);
}

/* How many bytes the head has, as far as its first two tell. */
static unsigned head_size(const struct websocket *w) {
    if (w->have < 2) return 2;
    unsigned length = w->head[1] & 0x7f;
    return 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + 4;
}

static enum websocket_opcode opcode_of(const struct websocket *w) { return w->head[0] & 15; }
static bool is_control(const struct websocket *w) { return (w->head[0] & 8) != 0; }

static int check_start(const struct websocket *w, int *ret_code, struct error *e) {
    enum websocket_opcode opcode = opcode_of(w);
    bool is_final = w->head[0] & 0x80;
    if (w->head[0] & 0x70) return refuse(WEBSOCKET_PROTOCOL, ret_code, e, "a frame with bits of an extension");
    if (!(w->head[1] & 0x80)) return refuse(WEBSOCKET_PROTOCOL, ret_code, e, "a frame without a mask");
    if ((opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_CLOSE) || opcode > WEBSOCKET_PONG)
        return refuse(WEBSOCKET_PROTOCOL, ret_code, e, "a frame of a kind that nobody knows");
    if (is_control(w) && (!is_final || (w->head[1] & 0x7f) > WEBSOCKET_CONTROL_MAX))
        return refuse(WEBSOCKET_PROTOCOL, ret_code, e, "a control frame that is too long or in parts");
    if (!is_control(w) && (opcode == WEBSOCKET_REST) != w->is_begun)
        return refuse(WEBSOCKET_PROTOCOL, ret_code, e,
                      w->is_begun ? "a message within another" : "the rest of nothing");
    return 0;
}

static int check_length(struct websocket *w, int *ret_code, struct error *e) {
    unsigned length = w->head[1] & 0x7f, bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v = v << 8 | w->head[2 + i];
    if (!bytes) v = length;
    if (v >> 63 || (bytes == 2 && v < 126) || (bytes == 8 && v < 65536))
        return refuse(WEBSOCKET_PROTOCOL, ret_code, e, "the length of a frame is written in a way that is not allowed");
    if (!is_control(w) && (v > w->max || w->message.len > w->max - v))
        return refuse(WEBSOCKET_TOO_BIG, ret_code, e, "the message is too long");
    w->left = v;
    w->at = 0;
    w->is_in_payload = true;
    if (is_control(w)) {
        buf_clear(&w->control);
    } else if (opcode_of(w) != WEBSOCKET_REST) {
        buf_clear(&w->message);
        w->is_begun = true;
        w->is_text = opcode_of(w) == WEBSOCKET_TEXT;
    }
    return 0;
}

static int take_head(struct websocket *w, const uint8_t *bytes, size_t n, size_t *at, int *ret_code, struct error *e) {
    while (*at < n && w->have < head_size(w)) {
        w->head[w->have++] = bytes[(*at)++];
        if (w->have != 2) continue;
        int r = check_start(w, ret_code, e);
        if (r < 0) return r;
    }
    return w->have == head_size(w) && w->have > 2 ? check_length(w, ret_code, e) : 0;
}

static void take_payload(struct websocket *w, const uint8_t *bytes, size_t n, size_t *at) {
    struct buf *to = is_control(w) ? &w->control : &w->message;
    const uint8_t *mask = w->head + w->have - 4;
    size_t step = n - *at < w->left ? n - *at : (size_t)w->left;
    buf_reserve(to, step + 1);
    for (size_t i = 0; i < step; i++) to->s[to->len + i] = (char)(bytes[*at + i] ^ mask[(w->at + i) & 3]);
    to->len += step;
    to->s[to->len] = 0;
    w->at += step;
    w->left -= step;
    *at += step;
}

static bool is_utf8(const char *s, size_t n) {
    for (const char *end = s + n; s < end;) {
        size_t step = *s ? json_utf8_len(s) : 1;
        if (!step || s + step > end) return false;
        s += step;
    }
    return true;
}

static bool is_sendable(int code) {
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static int closing(struct websocket *w, struct websocket_message *ret, int *ret_code, struct error *e) {
    const uint8_t *p = (const uint8_t *)w->control.s;
    size_t n = w->control.len;
    *ret = (struct websocket_message){.opcode = WEBSOCKET_CLOSE, .bytes = "", .code = WEBSOCKET_NO_CODE};
    if (!n) return 1;
    int code = n >= 2 ? p[0] << 8 | p[1] : 0;
    if (!is_sendable(code)) return refuse(WEBSOCKET_PROTOCOL, ret_code, e, "a closing frame with a code that is none");
    if (!is_utf8(w->control.s + 2, n - 2))
        return refuse(WEBSOCKET_BAD_TEXT, ret_code, e, "a closing frame whose reason is not UTF-8");
    ret->code = code;
    ret->bytes = w->control.s + 2;
    ret->len = n - 2;
    return 1;
}

/* A frame is whole. 1: so is what it belongs to. */
static int finish(struct websocket *w, struct websocket_message *ret, int *ret_code, struct error *e) {
    bool is_final = w->head[0] & 0x80;
    enum websocket_opcode opcode = opcode_of(w);
    w->is_in_payload = false;
    w->have = 0;
    if (opcode == WEBSOCKET_CLOSE) return closing(w, ret, ret_code, e);
    if (opcode > WEBSOCKET_CLOSE) {
        *ret = (struct websocket_message){opcode, w->control.s ? w->control.s : "", w->control.len, 0};
        return 1;
    }
    if (!is_final) return 0;
    const char *bytes = w->message.s ? w->message.s : "";
    if (w->is_text && !is_utf8(bytes, w->message.len))
        return refuse(WEBSOCKET_BAD_TEXT, ret_code, e, "a text that is not UTF-8");
    w->is_begun = false;
    w->is_told = true;
    *ret = (struct websocket_message){w->is_text ? WEBSOCKET_TEXT : WEBSOCKET_BINARY, bytes, w->message.len, 0};
    return 1;
}

int websocket_take(struct websocket *w, const void *bytes, size_t n, size_t *ret_taken, struct websocket_message *ret,
                   int *ret_code, struct error *e) {
    size_t at = 0;
    int r = 0;
    if (w->is_told) {
        w->is_told = false;
        if (w->message.cap > 65536)
            buf_done(&w->message); /* a large one is not kept for the next */
        else
            buf_clear(&w->message);
    }
    while (r == 0 && at < n) {
        if (!w->is_in_payload) r = take_head(w, bytes, n, &at, ret_code, e);
        if (r < 0 || !w->is_in_payload) continue;
        take_payload(w, bytes, n, &at);
        if (!w->left) r = finish(w, ret, ret_code, e);
    }
    *ret_taken = at;
    return r;
}
