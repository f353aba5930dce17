#include "model/repeat_json.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "model/duration.h"

struct reading {
    struct repeat_spec s;
    int result;
    struct error *e;
};

static int overlap_of(struct reading *r, const char *text) {
    for (int i = 0; i < REPEAT_OVERLAPS; i++) {
        if (strcmp(text, repeat_overlap_name((enum repeat_overlap)i)) != 0) continue;
        r->s.overlap = (enum repeat_overlap)i;
        return 0;
    }
    return fail(r->e, -EINVAL, "repeat.overlap: \"%.40s\" is neither skip, queue nor cancel", text);
}

static int late_of(struct reading *r, const char *text) {
    int result = duration_parse(text, &r->s.late_ns, r->e);
    if (result < 0) return fail_in(r->e, result, "repeat.late");
    r->s.late_ns -= r->s.late_ns % DURATION_LEAST_NS;
    return 0;
}

static int key_take(struct reading *r, const char *key, const char *text) {
    static const char *const keys[] = {"cron", "interval", "zone", "late", "overlap", "edits"};
    struct nearest guess = {.typed = key};
    if (strcmp(key, "cron") == 0)
        r->s.cron = text;
    else if (strcmp(key, "interval") == 0)
        r->s.interval = text;
    else if (strcmp(key, "zone") == 0)
        r->s.zone = text;
    else if (strcmp(key, "late") == 0)
        return late_of(r, text);
    else if (strcmp(key, "overlap") == 0)
        return overlap_of(r, text);
    else {
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) nearest_offer(&guess, keys[i]);
        return guess.best
                   ? fail(r->e, -EINVAL, "repeat.%.60s: there is no such key; did you mean \"%s\"?", key, guess.best)
                   : fail(r->e, -EINVAL, "repeat.%.60s: there is no such key", key);
    }
    return 0;
}

static void member(void *ctx, const char *key, const struct json_tree *v) {
    struct reading *r = ctx;
    if (r->result < 0 || json_tree_is_null(v)) return;
    if (strcmp(key, "edits") == 0) {
        r->s.edits = json_tree_integer(v, -1);
        return;
    }
    const char *text = json_tree_text(v, NULL);
    r->result = text ? key_take(r, key, text) : fail(r->e, -EINVAL, "repeat.%.60s: not a text in quotes", key);
}

int repeat_json_words(const struct json_tree *v, struct buf *ret, struct error *e) {
    struct reading r = {
        .s = {.cron = "", .interval = "", .zone = "", .late_ns = REPEAT_LATE_USUAL_NS},
          .e = e
    };
    if (json_tree_type(v) != JSON_TREE_OBJECT)
        return fail(e, -EINVAL, "repeat: not an object, as in {\"cron\": \"0 3 * * *\", \"zone\": \"Europe/Berlin\"}");
    json_tree_each(v, member, &r);
    if (r.result >= 0) r.result = repeat_spec_check(&r.s, NULL, e);
    if (r.result >= 0) repeat_spec_write(&r.s, ret);
    return r.result;
}
