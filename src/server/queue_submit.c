/* Jobs on their way in: looked at, stored, and only then in the queue and acknowledged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/number.h"
#include "model/gpu_part.h"
#include "model/job_after.h"
#include "model/user_hook.h"
#include "server/queue_own.h"
#include "server/queue_spawn.h"

#define STAGED_BYTES (256u << 20) /* of all of them */
#define STAGED_NS (60 * NS_PER_S) /* the next frame of a submission is waited for so long */

/* ---- what this machine can never run ---- */

/* How many instances a card is cut into; 0: it is not, or there is none of this index. */
static int parts_of(const struct queue *q, const char *node, const char *index) {
    int parts = 0;
    for (size_t i = 0; i < q->gpus; i++)
        parts += q->gpu[i].instance >= 0 && strcmp(q->gpu[i].node, node) == 0 &&
                 strspn(index, "0123456789") == strlen(index) && atoi(index) == q->gpu[i].index;
    return parts;
}

static int check_scope(const struct queue *q, const struct job_spec *s, const char *node, struct error *e) {
    const char *key = s->scope.count == (unsigned)s->gpus ? "gpu_ids" : "scope"; /* as it was most likely written */
    for (const char *w = NULL; (w = job_word_next(&s->scope, w));) {
        bool is_there = false;
        int most = -1;
        for (size_t i = 0; i < q->gpus; i++) {
            if (strcmp(q->gpu[i].node, node) != 0) continue;
            is_there |= queue_gpu_is(&q->gpu[i], w);
            if (q->gpu[i].index > most) most = q->gpu[i].index;
        }
        if (is_there) continue;
        if (most < 0) return fail(e, -EINVAL, "%s: %s has no GPUs", key, node);
        if (parts_of(q, node, w))
            return fail(e, -EINVAL, "%s: GPU %.10s of %s is cut into MIG instances: name one, from %.10s:0 to %.10s:%d",
                        key, w, node, w, w, parts_of(q, node, w) - 1);
        return fail(e, -EINVAL, "%s: there is no GPU %.60s on %s (0 to %d)", key, w, node, most);
    }
    return 0;
}

bool queue_gpu_in_scope(const struct queue_gpu *g, const struct job_spec *s) {
    if (!s->scope.count) return true;
    for (const char *w = NULL; (w = job_word_next(&s->scope, w));)
        if (queue_gpu_is(g, w)) return true;
    return false;
}

bool queue_gpu_does(const struct queue *q, const struct queue_gpu *g, const struct job_spec *s) {
    bool has_cards = false;
    for (size_t i = 0; i < q->gpus && g->instance >= 0; i++)
        has_cards |= q->gpu[i].instance < 0 && strcmp(q->gpu[i].node, g->node) == 0;
    return queue_gpu_in_scope(g, s) && (g->instance < 0 || plan_part_does(s->gpus, s->memory_bytes | s->share_bytes,
                                                                          s->scope.count > 0, has_cards));
}

int queue_admit(struct queue *q, const struct job_spec *s, const char *node, struct error *e) {
    uint64_t largest = 0, wanted = s->memory_bytes > s->share_bytes ? s->memory_bytes : s->share_bytes;
    int gpus = 0, parts = 0, scoped = 0, fit = 0;
    if (q->gpus && !q->gpu[0].memory_bytes) q->is_gpus_old = true; /* told after its node was welcomed */
    queue_gpus_read(q);
    int r = check_scope(q, s, node, e);
    if (r < 0) return r;
    for (size_t i = 0; i < q->gpus; i++) {
        const struct queue_gpu *g = &q->gpu[i];
        if (strcmp(g->node, node) != 0) continue;
        gpus += g->instance < 0 || queue_gpu_does(q, g, s);
        parts += g->instance >= 0;
        if (!queue_gpu_does(q, g, s)) continue;
        scoped++;
        if (g->memory_bytes > largest) largest = g->memory_bytes;
        fit += !g->memory_bytes || g->memory_bytes >= wanted; /* not read yet: nobody knows better */
    }
    if (!gpus && !parts) return fail(e, -EINVAL, "gpus: %s has none", node);
    if (s->gpus > gpus)
        return fail(e, -EINVAL, "gpus: %d are wanted, and %s has %d%s", s->gpus, node, gpus,
                    parts ? "; MIG instances are given one by one, or by name (0:1)" : "");
    if (s->gpus > scoped) return fail(e, -EINVAL, "gpus: %d are wanted, and the scope has %d", s->gpus, scoped);
    if (s->gpus > fit) {
        char have[32], want[32];
        number_bytes((double)largest, have, sizeof have);
        number_bytes((double)wanted, want, sizeof want);
        return fail(e, -EINVAL, "%s: %s on %d GPU%s is wanted, and %d of %s can have that; the largest has %s",
                    s->share_bytes ? "share" : "memory", want, s->gpus, s->gpus == 1 ? "" : "s", fit, node, have);
    }
    for (const char *word = NULL; (word = job_word_next(&s->notify, word));) {
        if (strncmp(word, "command:", 8) == 0 && !q->settings->jobs_notify_command)
            return fail(e, -EPERM, "notify: commands are not run here (jobs.notify_command is off)");
        if (strncmp(word, "webhook:", 8) == 0 && user_hook_check(q->settings->tell_user_webhooks, word + 8, e) < 0)
            return fail_in(e, -EPERM, "notify");
    }
    if (q->settings->jobs_user_gpus && s->gpus > q->settings->jobs_user_gpus)
        return fail(e, -EINVAL, "gpus: %d are wanted, and one user may have %d at once (jobs.user_gpus)", s->gpus,
                    q->settings->jobs_user_gpus);
    return 0;
}

