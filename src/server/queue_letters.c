/* Messages that wait for those whom jobs name. Each is in the state file since the commit that holds what it tells of, and leaves
 * it when its receiver took it or nobody would care any more: a restart loses none, and the one under way at a crash may come
 * twice, with the same id.
 *
 * Web hooks and mail go from here, each on a thread of its own: one at a time to a receiver, in their order, and two at a time of
 * a user, so that one who hangs delays nobody else. Terminals and commands are the node's, who asks the job's seal whom they are. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/user_hook.h"
#include "model/wire_notice.h"
#include "server/queue_own.h"
#include "server/tell_way.h"

#define STACK_BYTES (512 * 1024)
#define AT_ONCE 32 /* under way */
#define AT_ONCE_OF_USER 2
#define WAITING_MOST 1000 /* of one user; what comes then is not written */
#define NODE_NS (90 * NS_PER_S)
#define NODE_AGAIN_NS (5 * NS_PER_S) /* it is not there: that is no try */
#define NODE_GIVE_UP_S (24ll * 3600) /* a day later nobody wants to read it on his terminal */

struct letter {
    struct letter *next;
    struct letter_row is;     /* its texts are its own */
    uint64_t to;              /* a hash of way and receiver; 0: the node's */
    int64_t due_ns, until_ns; /* until: the node has to answer */
    bool is_under_way;
    char why[120]; /* it was not taken; "": it was not tried yet */
};

struct letters {
    struct letter *first, **last;
    unsigned under_way;
    bool has_failed; /* one of them, once: else nobody need look for it */
};

/* ---- what waits ---- */

static bool is_nodes(const struct letter_row *l) {
    return strcmp(l->way, "terminal") == 0 || strcmp(l->way, "command") == 0;
}

static uint64_t hash_of(const struct letter_row *l) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (const char *s = l->way; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
    for (const char *s = l->receiver; *s; s++) h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
    return h | 1;
}

void queue_letter_done(struct letter_row *l) {
    const char *const texts[] = {l->way, l->receiver, l->user, l->node, l->kind, l->body};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) free((char *)(uintptr_t)texts[i]);
    *l = (struct letter_row){0};
}

struct letter_row queue_letter_copy(const struct letter_row *l) {
    struct letter_row c = *l;
    c.way = queue_copy(l->way);
    c.receiver = queue_copy(l->receiver);
    c.user = queue_copy(l->user);
    c.node = queue_copy(l->node);
    c.kind = queue_copy(l->kind);
    c.body = queue_copy(l->body);
    return c;
}

static struct letters *all(struct queue *q) {
    if (q->letters) return q->letters;
    q->letters = calloc(1, sizeof *q->letters);
    if (!q->letters) abort();
    q->letters->last = &q->letters->first;
    return q->letters;
}

/* Its texts are the list's from now on. */
static void add(struct queue *q, const struct letter_row *l) {
    struct letters *ls = all(q);
    struct letter *one = calloc(1, sizeof *one);
    if (!one) abort();
    one->is = *l;
    one->to = is_nodes(l) ? 0 : hash_of(l);
    *ls->last = one;
    ls->last = &one->next;
}

static void take_out(struct letters *ls, struct letter *l) {
    struct letter **at = &ls->first;
    while (*at != l) at = &(*at)->next;
    *at = l->next;
    if (!*at) ls->last = at;
    queue_letter_done(&l->is);
    free(l);
}

static struct letter *find(const struct queue *q, int64_t id) {
    struct letter *l = q->letters ? q->letters->first : NULL;
    while (l && l->is.id != id) l = l->next;
    return l;
}

bool queue_letters_full(const struct queue *q, const char *user) {
    unsigned n = 0;
    for (const struct letter *l = q->letters ? q->letters->first : NULL; l; l = l->next)
        n += strcmp(l->is.user, user) == 0;
    return n >= WAITING_MOST;
}

/* ---- rows ---- */

struct change {
    int64_t id, tries; /* tries 0: it goes */
};

static int change_work(struct sql *db, void *ctx, struct error *e) {
    const struct change *c = ctx;
    return c->tries ? letters_store_tried(db, c->id, c->tries, e) : letters_store_drop(db, c->id, e);
}

static void change_done(void *ctx, int result, const struct error *e) {
    if (result < 0) log_line(LOG_WARN, "job_notify", -1, "a message may come twice: %s", e->text);
    free(ctx);
}

static void change(struct queue *q, int64_t id, int64_t tries) {
    struct error e;
    struct change *c = malloc(sizeof *c);
    if (!c) abort();
    *c = (struct change){id, tries};
    int r = state_submit(q->state, change_work, change_done, c, &e);
    if (r < 0) change_done(c, r, &e);
}

/* ---- how one went ---- */

