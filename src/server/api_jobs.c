/* Jobs by the API: handing in, ending, once more. What comes by the API is sealed by the node that will run it, for the account
 * that asks; the node's own file says which Unix user that is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/job_after.h"
#include "model/job_json.h"
#include "server/api.h"
#include "server/api_listing.h"
#include "server/queue_json.h"
#include "server/server.h"

const struct route_field api_submit_query[] = {
    {"dry_run", FIELD_BOOL, false, "Nothing is handed in: says what would happen"},
    {0   }
};
const struct route_field api_cancel_query[] = {
    {"element", FIELD_NUMBER, false, "Only this element of an array"},
    {"force",    FIELD_BOOL, false,
     "One whose machine is away is over at once, its exit unknown; the machine ends it when it comes back"},
    {0        }
};
const struct route_field api_priority_body[] = {
    {"priority", FIELD_NUMBER, true,
     "From -100 to 100; more is sooner. Only an administrator can go above what the job came with"},
    {0     }
};
/* For the reference page; model/job_json reads the document and names what is wrong with it. */
const struct route_field api_job_body[] = {
    {"jobs",                                                      FIELD_LIST, false, "Several jobs instead of one: objects with the keys below"},
    {"command",                                                      FIELD_LIST, false, "The command and its arguments, or one text for the shell"},
    {"image",                                                           FIELD_TEXT, false, "A container image instead of a program of the machine"},
    {"mounts",FIELD_LIST, false, "`SOURCE:TARGET[:ro]`, with an image"},
    {"env", FIELD_TEXT, false, "An object of variables that are set above the user's own"},
    {"cwd",                                                     FIELD_TEXT, false, "Where it runs"},
    {"gpus",                                                      FIELD_NUMBER, false, "How many GPUs, 1 where it is not given"},
    {"scope",                                                           FIELD_LIST, false, "Indices or UUIDs of GPUs that it may have"},
    {"gpu_ids",                                                      FIELD_LIST, false, "Just these GPUs"},
    {"memory",                      FIELD_TEXT, false, "Each GPU has at least so much, as `40GiB`"},
    {"share",                                                       FIELD_TEXT, false, "So much of one GPU's memory; others may have the rest"},
    {"priority",                                                      FIELD_NUMBER, false, "From -100 to 100"},
    {"finish_by",                                                           FIELD_TEXT, false, "When it must be done: Unix seconds or ISO 8601"},
    {"deadline",FIELD_TEXT, false, "The same as a duration from now"},
    {"time_limit",                                            FIELD_TEXT, false, "It is ended after so long"},
    {"retries",                                                      FIELD_NUMBER, false, "How often it is tried again after a failure"},
    {"after",                                                      FIELD_LIST, false,
     "Numbers of jobs that must have ended well, or names of others of `jobs`; `17:any`, `prepare:any`: however it "
     "ended"},
    {"array",                                                           FIELD_TEXT, false, "`1-100%8`: a hundred elements, eight at once"},
    {"sweep",FIELD_TEXT, false, "An object of lists: every combination"},
    {"name",                FIELD_TEXT, false, "What people see"},
    {"labels",                                                   FIELD_TEXT, false, "An object of texts"},
    {"notify",                                                      FIELD_LIST, false, "`terminal`, `mail:ADDRESS`, `webhook:URL`: who is told of start, end and failure"},
    {"ui",                                                           FIELD_TEXT, false,
     "Where its own UI is: a port, `{\"port\": 8888, \"path\": \"/lab\"}`, or `auto`: a port that is picked and told "
     "it in GPUMGR_UI_PORT"},
    {"pty",                            FIELD_BOOL, false, "A terminal of its own"},
    {"repeat",                FIELD_TEXT, false,
     "`{\"cron\" or \"interval\", \"zone\", \"late\", \"overlap\"}`: it comes again; what is made is a "
     "repeat. With `edits` and a number it stands for that repeat from now on"},
    {"over",                                                     FIELD_TEXT, false,
     "`{\"memory\": \"warn\" or \"end\", \"idle\": ...}`: what happens to one that takes more than it asked for"},
    {0                                                     }
};

