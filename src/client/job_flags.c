#include "client/job_flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "client/gpu_list.h"
#include "client/when.h"
#include "model/job.h"

enum kind {
    WHOLE,  /* a number */
    TEXT,   /* as it was typed: job_json knows sizes and lengths of time */
    GPUS,   /* 0,3 or 0-3 or UUIDs: a list */
    LIST,   /* with commas, and again */
    ITEMS,  /* again, without commas: they may be part of one */
    PAIRS,  /* KEY=VALUE, again: an object */
    VALUES, /* NAME=A,B, again: an object of lists */
    MOMENT,
    PATH,
    PART, /* a text of an object in the object: its key is OBJECT.KEY, and rows of one object stand together */
};

struct row {
    const char *flag, *key;
    enum kind kind;
    int min, max;
};

static const struct row table[] = {
    {"cron",        "repeat.cron",     PART            },
    {"interval",    "repeat.interval", PART            },
    {"zone",        "repeat.zone",     PART            },
    {"late",        "repeat.late",     PART            },
    {"overlap",     "repeat.overlap",  PART            },
    {"gpus",        "gpus",            WHOLE,            1, JOB_GPUS_MAX},
    {"gpu", "gpu_ids",                  GPUS                             },
    {"of",         "scope",         GPUS},
    {"memory",         "memory",                  TEXT                                  },
    {"share",         "share",         TEXT},
    {"over",         "over",                  PAIRS                                            },
    {"priority",        "priority",        WHOLE,-JOB_PRIORITY_MAX, JOB_PRIORITY_MAX},
    {"deadline",        "deadline", TEXT                              },
    {"finish-by",    "finish_by",    MOMENT               },
    {"time-limit",   "time_limit",      TEXT            },
    {"retries",  "retries",     WHOLE,            0, 100},
    {"after",     "after",            LIST                  },
    {"array",          "array",                           TEXT                                    },
    {"sweep",         "sweep",               VALUES      },
    {"name",         "name",TEXT},
    {"label",       "labels",          PAIRS              },
    {"env",         "env",                           PAIRS                                                               },
    {"cwd",        "cwd",                PATH             },
    {"image",        "image",TEXT},
    {"mount",         "mounts",           ITEMS       },
    {"ui",         "ui",                            TEXT                                                                                          },
    {"notify",        "notify",               ITEMS                    },
};
_Static_assert(ARRAY_LEN(table) <= JOB_FLAGS_MAX, "room for every flag");

void job_flags_rows(struct job_flags *f, struct flag *rows, size_t *count) {
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        rows[(*count)++] = (struct flag){.name = table[i].flag, .kind = FLAG_LIST, .into = &f->given[i]};
    rows[(*count)++] = (struct flag){.name = "pty", .kind = FLAG_YES, .into = &f->is_pty};
    rows[(*count)++] = (struct flag){.name = "file", .kind = FLAG_TEXT, .into = &f->file};
}

static const struct flag_list *given(const struct job_flags *f, const char *flag) {
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].flag, flag) == 0) return &f->given[i];
    abort(); /* a name that is not in the table above */
}

/* ---- values ---- */

static int put_whole(const struct row *r, const char *text, struct buf *b, struct error *e) {
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (!*text || *end || errno || v < r->min || v > r->max)
        return fail(e, -EINVAL, "--%s: \"%.40s\" is not a whole number from %d to %d", r->flag, text, r->min, r->max);
    json_int(b, v);
    return 0;
}

/* "0-3", but not a UUID, which has dashes, too. */
static bool is_range(const char *item, long *from, long *to) {
    size_t n = strspn(item, "0123456789"), m = item[n] == '-' ? strspn(item + n + 1, "0123456789") : 0;
    if (!n || !m || n > 4 || m > 4 || item[n + 1 + m]) return false;
    *from = atol(item);
    *to = atol(item + n + 1);
    return true;
}

static int put_gpus(const struct row *r, const struct flag_list *l, unsigned *ret_count, struct buf *b,
                    struct error *e) {
    char item[100];
    long from, to;
    *ret_count = 0;
    json_open(b, '[');
    for (size_t i = 0; i < l->count; i++) {
        if (!*l->of[i]) return fail(e, -EINVAL, "--%s: \"\" names no GPU, as in 0,3 or 0-3", r->flag);
        for (const char *at = l->of[i]; (at = gpu_list_next(at, item, sizeof item));) {
            if (is_range(item, &from, &to)) {
                if (from > to || to - from >= JOB_GPUS_MAX * 8L)
                    return fail(e, -EINVAL, "--%s: \"%.40s\" is no range of GPUs, as in 0-3", r->flag, item);
                for (; from <= to; from++, ++*ret_count) json_int(b, from);
                continue;
            }
            if (!*item || (strspn(item, "0123456789") == strlen(item) && strlen(item) > 4))
                return fail(e, -EINVAL, "--%s: \"%.40s\" names no GPU, as in 0,3 or 0-3", r->flag, l->of[i]);
            if (strspn(item, "0123456789") == strlen(item))
                json_int(b, atol(item));
            else
                json_str(b, item);
            ++*ret_count;
        }
    }
    json_close(b, ']');
    return 0;
}

