#include "model/container_spec_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"
#include "base/nearest.h"

enum list { COMMAND, ENV, MOUNTS, LABELS, SCOPE, LISTS };

struct reading {
    struct container_spec s;
    struct buf words[LISTS];
    bool has_count;
    int result;
    struct error *e;
};

static void reading_done(struct reading *r) {
    for (int i = 0; i < LISTS; i++) buf_done(&r->words[i]);
}

/* ---- values ---- */

static int read_text(struct reading *r, const char *key, const struct json_tree *v, void *to) {
    const char *text = json_tree_text(v, NULL);
    if (!text) return fail(r->e, -EINVAL, "%s: not a text in quotes", key);
    *(const char **)to = text;
    return 0;
}

static int read_list(struct reading *r, const char *key, const struct json_tree *v, void *to) {
    struct buf *b = to;
    if (json_tree_type(v) != JSON_TREE_LIST) return fail(r->e, -EINVAL, "%s: not a list", key);
    for (size_t i = 0; i < json_tree_count(v); i++) {
        const struct json_tree *item = json_tree_at(v, i);
        const char *text = json_tree_text(item, NULL);
        int64_t n = json_tree_integer(item, -1);
        if (text)
            job_word_put(b, text);
        else if (n >= 0 && b == &r->words[SCOPE])
            buf_printf(b, "%lld", (long long)n), buf_putc(b, 0);
        else
            return fail(r->e, -EINVAL, "%s[%zu]: not a text in quotes", key, i);
    }
    return 0;
}

/* One text is for the image's shell, as of jobs. */
static int read_command(struct reading *r, const char *key, const struct json_tree *v, void *to) {
    const char *text = json_tree_text(v, NULL);
    if (!text) return read_list(r, key, v, to);
    if (!*text) return 0;
    job_word_put(to, "sh");
    job_word_put(to, "-c");
    job_word_put(to, text);
    return 0;
}

struct pairs {
    struct reading *r;
    const char *key;
    struct buf *b;
    int result;
};

static void pair(void *ctx, const char *name, const struct json_tree *v) {
    struct pairs *p = ctx;
    if (p->result < 0) return;
    buf_printf(p->b, "%s=", name);
    if (strchr(name, '='))
        p->result = fail(p->r->e, -EINVAL, "%s.%.60s: a name cannot have = in it", p->key, name);
    else if (json_tree_text(v, NULL))
        buf_puts(p->b, json_tree_text(v, ""));
    else if (json_tree_type(v) == JSON_TREE_INTEGER)
        buf_printf(p->b, "%lld", (long long)json_tree_integer(v, 0));
    else
        p->result = fail(p->r->e, -EINVAL, "%s.%.60s: neither a text nor a whole number", p->key, name);
    buf_putc(p->b, 0);
}

static int read_pairs(struct reading *r, const char *key, const struct json_tree *v, void *to) {
    struct pairs p = {.r = r, .key = key, .b = to};
    if (json_tree_type(v) != JSON_TREE_OBJECT)
        return fail(r->e, -EINVAL, "%s: not an object, as in {\"name\": \"value\"}", key);
    json_tree_each(v, pair, &p);
    return p.result;
}

static int read_gpus(struct reading *r, const char *key, const struct json_tree *v, void *to) {
    int64_t n = json_tree_integer(v, INT64_MIN);
    if (strcmp(json_tree_text(v, ""), "all") == 0) n = -1;
    if (n < -1 || n > CONTAINER_GPUS_MAX)
        return fail(r->e, -EINVAL, "gpus: neither a number from 0 to %d nor \"all\"", CONTAINER_GPUS_MAX);
    r->s.gpus = (int)n;
    r->has_count = true;
    return 0;
}

static int read_shared(struct reading *r, const char *key, const struct json_tree *v, void *to) {
    if (json_tree_type(v) != JSON_TREE_BOOL) return fail(r->e, -EINVAL, "shared: neither true nor false");
    r->s.is_shared = json_tree_is_true(v);
    return 0;
}