static bool is_hopeless(const struct letter *l, int result) {
    int64_t age_s = clock_real_ns() / NS_PER_S - l->is.made;
    if (!l->to) return (result != -EAGAIN && result != -ETIMEDOUT) || age_s > NODE_GIVE_UP_S;
    return age_s > TELL_GIVE_UP_S;
}

static void settle(struct queue *q, struct letter *l, int result, const char *text) {
    bool is_over = result >= 0 || is_hopeless(l, result);
    l->is_under_way = false;
    q->letters->under_way--;
    if (result < 0 && (l->is.tries == 0 || is_over))
        log_line(LOG_WARN, "job_notify", -1, "job %lld: a message by %s was not taken%s: %s", (long long)l->is.job,
                 l->is.way, is_over ? "" : ", and is tried again", text);
    if (is_over) {
        change(q, l->is.id, 0);
        take_out(q->letters, l);
    } else {
        /* Not what a receiver wrote: whoever names an address must not read what stands behind it. */
        bool is_status = strncmp(text, ANSWERED, strlen(ANSWERED)) == 0;
        snprintf(l->why, sizeof l->why, "%.*s", is_status ? (int)strcspn(text, ":") : (int)sizeof l->why - 1, text);
        q->letters->has_failed = true;
        l->due_ns = clock_boot_ns() + tell_pause_ns(l->is.tries);
        change(q, l->is.id, ++l->is.tries);
    }
}

void queue_untold(const struct queue *q, int64_t job, char ret[QUEUE_UNTOLD]) {
    ret[0] = '\0';
    if (!q->letters || !q->letters->has_failed) return;
    for (const struct letter *l = q->letters->first; l; l = l->next)
        if (l->is.job == job && *l->why) {
            snprintf(ret, QUEUE_UNTOLD, "a message by %s was not taken, and is tried again: %s (%lld so far)",
                     l->is.way, l->why, (long long)l->is.tries);
            return;
        }
}

/* ---- from here ---- */

struct flight {
    struct queue *queue;
    int64_t id;
    const struct tell_way *way;
    struct settings settings; /* with his address in place of the operator's */
    char *body;
    int result;
    struct error error;
};