/* Words with commas between them. */
static void put_words(const char *text, struct buf *b) {
    AUTO(buf_done) struct buf word = {0};
    for (const char *at = text;; at++) {
        if (*at && *at != ',') {
            buf_putc(&word, *at);
            continue;
        }
        json_str(b, word.len ? word.s : "");
        buf_clear(&word);
        if (!*at) return;
    }
}

static int put_pairs(const struct row *r, const struct flag_list *l, struct buf *b, struct error *e) {
    json_open(b, '{');
    for (size_t i = 0; i < l->count; i++) {
        size_t n = strcspn(l->of[i], "=");
        char key[256];
        if (!n || !l->of[i][n] || n >= sizeof key)
            return fail(e, -EINVAL, "--%s: \"%.40s\" is not %s", r->flag, l->of[i],
                        r->kind == VALUES ? "NAME=VALUE,VALUE" : "NAME=VALUE");
        for (size_t k = 0; k < i; k++)
            if (strncmp(l->of[k], l->of[i], n + 1) == 0)
                return fail(e, -EINVAL, "--%s: %.*s is given twice", r->flag, (int)(n < 60 ? n : 60), l->of[i]);
        snprintf(key, sizeof key, "%.*s", (int)n, l->of[i]);
        json_key(b, key);
        if (r->kind == PAIRS) {
            json_str(b, l->of[i] + n + 1);
            continue;
        }
        json_open(b, '[');
        put_words(l->of[i] + n + 1, b);
        json_close(b, ']');
    }
    json_close(b, '}');
    return 0;
}

static void put_path(const char *text, const char *cwd, struct buf *b) {
    AUTO(buf_done) struct buf path = {0};
    if (*text == '/')
        buf_puts(&path, text);
    else
        buf_printf(&path, "%s%s%s", cwd, cwd[1] ? "/" : "", text);
    json_str(b, path.s);
}

static int put_one(const struct row *r, const char *text, const struct job_flags_here *here, struct buf *b,
                   struct error *e) {
    int64_t at_ns;
    int result;
    switch (r->kind) {
    case WHOLE: return put_whole(r, text, b, e);
    case MOMENT:
        result = when_parse(r->flag, text, here->now_ns, &at_ns, e);
        if (result < 0) return result;
        if (at_ns <= here->now_ns) return fail(e, -EINVAL, "--%s: %.40s is over already", r->flag, text);
        json_int(b, at_ns / NS_PER_S);
        return 0;
    case PATH: put_path(text, here->cwd, b); return 0;
    default: json_str(b, text); return 0;
    }
}

static bool may_repeat(enum kind k) { return k == GPUS || k == LIST || k == ITEMS || k == PAIRS || k == VALUES; }

static int put_row(const struct row *r, const struct flag_list *l, const struct job_flags_here *here, unsigned *gpus,
                   struct buf *b, struct error *e) {
    if (l->count > 1 && !may_repeat(r->kind)) return fail(e, -EINVAL, "--%s: given twice", r->flag);
    json_key(b, r->key);
    if (r->kind == GPUS) return put_gpus(r, l, gpus, b, e);
    if (r->kind == PAIRS || r->kind == VALUES) return put_pairs(r, l, b, e);
    if (!may_repeat(r->kind)) return put_one(r, l->of[0], here, b, e);
    json_open(b, '[');
    for (size_t i = 0; i < l->count; i++)
        if (r->kind == LIST)
            put_words(l->of[i], b);
        else
            json_str(b, l->of[i]);
    json_close(b, ']');
    return 0;
}

/* ---- together ---- */

