#include "model/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/job_code.h"

/* 1: up to is_pty. 2: and then what most jobs do not have, each behind its tag, in the order of the tags, only what is there. So a
 * job that has nothing of it is the same bytes as ever. */
#define RECORD_VERSION 1
#define RECORD_MORE 2

enum more { MORE_REPEAT = 1, MORE_SERVICE = 2, MORE_UI = 3 };

/* ---- words ---- */

const char *job_word_next(const struct job_words *w, const char *at) {
    const char *next = at ? at + strlen(at) + 1 : w->s;
    return w->count && next < w->s + w->len ? next : NULL;
}

void job_word_put(struct buf *b, const char *word) { buf_add(b, word, strlen(word) + 1); }

struct job_words job_words_of(const struct buf *b) {
    struct job_words w = {.s = b->s, .len = b->len};
    for (size_t i = 0; i < b->len; i++) w.count += b->s[i] == 0;
    return w;
}

/* ---- a name ---- */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* What runs scripts says little: "python train.py" is train.py to everybody. */
static bool is_interpreter(const char *program) {
    static const char *const names[] = {"python", "bash", "sh", "dash", "zsh", "env", "node", "ruby", "perl", "nohup"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(program, names[i], n) == 0 && strspn(program + n, "0123456789.") == strlen(program + n))
            return true;
    }
    return false;
}

/* Printable ASCII goes in, anything else is a '_': a name is shown in tables. */
static void name_put(const char *text, size_t n, char ret[JOB_NAME_MAX]) {
    if (n > JOB_NAME_MAX - 1) n = JOB_NAME_MAX - 1;
    for (size_t i = 0; i < n; i++) ret[i] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '_';
    ret[n] = 0;
}

static bool is_before_name(const char *word, bool is_env) {
    return word[0] == '-' || is_interpreter(last_part(word)) || (is_env && strchr(word, '='));
}

void job_name_make(const struct job_spec *s, char ret[JOB_NAME_MAX]) {
    if (s->image && s->image[0]) {
        const char *name = last_part(s->image);
        name_put(name, strcspn(name, ":@"), ret);
        if (ret[0]) return;
    }
    const char *first = job_word_next(&s->command, NULL), *at = first;
    bool is_env = false;
    while (at && is_before_name(at, is_env)) {
        is_env |= strcmp(last_part(at), "env") == 0;
        bool takes_next = is_env && strcmp(at, "-u") == 0;
        at = job_word_next(&s->command, at);
        if (at && takes_next) at = job_word_next(&s->command, at);
    }
    if (!at) at = first ? first : "";
    at += strspn(at, " ");
    char word[JOB_NAME_MAX];
    snprintf(word, sizeof word, "%.*s", (int)(strcspn(at, " \t\n;|&<>") % INT32_MAX), at);
    const char *name = word[0] ? last_part(word) : "job";
    name_put(name, strlen(name), ret);
}

/* ---- records ---- */

static bool has_more(const struct job_spec *s) { return s->repeat.count || s->service.count || (s->ui && s->ui[0]); }

static void put_more(struct buf *b, const struct job_spec *s) {
    if (s->repeat.count) {
        out_u8(b, MORE_REPEAT);
        out_record_words(b, &s->repeat);
    }
    if (s->service.count) {
        out_u8(b, MORE_SERVICE);
        out_record_words(b, &s->service);
    }
    if (s->ui && s->ui[0]) {
        out_u8(b, MORE_UI);
        out_record_text(b, s->ui);
    }
}

void job_encode(const struct job_spec *s, struct buf *b) {
    out_u8(b, has_more(s) ? RECORD_MORE : RECORD_VERSION);
    out_record_text(b, s->name);
    out_record_words(b, &s->command);
    out_record_text(b, s->image);
    out_record_words(b, &s->mounts);
    out_record_words(b, &s->env);
    out_record_text(b, s->cwd);
    out_i32(b, s->gpus);
    out_record_words(b, &s->scope);
    out_u64(b, s->memory_bytes);
    out_u64(b, s->share_bytes);
    out_u8(b, (uint8_t)s->share_over);
    out_u8(b, (uint8_t)s->idle_over);
    out_i32(b, s->priority);
    out_i64(b, s->finish_by_ns);
    out_i64(b, s->time_limit_ns);
    out_i32(b, s->retries);
    out_record_words(b, &s->after);
    out_record_text(b, s->array);
    out_record_words(b, &s->sweep);
    out_record_words(b, &s->labels);
    out_record_words(b, &s->notify);
    out_u8(b, s->is_pty);
    put_more(b, s);
}

static bool get_flag(struct wire_in *in) {
    uint8_t v = in_u8(in);
    in->is_bad |= v > 1;
    return v == 1;
}

static void get_spec(struct wire_in *in, struct job_spec *s) {
    s->name = in_record_text(in);
    s->command = in_record_words(in);
    s->image = in_record_text(in);
    s->mounts = in_record_words(in);
    s->env = in_record_words(in);
    s->cwd = in_record_text(in);
    s->gpus = in_i32(in);
    s->scope = in_record_words(in);
    s->memory_bytes = in_u64(in);
    s->share_bytes = in_u64(in);
    s->share_over = get_flag(in) ? JOB_OVER_END : JOB_OVER_WARN;
    s->idle_over = get_flag(in) ? JOB_OVER_END : JOB_OVER_WARN;
    s->priority = in_i32(in);
    s->finish_by_ns = in_i64(in);
    s->time_limit_ns = in_i64(in);
    s->retries = in_i32(in);
    s->after = in_record_words(in);
    s->array = in_record_text(in);
    s->sweep = in_record_words(in);
    s->labels = in_record_words(in);
    s->notify = in_record_words(in);
    s->is_pty = get_flag(in);
}