const char *queue_node_for(struct queue *q, const struct job_spec *s) {
    const char *best = NULL;
    int most = -1;
    queue_gpus_read(q);
    for (size_t i = 0; i < q->live->count; i++) {
        const struct live_node *n = q->live->node[i];
        int fit = 0, free_now = 0;
        for (size_t k = 0; k < q->gpus; k++) {
            const struct queue_gpu *g = &q->gpu[k];
            if (!g->is_here || strcmp(g->node, n->name) != 0 || !queue_gpu_does(q, g, s)) continue;
            fit++;
            free_now += g->is.verdict == OCCUPANCY_FREE;
        }
        int worth = !n->link ? -1 : fit >= s->gpus ? 1000 + free_now : fit;
        if (worth > most) {
            most = worth;
            best = n->name;
        }
    }
    return best;
}

/* ---- on its way to the file ---- */

struct submission {
    struct queue *queue;
    struct queue_job **job;
    struct queue_job_row *row;
    size_t count;
    struct buf seals;
    int64_t first;
    char ask[QUEUE_ASK]; /* "": no key */
    bool is_known;       /* it was taken before: by an answer that got lost */
    queue_submitted_fn done;
    void *ctx;
};

static void submission_free(struct submission *s) {
    for (size_t i = 0; i < s->count; i++) queue_job_free(s->job[i]);
    free(s->job);
    free(s->row);
    buf_done(&s->seals);
    free(s);
}

/* Jobs that wait for each other go round in no circle: whoever speaks to a node's socket may have written anything. */
static int check_order(const struct submission *s, struct error *e) {
    struct job_spec *jobs = calloc(s->count + 1, sizeof *jobs);
    size_t at = 0;
    if (!jobs) abort();
    for (size_t i = 0; i < s->count; i++) jobs[i] = s->job[i]->spec;
    int r = job_after_check(jobs, s->count, NULL, &at, e);
    free(jobs);
    return r < 0 && s->count > 1 ? fail_in(e, r, "job %zu of %zu", at + 1, s->count) : r;
}

static int look_for(struct sql *db, struct submission *s, struct error *e) {
    int64_t count = 0;
    int r = *s->ask ? queue_store_asked(db, s->ask, &s->first, &count, e) : 0;
    s->is_known = r > 0;
    if (r > 0 && count != (int64_t)s->count)
        return fail(e, -EEXIST, "that key was used before, for %lld job%s from %lld on", (long long)count,
                    count == 1 ? "" : "s", (long long)s->first);
    return r;
}

static int add_work(struct sql *db, void *ctx, struct error *e) {
    struct submission *s = ctx;
    int r = look_for(db, s, e);
    if (r != 0) return r < 0 ? r : 0;
    for (size_t i = 0; r >= 0 && i < s->count; i++) {
        r = queue_after_check(db, s->job[i], e);
        if (r == -EINVAL && s->count > 1) r = fail_in(e, r, "job %zu of %zu", i + 1, s->count);
    }
    CRASH_POINT();
    if (r >= 0) r = queue_store_add(db, s->row, s->count, &s->first, e);
    CRASH_POINT();
    return r;
}