/* ---- who asks ---- */

struct queue_who api_who(const struct call *c) {
    return api_who_of(c->server->auth, &c->who);
}

struct queue_who api_who_of(const struct auth *auth, const struct caller *caller) {
    const struct account *a = caller->user ? auth_account(auth, caller->user) : NULL;
    struct queue_who who = {.is_admin = caller->role == ROLE_ADMIN, .account = a ? caller->name : ""};
    if (caller->means == BY_PEER) {
        who.has_uid = true;
        who.uid = caller->uid;
    } else if (a && a->uid >= 0) {
        who.has_uid = true;
        who.uid = (uint32_t)a->uid;
    }
    return who;
}

int api_job_number(const char *text, int64_t *ret, struct error *e) {
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno || *end || *ret <= 0 || strspn(text, "0123456789") != strlen(text))
        return fail(e, -ENOENT, "%.30s is no job's number", text);
    return 0;
}

/* ---- handing in ---- */

struct handing {
    struct call *call;
    char node[64], key[WIRE_KEY]; /* key "": none was given */
    size_t count, cap, asked, answered;
    struct buf *record, *seal;
    struct wire_sealed *sealed;
    struct error error; /* the first that went wrong */
};

static void handing_free(struct handing *h) {
    for (size_t i = 0; i < h->count; i++) {
        buf_done(&h->record[i]);
        buf_done(&h->seal[i]);
    }
    free(h->record);
    free(h->seal);
    free(h->sealed);
    free(h);
}

static void take_record(void *ctx, const void *record, size_t len) {
    struct handing *h = ctx;
    if (h->count == h->cap) {
        h->cap = h->cap ? 2 * h->cap : 4;
        h->record = realloc(h->record, h->cap * sizeof *h->record);
        h->seal = realloc(h->seal, h->cap * sizeof *h->seal);
        if (!h->record || !h->seal) abort();
    }
    h->record[h->count] = h->seal[h->count] = (struct buf){0};
    buf_add(&h->record[h->count++], record, len);
}

static void submitted(void *ctx, int result, int64_t first, const struct error *e) {
    struct handing *h = ctx;
    struct call *c = h->call;
    if (result >= 0) {
        json_open(&c->out, '{');
        struct job_spec spec;
        struct error ignored;
        bool is_repeat = job_decode(h->record[0].s, h->record[0].len, &spec, &ignored) >= 0 && spec.repeat.count;
        json_pair_int(&c->out, "id", first);
        json_pair_int(&c->out, "count", (int64_t)h->count);
        if (is_repeat) json_pair_str(&c->out, "kind", "repeat");
        json_close(&c->out, '}');
        buf_putc(&c->out, '\n');
    }
    struct error why = *e;
    handing_free(h);
    call_end(c, result < 0 ? result : 201, &why);
}

static void all_sealed(struct handing *h) {
    struct queue_submit s = {h->sealed, h->count, h->node, h->call->who.name, QUEUE_BY_ACCOUNT, h->key};
    struct error e = h->error;
    for (size_t i = 0; i < h->count; i++) {
        h->sealed[i].record = (const uint8_t *)h->record[i].s;
        h->sealed[i].record_len = h->record[i].len;
        h->sealed[i].seal = (const uint8_t *)h->seal[i].s;
        h->sealed[i].seal_len = h->seal[i].len;
    }
    int r = e.code < 0 ? e.code : queue_submit(h->call->server->queue, &s, submitted, h, &e);
    if (r < 0) submitted(h, r, 0, &e);
}

struct sealing {
    struct handing *of;
    size_t at;
};

static void sealed(void *ctx, int result, const struct wire_sealed *s, const char *sentence) {
    struct sealing *one = ctx;
    struct handing *h = one->of;
    if (result < 0 && h->error.code >= 0) fail(&h->error, result, "%s", sentence);
    if (result >= 0) {
        h->sealed[one->at] = *s;
        buf_add(&h->seal[one->at], s->seal, s->seal_len);
        buf_clear(&h->record[one->at]); /* the node may have written it in its own way */
        buf_add(&h->record[one->at], s->record, s->record_len);
    }
    free(one);
    if (++h->answered == h->asked) all_sealed(h);
}

