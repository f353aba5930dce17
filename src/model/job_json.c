#include "model/job_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"
#include "base/nearest.h"
#include "model/duration.h"
#include "model/job_after.h"
#include "model/job_names.h"
#include "model/moment.h"
#include "model/repeat_json.h"
#include "model/service_json.h"
#include "model/size.h"
#include "model/ui.h"

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL

enum list { COMMAND, MOUNTS, ENV, SCOPE, AFTER, SWEEP, LABELS, NOTIFY, REPEAT, SERVICE, LISTS };

/* Where a job of several stands. */
struct among {
    const struct job_names *names;
    size_t at;
    bool is_used; /* one of them waits for another */
};

/* One object on its way to a record. Texts point into the tree, words into bufs of their own. */
struct reading {
    struct job_spec s;
    struct among *among; /* NULL: it is the only one */
    struct buf words[LISTS];
    char name[JOB_NAME_MAX];
    struct buf ui;
    int64_t now_ns;
    bool has_gpus, has_exact; /* "gpus" and "gpu_ids" were given */
    int result;
    struct error *e;
};

static void reading_done(struct reading *r) {
    for (int i = 0; i < LISTS; i++) buf_done(&r->words[i]);
    buf_done(&r->ui);
}

typedef int (*read_fn)(struct reading *r, const char *key, const struct json_tree *v);

/* ---- plain values ---- */

static int text_of(const struct json_tree *v, const char *key, const char **ret, struct error *e) {
    const char *text = json_tree_text(v, NULL);
    if (!text) return fail(e, -EINVAL, "%s: not a text in quotes", key);
    *ret = text;
    return 0;
}

static int whole_of(const struct json_tree *v, const char *key, int min, int max, int *ret, struct error *e) {
    int64_t n = json_tree_integer(v, INT64_MIN);
    if (n < min || n > max) return fail(e, -EINVAL, "%s: not a whole number from %d to %d", key, min, max);
    *ret = (int)n;
    return 0;
}

/* A text, or a number as its shortest text: an environment holds nothing else. */
static int scalar_put(struct buf *b, const char *key, const struct json_tree *v, struct error *e) {
    switch (json_tree_type(v)) {
    case JSON_TREE_TEXT: buf_puts(b, json_tree_text(v, "")); return 0;
    case JSON_TREE_INTEGER: buf_printf(b, "%lld", (long long)json_tree_integer(v, 0)); return 0;
    case JSON_TREE_REAL: buf_printf(b, "%.15g", json_tree_number(v, 0)); return 0;
    default: return fail(e, -EINVAL, "%s: neither a text nor a number", key);
    }
}

static int read_name(struct reading *r, const char *key, const struct json_tree *v) {
    return text_of(v, key, &r->s.name, r->e);
}
static int read_image(struct reading *r, const char *key, const struct json_tree *v) {
    return text_of(v, key, &r->s.image, r->e);
}
static int read_cwd(struct reading *r, const char *key, const struct json_tree *v) {
    return text_of(v, key, &r->s.cwd, r->e);
}
static int read_array(struct reading *r, const char *key, const struct json_tree *v) {
    return text_of(v, key, &r->s.array, r->e);
}
static int read_priority(struct reading *r, const char *key, const struct json_tree *v) {
    return whole_of(v, key, -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX, &r->s.priority, r->e);
}
static int read_retries(struct reading *r, const char *key, const struct json_tree *v) {
    return whole_of(v, key, 0, JOB_RETRIES_MAX, &r->s.retries, r->e);
}

static int read_gpus(struct reading *r, const char *key, const struct json_tree *v) {
    r->has_gpus = true;
    return whole_of(v, key, 1, JOB_GPUS_MAX, &r->s.gpus, r->e);
}

static int read_pty(struct reading *r, const char *key, const struct json_tree *v) {
    if (json_tree_type(v) != JSON_TREE_BOOL) return fail(r->e, -EINVAL, "%s: neither true nor false", key);
    r->s.is_pty = json_tree_is_true(v);
    return 0;
}