/* ---- the object ---- */

static void member(void *ctx, const char *key, const struct json_tree *v) {
    struct reading *r = ctx;
    struct nearest guess = {.typed = key};
    const struct {
        const char *key;
        int (*read)(struct reading *r, const char *key, const struct json_tree *v, void *to);
        void *to;
        int is; /* enum container_key; -1: none */
    } rows[] = {
        {"name",     read_text,    &r->s.name,         CONTAINER_KEY_NAME    },
        {"image",    read_text,    &r->s.image,        CONTAINER_KEY_IMAGE   },
        {"command",  read_command, &r->words[COMMAND], CONTAINER_KEY_COMMAND },
        {"env",      read_pairs,   &r->words[ENV],     CONTAINER_KEY_ENV     },
        {"mounts",   read_list,    &r->words[MOUNTS],  CONTAINER_KEY_MOUNTS  },
        {"labels",   read_pairs,   &r->words[LABELS],  CONTAINER_KEY_LABELS  },
        {"gpus",     read_gpus,    NULL,               CONTAINER_KEY_GPUS    },
        {"gpu_ids",  read_list,    &r->words[SCOPE],   CONTAINER_KEY_GPUS    },
        {"shared",   read_shared,  NULL,               -1                    },
        {"cwd",      read_text,    &r->s.cwd,          CONTAINER_KEY_CWD     },
        {"deadline", read_text,    &r->s.deadline,     CONTAINER_KEY_DEADLINE},
        {"period",   read_text,    &r->s.period,       CONTAINER_KEY_PERIOD  },
        {"ui",       read_text,    &r->s.ui,           CONTAINER_KEY_UI      },
        {"restart",  read_text,    &r->s.restart,      CONTAINER_KEY_RESTART },
    };
    if (r->result < 0) return;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        nearest_offer(&guess, rows[i].key);
        if (strcmp(rows[i].key, key) != 0) continue;
        if (json_tree_is_null(v)) return; /* as if it were not given */
        r->result = rows[i].read(r, key, v, rows[i].to);
        if (rows[i].is >= 0) r->s.given |= BIT(rows[i].is);
        return;
    }
    r->result = guess.best
                    ? fail(r->e, -EINVAL, "%.60s: a container has no such key; did you mean \"%s\"?", key, guess.best)
                    : fail(r->e, -EINVAL, "%.60s: a container has no such key", key);
}

int container_spec_from_json(const char *text, size_t len, struct buf *record, struct error *e) {
    struct json_tree *tree = NULL;
    struct reading r = {.e = e};
    int result = json_tree_parse(text, len, &tree, e);
    if (result < 0) return result;
    const char **texts[] = {&r.s.name, &r.s.image, &r.s.cwd, &r.s.deadline, &r.s.period, &r.s.ui, &r.s.restart};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) *texts[i] = "";
    if (json_tree_type(tree) != JSON_TREE_OBJECT)
        r.result = fail(e, -EINVAL, "a container is an object, as in {\"image\": \"NAME\"}");
    else
        json_tree_each(tree, member, &r);
    struct job_words *lists[LISTS] = {[COMMAND] = &r.s.command,
                                      [ENV] = &r.s.env,
                                      [MOUNTS] = &r.s.mounts,
                                      [LABELS] = &r.s.labels,
                                      [SCOPE] = &r.s.scope};
    for (int i = 0; i < LISTS; i++) {
        *lists[i] = job_words_of(&r.words[i]);
        if (!lists[i]->s) lists[i]->s = "";
    }
    if (r.s.scope.count && !r.has_count) r.s.gpus = (int)r.s.scope.count;
    result = r.result < 0 ? r.result : container_spec_check(&r.s, e);
    if (result >= 0) container_spec_encode(&r.s, record);
    reading_done(&r);
    json_tree_free(tree);
    return result;
}