static int check_all(struct handing *h, int64_t now_ns, struct error *e) {
    struct queue *q = h->call->server->queue;
    for (size_t i = 0; i < h->count; i++) {
        struct job_spec spec;
        int r = job_decode(h->record[i].s, h->record[i].len, &spec, e);
        if (r >= 0) r = job_check(&spec, now_ns, e);
        if (r >= 0 && i == 0) {
            const char *node = queue_node_for(q, &spec);
            if (!node) return fail(e, -ENOTCONN, "no machine is connected that could run it");
            snprintf(h->node, sizeof h->node, "%s", node);
        }
        if (r >= 0) r = queue_admit(q, &spec, h->node, e);
        if (r < 0) return h->count > 1 ? fail_in(e, r, "jobs[%zu]", i) : r;
    }
    return 0;
}

static void dry_run(struct handing *h) {
    struct buf *b = &h->call->out;
    struct job_spec *jobs = calloc(h->count, sizeof *jobs);
    uint32_t *step = calloc(h->count, sizeof *step);
    struct error ignored;
    size_t at;
    if (!jobs || !step) abort();
    for (size_t i = 0; i < h->count; i++) (void)!job_decode(h->record[i].s, h->record[i].len, &jobs[i], &ignored);
    (void)!job_after_check(jobs, h->count, step, &at, &ignored); /* both were asked before */
    json_open(b, '{');
    json_pair_bool(b, "dry_run", true);
    json_pair_str(b, "node", h->node);
    json_key(b, "jobs");
    json_open(b, '[');
    for (size_t i = 0; i < h->count; i++) {
        const struct queue_trial_of t = {jobs, i, step[i], h->node, h->call->who.name};
        queue_json_trial(h->call->server->queue, b, &t);
    }
    free(jobs);
    free(step);
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
}

/* A question for each job; the last answer goes on. Who fails to ask counts as an answer. */
static void seal_all(struct handing *h) {
    struct queue *q = h->call->server->queue;
    size_t count = h->asked = h->count;
    for (size_t i = 0; i < count; i++) {
        struct sealing *one = malloc(sizeof *one);
        struct error e;
        if (!one) abort();
        *one = (struct sealing){h, i};
        int r =
            queue_seal(q, h->node, h->call->who.name, h->call->who.role == ROLE_ADMIN, &h->record[i], sealed, one, &e);
        if (r < 0) sealed(one, r, NULL, e.text);
    }
}

int api_job_submit(struct call *c, struct error *e) {
    const struct buf *body = &c->request->body;
    if (!body->len) return fail(e, -EINVAL, "a job is missing: give it as the body, in JSON");
    bool is_dry = call_query_is_true(c, "dry_run");
    if (!c->who.user && !is_dry)
        return fail(e, -EACCES, "%s has no account here: hand jobs in with `gpumgr submit`, or sign in", c->who.name);
    const char *key;
    int r = call_key(c, &key, e);
    if (r < 0) return r;
    struct handing *h = calloc(1, sizeof *h);
    if (!h) abort();
    h->call = c;
    snprintf(h->key, sizeof h->key, "%s", key);
    int64_t now_ns = clock_real_ns();
    r = job_json_records(body->s, body->len, now_ns, take_record, h, e);
    if (r == 0) r = fail(e, -EINVAL, "jobs: there are none");
    if (r > 0) r = check_all(h, now_ns, e);
    if (r < 0 || is_dry) {
        if (r >= 0) dry_run(h);
        handing_free(h);
        return r < 0 ? r : 0;
    }
    h->sealed = calloc(h->count ? h->count : 1, sizeof *h->sealed);
    if (!h->sealed) abort();
    seal_all(h);
    return CALL_LATER;
}

/* ---- control ---- */