static int bytes_of(const struct json_tree *v, const char *key, uint64_t *ret, struct error *e) {
    const char *text = json_tree_text(v, NULL);
    int64_t n = json_tree_integer(v, -1);
    if (text) {
        int r = size_parse(text, ret, e);
        return r < 0 ? fail_in(e, r, "%s", key) : 0;
    }
    if (n <= 0) return fail(e, -EINVAL, "%s: neither an amount as \"40GiB\" nor a number of bytes", key);
    *ret = (uint64_t)n;
    return 0;
}

static int read_memory(struct reading *r, const char *key, const struct json_tree *v) {
    return bytes_of(v, key, &r->s.memory_bytes, r->e);
}
static int read_share(struct reading *r, const char *key, const struct json_tree *v) {
    return bytes_of(v, key, &r->s.share_bytes, r->e);
}

/* ---- times ---- */

static int span_of(const struct json_tree *v, const char *key, int64_t *ret_ns, struct error *e) {
    const char *text = json_tree_text(v, NULL);
    if (!text) return fail(e, -EINVAL, "%s: not a length of time in quotes, as in \"2h\" or \"1h30m\"", key);
    int r = duration_parse(text, ret_ns, e);
    return r < 0 ? fail_in(e, r, "%s", key) : 0;
}

static int read_time_limit(struct reading *r, const char *key, const struct json_tree *v) {
    int result = span_of(v, key, &r->s.time_limit_ns, r->e);
    r->s.time_limit_ns -= r->s.time_limit_ns % NS_PER_MS;
    return result;
}

/* Times are whole milliseconds: a double holds the seconds since 1970 no better, and what is shown can be submitted. */
static int finish_once(struct reading *r, const char *key, int64_t ns) {
    if (r->s.finish_by_ns) return fail(r->e, -EINVAL, "%s: of deadline and finish_by only one makes sense", key);
    r->s.finish_by_ns = ns - ns % NS_PER_MS;
    return 0;
}

static int read_deadline(struct reading *r, const char *key, const struct json_tree *v) {
    int64_t ns = 0;
    int result = span_of(v, key, &ns, r->e);
    return result < 0 ? result : finish_once(r, key, r->now_ns + ns);
}

static int read_finish_by(struct reading *r, const char *key, const struct json_tree *v) {
    const char *text = json_tree_text(v, NULL);
    double s = json_tree_number(v, NAN);
    int64_t ns = 0;
    if (text) {
        int result = moment_parse(text, &ns, r->e);
        if (result < 0) return fail_in(r->e, result, "%s", key);
    } else if (s > 0 && s < (double)MOMENT_MOST_S) {
        int64_t whole = (int64_t)s;
        ns = whole * NS_PER_S + (int64_t)llround((s - (double)whole) * 1e3) * NS_PER_MS;
    } else {
        return fail(r->e, -EINVAL, "%s: neither seconds since 1970 nor a time as \"2026-11-15T18:30:00Z\"", key);
    }
    return finish_once(r, key, ns);
}

/* ---- lists ---- */

static int list_of(struct reading *r, enum list which, const char *key, const struct json_tree *v, bool with_numbers) {
    struct buf *b = &r->words[which];
    const char *one = json_tree_text(v, NULL);
    char place[80];
    if (one && which != SCOPE) {
        job_word_put(b, one);
        return 0;
    }
    if (json_tree_type(v) != JSON_TREE_LIST) return fail(r->e, -EINVAL, "%s: not a list", key);
    for (size_t i = 0; i < json_tree_count(v); i++) {
        const struct json_tree *item = json_tree_at(v, i);
        int64_t n = json_tree_integer(item, -1);
        snprintf(place, sizeof place, "%s[%zu]", key, i);
        if (with_numbers && n >= 0) {
            buf_printf(b, "%lld", (long long)n);
            buf_putc(b, 0);
        } else if (json_tree_text(item, NULL)) {
            job_word_put(b, json_tree_text(item, ""));
        } else {
            return fail(r->e, -EINVAL, "%s: %s", place,
                        with_numbers ? "neither a whole number nor a text" : "not a text in quotes");
        }
    }
    return 0;
}

