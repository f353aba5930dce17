/* A job as JSON that people read, and as JSON that can be submitted again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/duration.h"
#include "model/job_json.h"
#include "model/repeat.h"
#include "model/service_spec.h"
#include "model/size.h"
#include "model/ui.h"

static void put_list(struct buf *b, const char *key, const struct job_words *w) {
    json_key(b, key);
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(w, at));) json_str(b, at);
    json_close(b, ']');
}

/* Indices and numbers of jobs are numbers, UUIDs and "17:any" are texts. */
static void put_numbers(struct buf *b, const char *key, const struct job_words *w) {
    json_key(b, key);
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(w, at));) {
        if (at[strspn(at, "0123456789")])
            json_str(b, at);
        else
            json_int(b, atoll(at));
    }
    json_close(b, ']');
}

static void put_key(struct buf *b, const char *word) {
    AUTO(buf_done) struct buf key = {0};
    buf_add(&key, word, strcspn(word, "="));
    json_key(b, key.s);
}

static void put_pairs(struct buf *b, const char *key, const struct job_words *w) {
    json_key(b, key);
    json_open(b, '{');
    for (const char *at = NULL; (at = job_word_next(w, at));) {
        put_key(b, at);
        json_str(b, at + strcspn(at, "=") + 1);
    }
    json_close(b, '}');
}

static void put_sweep(struct buf *b, const struct job_words *w) {
    json_key(b, "sweep");
    json_open(b, '{');
    for (const char *at = NULL; (at = job_word_next(w, at));) {
        put_key(b, at);
        json_open(b, '[');
        for (const char *v = at + strcspn(at, "="); *v;) {
            AUTO(buf_done) struct buf one = {0};
            size_t n = strcspn(v + 1, ",");
            buf_add(&one, v + 1, n);
            json_str(b, one.s);
            v += 1 + n;
        }
        json_close(b, ']');
    }
    json_close(b, '}');
}

static void put_text(struct buf *b, const char *key, const char *text) {
    json_key(b, key);
    if (text[0])
        json_str(b, text);
    else
        json_nil(b);
}

static void put_number(struct buf *b, const char *key, bool is_there, double v) {
    json_key(b, key);
    if (is_there)
        json_num(b, v);
    else
        json_nil(b);
}

static void put_over(struct buf *b, const struct job_spec *s) {
    json_key(b, "over");
    json_open(b, '{');
    json_pair_str(b, "memory", s->share_over == JOB_OVER_END ? "end" : "warn");
    json_pair_str(b, "idle", s->idle_over == JOB_OVER_END ? "end" : "warn");
    json_close(b, '}');
}

static void put_ui(struct buf *b, const struct job_spec *s) {
    struct ui u;
    struct error ignored;
    json_key(b, "ui");
    if (!s->ui || !*s->ui || ui_parse(s->ui, &u, &ignored) < 0) {
        json_nil(b);
        return;
    }
    json_open(b, '{');
    json_key(b, "port");
    if (u.port)
        json_int(b, u.port);
    else
        json_str(b, "auto");
    json_pair_str(b, "path", u.path);
    json_close(b, '}');
}

static void put_repeat(struct buf *b, const struct job_spec *s) {
    struct repeat_spec repeat;
    struct error ignored;
    json_key(b, "repeat");
    if (!s->repeat.count || repeat_spec_read(&s->repeat, &repeat, &ignored) < 0)
        json_nil(b);
    else
        repeat_spec_json(b, &repeat);
}

static void put_service(struct buf *b, const struct job_spec *s) {
    struct service_spec service;
    struct error ignored;
    json_key(b, "service");
    if (!s->service.count || service_spec_read(&s->service, &service, &ignored) < 0)
        json_nil(b);
    else
        service_spec_json(b, &service);
}

/* What is written the same way for eyes and for another submission. */
static void put_common(struct buf *b, const struct job_spec *s) {
    json_pair_str(b, "name", s->name);
    put_list(b, "command", &s->command);
    put_text(b, "image", s->image);
    put_text(b, "cwd", s->cwd);
    put_list(b, "mounts", &s->mounts);
    json_pair_int(b, "gpus", s->gpus);
    put_numbers(b, "scope", &s->scope);
    put_over(b, s);
    json_pair_int(b, "priority", s->priority);
    put_number(b, "finish_by", s->finish_by_ns, (double)(s->finish_by_ns / 1000000) / 1e3);
    json_pair_int(b, "retries", s->retries);
    put_numbers(b, "after", &s->after);
    put_text(b, "array", s->array);
    put_sweep(b, &s->sweep);
    put_pairs(b, "labels", &s->labels);
    json_pair_bool(b, "pty", s->is_pty);
    put_repeat(b, s);
    put_service(b, s);
    put_ui(b, s);
}

void job_json_members(struct buf *b, const struct job_spec *s) {
    put_common(b, s);
    put_number(b, "memory_bytes", s->memory_bytes, (double)s->memory_bytes);
    put_number(b, "share_bytes", s->share_bytes, (double)s->share_bytes);
    put_number(b, "time_limit_s", s->time_limit_ns, (double)s->time_limit_ns / 1e9);
}

void job_json_values(struct buf *b, const struct job_spec *s, int64_t i) {
    AUTO(buf_done) struct buf words = {0};
    if (i < 0 || !s->sweep.count) {
        json_key(b, "values");
        json_nil(b);
        return;
    }
    job_element_values(s, (unsigned)i, &words);
    const struct job_words values = job_words_of(&words);
    put_pairs(b, "values", &values);
}

static void put_size(struct buf *b, const char *key, uint64_t bytes) {
    char text[SIZE_TEXT];
    if (!bytes) return;
    size_text(bytes, text);
    json_pair_str(b, key, text);
}

void job_json_spec(struct buf *b, const struct job_spec *s) {
    char span[DURATION_TEXT];
    json_open(b, '{');
    put_common(b, s);
    put_size(b, "memory", s->memory_bytes);
    put_size(b, "share", s->share_bytes);
    duration_text(s->time_limit_ns, span);
    if (s->time_limit_ns) json_pair_str(b, "time_limit", span);
    put_pairs(b, "env", &s->env);
    put_list(b, "notify", &s->notify);
    json_close(b, '}');
}