static void ordered(void *ctx, int result, const struct error *e) {
    struct call *c = ctx;
    int64_t id;
    struct error ignored;
    const struct queue_job *j =
        result >= 0 && api_job_number(c->param[0], &id, &ignored) >= 0 ? queue_find(c->server->queue, id) : NULL;
    if (j) {
        queue_json_job(c->server->queue, &c->out, j);
        buf_putc(&c->out, '\n');
    }
    call_end(c, result < 0 ? result : 0, e);
}

static int order(struct call *c, enum wire_control_verb verb, int64_t element, int64_t value, struct error *e) {
    struct queue_who who = api_who(c);
    struct queue_order o = {.verb = verb, .element = element, .value = value};
    int r = api_job_number(c->param[0], &o.job, e);
    if (r >= 0) r = queue_control(c->server->queue, &who, &o, ordered, c, e);
    return r < 0 ? r : CALL_LATER;
}

int api_job_cancel(struct call *c, struct error *e) {
    double element;
    int r = call_query_number(c, "element", 0, 1e9, -1, &element, e);
    return r < 0 ? r : order(c, WIRE_CANCEL, (int64_t)element, call_query_is_true(c, "force"), e);
}

int api_job_hold(struct call *c, struct error *e) { return order(c, WIRE_HOLD, -1, 0, e); }
int api_job_release(struct call *c, struct error *e) { return order(c, WIRE_RELEASE, -1, 0, e); }

int api_job_priority(struct call *c, struct error *e) {
    double value;
    int r = call_field_number(c, "priority", -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX, 0, &value, e);
    return r < 0 ? r : order(c, WIRE_PRIORITY, -1, (int64_t)value, e);
}

/* ---- once more ---- */

/* A job of a repeat or a service is handed in again as one job. */
static void take_once(struct handing *h, int64_t number, const void *record, size_t len) {
    AUTO(buf_done) struct buf b = {0}, after = {0};
    struct job_spec s;
    struct error ignored;
    if (job_decode(record, len, &s, &ignored) >= 0) {
        s.repeat = s.service = (struct job_words){0};
        s.after = job_after_numbers(&s, number, &after); /* those that it came with have theirs by now */
        job_encode(&s, &b);
        take_record(h, b.s, b.len);
    }
}

/* Its record is handed in again by whoever asks, as a job of his own: the old seal is not used, for what it holds (his
 * environment) was meant for that one. */
static void rerun_done(void *ctx, int result, const struct error *e) {
    struct listing *l = ctx;
    struct call *c = l->call;
    struct error why = *e;
    if (result >= 0 && !l->items) result = fail(&why, -ENOENT, "there is no job %lld", (long long)l->ask.only);
    struct handing *h = calloc(1, sizeof *h);
    if (!h) abort();
    h->call = c;
    if (result >= 0) {
        const struct item *it = &l->item[0];
        struct queue_who who = api_who(c);
        bool is_his = who.is_admin || (who.has_uid && who.uid == it->row.uid) ||
                      (*who.account && strcmp(who.account, it->texts.s + it->at[1]) == 0);
        take_once(h, it->row.id, it->texts.s + it->at[4], it->row.record_len);
        if (!h->count) result = fail(&why, -EINVAL, "job %lld cannot be read any more", (long long)it->row.id);
        if (it->row.origin == QUEUE_BY_WATCHMEN)
            result = fail(&why, -EINVAL, "a watchmen client's entry has no command");
        if (!is_his) result = fail(&why, -EACCES, "job %lld is %s's", (long long)it->row.id, it->texts.s);
    }
    listing_free(l);
    if (result >= 0) result = check_all(h, clock_real_ns(), &why);
    if (result < 0 || !h->count) {
        handing_free(h);
        call_end(c, result, &why);
        return;
    }
    h->sealed = calloc(h->count, sizeof *h->sealed);
    if (!h->sealed) abort();
    seal_all(h);
}

int api_job_rerun(struct call *c, struct error *e) {
    if (!c->who.user)
        return fail(e, -EACCES, "%s has no account here: hand jobs in with `gpumgr submit`, or sign in", c->who.name);
    struct listing *l = listing_new(c);
    l->ask.runs_most = 0;
    int r = api_job_number(c->param[0], &l->ask.only, e);
    return listing_submit(c, l, rerun_done, r, e);
}
