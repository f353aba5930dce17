#include "client/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const struct {
    const char *word, *mark, *colour;
} levels[] = {
    [FINDING_GOOD] = {"good",      "ok",   "\033[32m"},
    [FINDING_NOTE] = {"note",      "note", "\033[33m"},
    [FINDING_ATTENTION] = {"attention", "LOOK", "\033[31m"},
};

void report_done(struct report *r) {
    free(r->of);
    *r = (struct report){0};
}

void report_add(struct report *r, enum finding_level level, const char *topic, const char *advice, const char *fmt,
                ...) {
    if (r->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 32;
        struct finding *more = realloc(r->of, r->capacity * sizeof *more);
        if (!more) abort();
        r->of = more;
    }
    struct finding *f = &r->of[r->count++];
    *f = (struct finding){.level = level, .topic = topic, .advice = advice};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
}

bool report_is_good(const struct report *r) {
    for (size_t i = 0; i < r->count; i++)
        if (r->of[i].level == FINDING_ATTENTION) return false;
    return true;
}

void report_print(const struct report *r, bool with_colour, struct buf *b) {
    const char *topic = "";
    for (size_t i = 0; i < r->count; i++) {
        const struct finding *f = &r->of[i];
        buf_printf(b, "%-12s %s%-4s%s  %s\n", strcmp(topic, f->topic) ? f->topic : "",
                   with_colour ? levels[f->level].colour : "", levels[f->level].mark, with_colour ? "\033[0m" : "",
                   f->text);
        if (f->advice) buf_printf(b, "%-12s       %s %s\n", "", "->", f->advice);
        topic = f->topic;
    }
}

void report_json(const struct report *r, struct buf *b) {
    json_open(b, '[');
    for (size_t i = 0; i < r->count; i++) {
        json_open(b, '{');
        json_pair_str(b, "level", levels[r->of[i].level].word);
        json_pair_str(b, "topic", r->of[i].topic);
        json_pair_str(b, "text", r->of[i].text);
        if (r->of[i].advice) json_pair_str(b, "advice", r->of[i].advice);
        json_close(b, '}');
    }
    json_close(b, ']');
}
