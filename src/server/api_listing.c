#include "server/api_listing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/queue_json.h"

enum { WAIT_MOST_S = 60, LIMIT_MAX = 1000, LIMIT_USUAL = 100, RUNS_MOST = 1000 };
enum { SCAN_PART = 1000, SCAN_MOST = 20000 }; /* commits wait meanwhile */

const struct route_field api_jobs_query[] = {
    {"state",          FIELD_TEXT, false,
     "States with commas (waiting, held, starting, running, ending, done, failed, cancelled, timeout, exit unknown), "
     "open or over"},
    {"user",           FIELD_TEXT, false, "A user's name"},
    {"name",                FIELD_TEXT, false, API_NAME_HELP},
    {"label",FIELD_TEXT, false, API_LABEL_HELP},
    {"limit", FIELD_NUMBER, false, "How many at most: 100 where it is not given, 1000"},
    {"before",           FIELD_NUMBER, false,
     "An earlier answer's `next`: jobs with smaller numbers. By `name` and `label` an answer may have fewer than "
     "`limit` and a `next` all the same: 20000 jobs are looked at"},
    {0          }
};
const struct route_field api_job_query[] = {
    {"element",   FIELD_NUMBER, false, "Of an array: only the `runs` of this element"},
    {"stage",      FIELD_TEXT, false, "An earlier answer's `stage`"},
    {"wait",           FIELD_NUMBER, false,
     "So many seconds, 60 at most: the answer comes when the job has left that stage, or then"},
    {0}
};
void listing_free(struct listing *l) {
    for (size_t i = 0; i < l->items; i++) buf_done(&l->item[i].texts);
    for (size_t i = 0; i < l->runs; i++) free(l->run[i].gpus);
    free(l->item);
    free(l->run);
    buf_done(&l->name);
    buf_done(&l->labels);
    free(l);
}

static bool has_match(const struct listing *l) { return l->match.name || l->match.labels.count; }

static bool fits(void *ctx, const struct queue_job_row *j) {
    struct listing *l = ctx;
    struct job_spec spec;
    if (!has_match(l)) return true;
    if (l->items == (size_t)l->ask.limit) return false;
    l->seen = j->id;
    return job_decode(j->record, j->record_len, &spec, NULL) >= 0 && job_match(&l->match, &spec);
}

static int keep_job(void *ctx, const struct queue_job_row *j, struct error *e) {
    struct listing *l = ctx;
    l->item = realloc(l->item, (l->items + 1) * sizeof *l->item);
    if (!l->item) abort();
    struct item *it = &l->item[l->items++];
    *it = (struct item){.row = *j, .first_run = l->runs};
    const void *parts[] = {j->user, j->account, j->node, j->text, j->record};
    for (int i = 0; i < 5; i++) {
        it->at[i] = it->texts.len;
        buf_add(&it->texts, parts[i], i < 4 ? strlen(parts[i]) + 1 : j->record_len);
    }
    return 0;
}

static int keep_run(void *ctx, const struct queue_run_row *r, struct error *e) {
    struct listing *l = ctx;
    l->run = realloc(l->run, (l->runs + 1) * sizeof *l->run);
    if (!l->run) abort();
    struct run_item *it = &l->run[l->runs++];
    *it = (struct run_item){.row = *r, .gpus = strdup(r->gpus)};
    if (!it->gpus) abort();
    it->row.gpus = it->gpus;
    l->item[l->items - 1].runs++;
    return 0;
}

static int list_work(struct sql *db, void *ctx, struct error *e) {
    struct listing *l = ctx;
    const struct queue_reader reader = {.ctx = l, .fits = fits, .job = keep_job, .run = keep_run};
    if (!has_match(l)) return queue_store_list(db, &l->ask, &reader, e);
    struct queue_ask part = l->ask; /* names and labels lie in records, of which only we can tell */
    int r = SCAN_PART;
    for (size_t looked = 0; looked < SCAN_MOST && l->items < (size_t)l->ask.limit; looked += SCAN_PART) {
        part.limit = SCAN_PART;
        r = queue_store_list(db, &part, &reader, e);
        if (r < 0) return r;
        part.before = l->seen;
        if (r < SCAN_PART) break;
    }
    if (r < SCAN_PART) l->seen = 0;
    return 0;
}

