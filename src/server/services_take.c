/* Services on their way in: looked at, tried on their machine, stored, and only then acknowledged. A record says itself whether it
 * is a new service or another revision of one (service.update), so that its owner's seal covers that, too. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "server/services_own.h"

struct taking {
    struct services *services;
    struct buf record, seal;
    uint32_t uid;
    char user[64];
    char *account, *node;
    enum queue_origin origin;
    char ask[QUEUE_ASK];
    int64_t id; /* of what it became */
    queue_submitted_fn done;
    void *ctx;
};

static void taking_free(struct taking *t) {
    buf_done(&t->record);
    buf_done(&t->seal);
    free(t->account);
    free(t->node);
    free(t);
}

bool services_is_own(const struct job_spec *s) { return s->service.count > 0; }

/* ---- what cannot be ---- */

/* Accounts that share one Unix user are told apart by their names; whoever sits at the machine as that user is him. */
static struct service_one *own_of_name(const struct services *s, const struct taking *t, const char *name) {
    struct service_one *found = NULL;
    for (size_t i = 0; i < s->count; i++) {
        struct service_one *o = s->of[i];
        if (o->uid != t->uid || strcmp(o->name, name) != 0) continue;
        if (strcmp(o->account, t->account) == 0) return o;
        if (!*o->account || !*t->account) found = o;
    }
    return found;
}

/* Ports of processes are the machine's; those of containers are their own. */
static int host_port(const struct service_revision *v) { return *v->spec.image ? 0 : v->rules.port; }

static int check_port(const struct services *s, const struct service_one *self, const struct job_spec *spec,
                      const struct service_spec *rules, const char *node, struct error *e) {
    if (*spec->image || !rules->port) return 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct service_one *o = s->of[i];
        const struct service_revision *v = service_revision_of(o, o->life.revision);
        if (!v || strcmp(o->node, node) != 0 || host_port(v) != rules->port) continue;
        if (o != self)
            return fail(e, -EEXIST, "service.health.port: %d is that of service %s (%s)", rules->port, o->name,
                        o->user);
        bool is_serving = service_state(&o->life) == SERVICE_IS_HEALTHY;
        if (rules->update == SERVICE_BESIDE && is_serving)
            return fail(e, -EEXIST,
                        "service.health.port: %d is the old one's; beside it the new one needs another, or --replace "
                        "ends the old one first",
                        rules->port);
    }
    return 0;
}

static int check(const struct taking *t, struct job_spec *spec, struct service_spec *rules, struct service_one **ret,
                 struct error *e) {
    struct services *s = t->services;
    int r = job_decode(t->record.s, t->record.len, spec, e);
    if (r >= 0) r = service_spec_read(&spec->service, rules, e);
    if (r >= 0) r = queue_admit(s->queue, spec, t->node, e);
    if (r < 0) return r;
    if (strspn(spec->name, "0123456789") == strlen(spec->name))
        return fail(e, -EINVAL, "name: %.40s could be a service's number", spec->name);
    if (strchr(spec->name, '/')) /* it is a part of paths: nobody could ask for it by name */
        return fail(e, -EINVAL, "name: %.40s: a service's has no slash", spec->name);
    struct service_one *old = *ret = own_of_name(s, t, spec->name);
    if (rules->update == SERVICE_NEW && old)
        return fail(e, -EEXIST, "name: there is a service %s already; `gpumgr service update` changes it", spec->name);
    if (rules->update != SERVICE_NEW && !old)
        return fail(e, -ENOENT, "name: %s has no service %s; `gpumgr service add` makes one",
                    *t->account ? t->account : t->user, spec->name);
    if (old && strcmp(old->node, t->node) != 0)
        return fail(e, -EINVAL, "service %s is on %s, and this came from %s", old->name, old->node, t->node);
    if (!old && s->count >= SERVICES_MAX)
        return fail(e, -EAGAIN, "there are %zu services; no more than that", s->count);
    return check_port(s, old, spec, rules, t->node, e);
}

/* ---- it is good ---- */

static void stored(void *ctx, int result, const struct error *e) {
    struct taking *t = ctx;
    CRASH_POINT();
    t->done(t->ctx, result, t->id, e);
    taking_free(t);
}

static void add_ack(struct service_one *o, struct taking *t) {
    struct service_ack *a = malloc(sizeof *a);
    if (!a) abort();
    *a = (struct service_ack){o->acks, stored, t};
    o->acks = a;
}

