/* How texts and words lie in a record, of a job or of a container: with their length before them and their ends in it, so that what is
 * decoded points into the record. */
#pragma once

#include "model/job.h"
#include "model/wire_code.h"

static inline void out_record_text(struct buf *b, const char *text) {
    size_t n = text ? strlen(text) : 0;
    out_u32(b, (uint32_t)n);
    buf_add(b, text ? text : "", n + 1);
}

static inline void out_record_words(struct buf *b, const struct job_words *w) {
    out_u32(b, w->count);
    out_u32(b, (uint32_t)w->len);
    if (w->len) buf_add(b, w->s, w->len);
}

static inline const char *in_record_text(struct wire_in *in) {
    size_t n = in_u32(in);
    const uint8_t *p = n < JOB_RECORD_MAX ? in_take(in, n + 1) : NULL;
    if (p && !p[n] && !memchr(p, 0, n)) return (const char *)p;
    in->is_bad = true;
    return "";
}

static inline struct job_words in_record_words(struct wire_in *in) {
    uint32_t count = in_u32(in);
    size_t len = in_u32(in);
    const uint8_t *p = in_take(in, len);
    if (!p || len == 0) {
        in->is_bad |= count != 0;
        return (struct job_words){.s = ""};
    }
    struct job_words w = {.s = (const char *)p, .len = len, .count = count};
    const struct buf bytes = {.s = (char *)(uintptr_t)p, .len = len};
    in->is_bad |= p[len - 1] != 0 || count > JOB_WORDS_MAX || job_words_of(&bytes).count != count;
    return w;
}
