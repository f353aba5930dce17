#include "server/services.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/wire_health.h"
#include "server/services_own.h"

#define TICK_MS 200

/* ---- the list ---- */

static char *copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

struct service_one *service_by_id(const struct services *s, int64_t id) {
    for (size_t i = 0; i < s->count; i++)
        if (s->of[i]->id == id) return s->of[i];
    return NULL;
}

struct service_revision *service_revision_of(const struct service_one *o, uint32_t number) {
    for (size_t i = 0; i < o->revisions; i++)
        if (o->revision[i]->number == number) return o->revision[i];
    return NULL;
}

static void revision_free(struct service_revision *v) {
    free(v->by);
    free(v->ask);
    buf_done(&v->record);
    buf_done(&v->seal);
    free(v);
}

struct service_one *service_one_new(const struct service_row *row) {
    struct service_one *o = calloc(1, sizeof *o);
    if (!o) abort();
    *o = (struct service_one){.id = row->id,
                              .made_ns = row->made_ns,
                              .uid = row->uid,
                              .origin = row->origin,
                              .name = copy(row->name),
                              .user = copy(row->user),
                              .account = copy(row->account),
                              .node = copy(row->node),
                              .again_ns = 0};
    return o;
}

void service_one_free(struct service_one *o) {
    if (!o) return;
    for (size_t i = 0; i < o->revisions; i++) revision_free(o->revision[i]);
    free(o->revision);
    while (o->acks) {
        struct service_ack *a = o->acks;
        o->acks = a->next;
        free(a);
    }
    free(o->name);
    free(o->user);
    free(o->account);
    free(o->node);
    free(o);
}

void service_one_add(struct services *s, struct service_one *o) {
    s->of = realloc(s->of, (s->count + 1) * sizeof(void *));
    if (!s->of) abort();
    s->of[s->count++] = o;
    if (o->id > s->last_id) s->last_id = o->id;
}

void service_one_drop(struct services *s, struct service_one *o) {
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->of[i] != o) s->of[kept++] = s->of[i];
    s->count = kept;
    service_one_free(o);
}

/* Those that nobody goes back to leave, the oldest first. */
static void revisions_trim(struct service_one *o) {
    for (size_t i = 0; i < o->revisions && o->revisions > SERVICE_REVISIONS;) {
        struct service_revision *v = o->revision[i];
        bool is_used = v->number == o->life.revision || v->number == o->life.next_revision ||
                       v->number == o->life.back_revision || !v->is_stored;
        if (is_used) {
            i++;
            continue;
        }
        revision_free(v);
        memmove(&o->revision[i], &o->revision[i + 1], (--o->revisions - i) * sizeof(void *));
    }
}

int service_revision_add(struct service_one *o, const struct service_revision_row *row, bool is_stored,
                         struct error *e) {
    struct service_revision *v = calloc(1, sizeof *v);
    if (!v) abort();
    v->number = row->number;
    v->made_ns = row->made_ns;
    v->by = copy(row->by);
    v->ask = copy(row->ask);
    v->is_stored = is_stored;
    buf_add(&v->record, row->record, row->record_len);
    buf_add(&v->seal, row->seal, row->seal_len);
    int r = job_decode(v->record.s, v->record.len, &v->spec, e);
    if (r >= 0) r = service_spec_read(&v->spec.service, &v->rules, e);
    if (r < 0) {
        revision_free(v);
        return r;
    }
    o->revision = realloc(o->revision, (o->revisions + 1) * sizeof(void *));
    if (!o->revision) abort();
    o->revision[o->revisions++] = v;
    revisions_trim(o);
    return 0;
}

/* ---- facts ---- */

static struct service_rules rules_of(const struct service_one *o) {
    const struct service_revision *now = service_revision_of(o, o->life.revision);
    const struct service_revision *next = service_revision_of(o, o->life.next_revision);
    return (struct service_rules){now ? &now->rules : &o->revision[o->revisions - 1]->rules,
                                  next ? &next->rules : NULL};
}