static void add_done(void *ctx, int result, const struct error *e) {
    struct submission *s = ctx;
    struct queue *q = s->queue;
    CRASH_POINT();
    bool is_new = result >= 0 && !s->is_known;
    for (size_t i = 0; is_new && i < s->count; i++) {
        s->job[i]->id = s->first + (int64_t)i;
        queue_add(q, s->job[i]);
        s->job[i] = NULL;
    }
    for (size_t i = 0; is_new && i < s->count; i++) { /* who waits for the next one finds it there */
        struct queue_job *j = queue_find(q, s->first + (int64_t)i);
        if (j->after_count) queue_after_add(q, j);
    }
    if (result >= 0) queue_want_pass(q);
    s->done(s->ctx, result, s->first, e);
    CRASH_POINT();
    submission_free(s);
}

int queue_job_begin(struct queue_job *j, struct queue_job_row *row, struct error *e) {
    unsigned elements, at_once;
    int r = job_elements(&j->spec, &elements, &at_once, e);
    if (r < 0) return r;
    j->elements = elements;
    j->at_once = at_once;
    j->counts[JOB_WAITING] = elements;
    j->priority = j->spec.priority;
    j->element = realloc(j->element, elements * sizeof *j->element);
    if (!j->element) abort();
    memset(j->element, 0, elements * sizeof *j->element);
    row->elements = elements;
    row->at_once = at_once;
    row->priority = j->priority;
    row->record = j->record;
    row->user = j->user;
    row->account = j->account;
    row->node = j->node;
    row->state = j->after_count ? JOB_HELD : JOB_WAITING;
    return 0;
}

static int take_one(struct submission *s, const struct queue_submit *from, size_t i, int64_t now_ns, struct error *e) {
    const struct wire_sealed *in = &from->jobs[i];
    struct queue_job_row *row = &s->row[i];
    *row = (struct queue_job_row){.submitted_ns = now_ns,
                                  .uid = in->uid,
                                  .user = in->user,
                                  .account = from->account,
                                  .node = from->node,
                                  .origin = (uint8_t)from->origin,
                                  .elements = 1,
                                  .record = in->record,
                                  .record_len = in->record_len};
    struct queue_job *j = s->job[i] = queue_job_new(row, e);
    if (!j) return -EINVAL;
    int r = job_check(&j->spec, now_ns, e);
    if (r >= 0) r = queue_admit(s->queue, &j->spec, from->node, e);
    if (r >= 0) r = queue_job_begin(j, row, e);
    if (r < 0) return r;
    row->seal_len = in->seal_len;
    buf_add(&s->seals, in->seal, in->seal_len);
    return 0;
}

/* Nobody can use another's key: it is his who asks. */
void queue_ask_text(const struct queue_submit *from, char ret[QUEUE_ASK]) {
    *ret = 0;
    if (from->key && *from->key)
        snprintf(ret, QUEUE_ASK, "%d:%.63s:%u:%.63s:%.64s", (int)from->origin, from->node, from->jobs[0].uid,
                 from->account, from->key);
}

int queue_submit(struct queue *q, const struct queue_submit *from, queue_submitted_fn done, void *ctx,
                 struct error *e) {
    if (!from->count) return fail(e, -EINVAL, "there is no job in it");
    int diverted = queue_spawn_take(q, from, done, ctx, e);
    if (diverted) return diverted < 0 ? diverted : 0;
    struct submission *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->queue = q;
    s->done = done;
    s->ctx = ctx;
    queue_ask_text(from, s->ask);
    s->job = calloc(from->count, sizeof(void *));
    s->row = calloc(from->count, sizeof *s->row);
    if (!s->job || !s->row) abort();
    int64_t now_ns = clock_real_ns();
    int r = q->count + from->count > QUEUE_JOBS_MAX
                ? fail(e, -EAGAIN, "%zu jobs are in the queue; it takes %d", q->count, QUEUE_JOBS_MAX)
                : 0;
    for (; r >= 0 && s->count < from->count; s->count++) r = take_one(s, from, s->count, now_ns, e);
    if (r < 0 && from->count > 1) r = fail_in(e, r, "job %zu of %zu", s->count, from->count);
    if (r >= 0) r = check_order(s, e);
    size_t at = 0;
    if (*s->ask) s->row[0].ask = s->ask;
    for (size_t i = 0; r >= 0 && i < s->count; i++) {
        s->row[i].seal = s->seals.s + at;
        at += s->row[i].seal_len;
    }
    CRASH_POINT();
    if (r >= 0) r = state_submit(q->state, add_work, add_done, s, e);
    if (r < 0) submission_free(s);
    return r;
}

