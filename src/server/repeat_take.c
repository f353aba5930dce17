/* A repeating job on its way in: looked at, stored with the time from which it counts, and only then acknowledged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/zone_file.h"
#include "server/repeat_own.h"

int repeat_zone(const char *name, char ret_name[ZONE_NAME_MAX], struct zone *ret, struct error *e) {
    AUTO(buf_done) struct buf file = {0};
    char found[ZONE_NAME_MAX];
    if (*name)
        snprintf(found, sizeof found, "%s", name);
    else
        zone_file_local(found, sizeof found);
    int r = zone_name_is_good(found) ? zone_file_read(found, ZONE_FILE_MAX, &file, e)
                                     : fail(e, -EINVAL, "\"%s\" is no time zone", found);
    if (r >= 0) r = zone_parse(file.s, file.len, ret, e);
    if (r == -ENOENT && strcmp(found, "UTC") == 0) { /* known without a file */
        *ret = (struct zone){0};
        r = 0;
    }
    if (r < 0) return fail_in(e, -EINVAL, "repeat.zone");
    memcpy(ret_name, found, sizeof found);
    return 0;
}

bool repeat_is_own(const struct job_spec *s) { return s->repeat.count > 0; }

struct coming {
    struct repeats *all;
    struct repeat *repeat; /* made on the store thread, where the zone is read */
    struct repeat_row row;
    char *user, *account, *node; /* that the row points to */
    struct buf record, seal;
    char ask[QUEUE_ASK];
    int64_t id;
    bool is_known; /* it was taken before: by an answer that got lost */
    queue_submitted_fn done;
    void *ctx;
};

static void coming_free(struct coming *c) {
    repeat_free(c->repeat);
    free(c->user);
    free(c->account);
    free(c->node);
    buf_done(&c->record);
    buf_done(&c->seal);
    free(c);
}

static int add_work(struct sql *db, void *ctx, struct error *e) {
    struct coming *c = ctx;
    struct job_spec job;
    struct repeat_spec spec;
    struct zone zone = {0};
    char name[ZONE_NAME_MAX];
    int r = *c->ask ? repeat_store_asked(db, c->ask, &c->id, e) : 0;
    c->is_known = r > 0;
    if (r != 0) return r < 0 ? r : 0;
    r = job_decode(c->row.record, c->row.record_len, &job, e);
    if (r >= 0) r = repeat_spec_read(&job.repeat, &spec, e);
    if (r >= 0) r = repeat_zone(spec.zone, name, &zone, e);
    if (r < 0) return r;
    c->row.zone = name;
    repeat_free(c->repeat);
    c->repeat = repeat_new(&c->row, &zone, e);
    if (!c->repeat) return -EINVAL;
    if (c->repeat->next_s == RECUR_NEVER)
        return fail(e, -EINVAL, "repeat.%s: all of its times are over", *spec.cron ? "cron" : "interval");
    CRASH_POINT();
    r = repeat_store_add(db, &c->row, &c->id, e);
    CRASH_POINT();
    return r;
}

static void add_done(void *ctx, int result, const struct error *e) {
    struct coming *c = ctx;
    struct repeats *all = c->all;
    all->coming--;
    CRASH_POINT();
    if (result >= 0 && !c->is_known) {
        c->repeat->id = c->id;
        repeat_put(all, c->repeat);
        c->repeat = NULL;
    }
    c->done(c->ctx, result, c->id, e);
    coming_free(c);
}

static int check_room(const struct repeats *all, uint32_t uid, struct error *e) {
    size_t own = 0;
    for (size_t i = 0; i < all->count; i++) own += all->of[i]->uid == uid;
    if (all->count + all->coming >= REPEATS_MAX)
        return fail(e, -EAGAIN, "there are %zu repeating jobs; there may be %d", all->count, REPEATS_MAX);
    if (own >= REPEATS_OF_USER)
        return fail(e, -EAGAIN, "you have %zu repeating jobs; one user may have %d", own, REPEATS_OF_USER);
    return 0;
}