/* The run that stands for a job that is over: the last that ended as the job did, else the last. */
static const struct run_item *standing(const struct listing *l, const struct item *it) {
    const struct run_item *best = NULL;
    bool is_like_it = false;
    for (size_t i = 0; l->run && i < it->runs; i++) {
        const struct run_item *one = &l->run[it->first_run + i];
        bool is_like = one->row.state == it->row.state && !one->row.again;
        if (best && (is_like < is_like_it || (is_like == is_like_it && one->row.of.end_ns < best->row.of.end_ns)))
            continue;
        best = one;
        is_like_it = is_like;
    }
    return best;
}

static void put_item(struct queue *q, struct buf *b, struct listing *l, struct item *it, const struct run_item *only) {
    struct job_spec spec;
    struct error e;
    struct queue_job_row row = it->row;
    row.user = it->texts.s + it->at[0];
    row.account = it->texts.s + it->at[1];
    row.node = it->texts.s + it->at[2];
    row.text = it->texts.s + it->at[3];
    if (job_decode(it->texts.s + it->at[4], row.record_len, &spec, &e) < 0) return;
    const struct run_item *run = only ? only : standing(l, it);
    struct queue_json_job out = {.row = &row, .spec = &spec, .run = run ? &run->row : NULL, .element = -1};
    if (!only && row.elements > 1) out.counts = it->row.counts;
    if (only) row.state = only->row.state;
    if (only && row.elements > 1) out.element = job_element_number(&spec, only->row.of.key.element);
    queue_json_row(q, b, &out);
}

static void put_live_or_item(struct queue *q, struct buf *b, struct listing *l, struct item *it) {
    const struct queue_job *j = queue_find(q, it->row.id);
    if (j)
        queue_json_job(q, b, j);
    else
        put_item(q, b, l, it, NULL);
}

static void list_done(void *ctx, int result, const struct error *e) {
    struct listing *l = ctx;
    struct call *c = l->call;
    struct buf *b = &c->out;
    if (result >= 0) {
        json_open(b, '{');
        json_key(b, "jobs");
        json_open(b, '[');
        size_t most = (size_t)l->ask.limit - 1; /* one more was read, to know whether there is one */
        for (size_t i = 0; i < l->items && i < most; i++) put_live_or_item(c->server->queue, b, l, &l->item[i]);
        json_close(b, ']');
        json_key(b, "next");
        if (l->items > most)
            json_int(b, l->item[most - 1].row.id);
        else if (l->seen)
            json_int(b, l->seen);
        else
            json_nil(b);
        json_close(b, '}');
        buf_putc(b, '\n');
    }
    listing_free(l);
    call_end(c, result < 0 ? result : 0, e);
}

static void one_done(void *ctx, int result, const struct error *e) {
    struct listing *l = ctx;
    struct call *c = l->call;
    struct buf *b = &c->out;
    struct error why = *e;
    if (result >= 0 && !l->items) result = fail(&why, -ENOENT, "there is no job %lld", (long long)l->ask.only);
    if (result >= 0) {
        put_live_or_item(c->server->queue, b, l, &l->item[0]);
        b->len--; /* the bracket */
        b->s[b->len] = 0;
        json_key(b, "runs");
        json_open(b, '[');
        for (size_t i = 0; i < l->runs; i++) put_item(c->server->queue, b, l, &l->item[0], &l->run[i]);
        json_close(b, ']');
        json_close(b, '}');
        buf_putc(b, '\n');
    }
    listing_free(l);
    call_end(c, result < 0 ? result : 0, &why);
}