static int check_together(const struct job_flags *f, struct error *e) {
    static const char *const pairs[][2] = {
        {"gpu",      "of"       },
        {"gpu",      "gpus"     },
        {"deadline", "finish-by"},
        {"cron",     "interval" },
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
        if (given(f, pairs[i][0])->count && given(f, pairs[i][1])->count)
            return fail(e, -EINVAL, "--%s and --%s: only one of them makes sense", pairs[i][0], pairs[i][1]);
    return 0;
}

static int put_command(const struct job_flags *f, char *const *command, size_t words, const struct job_flags_here *here,
                       struct buf *b, struct error *e) {
    bool is_shell = !words && f->is_pty && !given(f, "image")->count;
    if (!words && !is_shell && !f->is_partial && !given(f, "image")->count)
        return fail(e, -EINVAL, "there is no command; it stands behind the flags: -- python train.py");
    if (words > JOB_WORDS_MAX) return fail(e, -E2BIG, "the command has more than %u words", JOB_WORDS_MAX);
    if (!words && !is_shell) return 0;
    json_key(b, "command");
    json_open(b, '[');
    for (size_t i = 0; i < words; i++) {
        for (const char *at = command[i]; *at;) {
            size_t n = json_utf8_len(at);
            if (!n)
                return fail(e, -EINVAL, "the command's word %zu is not UTF-8; put it into a script of its own", i + 1);
            at += n;
        }
        json_str(b, command[i]);
    }
    if (is_shell) json_str(b, here->shell);
    json_close(b, ']');
    return 0;
}

/* Rows whose keys begin with the same object's name, as that object; how many rows were its own. */
static int put_object(const struct job_flags *f, size_t first, struct buf *b, struct error *e) {
    size_t n = strcspn(table[first].key, "."), i = first;
    char name[32];
    bool is_open = false;
    snprintf(name, sizeof name, "%.*s", (int)n, table[first].key);
    for (; i < ARRAY_LEN(table) && strncmp(table[i].key, table[first].key, n + 1) == 0; i++) {
        if (!f->given[i].count) continue;
        if (f->given[i].count > 1) return fail(e, -EINVAL, "--%s: given twice", table[i].flag);
        if (!is_open) {
            json_key(b, name);
            json_open(b, '{');
            is_open = true;
        }
        json_pair_str(b, table[i].key + n + 1, f->given[i].of[0]);
    }
    if (is_open) json_close(b, '}');
    return (int)(i - first);
}

static int put_all(const struct job_flags *f, const struct job_flags_here *here, struct buf *b, struct error *e) {
    unsigned gpus = 0;
    int r = check_together(f, e);
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(table); i++) {
        if (table[i].kind == PART)
            i += (size_t)((r = put_object(f, i, b, e)) > 0 ? r - 1 : 0);
        else if (f->given[i].count)
            r = put_row(&table[i], &f->given[i], here, &gpus, b, e);
    }
    if (r >= 0 && f->is_pty) json_pair_bool(b, "pty", true);
    return r;
}

int job_flags_json(const struct job_flags *f, char *const *command, size_t words, const struct job_flags_here *here,
                   struct buf *ret, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    int r = put_command(f, command, words, here, &b, e);
    if (r >= 0) r = put_all(f, here, &b, e);
    if (r < 0) return r;
    json_close(&b, '}');
    buf_done(ret);
    *ret = TAKE_STRUCT(b);
    return 0;
}

/* ---- above a file ---- */

/* What a flag says is meant instead of what the file says in other words. */
static const char *const instead[][2] = {
    {"gpu_ids",   "gpus"     },
    {"gpu_ids",   "scope"    },
    {"gpus",      "gpu_ids"  },
    {"scope",     "gpu_ids"  },
    {"deadline",  "finish_by"},
    {"finish_by", "deadline" },
};

static void lay_over(const struct json_tree *job, const struct json_tree *flags) {
    struct json_tree *under = (struct json_tree *)(uintptr_t)job; /* of a tree that is ours */
    if (json_tree_type(job) != JSON_TREE_OBJECT) return;          /* whoever reads it says what is wrong */
    for (size_t i = 0; i < ARRAY_LEN(instead); i++)
        if (json_tree_get(flags, instead[i][0])) json_tree_drop(under, instead[i][1]);
    json_tree_lay_over(under, flags);
}

int job_flags_over(const struct job_flags *f, char *const *command, size_t words, const struct job_flags_here *here,
                   struct buf *file, struct error *e) {
    AUTO(buf_done) struct buf b = {0};
    struct json_tree *flags, *root;
    json_open(&b, '{');
    int r = words ? put_command(f, command, words, here, &b, e) : 0;
    if (r >= 0) r = put_all(f, here, &b, e);
    if (r < 0) return r;
    json_close(&b, '}');
    if (strcmp(b.s, "{}") == 0) return 0;
    if (json_tree_parse(b.s, b.len, &flags, e) < 0) abort(); /* we wrote it */
    r = json_tree_parse(file->s, file->len, &root, e);
    if (r >= 0) {
        const struct json_tree *jobs = json_tree_type(root) == JSON_TREE_LIST ? root : json_tree_get(root, "jobs");
        for (size_t i = 0; i < json_tree_count(jobs); i++) lay_over(json_tree_at(jobs, i), flags);
        if (!jobs) lay_over(root, flags);
        buf_clear(file);
        json_tree_write(root, file);
        json_tree_free(root);
    }
    json_tree_free(flags);
    return r;
}

void job_flags_rename(const struct job_flags *f, struct error *e) {
    size_t n = strcspn(e->text, ":.[");
    const struct row *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        size_t whole = table[i].kind == PART ? strcspn(e->text, ":") : n; /* repeat.zone is a flag of its own */
        bool is_it = strlen(table[i].key) == whole && strncmp(e->text, table[i].key, whole) == 0;
        bool is_scope =
            (n == 5 && strncmp(e->text, "scope", n) == 0) || (n == 7 && strncmp(e->text, "gpu_ids", n) == 0);
        bool is_meant = (strcmp(table[i].flag, "gpu") == 0 || strcmp(table[i].flag, "of") == 0) && f->given[i].count;
        if ((is_it && !found) || (is_scope && is_meant)) found = &table[i]; /* "exactly these" is a scope, too */
    }
    if (!found || !e->text[n]) return;
    const char *rest = strchr(e->text, ':');
    if (!rest) return;
    struct error was = *e;
    fail(e, was.code, "--%s%.200s", found->flag, was.text + (rest - e->text));
}