static int read_command(struct reading *r, const char *key, const struct json_tree *v) {
    if (json_tree_text(v, NULL)) {
        job_word_put(&r->words[COMMAND], "sh");
        job_word_put(&r->words[COMMAND], "-c");
    }
    return list_of(r, COMMAND, key, v, false);
}
static int read_mounts(struct reading *r, const char *key, const struct json_tree *v) {
    return list_of(r, MOUNTS, key, v, false);
}
static int read_after(struct reading *r, const char *key, const struct json_tree *v) {
    AUTO(buf_done) struct buf numbers = {0};
    struct buf *words = &r->words[AFTER];
    if (json_tree_type(v) == JSON_TREE_INTEGER) {
        buf_printf(words, "%lld", (long long)json_tree_integer(v, 0));
        buf_putc(words, 0);
    } else {
        int result = list_of(r, AFTER, key, v, true);
        if (result < 0) return result;
    }
    const struct job_words said = job_words_of(words);
    for (const char *w = NULL; (w = job_word_next(&said, w));) {
        struct job_after a;
        int result = job_names_after(r->among ? r->among->names : NULL, r->among ? r->among->at : 0, w, &a, r->e);
        if (result < 0) return result;
        if (r->among) r->among->is_used |= a.is_near;
        job_after_put(&numbers, &a);
    }
    buf_done(words);
    *words = TAKE_STRUCT(numbers);
    return 0;
}
static int read_notify(struct reading *r, const char *key, const struct json_tree *v) {
    return list_of(r, NOTIFY, key, v, false);
}

static int read_scope(struct reading *r, const char *key, const struct json_tree *v) {
    if (r->words[SCOPE].len) return fail(r->e, -EINVAL, "%s: of scope and gpu_ids only one makes sense", key);
    return list_of(r, SCOPE, key, v, true);
}

static int read_gpu_ids(struct reading *r, const char *key, const struct json_tree *v) {
    int result = read_scope(r, key, v);
    if (result >= 0 && !r->words[SCOPE].len) return fail(r->e, -EINVAL, "%s: the list is empty", key);
    r->has_exact = true;
    return result;
}

/* ---- objects ---- */

struct pairs {
    struct reading *r;
    struct buf *b;
    const char *key;
    bool is_sweep;
    int result;
};

static int sweep_values(struct pairs *p, const char *place, const struct json_tree *v) {
    size_t count = json_tree_count(v);
    if (json_tree_type(v) != JSON_TREE_LIST) return scalar_put(p->b, place, v, p->r->e);
    if (count == 0) return fail(p->r->e, -EINVAL, "%s: the list is empty", place);
    for (size_t i = 0; i < count; i++) {
        size_t from = p->b->len;
        if (i) buf_putc(p->b, ',');
        int result = scalar_put(p->b, place, json_tree_at(v, i), p->r->e);
        if (result < 0) return result;
        if (strchr(p->b->s + from + (i > 0), ',')) return fail(p->r->e, -EINVAL, "%s: a value has a comma", place);
    }
    return 0;
}

static void pair(void *ctx, const char *name, const struct json_tree *v) {
    struct pairs *p = ctx;
    char place[120];
    if (p->result < 0) return;
    snprintf(place, sizeof place, "%s.%.80s", p->key, name);
    if (strchr(name, '=')) {
        p->result = fail(p->r->e, -EINVAL, "%s: a name cannot have = in it", place);
        return;
    }
    buf_printf(p->b, "%s=", name);
    p->result = p->is_sweep ? sweep_values(p, place, v) : scalar_put(p->b, place, v, p->r->e);
    buf_putc(p->b, 0);
}

