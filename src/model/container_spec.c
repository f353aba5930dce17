#include "model/container_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/duration.h"
#include "model/job_code.h"
#include "model/job_rules.h"
#include "model/ui.h"

#define RECORD_VERSION 1
#define OURS "gpumgr."

static const char *const names[] = {
#define X(id, key) [CONTAINER_KEY_##id] = key,
    CONTAINER_KEYS(X)
#undef X
};

const char *container_key_name(enum container_key k) { return (unsigned)k < CONTAINER_KEY_COUNT ? names[k] : ""; }

static bool gives(const struct container_spec *s, enum container_key k) { return s->given & BIT(k); }

/* ---- what is sound ---- */

static int check_name(const struct container_spec *s, struct error *e) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(s->name);
    if (!n) return 0;
    for (size_t i = 0; i < n; i++)
        if (!strchr(first, s->name[i]) && !(i && strchr("_.-", s->name[i])))
            return fail(e, -EINVAL, "name: \"%.64s\" has other characters than letters, digits, _ . and -", s->name);
    if (n < 2 || n >= CONTAINER_NAME_MAX)
        return fail(e, -EINVAL, "name: not from 2 to %d characters", CONTAINER_NAME_MAX - 1);
    if (strstr(s->name, CONTAINER_NAME_OURS))
        return fail(e, -EINVAL, "name: \"" CONTAINER_NAME_OURS "\" is in names that gpumgr itself gives");
    return 0;
}

static int check_pairs(const struct container_spec *s, struct error *e) {
    for (const char *v = NULL; (v = job_word_next(&s->env, v));) {
        size_t n = job_variable_len(v);
        if (!n) return fail(e, -EINVAL, "env: \"%.40s\" is not NAME=VALUE", v);
        if (job_variable_is_ours(v)) return fail(e, -EINVAL, "env: %.*s follows from gpus", (int)n, v);
    }
    for (const char *l = NULL; (l = job_word_next(&s->labels, l));) {
        const char *is = strchr(l, '=');
        bool is_free = strncmp(l, "gpumgr.tenant=", 14) == 0 || strncmp(l, "gpumgr.priority=", 16) == 0;
        if (!is || is == l || !job_text_is_plain(l)) return fail(e, -EINVAL, "labels: \"%.40s\" is not KEY=VALUE", l);
        if (strncmp(l, OURS, strlen(OURS)) == 0 && !is_free)
            return fail(e, -EINVAL, "labels: %.*s is set by gpumgr itself", (int)(is - l), l);
    }
    return 0;
}

static int check_mounts(const struct container_spec *s, struct error *e) {
    if (s->mounts.count > CONTAINER_MOUNTS_MAX) return fail(e, -EINVAL, "mounts: more than %u", CONTAINER_MOUNTS_MAX);
    for (const char *m = NULL; (m = job_word_next(&s->mounts, m));) {
        if (!job_word_is_mount(m) || strlen(m) > 4000 || !job_text_is_plain(m))
            return fail(e, -EINVAL, "mounts: \"%.80s\" is not SOURCE:TARGET or SOURCE:TARGET:ro with full paths", m);
        if (job_mount_is_root(m)) return fail(e, -EINVAL, "mounts: / is the container's own");
    }
    return 0;
}

static int check_gpus(const struct container_spec *s, struct error *e) {
    if (s->gpus < -1 || s->gpus > CONTAINER_GPUS_MAX)
        return fail(e, -EINVAL, "gpus: %d is not from 0 to %d", s->gpus, CONTAINER_GPUS_MAX);
    if (s->scope.count && (int)s->scope.count != s->gpus)
        return fail(e, -EINVAL, "gpu_ids: names %u GPUs, but gpus asks for %d", s->scope.count, s->gpus);
    for (const char *g = NULL; (g = job_word_next(&s->scope, g));) {
        if (!job_word_is_gpu(g)) return fail(e, -EINVAL, "gpu_ids: \"%.80s\" is neither an index nor a UUID", g);
        for (const char *h = g; (h = job_word_next(&s->scope, h));)
            if (strcmp(g, h) == 0) return fail(e, -EINVAL, "gpu_ids: GPU %.80s is there twice", g);
    }
    return 0;
}