static void end_of(const struct queue_child *c, struct service_end *ret) {
    const struct wire_run *w = &c->last;
    *ret = (struct service_end){.is_good = c->state == JOB_DONE, .is_cancelled = c->state == JOB_CANCELLED};
    if (!w->key.attempt)
        snprintf(ret->text, sizeof ret->text, "it never ran");
    else if (w->reason != JOB_BY_ITSELF)
        snprintf(ret->text, sizeof ret->text, "%s%s%.80s", job_reason_text((enum job_reason)w->reason),
                 *w->text ? ": " : "", w->text);
    else if (!w->has_exit)
        snprintf(ret->text, sizeof ret->text, "nobody knows how");
    else if (w->signal)
        snprintf(ret->text, sizeof ret->text, "signal %d", w->signal);
    else
        snprintf(ret->text, sizeof ret->text, "exit code %d", w->code);
}

static void take_child(struct service_one *o, const struct queue_child *c) {
    const struct service_rules rules = rules_of(o);
    int64_t now_ns = clock_real_ns();
    struct service_end end;
    if (c->is_over) {
        end_of(c, &end);
        service_ends(&o->life, &rules, c->job, &end, now_ns);
        return;
    }
    switch (c->state) {
    case JOB_WAITING:
    case JOB_HELD:
        service_waits(&o->life, c->job, c->last.key.attempt && c->last.reason == JOB_BY_PREEMPT, now_ns);
        break;
    case JOB_GRANTED: service_starts(&o->life, c->job, now_ns); break;
    case JOB_RUNNING: service_runs(&o->life, &rules, c->job, now_ns); break;
    default: break;
    }
}

/* Told from within the queue: noted here, acted on later. */
static void on_news(void *ctx, const struct queue_child *c) {
    struct services *s = ctx;
    struct service_one *o = service_by_id(s, c->parent);
    if (!o || !service_slot_of(&o->life, c->job)) return;
    take_child(o, c);
    service_touch(s, o);
}

static void on_health(void *ctx, const char *node, const struct wire_health *h) {
    struct services *s = ctx;
    struct queue_child c;
    if (!queue_spawn_look(s->queue, h->key.job, &c)) return;
    struct service_one *o = service_by_id(s, c.parent);
    if (!o || strcmp(o->node, node) != 0 || c.state != JOB_RUNNING || !service_slot_of(&o->life, h->key.job)) return;
    o->check[o->checks++ % SERVICE_CHECKS] = (struct service_check){
        .at_ns = clock_real_ns(), .job = h->key.job, .took_ms = h->took_ms, .is_good = h->is_good};
    snprintf(o->check_text, sizeof o->check_text, "%s", h->text);
    enum service_state before = service_state(&o->life);
    const struct service_rules rules = rules_of(o);
    const struct service_slot *slot = service_slot_of(&o->life, h->key.job), was = *slot;
    uint32_t next = o->life.next_revision;
    service_checked(&o->life, &rules, h->key.job, h->is_good, h->text, clock_real_ns());
    bool is_same = before == service_state(&o->life) && slot->phase == was.phase && slot->why == was.why &&
                   next == o->life.next_revision;
    if (!is_same) service_touch(s, o);
}

/* ---- what is worth an event ---- */

static void tell(struct services *s, struct service_one *o) {
    enum service_state state = service_state(&o->life);
    bool is_said = strcmp(o->told_text, o->life.text) == 0;
    if (state == o->told && is_said) return;
    enum service_state before = o->told;
    o->told = state;
    snprintf(o->told_text, sizeof o->told_text, "%s", o->life.text);
    const char *kind = state == SERVICE_IS_FAILED      ? "service_given_up"
                       : state == SERVICE_IS_UNHEALTHY ? "service_unhealthy"
                       : state == SERVICE_IS_YIELDED   ? "service_yielded"
                       : !is_said && *o->life.text     ? "service"
                       : state == SERVICE_IS_HEALTHY   ? "service_healthy"
                                                       : NULL;
    if (!kind || !s->on_event || (state == before && is_said)) return;
    struct event ev = {.boot_ns = clock_boot_ns(),
                       .real_ns = clock_real_ns(),
                       .severity =
                           state == SERVICE_IS_FAILED || state == SERVICE_IS_UNHEALTHY ? EVENT_WARNING : EVENT_INFO,
                       .device = -1};
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    snprintf(ev.text, sizeof ev.text, "service %.40s (%.24s) is %s%s%.60s", o->name, o->user, service_state_name(state),
             *o->life.text ? ": " : "", o->life.text);
    s->on_event(s->event_ctx, o->node, &ev);
}

/* ---- orders ---- */

static void ignored(void *ctx, int result, const struct error *e) { (void)ctx; }