static int states_of(const char *text, uint64_t *ret, struct error *e) {
    uint64_t states = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        uint64_t before = states;
        for (int s = 0; s < JOB_STATE_COUNT; s++) {
            const char *name = job_state_name((enum job_state)s);
            bool is_over = job_state_is_over((enum job_state)s);
            bool fits = (strlen(name) == n && strncmp(text, name, n) == 0) ||
                        (n == 4 && strncmp(text, is_over ? "over" : "open", n) == 0);
            if (fits) states |= BIT(s);
        }
        if (states == before) return fail(e, -EINVAL, "state: %.*s is none", (int)(n < 30 ? n : 30), text);
        text += n + (text[n] == ',');
    }
    *ret = states;
    return 0;
}

int listing_submit(struct call *c, struct listing *l, state_done_fn done, int r, struct error *e) {
    if (r >= 0) r = state_submit(c->server->state, list_work, done, l, e);
    if (r >= 0) return CALL_LATER;
    listing_free(l);
    return r;
}

struct listing *listing_new(struct call *c) {
    struct listing *l = calloc(1, sizeof *l);
    if (!l) abort();
    l->call = c;
    l->ask.runs_most = RUNS_MOST;
    return l;
}

/* What is asked for by name and labels. */
int api_match(const struct call *c, struct buf *name, struct buf *labels, struct job_match *ret, struct error *e) {
    const char *label = call_query(c, "label"), *pattern = call_query(c, "name");
    int r = label ? job_match_labels(label, labels, e) : 0;
    if (r < 0) return r;
    if (pattern && !*pattern) return fail(e, -EINVAL, "name: it is empty; * is any");
    if (pattern) buf_puts(name, pattern);
    *ret = (struct job_match){.name = pattern ? name->s : NULL, .labels = job_words_of(labels)};
    return 0;
}

int api_jobs(struct call *c, struct error *e) {
    const char *state = call_query(c, "state"), *user = call_query(c, "user");
    struct listing *l = listing_new(c);
    l->ask.runs_most = 1;
    double limit, before;
    int r = state ? states_of(state, &l->ask.states, e) : 0;
    if (r >= 0) r = api_match(c, &l->name, &l->labels, &l->match, e);
    if (r >= 0) r = call_query_number(c, "limit", 1, LIMIT_MAX, LIMIT_USUAL, &limit, e);
    if (r >= 0) r = call_query_number(c, "before", 1, 9e15, 0, &before, e);
    if (r >= 0) {
        l->ask.limit = (int)limit + 1;
        l->ask.before = (int64_t)before;
        snprintf(l->user, sizeof l->user, "%s", user ? user : "");
        l->ask.user = user ? l->user : NULL;
    }
    return listing_submit(c, l, list_done, r, e);
}

static void job_moved(void *ctx) {
    struct listing *l = ctx;
    struct call *c = l->call;
    struct error e;
    int r = listing_submit(c, l, one_done, 0, &e);
    if (r < 0) call_end(c, r, &e);
}

int api_job(struct call *c, struct error *e) {
    struct listing *l = listing_new(c);
    const char *stage = call_query(c, "stage");
    double wait_s, element;
    int r = api_job_number(c->param[0], &l->ask.only, e);
    if (r >= 0) r = call_query_number(c, "element", 0, 1e9, -1, &element, e);
    if (r >= 0) l->ask.has_number = element >= 0;
    if (r >= 0) l->ask.number = (int64_t)element;
    if (r >= 0) r = call_query_number(c, "wait", 0, WAIT_MOST_S, 0, &wait_s, e);
    if (r >= 0 && wait_s > 0 && !stage) r = fail(e, -EINVAL, "wait: needs `stage`, the one that is known");
    bool waits = r >= 0 && wait_s > 0 &&
                 queue_wait(c->server->queue, l->ask.only, stage, (int64_t)(wait_s * NS_PER_S), job_moved, l);
    return waits ? CALL_LATER : listing_submit(c, l, one_done, r, e);
}
