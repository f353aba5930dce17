#include "model/job_match.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"

static size_t character(const char *s) {
    size_t n = json_utf8_len(s);
    return n ? n : 1;
}

/* Our own, and without recursion: what the C library has takes for ever with many stars. */
static bool fits(const char *pattern, const char *text) {
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == '?') {
            pattern++;
            text += character(text);
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) { /* the last star takes one more */
            from += character(from);
            text = from;
            pattern = star + 1;
        } else {
            return false;
        }
    }
    return !pattern[strspn(pattern, "*")];
}

static bool has_label(const struct job_spec *s, const char *wanted) {
    size_t n = strcspn(wanted, "=");
    for (const char *l = NULL; (l = job_word_next(&s->labels, l));)
        if (wanted[n] ? strcmp(l, wanted) == 0 : strncmp(l, wanted, n) == 0 && l[n] == '=') return true;
    return false;
}

bool job_match(const struct job_match *m, const struct job_spec *s) {
    if (m->name && !fits(m->name, s->name)) return false;
    for (const char *w = NULL; (w = job_word_next(&m->labels, w));)
        if (!has_label(s, w)) return false;
    return true;
}

int job_match_labels(const char *text, struct buf *b, struct error *e) {
    for (const char *at = text;;) {
        size_t from = b->len;
        for (; *at && *at != ','; at++) {
            if (*at == '\\' && (at[1] == ',' || at[1] == '\\')) at++;
            buf_putc(b, *at);
        }
        if (b->len == from || b->s[from] == '=')
            return fail(e, -EINVAL, "label: \"%.60s\" is not KEY=VALUE, or KEY for any value", text);
        buf_putc(b, 0);
        if (!*at++) return 0;
    }
}

void job_match_put(struct buf *b, const char *label) {
    if (b->len) buf_putc(b, ',');
    for (; *label; label++) {
        if (*label == ',' || *label == '\\') buf_putc(b, '\\');
        buf_putc(b, *label);
    }
}