void service_end_job(struct services *s, int64_t job) {
    const struct queue_who us = {.is_admin = true, .account = ""};
    const struct queue_order order = {.verb = WIRE_CANCEL, .job = job, .element = -1};
    struct error e;
    (void)!queue_control(s->queue, &us, &order, ignored, NULL, &e); /* it may be over by now: its end is told */
}

static void settle_one(struct services *s, struct service_one *o, int64_t now_ns) {
    struct service_orders orders;
    const struct service_rules rules = rules_of(o);
    o->wants_settle = false;
    if (o->is_leaving) return;
    service_settle(&o->life, &rules, now_ns, &orders);
    o->again_ns = orders.again_ns;
    tell(s, o);
    if (orders.is_gone) o->is_leaving = o->is_dirty = true;
    if (orders.start || orders.stops) o->is_dirty = true;
    if (orders.start) service_spawn(s, o, orders.start);
}

static void settle_all(void *ctx) {
    struct services *s = ctx;
    s->is_posted = false;
    if (s->is_stopping || !s->is_started) return;
    int64_t now_ns = clock_real_ns();
    for (size_t i = 0; i < s->count; i++) {
        struct service_one *o = s->of[i]; /* what is made of a service comes after the service */
        if (o->is_stored && (o->wants_settle || o->again_ns <= now_ns)) settle_one(s, o, now_ns);
    }
    services_write(s);
}

void services_settle_soon(struct services *s) {
    if (s->is_posted || s->is_stopping) return;
    s->is_posted = true;
    loop_post(s->loop, settle_all, s);
}

void service_touch(struct services *s, struct service_one *o) {
    o->is_dirty = o->wants_settle = true;
    services_settle_soon(s);
}

static void tick(void *ctx) {
    struct services *s = ctx;
    int64_t now_ns = clock_real_ns();
    for (size_t i = 0; i < s->count; i++)
        if (s->of[i]->is_dirty || s->of[i]->wants_settle || s->of[i]->again_ns <= now_ns) {
            services_settle_soon(s);
            return;
        }
}

/* ---- wishes ---- */

bool service_may(const struct service_one *o, const struct queue_who *who) {
    if (who->is_admin || (who->has_uid && who->uid == o->uid)) return true;
    return *who->account && strcmp(who->account, o->account) == 0;
}

int64_t services_find(const struct services *s, const char *word, const struct queue_who *who, struct error *e) {
    const struct service_one *found = NULL;
    unsigned others = 0;
    size_t n = strspn(word, "0123456789");
    for (size_t i = 0; i < s->count; i++) {
        const struct service_one *o = s->of[i];
        if (n && !word[n] && strtoll(word, NULL, 10) == o->id) return o->id;
        if (strcmp(o->name, word) != 0) continue;
        bool is_own = who->has_uid ? who->uid == o->uid : *who->account && strcmp(who->account, o->account) == 0;
        if (is_own) return o->id;
        others++;
        found = o;
    }
    if (others == 1) return found->id;
    if (others)
        fail(e, -EINVAL, "%u services are called %.60s; give the number of one", others, word);
    else
        fail(e, -ENOENT, "there is no service %.60s", word);
    return 0;
}

int services_do(struct services *s, const struct queue_who *who, int64_t id, enum service_verb verb, queue_done_fn done,
                void *ctx, struct error *e) {
    struct service_one *o = service_by_id(s, id);
    if (!o) return fail(e, -ENOENT, "there is no service %lld", (long long)id);
    if (!service_may(o, who)) return fail(e, -EACCES, "service %s is %s's", o->name, o->user);
    int r = 0;
    switch (verb) {
    case SERVICE_DO_SUSPEND: r = service_suspend(&o->life, e); break;
    case SERVICE_DO_RESUME: r = service_resume(&o->life, e); break;
    case SERVICE_DO_RESTART: r = service_restart(&o->life, e); break;
    case SERVICE_DO_REMOVE: r = service_remove(&o->life, e); break;
    }
    if (r < 0) return fail_in(e, r, "service %s", o->name);
    struct service_ack *a = malloc(sizeof *a);
    if (!a) abort();
    *a = (struct service_ack){o->acks, done, ctx};
    o->acks = a;
    service_touch(s, o);
    return 0;
}

/* ---- beginning and end ---- */