static int pairs_of(struct reading *r, enum list which, const char *key, const struct json_tree *v) {
    struct pairs p = {.r = r, .b = &r->words[which], .key = key, .is_sweep = which == SWEEP};
    if (json_tree_type(v) != JSON_TREE_OBJECT)
        return fail(r->e, -EINVAL, "%s: not an object, as in {\"name\": %s}", key,
                    which == SWEEP ? "[1, 2]" : "\"value\"");
    json_tree_each(v, pair, &p);
    return p.result;
}

static int read_env(struct reading *r, const char *key, const struct json_tree *v) { return pairs_of(r, ENV, key, v); }
static int read_sweep(struct reading *r, const char *key, const struct json_tree *v) {
    return pairs_of(r, SWEEP, key, v);
}
static int read_labels(struct reading *r, const char *key, const struct json_tree *v) {
    return pairs_of(r, LABELS, key, v);
}

static void over_pair(void *ctx, const char *name, const struct json_tree *v) {
    struct pairs *p = ctx;
    const char *word = json_tree_text(v, "");
    bool is_memory = strcmp(name, "memory") == 0, is_idle = strcmp(name, "idle") == 0;
    bool is_end = strcmp(word, "end") == 0;
    if (p->result < 0 || (json_tree_is_null(v) && (is_memory || is_idle))) return;
    if (!is_memory && !is_idle)
        p->result = fail(p->r->e, -EINVAL, "over.%.80s: there is memory and idle only", name);
    else if (!is_end && strcmp(word, "warn") != 0)
        p->result = fail(p->r->e, -EINVAL, "over.%s: neither \"warn\" nor \"end\"", name);
    else if (is_memory)
        p->r->s.share_over = is_end ? JOB_OVER_END : JOB_OVER_WARN;
    else
        p->r->s.idle_over = is_end ? JOB_OVER_END : JOB_OVER_WARN;
}

static int read_over(struct reading *r, const char *key, const struct json_tree *v) {
    struct pairs p = {.r = r, .key = key};
    if (json_tree_type(v) != JSON_TREE_OBJECT)
        return fail(r->e, -EINVAL, "%s: not an object, as in {\"memory\": \"end\", \"idle\": \"warn\"}", key);
    json_tree_each(v, over_pair, &p);
    return p.result;
}

static int read_repeat(struct reading *r, const char *key, const struct json_tree *v) {
    (void)key;
    return repeat_json_words(v, &r->words[REPEAT], r->e);
}

static int read_service(struct reading *r, const char *key, const struct json_tree *v) {
    (void)key;
    return service_json_words(v, &r->words[SERVICE], r->e);
}

/* Its port, as a number or \"auto\". */
static int ui_port(const struct json_tree *v, struct ui *u, struct error *e) {
    int64_t n = json_tree_integer(v, -1);
    if (strcmp(json_tree_text(v, ""), "auto") == 0) return 0;
    if (n < 1 || n > 65535) return fail(e, -EINVAL, "ui: the port is neither a number from 1 to 65535 nor \"auto\"");
    u->port = (unsigned)n;
    return 0;
}

struct ui_reading {
    struct reading *r;
    struct ui *ui;
    bool has_port;
    int result;
};

static void ui_member(void *ctx, const char *name, const struct json_tree *v) {
    struct ui_reading *p = ctx;
    struct ui *u = p->ui;
    const char *path = json_tree_text(v, NULL);
    if (p->result < 0 || json_tree_is_null(v)) return;
    if (strcmp(name, "port") == 0) {
        p->has_port = true;
        p->result = ui_port(v, u, p->r->e);
    } else if (strcmp(name, "path") != 0) {
        p->result = fail(p->r->e, -EINVAL, "ui.%.80s: there is port and path only", name);
    } else if (!path || ui_check_path(path, p->r->e) < 0) {
        p->result =
            path ? fail_in(p->r->e, -EINVAL, "ui.path") : fail(p->r->e, -EINVAL, "ui.path: not a text in quotes");
    } else {
        snprintf(u->path, sizeof u->path, "%s", path);
    }
}

