#include "client/top_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void top_stream_done(struct top_stream *s) {
    buf_done(&s->line);
    buf_done(&s->data);
    *s = (struct top_stream){0};
}

static int end_message(struct top_stream *s, top_stream_fn each, void *ctx) {
    int r = 0;
    if (s->data.len) /* the last line feed is not part of it */
        r = each(ctx, *s->event ? s->event : "message", s->data.s, s->data.len - 1);
    buf_clear(&s->data);
    s->event[0] = 0;
    return r;
}

static int end_line(struct top_stream *s, top_stream_fn each, void *ctx) {
    int r = 0;
    const char *line = s->line.len ? s->line.s : "";
    size_t name = strcspn(line, ":");
    const char *value = line[name] ? line + name + 1 : line + name;
    if (*value == ' ') value++;
    if (!*line) {
        r = end_message(s, each, ctx);
    } else if (name == 5 && strncmp(line, "event", name) == 0) {
        snprintf(s->event, sizeof s->event, "%s", value);
    } else if (name == 4 && strncmp(line, "data", name) == 0) {
        if (s->data.len + s->line.len > TOP_STREAM_MAX) return -EMSGSIZE;
        buf_add(&s->data, value, s->line.len - (size_t)(value - line));
        buf_putc(&s->data, '\n');
    }
    buf_clear(&s->line);
    return r;
}

int top_stream_feed(struct top_stream *s, const char *bytes, size_t n, top_stream_fn each, void *ctx) {
    for (size_t at = 0; at < n;) {
        size_t length = 0;
        while (at + length < n && bytes[at + length] != '\n' && bytes[at + length] != '\r') length++;
        if (length) {
            if (s->line.len + length > TOP_STREAM_MAX) return -EMSGSIZE;
            buf_add(&s->line, bytes + at, length);
            s->after_cr = false;
        }
        at += length;
        if (at == n) break;
        bool is_second_half = bytes[at] == '\n' && s->after_cr;
        s->after_cr = bytes[at++] == '\r';
        int r = is_second_half ? 0 : end_line(s, each, ctx);
        if (r < 0) return r;
    }
    return 0;
}