static struct coming *coming_new(struct repeats *all, const struct queue_submit *from) {
    const struct wire_sealed *in = &from->jobs[0];
    struct coming *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->all = all;
    c->user = strdup(in->user);
    c->account = strdup(from->account);
    c->node = strdup(from->node);
    if (!c->user || !c->account || !c->node) abort();
    buf_add(&c->record, in->record, in->record_len);
    buf_add(&c->seal, in->seal, in->seal_len);
    int64_t now_ns = clock_real_ns();
    c->row = (struct repeat_row){.made_ns = now_ns,
                                 .mark_s = now_ns / NS_PER_S,
                                 .uid = in->uid,
                                 .user = c->user,
                                 .account = c->account,
                                 .node = c->node,
                                 .origin = (uint8_t)from->origin,
                                 .record = c->record.s,
                                 .record_len = c->record.len,
                                 .seal = c->seal.s,
                                 .seal_len = c->seal.len};
    queue_ask_text(from, c->ask);
    if (*c->ask) c->row.ask = c->ask;
    return c;
}

/* ---- one that is there already, changed ---- */

struct editing {
    int64_t id;
    queue_submitted_fn done;
    void *ctx;
};

static void edited(void *ctx, int result, const struct buf *times, const struct error *e) {
    struct editing *d = ctx;
    d->done(d->ctx, result, d->id, e);
    free(d);
}

static int take_edit(struct repeats *all, const struct queue_submit *from, const struct repeat_spec *spec,
                     queue_submitted_fn done, void *ctx, struct error *e) {
    AUTO(buf_done) struct buf times = {0};
    struct repeat_spec rule = *spec;
    char ask[QUEUE_ASK];
    struct editing *d = malloc(sizeof *d);
    if (!d) abort();
    *d = (struct editing){spec->edits, done, ctx};
    rule.edits = 0;
    repeat_spec_write(&rule, &times);
    queue_ask_text(from, ask);
    const struct repeat *old = repeat_find(all, spec->edits);
    /* Several accounts may be one Unix user on a machine: the seal's uid does not tell them apart. */
    if (old && from->origin == QUEUE_BY_ACCOUNT && strcmp(old->account, from->account) != 0) {
        free(d);
        return fail(e, -EACCES, "repeat %lld is %s's: nobody else changes what it does", (long long)old->id,
                    *old->account ? old->account : old->user);
    }
    if (old && strcmp(old->node, from->node) != 0) {
        free(d);
        return fail(e, -EINVAL, "repeat %lld is on %s, and this came from %s", (long long)old->id, old->node,
                    from->node);
    }
    const struct repeat_change c = {.id = spec->edits,
                                    .times = &times,
                                    .sealed = &from->jobs[0],
                                    .origin = from->origin,
                                    .account = from->account,
                                    .ask = ask};
    int r = repeat_change(all, &c, edited, d, e);
    if (r < 0) free(d);
    return r;
}

int repeat_take(void *ctx, const struct queue_submit *from, queue_submitted_fn done, void *done_ctx, struct error *e) {
    struct repeats *all = ctx;
    const struct wire_sealed *in = &from->jobs[0];
    struct job_spec job;
    struct repeat_spec spec;
    int r = job_decode(in->record, in->record_len, &job, e);
    if (r >= 0) r = job_check(&job, clock_real_ns(), e);
    if (r >= 0) r = queue_admit(all->queue, &job, from->node, e);
    if (r >= 0) r = repeat_spec_read(&job.repeat, &spec, e);
    if (r >= 0 && spec.edits) return take_edit(all, from, &spec, done, done_ctx, e);
    if (r >= 0) r = check_room(all, in->uid, e);
    if (r < 0) return r;
    struct coming *c = coming_new(all, from);
    c->done = done;
    c->ctx = done_ctx;
    all->coming++;
    r = state_submit(all->state, add_work, add_done, c, e);
    if (r >= 0) return 0;
    all->coming--;
    coming_free(c);
    return r;
}