static int load_service(void *ctx, const struct service_row *row, struct error *e) {
    struct services *s = ctx;
    struct service_one *o = service_one_new(row);
    o->is_stored = true;
    if (service_decode(row->life, row->life_len, &o->life, e) < 0) {
        log_line(LOG_ERROR, "service_unread", -1, "service %lld cannot be read: %s", (long long)row->id, e->text);
        service_one_free(o); /* it stays in the file */
        return 0;
    }
    o->told = service_state(&o->life);
    snprintf(o->told_text, sizeof o->told_text, "%s", o->life.text);
    service_one_add(s, o);
    return 0;
}

static int load_revision(void *ctx, const struct service_revision_row *row, struct error *e) {
    struct service_one *o = service_by_id(ctx, row->service);
    if (o && service_revision_add(o, row, true, e) < 0)
        log_line(LOG_ERROR, "service_unread", -1, "revision %u of service %s cannot be read: %s", row->number, o->name,
                 e->text);
    return 0;
}

/* A job whose end is in the file, and whose service had not heard of it when the server was killed. */
struct past {
    struct queue_child child;
};

static int past_job(void *ctx, const struct queue_job_row *j, struct error *e) {
    struct past *p = ctx;
    p->child.state = (enum job_state)j->state;
    p->child.is_over = job_state_is_over(p->child.state);
    p->child.ended_ns = j->ended_ns;
    return 0;
}

static int past_run(void *ctx, const struct queue_run_row *r, struct error *e) {
    ((struct past *)ctx)->child.last = r->of;
    return 0;
}

static int load_past(struct sql *db, struct service_one *o, struct error *e) {
    const int64_t jobs[] = {o->life.now.job, o->life.next.job, o->life.old.job};
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        if (jobs[i] <= 0) continue;
        struct past p = {
            .child = {.parent = o->id, .job = jobs[i], .state = JOB_UNKNOWN, .is_over = true}
        };
        const struct queue_ask ask = {.only = jobs[i], .limit = 1, .runs_most = UINT16_MAX};
        const struct queue_reader reader = {.ctx = &p, .job = past_job, .run = past_run};
        int r = queue_store_list(db, &ask, &reader, e);
        if (r < 0) return r;
        if (p.child.is_over) take_child(o, &p.child);
    }
    return 0;
}

static int load_work(struct sql *db, void *ctx, struct error *e) {
    struct services *s = ctx;
    const struct service_reader reader = {s, load_service, load_revision};
    int64_t last = 0;
    int r = service_store_read(db, &reader, &last, e);
    if (last > s->last_id) s->last_id = last;
    for (size_t i = s->count; r >= 0 && i > 0; i--) {
        struct service_one *o = s->of[i - 1];
        if (o->revisions)
            r = load_past(db, o, e);
        else
            service_one_drop(s, o); /* of a newer gpumgr: it stays in the file */
    }
    return r;
}

static struct queue_spawner spawner = {.is_own = services_is_own, .take = services_take, .news = on_news};

int services_new(const struct services_setup *setup, struct services **ret, struct error *e) {
    struct services *s = calloc(1, sizeof *s);
    if (!s) abort();
    *s = (struct services){.loop = setup->loop,
                           .state = setup->state,
                           .queue = setup->queue,
                           .on_event = setup->on_event,
                           .event_ctx = setup->ctx};
    int r = state_run(s->state, load_work, s, e);
    if (r < 0) {
        services_free(s);
        return fail_in(e, r, "the services");
    }
    spawner.ctx = s;
    queue_spawn_register(s->queue, QUEUE_OF_SERVICE, &spawner);
    queue_on_health(s->queue, on_health, s);
    *ret = s;
    return 0;
}

/* How those stand that go on; and who was told to end hears it again, since that may not be in the queue's file. */
void services_start(struct services *s) {
    s->is_started = true;
    for (size_t i = 0; i < s->count; i++) {
        struct service_one *o = s->of[i];
        const struct service_slot *slots[] = {&o->life.now, &o->life.next, &o->life.old};
        for (size_t k = 0; k < ARRAY_LEN(slots); k++) {
            struct queue_child c;
            if (slots[k]->job <= 0 || !queue_spawn_look(s->queue, slots[k]->job, &c)) continue;
            if (slots[k]->phase == SERVICE_ENDING)
                service_end_job(s, slots[k]->job);
            else
                take_child(o, &c);
        }
        service_touch(s, o);
    }
    loop_every(s->loop, TICK_MS, tick, s);
}

void services_free(struct services *s) {
    if (!s) return;
    s->is_stopping = true;
    for (size_t i = 0; i < s->count; i++) service_one_free(s->of[i]);
    free(s->of);
    free(s);
}
