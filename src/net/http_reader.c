#include "net/http_reader.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

void http_reader_done(struct http_reader *r) {
    buf_done(&r->head);
    *r = (struct http_reader){0};
}

/* What the fields say about the body. */
struct framing {
    bool has_length, is_chunked, closes, keeps;
    uint64_t length;
    unsigned fields;
};

static int take_length(struct framing *f, const char *value, struct error *e) {
    uint64_t n = 0;
    size_t len = strlen(value);
    if (f->has_length) return fail(e, -EINVAL, "an answer with two lengths");
    if (len == 0 || len > 15 || strspn(value, "0123456789") != len)
        return fail(e, -EINVAL, "an answer whose length is no number");
    for (size_t i = 0; i < len; i++) n = n * 10 + (uint64_t)(value[i] - '0');
    f->has_length = true;
    f->length = n;
    return 0;
}

static int take_field(struct framing *f, char *line, struct error *e) {
    char *colon = strchr(line, ':');
    if (!colon || colon == line || colon[-1] == ' ' || colon[-1] == '\t' || *line == ' ' || *line == '\t')
        return fail(e, -EINVAL, "an answer with a field that is none");
    if (++f->fields > HTTP_FIELDS_MAX) return fail(e, -E2BIG, "an answer with more than %d fields", HTTP_FIELDS_MAX);
    *colon = 0;
    char *value = colon + 1 + strspn(colon + 1, " \t"), *end = value + strlen(value);
    while (end > value && (end[-1] == ' ' || end[-1] == '\t')) *--end = 0;
    if (strcasecmp(line, "content-length") == 0) return take_length(f, value, e);
    if (strcasecmp(line, "transfer-encoding") == 0) {
        if (f->is_chunked || strcasecmp(value, "chunked") != 0)
            return fail(e, -EOPNOTSUPP, "an answer in a coding other than chunked");
        f->is_chunked = true;
    }
    if (strcasecmp(line, "connection") == 0) {
        f->closes |= http_list_has(value, "close");
        f->keeps |= http_list_has(value, "keep-alive");
    }
    return 0;
}

/* "HTTP/1.1 200 OK" */
static int take_status(struct http_reader *r, const char *line, struct error *e) {
    bool is_ours = strncmp(line, "HTTP/1.", 7) == 0 && (line[7] == '0' || line[7] == '1') && line[8] == ' ';
    for (int i = 9; is_ours && i < 12; i++) is_ours = line[i] >= '0' && line[i] <= '9';
    if (!is_ours || (line[12] && line[12] != ' ')) return fail(e, -EPROTO, "what answers does not speak HTTP/1.1");
    r->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    r->keeps_alive = line[7] == '1';
    if (r->status < 200 || r->status > 599) return fail(e, -EPROTO, "an answer with the status %d", r->status);
    return 0;
}

static int choose_stage(struct http_reader *r, const struct framing *f, struct error *e) {
    if (f->is_chunked && f->has_length) return fail(e, -EINVAL, "an answer with a length and in chunks");
    r->keeps_alive = f->closes ? false : r->keeps_alive || f->keeps;
    r->left = f->length;
    bool has_none = r->status == 204 || r->status == 304 || (f->has_length && f->length == 0);
    if (has_none)
        r->stage = HTTP_READER_WHOLE;
    else if (f->is_chunked)
        r->stage = HTTP_READER_CHUNKS;
    else if (f->has_length)
        r->stage = HTTP_READER_LENGTH;
    else
        r->stage = HTTP_READER_TO_END, r->keeps_alive = false;
    return 0;
}

static int understand(struct http_reader *r, struct error *e) {
    struct framing f = {0};
    bool is_first = true;
    char *line = r->head.s, *stop = r->head.s + r->head.len - 2; /* the empty line */
    while (line < stop) {
        char *next = memchr(line, '\r', (size_t)(stop - line));
        if (!next) return fail(e, -EINVAL, "an answer whose head is not whole");
        *next = 0;
        int done = is_first ? take_status(r, line, e) : take_field(&f, line, e);
        if (done < 0) return done;
        is_first = false;
        line = next + 2;
    }
    if (is_first) return fail(e, -EPROTO, "what answers does not speak HTTP/1.1");
    buf_done(&r->head);
    return choose_stage(r, &f, e);
}

/* Returns how many of the bytes belong to the head. */
static long take_head(struct http_reader *r, const char *bytes, size_t len, struct error *e) {
    size_t before = r->head.len, room = HTTP_HEAD_MAX + 1 - before;
    buf_add(&r->head, bytes, len < room ? len : room);
    long end = http_head_find(r->head.s, r->head.len, &r->looked, e);
    if (end < 0) return end;
    if (end == 0) return (long)(r->head.len - before);
    r->head.len = (size_t)end;
    int done = understand(r, e);
    return done < 0 ? done : end - (long)before;
}

static long take_plain(struct http_reader *r, const char *bytes, size_t len, size_t max, struct buf *body,
                       struct error *e) {
    bool is_bounded = r->stage == HTTP_READER_LENGTH;
    size_t n = is_bounded && len > r->left ? (size_t)r->left : len;
    if ((is_bounded && r->left > max) || body->len + n > max)
        return fail(e, -EFBIG, "an answer larger than %zu bytes", max);
    buf_add(body, bytes, n);
    if (!is_bounded) return (long)n;
    r->left -= n;
    if (r->left == 0) r->stage = HTTP_READER_WHOLE;
    return (long)n;
}

static long take_some(struct http_reader *r, const char *bytes, size_t len, size_t max, struct buf *body,
                      struct error *e) {
    if (r->stage == HTTP_READER_HEAD) return take_head(r, bytes, len, e);
    if (r->stage != HTTP_READER_CHUNKS) return take_plain(r, bytes, len, max, body, e);
    long n = http_chunks_take(&r->chunks, bytes, len, max, body, e);
    if (n >= 0 && r->chunks.state == HTTP_CHUNKS_END) r->stage = HTTP_READER_WHOLE;
    return n;
}

long http_reader_take(struct http_reader *r, const char *bytes, size_t len, size_t max, struct buf *body,
                      struct error *e) {
    size_t took = 0;
    while (took < len && r->stage != HTTP_READER_WHOLE) {
        long n = take_some(r, bytes + took, len - took, max, body, e);
        if (n < 0) return n;
        took += (size_t)n;
    }
    return (long)took;
}

int http_reader_end(struct http_reader *r, struct error *e) {
    if (r->stage == HTTP_READER_TO_END) r->stage = HTTP_READER_WHOLE;
    return r->stage == HTTP_READER_WHOLE ? 0 : fail(e, -EPIPE, "the answer ends in the middle");
}