static int check_times(const struct container_spec *s, struct error *e) {
    int64_t deadline_ns = 0, period_ns = 0;
    int r = *s->deadline ? duration_parse(s->deadline, &deadline_ns, e) : 0;
    if (r < 0) return fail_in(e, r, "deadline");
    r = *s->period ? duration_parse(s->period, &period_ns, e) : 0;
    if (r < 0) return fail_in(e, r, "period");
    if (period_ns && deadline_ns && period_ns < deadline_ns)
        return fail(e, -EINVAL, "period: shorter than the deadline");
    return 0;
}

static int check_ui(const char *text, struct error *e) {
    struct ui ui;
    int r = *text ? ui_parse(text, &ui, e) : 0;
    return r < 0 ? fail_in(e, r, "ui") : 0;
}

static int check_restart(const char *text, struct error *e) {
    static const char *const words[] = {"", "no", "always", "unless-stopped", "on-failure"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i]) == 0) return 0;
    const char *count = strncmp(text, "on-failure:", 11) == 0 ? text + 11 : "";
    if (*count && strlen(count) <= 4 && strspn(count, "0123456789") == strlen(count)) return 0;
    return fail(e, -EINVAL, "restart: \"%.40s\" is not no, on-failure, on-failure:N, always or unless-stopped", text);
}

static int check_sizes(const struct container_spec *s, struct error *e) {
    const struct job_words *lists[] = {&s->command, &s->env, &s->mounts, &s->labels, &s->scope};
    size_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        sum += lists[i]->len;
        if (lists[i]->count > JOB_WORDS_MAX || sum > CONTAINER_RECORD_MAX - 16384)
            return fail(e, -E2BIG, "the container's description is larger than %u KiB", CONTAINER_RECORD_MAX >> 10);
    }
    return 0;
}

/* All that is there, given or not: a record may come from anybody, and what it says of itself may be wrong. */
int container_spec_check(const struct container_spec *s, struct error *e) {
    int r = check_sizes(s, e);
    if (r >= 0) r = check_name(s, e);
    if (r < 0) return r;
    if ((gives(s, CONTAINER_KEY_IMAGE) || *s->image) && !job_word_is_image(s->image))
        return fail(e, -EINVAL, "image: \"%.80s\" is no name of an image, as in repository/name:tag", s->image);
    if (*s->cwd && (*s->cwd != '/' || strlen(s->cwd) > 4000))
        return fail(e, -EINVAL, "cwd: \"%.80s\" is not a full path; it begins with /", s->cwd);
    r = check_pairs(s, e);
    if (r >= 0) r = check_mounts(s, e);
    if (r >= 0) r = check_gpus(s, e);
    if (r >= 0) r = check_times(s, e);
    if (r >= 0) r = check_ui(s->ui, e);
    return r < 0 ? r : check_restart(s->restart, e);
}

/* ---- records ---- */

void container_spec_encode(const struct container_spec *s, struct buf *b) {
    out_u8(b, RECORD_VERSION);
    out_u32(b, s->given);
    const char *texts[] = {s->name, s->image, s->cwd, s->deadline, s->period, s->ui, s->restart};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) out_record_text(b, texts[i]);
    const struct job_words *lists[] = {&s->command, &s->env, &s->mounts, &s->labels, &s->scope};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) out_record_words(b, lists[i]);
    out_i32(b, s->gpus);
    out_u8(b, s->is_shared);
}