/* A thread may outlast the loop, with a receiver that hangs: then nobody hears how it went. */
static struct {
    pthread_mutex_t lock;
    bool is_closed;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void landed(void *ctx) {
    struct flight *f = ctx;
    struct letter *l = f->queue->is_stopping ? NULL : find(f->queue, f->id);
    CRASH_POINT();
    if (l) {
        struct queue *q = f->queue;
        settle(q, l, f->result, f->error.text);
        queue_letters_tick(q);
    }
    free(f->body);
    free(f);
}

static void *fly(void *ctx) {
    struct flight *f = ctx;
    CRASH_POINT();
    f->result = f->way->send(&f->settings, f->body, strlen(f->body), &f->error);
    CRASH_POINT();
    pthread_mutex_lock(&gate.lock);
    if (!gate.is_closed) loop_post(f->queue->loop, landed, f);
    pthread_mutex_unlock(&gate.lock);
    return NULL;
}

static int send_out(struct queue *q, const struct letter *l, struct error *e) {
    const struct tell_way *way = tell_way_find(l->is.way, strlen(l->is.way));
    if (!way) return fail(e, -ENOENT, "there is no such way");
    struct flight *f = calloc(1, sizeof *f);
    if (!f) abort();
    *f = (struct flight){
        .queue = q, .id = l->is.id, .way = way, .settings = *q->settings, .body = queue_copy(l->is.body)};
    tell_way_address(&f->settings, way, l->is.receiver);
    int r = way->is_set(&f->settings) ? 0 : fail(e, -ENOENT, "tell.smtp_url is not set");
    if (r >= 0 && *f->settings.tell_webhook) /* the operator may have thought better of it meanwhile */
        r = user_hook_check(q->settings->tell_user_webhooks, l->is.receiver, e);
    if (r >= 0) r = thread_start(fly, f, STACK_BYTES, "a message", e);
    if (r >= 0) return 0;
    free(f->body);
    free(f);
    return r;
}

/* ---- by the node ---- */

struct asking {
    struct queue *queue;
    int64_t id, job;
    struct letter_seal seal;
};

static int asking_work(struct sql *db, void *ctx, struct error *e) {
    struct asking *a = ctx;
    return letters_store_seal(db, a->job, &a->seal, e);
}

static void put_notice(const struct letter *l, const struct letter_seal *s, struct buf *b) {
    struct wire_notice n = {.id = (uint64_t)l->is.id, .job = l->is.job, .word = l->is.word};
    n.sealed = (struct wire_sealed){.uid = s->uid,
                                    .record = (const uint8_t *)s->record.s,
                                    .record_len = s->record.len,
                                    .seal = (const uint8_t *)s->seal.s,
                                    .seal_len = s->seal.len};
    memcpy(n.sealed.user, s->user, sizeof n.sealed.user);
    snprintf(n.kind, sizeof n.kind, "%s", l->is.kind);
    snprintf(n.text, sizeof n.text, "%s", l->is.body);
    wire_put_notice(b, &n);
}

static void asking_done(void *ctx, int result, const struct error *e) {
    struct asking *a = ctx;
    AUTO(buf_done) struct buf b = {0};
    struct error none;
    struct letter *l = a->queue->is_stopping ? NULL : find(a->queue, a->id);
    if (l && l->is_under_way && result < 0) {
        settle(a->queue, l, result, e->text);
    } else if (l && l->is_under_way) {
        struct live_node *n = live_find_node(a->queue->live, l->is.node);
        put_notice(l, &a->seal, &b);
        if (!n || link_send(a->queue->links, n, &b, &none) < 0) l->until_ns = 1; /* the next tick says so */
    }
    buf_done(&a->seal.record);
    buf_done(&a->seal.seal);
    free(a);
}

static int send_to_node(struct queue *q, struct letter *l, struct error *e) {
    struct asking *a = calloc(1, sizeof *a);
    if (!a) abort();
    *a = (struct asking){.queue = q, .id = l->is.id, .job = l->is.job};
    l->until_ns = clock_boot_ns() + NODE_NS;
    int r = state_submit(q->state, asking_work, asking_done, a, e);
    if (r < 0) free(a);
    return r;
}

int queue_take_noticed(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) {
    struct wire_noticed answer;
    int r = wire_get_noticed(f, &answer, e);
    if (r < 0) return r;
    struct letter *l = find(q, (int64_t)answer.id);
    CRASH_POINT();
    if (l && !l->to && l->is_under_way && strcmp(l->is.node, n->name) == 0) settle(q, l, answer.result, answer.text);
    return 0;
}

/* Its session begins or ends: what it was asked for is answered by nobody any more, and is asked for again at once. */
void queue_letters_node(struct queue *q, const char *node) {
    for (struct letter *l = q->letters ? q->letters->first : NULL; l; l = l->next) {
        if (l->to || strcmp(l->is.node, node) != 0) continue;
        q->letters->under_way -= l->is_under_way;
        l->is_under_way = false;
        l->due_ns = 0;
    }
}

/* ---- time ---- */

/* One at a time to a receiver: who failed is waited for by those behind it, too. */
static bool is_behind(const struct queue *q, const struct letter *l) {
    if (!l->to) return false;
    for (const struct letter *o = q->letters->first; o != l; o = o->next)
        if (o->to == l->to && strcmp(o->is.receiver, l->is.receiver) == 0) return true;
    return false;
}

static unsigned under_way_of(const struct queue *q, const char *user) {
    unsigned n = 0;
    for (const struct letter *l = q->letters->first; l; l = l->next)
        n += l->is_under_way && strcmp(l->is.user, user) == 0;
    return n;
}

static void begin(struct queue *q, struct letter *l, int64_t now_ns) {
    struct error e = {0};
    const struct live_node *n = l->to ? NULL : live_find_node(q->live, l->is.node);
    if (!l->to && (!n || !n->link || !n->is_welcomed)) {
        l->due_ns = now_ns + NODE_AGAIN_NS;
        return;
    }
    CRASH_POINT();
    l->is_under_way = true;
    q->letters->under_way++;
    int r = l->to ? send_out(q, l, &e) : send_to_node(q, l, &e);
    if (r < 0) settle(q, l, r, e.text);
}

void queue_letters_tick(struct queue *q) {
    int64_t now_ns = clock_boot_ns();
    struct letter *next;
    if (!q->letters || !q->links || q->is_stopping) return;
    for (struct letter *l = q->letters->first; l; l = next) {
        next = l->next;
        if (l->is_under_way && !l->to && now_ns > l->until_ns) settle(q, l, -ETIMEDOUT, "the machine did not answer");
    }
    for (struct letter *l = q->letters->first; l && q->letters->under_way < AT_ONCE; l = next) {
        next = l->next;
        bool is_due = !l->is_under_way && l->due_ns <= now_ns && !is_behind(q, l);
        if (is_due && under_way_of(q, l->is.user) < AT_ONCE_OF_USER) begin(q, l, now_ns);
    }
}

void queue_letter_stored(struct queue *q, const struct letter_row *l) {
    add(q, l);
    queue_letters_tick(q);
}

/* ---- beginning and end ---- */

static void load(void *ctx, const struct letter_row *l) {
    const struct letter_row own = queue_letter_copy(l);
    add(ctx, &own);
}

int queue_letters_load(struct queue *q, struct sql *db, struct error *e) { return letters_store_read(db, load, q, e); }

void queue_letters_done(struct queue *q) {
    pthread_mutex_lock(&gate.lock);
    gate.is_closed = true;
    pthread_mutex_unlock(&gate.lock);
    while (q->letters && q->letters->first) take_out(q->letters, q->letters->first);
    free(q->letters);
    q->letters = NULL;
}