static int read_ui(struct reading *r, const char *key, const struct json_tree *v) {
    struct ui u = {.path = "/"};
    int result = 0;
    if (json_tree_text(v, NULL)) {
        result = ui_parse(json_tree_text(v, ""), &u, r->e);
        if (result < 0) return fail_in(r->e, result, "%s", key);
    } else if (json_tree_type(v) == JSON_TREE_OBJECT) {
        struct ui_reading reading = {.r = r, .ui = &u};
        json_tree_each(v, ui_member, &reading);
        result = reading.result < 0 ? reading.result
                 : reading.has_port ? 0
                                    : fail(r->e, -EINVAL, "%s: port is missing", key);
    } else {
        result = ui_port(v, &u, r->e);
    }
    ui_text(&u, &r->ui);
    r->s.ui = r->ui.s;
    return result;
}

/* ---- one object ---- */

static const struct {
    const char *key;
    read_fn read;
} keys[] = {
    {"command",    read_command   },
    {"image",      read_image     },
    {"mounts",     read_mounts    },
    {"env",        read_env       },
    {"cwd",        read_cwd       },
    {"name",       read_name      },
    {"gpus",       read_gpus      },
    {"scope",      read_scope     },
    {"gpu_ids",    read_gpu_ids   },
    {"memory",     read_memory    },
    {"share",      read_share     },
    {"over",       read_over      },
    {"priority",   read_priority  },
    {"finish_by",  read_finish_by },
    {"deadline",   read_deadline  },
    {"time_limit", read_time_limit},
    {"retries",    read_retries   },
    {"after",      read_after     },
    {"array",      read_array     },
    {"sweep",      read_sweep     },
    {"labels",     read_labels    },
    {"notify",     read_notify    },
    {"pty",        read_pty       },
    {"repeat",     read_repeat    },
    {"service",    read_service   },
    {"ui",         read_ui        },
};

static void member(void *ctx, const char *key, const struct json_tree *v) {
    struct reading *r = ctx;
    struct nearest guess = {.typed = key};
    if (r->result < 0) return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        nearest_offer(&guess, keys[i].key);
        if (strcmp(keys[i].key, key) != 0) continue;
        if (!json_tree_is_null(v)) r->result = keys[i].read(r, key, v);
        return;
    }
    r->result = guess.best ? fail(r->e, -EINVAL, "%.80s: a job has no such key; did you mean \"%s\"?", key, guess.best)
                           : fail(r->e, -EINVAL, "%.80s: a job has no such key", key);
}

static int finish(struct reading *r, struct buf *ret, struct error *e) {
    struct job_spec *s = &r->s;
    struct job_words *lists[LISTS] = {
        [COMMAND] = &s->command, [MOUNTS] = &s->mounts,   [ENV] = &s->env,       [SCOPE] = &s->scope,
        [AFTER] = &s->after,     [SWEEP] = &s->sweep,     [LABELS] = &s->labels, [NOTIFY] = &s->notify,
        [REPEAT] = &s->repeat,   [SERVICE] = &s->service,
    };
    for (int i = 0; i < LISTS; i++) *lists[i] = job_words_of(&r->words[i]);
    if (r->has_exact) {
        if (r->has_gpus && s->gpus != (int)s->scope.count)
            return fail(e, -EINVAL, "gpus: %d, but gpu_ids names %u", s->gpus, s->scope.count);
        s->gpus = (int)s->scope.count;
    }
    if (!s->name[0]) {
        job_name_make(s, r->name);
        s->name = r->name;
    }
    int result = job_check(s, r->now_ns, e);
    if (result >= 0) job_encode(s, ret);
    if (result < 0 && r->has_exact && strncmp(e->text, "scope:", 6) == 0) { /* by the key that was written */
        struct error was = *e;
        return fail(e, result, "gpu_ids%.200s", was.text + 5);
    }
    return result;
}