int container_spec_decode(const void *record, size_t len, struct container_spec *ret, struct error *e) {
    struct container_spec s = {0};
    if (!len || len > CONTAINER_RECORD_MAX) return fail(e, -EPROTO, "a container's record of %zu bytes", len);
    struct wire_in in = {.at = record, .end = (const uint8_t *)record + len};
    uint8_t version = in_u8(&in);
    if (version != RECORD_VERSION) return fail(e, -EPROTO, "a container's record of version %u", version);
    s.given = in_u32(&in);
    const char **texts[] = {&s.name, &s.image, &s.cwd, &s.deadline, &s.period, &s.ui, &s.restart};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) *texts[i] = in_record_text(&in);
    struct job_words *lists[] = {&s.command, &s.env, &s.mounts, &s.labels, &s.scope};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) *lists[i] = in_record_words(&in);
    s.gpus = in_i32(&in);
    uint8_t shared = in_u8(&in);
    if (in.is_bad || in.at != in.end || shared > 1 || s.given >= BIT(CONTAINER_KEY_COUNT))
        return fail(e, -EPROTO, "a container's record that makes no sense");
    s.is_shared = shared;
    int r = container_spec_check(&s, e);
    if (r >= 0) *ret = s;
    return r;
}

/* ---- changes ---- */

struct container_spec container_spec_changed(const struct container_spec *old, const struct container_spec *change) {
    struct container_spec s = *old;
    const struct {
        enum container_key key;
        const char **to;
        const char *from;
    } texts[] = {
        {CONTAINER_KEY_NAME,     &s.name,     change->name    },
        {CONTAINER_KEY_IMAGE,    &s.image,    change->image   },
        {CONTAINER_KEY_CWD,      &s.cwd,      change->cwd     },
        {CONTAINER_KEY_DEADLINE, &s.deadline, change->deadline},
        {CONTAINER_KEY_PERIOD,   &s.period,   change->period  },
        {CONTAINER_KEY_UI,       &s.ui,       change->ui      },
        {CONTAINER_KEY_RESTART,  &s.restart,  change->restart },
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (gives(change, texts[i].key)) *texts[i].to = texts[i].from;
    if (gives(change, CONTAINER_KEY_NAME) && !*change->name) s.name = old->name; /* it keeps its name */
    if (gives(change, CONTAINER_KEY_COMMAND)) s.command = change->command;
    if (gives(change, CONTAINER_KEY_ENV)) s.env = change->env;
    if (gives(change, CONTAINER_KEY_MOUNTS)) s.mounts = change->mounts;
    if (gives(change, CONTAINER_KEY_LABELS)) s.labels = change->labels;
    if (gives(change, CONTAINER_KEY_GPUS)) s.gpus = change->gpus, s.scope = change->scope;
    s.is_shared = change->is_shared;
    s.given |= change->given;
    return s;
}

const char *container_pair(const struct job_words *pairs, const char *key, size_t key_len) {
    for (const char *p = NULL; (p = job_word_next(pairs, p));)
        if (strncmp(p, key, key_len) == 0 && p[key_len] == '=') return p + key_len + 1;
    return NULL;
}

static void join(const struct job_words *w, struct buf *b) {
    buf_clear(b);
    buf_puts(b, "");
    for (const char *at = NULL; (at = job_word_next(w, at));) {
        bool is_plain = *at && !strpbrk(at, " \t\n'\"\\");
        buf_printf(b, is_plain ? "%s%s" : "%s'%s'", b->len ? " " : "", at);
    }
}

static bool has_word(const struct job_words *w, const char *word) {
    for (const char *at = NULL; (at = job_word_next(w, at));)
        if (strcmp(at, word) == 0) return true;
    return false;
}

static void diff_pairs(const char *of, const struct job_words *from, const struct job_words *to,
                       container_change_fn each, void *ctx) {
    char key[160];
    for (const char *p = NULL; (p = job_word_next(from, p));) {
        size_t n = strcspn(p, "=");
        const char *now = container_pair(to, p, n), *was = p[n] ? p + n + 1 : "";
        snprintf(key, sizeof key, "%s.%.*s", of, (int)n, p);
        if (!now || strcmp(now, was) != 0) each(ctx, key, was, now);
    }
    for (const char *p = NULL; (p = job_word_next(to, p));) {
        size_t n = strcspn(p, "=");
        snprintf(key, sizeof key, "%s.%.*s", of, (int)n, p);
        if (!container_pair(from, p, n)) each(ctx, key, NULL, p[n] ? p + n + 1 : "");
    }
}

static void diff_words(const char *key, const struct job_words *from, const struct job_words *to,
                       container_change_fn each, void *ctx) {
    for (const char *w = NULL; (w = job_word_next(from, w));)
        if (!has_word(to, w)) each(ctx, key, w, NULL);
    for (const char *w = NULL; (w = job_word_next(to, w));)
        if (!has_word(from, w)) each(ctx, key, NULL, w);
}

static void gpus_text(const struct container_spec *s, struct buf *b) {
    join(&s->scope, b);
    if (s->scope.count) return;
    if (s->gpus < 0)
        buf_puts(b, "all");
    else
        buf_printf(b, "%d", s->gpus);
}

void container_spec_diff(const struct container_spec *from, const struct container_spec *to, container_change_fn each,
                         void *ctx) {
    AUTO(buf_done) struct buf a = {0}, b = {0};
    const struct {
        enum container_key key;
        const char *from, *to;
    } texts[] = {
        {CONTAINER_KEY_NAME,     from->name,     to->name    },
        {CONTAINER_KEY_IMAGE,    from->image,    to->image   },
        {CONTAINER_KEY_CWD,      from->cwd,      to->cwd     },
        {CONTAINER_KEY_DEADLINE, from->deadline, to->deadline},
        {CONTAINER_KEY_PERIOD,   from->period,   to->period  },
        {CONTAINER_KEY_UI,       from->ui,       to->ui      },
        {CONTAINER_KEY_RESTART,  from->restart,  to->restart },
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].from, texts[i].to) != 0)
            each(ctx, names[texts[i].key], *texts[i].from ? texts[i].from : NULL, *texts[i].to ? texts[i].to : NULL);
    join(&from->command, &a);
    join(&to->command, &b);
    if (strcmp(a.s, b.s) != 0) each(ctx, "command", a.len ? a.s : NULL, b.len ? b.s : NULL);
    diff_pairs("env", &from->env, &to->env, each, ctx);
    diff_words("mounts", &from->mounts, &to->mounts, each, ctx);
    diff_pairs("labels", &from->labels, &to->labels, each, ctx);
    gpus_text(from, &a);
    gpus_text(to, &b);
    if (strcmp(a.s, b.s) != 0) each(ctx, "gpus", a.s, b.s);
}