static int make_new(struct taking *t, const struct job_spec *spec, struct service_revision_row *v, struct error *e) {
    struct services *s = t->services;
    const struct service_row row = {.id = s->last_id + 1,
                                    .made_ns = v->made_ns,
                                    .uid = t->uid,
                                    .origin = (uint8_t)t->origin,
                                    .name = spec->name,
                                    .user = t->user,
                                    .account = t->account,
                                    .node = t->node};
    struct service_one *o = service_one_new(&row);
    v->service = row.id;
    v->number = o->life.revision = 1;
    int r = service_revision_add(o, v, false, e);
    if (r < 0) {
        service_one_free(o);
        return r;
    }
    service_one_add(s, o);
    t->id = o->id;
    add_ack(o, t);
    service_touch(s, o);
    return 0;
}

static int make_revision(struct taking *t, struct service_one *o, const struct service_spec *rules,
                         struct service_revision_row *v, struct error *e) {
    v->service = o->id;
    v->number = o->revision[o->revisions - 1]->number + 1;
    int r = service_update(&o->life, v->number, rules->update == SERVICE_REPLACE, e);
    if (r < 0) return fail_in(e, r, "service %s", o->name);
    r = service_revision_add(o, v, false, e);
    if (r < 0) return r; /* it was decoded a moment ago */
    t->id = o->id;
    add_ack(o, t);
    service_touch(t->services, o);
    return 0;
}

/* Taken before, by an answer that got lost: the same answer, when the file has it. */
static bool is_known(struct taking *t) {
    struct services *s = t->services;
    for (size_t i = 0; *t->ask && i < s->count; i++) {
        if (s->of[i]->is_leaving) continue;
        for (size_t k = 0; k < s->of[i]->revisions; k++) {
            if (strcmp(s->of[i]->revision[k]->ask, t->ask) != 0) continue;
            t->id = s->of[i]->id;
            add_ack(s->of[i], t);
            service_touch(s, s->of[i]);
            return true;
        }
    }
    return false;
}

static int finish(struct taking *t, struct error *e) {
    struct job_spec spec;
    struct service_spec rules;
    struct service_one *old = NULL;
    if (is_known(t)) return 0;
    int r = check(t, &spec, &rules, &old, e); /* much may have happened while the node looked */
    if (r < 0) return r;
    struct service_revision_row v = {.made_ns = clock_real_ns(),
                                     .by = *t->account ? t->account : t->user,
                                     .ask = t->ask,
                                     .record = t->record.s,
                                     .record_len = t->record.len,
                                     .seal = t->seal.s,
                                     .seal_len = t->seal.len};
    return old ? make_revision(t, old, &rules, &v, e) : make_new(t, &spec, &v, e);
}

static void tried(void *ctx, int result, const char *sentence) {
    struct taking *t = ctx;
    struct error e;
    CRASH_POINT();
    int r = result < 0 ? fail(&e, result, "%s", sentence) : finish(t, &e);
    if (r >= 0) return;
    t->done(t->ctx, r, 0, &e);
    taking_free(t);
}

static char *copy(const char *text) {
    char *s = strdup(text);
    if (!s) abort();
    return s;
}

int services_take(void *ctx, const struct queue_submit *from, queue_submitted_fn done, void *done_ctx,
                  struct error *e) {
    struct services *s = ctx;
    const struct wire_sealed *in = &from->jobs[0];
    struct taking *t = calloc(1, sizeof *t);
    if (!t) abort();
    *t = (struct taking){.services = s,
                         .uid = in->uid,
                         .account = copy(from->account),
                         .node = copy(from->node),
                         .origin = from->origin,
                         .done = done,
                         .ctx = done_ctx};
    snprintf(t->user, sizeof t->user, "%s", in->user);
    buf_add(&t->record, in->record, in->record_len);
    buf_add(&t->seal, in->seal, in->seal_len);
    queue_ask_text(from, t->ask);
    if (is_known(t)) return 0;
    struct job_spec spec;
    struct service_spec rules;
    struct service_one *old = NULL;
    int r = check(t, &spec, &rules, &old, e);
    if (r >= 0) r = queue_try(s->queue, t->node, t->uid, t->record.s, t->record.len, tried, t, e);
    if (r < 0) taking_free(t);
    return r;
}