static void get_more(struct wire_in *in, struct job_spec *s) {
    uint8_t last = 0;
    in->is_bad |= in->at == in->end;
    while (!in->is_bad && in->at != in->end) {
        uint8_t tag = in_u8(in);
        in->is_bad |= tag <= last;
        last = tag;
        if (tag == MORE_REPEAT) {
            s->repeat = in_record_words(in);
            in->is_bad |= !s->repeat.count;
        } else if (tag == MORE_SERVICE) {
            s->service = in_record_words(in);
            in->is_bad |= !s->service.count;
        } else if (tag == MORE_UI) {
            s->ui = in_record_text(in);
            in->is_bad |= !s->ui[0];
        } else {
            in->is_bad = true;
        }
    }
}

int job_decode(const void *record, size_t len, struct job_spec *ret, struct error *e) {
    struct job_spec s = {.ui = ""};
    if (len == 0 || len > JOB_RECORD_MAX) return fail(e, -EPROTO, "a job's record of %zu bytes", len);
    struct wire_in in = {.at = record, .end = (const uint8_t *)record + len};
    uint8_t version = in_u8(&in);
    if (version != RECORD_VERSION && version != RECORD_MORE)
        return fail(e, -EPROTO, "a job's record of version %u; this gpumgr knows %d", version, RECORD_MORE);
    get_spec(&in, &s);
    if (version == RECORD_MORE) get_more(&in, &s);
    if (in.is_bad || in.at != in.end) return fail(e, -EPROTO, "a job's record that makes no sense");
    int r = job_check(&s, 0, e);
    if (r < 0) return r;
    *ret = s;
    return 0;
}

/* ---- states ---- */

static const struct {
    const char *name;
    bool is_over;
} states[] = {
#define X(id, name, over) [JOB_##id] = {name, over},
    JOB_STATES(X)
#undef X
};

#define ENDS (BIT(JOB_DONE) | BIT(JOB_FAILED) | BIT(JOB_CANCELLED) | BIT(JOB_TIMEOUT) | BIT(JOB_UNKNOWN))
/* Back to waiting: it is tried again. To an end from anywhere: news may have been missed, the end never is. */
static const uint64_t nexts[JOB_STATE_COUNT] = {
    [JOB_WAITING] = BIT(JOB_HELD) | BIT(JOB_GRANTED) | BIT(JOB_CANCELLED) | BIT(JOB_FAILED),
    [JOB_HELD] = BIT(JOB_WAITING) | BIT(JOB_CANCELLED) | BIT(JOB_FAILED),
    [JOB_GRANTED] = BIT(JOB_WAITING) | BIT(JOB_RUNNING) | BIT(JOB_ENDING) | ENDS,
    [JOB_RUNNING] = BIT(JOB_WAITING) | BIT(JOB_ENDING) | ENDS,
    [JOB_ENDING] = BIT(JOB_WAITING) | ENDS,
};

const char *job_state_name(enum job_state s) { return (unsigned)s < JOB_STATE_COUNT ? states[s].name : "unknown"; }
bool job_state_is_over(enum job_state s) { return (unsigned)s < JOB_STATE_COUNT && states[s].is_over; }
bool job_state_may_become(enum job_state from, enum job_state to) {
    return (unsigned)from < JOB_STATE_COUNT && (unsigned)to < JOB_STATE_COUNT && (nexts[from] & BIT(to));
}

const char *job_reason_text(enum job_reason r) {
    static const char *const texts[JOB_REASON_COUNT] = {
        [JOB_BY_ITSELF] = "ended by itself",
        [JOB_BY_CANCEL] = "was cancelled",
        [JOB_BY_TIME_LIMIT] = "reached its time limit",
        [JOB_BY_MEMORY] = "used more GPU memory than its share",
        [JOB_BY_IDLE] = "held a GPU without using it",
        [JOB_BY_START] = "could not be started",
        [JOB_BY_REBOOT] = "was ended by a restart of the machine",
        [JOB_BY_SHIM] = "was ended because the process that watched it was killed",
        [JOB_BY_STRAY] = "used a GPU that it was not given",
        [JOB_BY_PREEMPT] = "gave its GPUs to another job",
        [JOB_BY_LOST] = "was given up: its machine did not come back",
    };
    return (unsigned)r < JOB_REASON_COUNT ? texts[r] : "ended for a reason that this gpumgr does not know";
}

enum job_state job_end_state(enum job_reason why, bool has_exit, int code, int signal) {
    switch (why) {
    case JOB_BY_CANCEL:
    case JOB_BY_PREEMPT: return JOB_CANCELLED;
    case JOB_BY_TIME_LIMIT: return JOB_TIMEOUT;
    case JOB_BY_MEMORY:
    case JOB_BY_STRAY:
    case JOB_BY_IDLE:
    case JOB_BY_START:
    case JOB_BY_REBOOT: return JOB_FAILED;
    case JOB_BY_LOST:
    case JOB_BY_SHIM: return JOB_UNKNOWN;
    case JOB_BY_ITSELF:
    case JOB_REASON_COUNT: break;
    }
    if (!has_exit) return JOB_UNKNOWN;
    return code == 0 && signal == 0 ? JOB_DONE : JOB_FAILED;
}