/* ---- JSON ---- */

static void put_list(struct buf *b, const char *key, const struct job_words *w) {
    json_key(b, key);
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(w, at));) json_str(b, at);
    json_close(b, ']');
}

static void put_pairs(struct buf *b, const char *key, const struct job_words *w) {
    AUTO(buf_done) struct buf name = {0};
    json_key(b, key);
    json_open(b, '{');
    for (const char *at = NULL; (at = job_word_next(w, at));) {
        size_t n = strcspn(at, "=");
        buf_clear(&name);
        buf_add(&name, at, n);
        json_pair_str(b, name.s, at[n] ? at + n + 1 : "");
    }
    json_close(b, '}');
}

void container_spec_put_json(const struct container_spec *s, struct buf *b) {
    json_open(b, '{');
    json_pair_str(b, "name", s->name);
    json_pair_str(b, "image", s->image);
    put_list(b, "command", &s->command);
    put_pairs(b, "env", &s->env);
    put_list(b, "mounts", &s->mounts);
    put_pairs(b, "labels", &s->labels);
    json_pair_int(b, "gpus", s->gpus);
    put_list(b, "gpu_ids", &s->scope);
    json_pair_str(b, "cwd", s->cwd);
    json_pair_str(b, "deadline", s->deadline);
    json_pair_str(b, "period", s->period);
    json_pair_str(b, "ui", s->ui);
    json_pair_str(b, "restart", *s->restart ? s->restart : "no");
    json_close(b, '}');
}