static int record_of(const struct json_tree *j, struct among *among, int64_t now_ns, struct buf *ret, struct error *e) {
    AUTO(reading_done)
    struct reading r = {
        .s = {.name = "", .image = "", .cwd = "", .array = "", .ui = "", .gpus = 1},
        .among = among,
        .now_ns = now_ns,
        .e = e
    };
    if (json_tree_type(j) != JSON_TREE_OBJECT) return fail(e, -EINVAL, "a job is an object, as in {\"command\": ...}");
    json_tree_each(j, member, &r);
    return r.result < 0 ? r.result : finish(&r, ret, e);
}

static void tree_free(struct json_tree **j) { json_tree_free(*j); }

int job_json_record(const char *text, size_t len, int64_t now_ns, struct buf *ret, struct error *e) {
    AUTO(tree_free) struct json_tree *root = NULL;
    int r = json_tree_parse(text, len, &root, e);
    return r < 0 ? r : record_of(root, NULL, now_ns, ret, e);
}

/* ---- several ---- */

/* Names were made distances; that they go round in no circle is seen by all of them together. */
static int check_order(const struct buf *records, const size_t *end, size_t count, struct error *e) {
    struct job_spec *jobs = calloc(count, sizeof *jobs);
    size_t from = 0, at = 0;
    int r = 0;
    if (!jobs) abort();
    for (size_t i = 0; r >= 0 && i < count; from = end[i++])
        r = job_decode(records->s + from, end[i] - from, &jobs[i], e); /* we wrote it */
    if (r >= 0) r = job_after_check(jobs, count, NULL, &at, e);
    free(jobs);
    return r < 0 ? fail_in(e, r, "jobs[%zu]", at) : 0;
}

static int records_of(const struct json_tree *list, int64_t now_ns, job_json_fn each, void *ctx, struct error *e) {
    AUTO(buf_done) struct buf records = {0}, ends = {0};
    AUTO(job_names_done) struct job_names names = {0};
    struct among among = {.names = &names};
    size_t count = json_tree_count(list), from = 0;
    if (count == 0) return fail(e, -EINVAL, "jobs: the list is empty");
    if (count > JOB_JSON_JOBS_MAX) return fail(e, -E2BIG, "jobs: more than %u of them", JOB_JSON_JOBS_MAX);
    job_names_make(list, &names);
    for (; among.at < count; among.at++) {
        int r = record_of(json_tree_at(list, among.at), &among, now_ns, &records, e);
        if (r < 0) return fail_in(e, r, "jobs[%zu]", among.at);
        buf_add(&ends, &records.len, sizeof records.len);
    }
    const size_t *end = (const size_t *)(const void *)ends.s;
    int r = among.is_used ? check_order(&records, end, count, e) : 0;
    if (r < 0) return r;
    for (size_t i = 0; i < count; from = end[i++]) each(ctx, records.s + from, end[i] - from);
    return (int)count;
}

static void beside_jobs(void *ctx, const char *key, const struct json_tree *v) {
    const char **other = ctx;
    (void)v;
    if (strcmp(key, "jobs") != 0) *other = key;
}

int job_json_records(const char *text, size_t len, int64_t now_ns, job_json_fn each, void *ctx, struct error *e) {
    AUTO(tree_free) struct json_tree *root = NULL;
    AUTO(buf_done) struct buf one = {0};
    const char *other = NULL;
    int r = json_tree_parse(text, len, &root, e);
    if (r < 0) return r;
    const struct json_tree *jobs = json_tree_get(root, "jobs");
    if (json_tree_type(root) == JSON_TREE_LIST) return records_of(root, now_ns, each, ctx, e);
    if (json_tree_type(jobs) == JSON_TREE_LIST) {
        json_tree_each(root, beside_jobs, &other);
        if (other) return fail(e, -EINVAL, "%.80s: beside \"jobs\" there is nothing else", other);
        return records_of(jobs, now_ns, each, ctx, e);
    }
    r = record_of(root, NULL, now_ns, &one, e);
    if (r < 0) return r;
    each(ctx, one.s, one.len);
    return 1;
}