/* ---- from a node's socket ---- */

struct reply {
    struct queue *queue;
    char node[64];
    uint64_t request;
    uint32_t count;
};

static void reply_done(void *ctx, int result, int64_t first, const struct error *e) {
    struct reply *p = ctx;
    AUTO(buf_done) struct buf b = {0};
    struct live_node *n = live_find_node(p->queue->live, p->node);
    struct wire_job_result out = {.request = p->request, .result = result < 0 ? result : 0, .first = first};
    struct error ignored;
    if (result < 0)
        snprintf(out.text, sizeof out.text, "%s", e->text);
    else
        out.count = p->count;
    wire_put_job_result(&b, WIRE_JOB_SUBMITTED, &out);
    if (n) (void)!link_send(p->queue->links, n, &b, &ignored); /* gone: the caller hears that from his node */
    free(p);
}

/* ---- in several frames ---- */

/* What has come of a submission that one frame cannot hold. Nothing of it is anybody's before the last frame is there. */
struct queue_staged {
    struct queue_staged *next;
    char node[64];
    uint64_t request;
    int64_t until_ns;
    struct buf frames; /* bodies, one behind the other */
    size_t count;
};

static struct queue_staged **staged_at(struct queue *q, const char *node, uint64_t request) {
    struct queue_staged **at = &q->staged;
    while (*at && ((*at)->request != request || strcmp((*at)->node, node) != 0)) at = &(*at)->next;
    return at;
}

static void staged_drop(struct queue_staged **at) {
    struct queue_staged *s = *at;
    *at = s->next;
    buf_done(&s->frames);
    free(s);
}

void queue_staged_end(struct queue *q, const char *node, int64_t now_ns) {
    for (struct queue_staged **at = &q->staged; *at;)
        if (node ? strcmp((*at)->node, node) == 0 : (*at)->until_ns <= now_ns)
            staged_drop(at);
        else
            at = &(*at)->next;
}

/* Puts a frame away; with the last one *ret_bytes holds all of them. How many jobs there are by then. */
static size_t stage(struct queue *q, const char *node, const struct wire_submit *list, struct buf *ret_bytes) {
    struct queue_staged **at = staged_at(q, node, list->request), *s = *at;
    if (!s) {
        s = *at = calloc(1, sizeof *s);
        if (!s) abort();
        snprintf(s->node, sizeof s->node, "%s", node);
        s->request = list->request;
    }
    size_t all = list->len;
    for (const struct queue_staged *other = q->staged; other; other = other->next) all += other->frames.len;
    s->until_ns = clock_boot_ns() + STAGED_NS;
    if (s->frames.len + list->len <= WIRE_SUBMIT_MOST && all <= STAGED_BYTES) /* else it is refused when it is whole */
        buf_add(&s->frames, list->at, list->len);
    s->count += list->count;
    size_t count = s->count;
    if (list->is_part) return count;
    *ret_bytes = TAKE_STRUCT(s->frames);
    staged_drop(at);
    return count;
}

int queue_take_submit(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) {
    AUTO(buf_done) struct buf bytes = {0};
    struct wire_submit list;
    int r = wire_get_submit(f, &list, e);
    if (r < 0) return r;
    size_t all = list.count, count = 0;
    if (list.is_part || *staged_at(q, n->name, list.request)) {
        all = stage(q, n->name, &list, &bytes);
        if (list.is_part) return 0;
        list.at = (const uint8_t *)bytes.s;
        list.len = bytes.len;
    }
    struct wire_sealed *jobs = calloc(all, sizeof *jobs);
    struct reply *p = calloc(1, sizeof *p);
    if (!jobs || !p) abort();
    *p = (struct reply){.queue = q, .request = list.request, .count = (uint32_t)all};
    snprintf(p->node, sizeof p->node, "%s", n->name);
    while (count < all && wire_next_submit(&list, &jobs[count])) count++;
    struct queue_submit s = {jobs, count, n->name, "", QUEUE_BY_SOCKET, list.key};
    struct error why;
    r = count < all ? fail(&why, -E2BIG, "these jobs are more than %u MiB together", WIRE_SUBMIT_MOST >> 20)
                    : queue_submit(q, &s, reply_done, p, &why);
    if (r < 0) reply_done(p, r, 0, &why); /* his mistake, not the node's: the connection stays */
    free(jobs);
    return 0;
}
