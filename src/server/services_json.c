/* Services as the API shows them: one writer for the list and for one of them. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "model/job_json.h"
#include "server/services_own.h"

static void put_number(struct buf *b, const char *key, int64_t n) {
    json_key(b, key);
    if (n > 0)
        json_int(b, n);
    else
        json_nil(b);
}

/* The newest last, as a strip is read. */
static void put_checks(struct buf *b, const struct service_one *o) {
    unsigned count = o->checks < SERVICE_CHECKS ? o->checks : SERVICE_CHECKS;
    json_key(b, "checks");
    json_open(b, '[');
    for (unsigned i = o->checks - count; i < o->checks; i++) {
        const struct service_check *c = &o->check[i % SERVICE_CHECKS];
        json_open(b, '{');
        json_pair_time(b, "time", c->at_ns);
        json_pair_int(b, "job", c->job);
        json_pair_bool(b, "ok", c->is_good);
        json_pair_num(b, "took_s", c->took_ms / 1e3);
        json_close(b, '}');
    }
    json_close(b, ']');
    bool is_bad = count && !o->check[(o->checks - 1) % SERVICE_CHECKS].is_good;
    json_pair_text(b, "check_text", is_bad ? o->check_text : "");
}

static void put_revisions(struct buf *b, const struct service_one *o) {
    json_key(b, "revisions");
    json_open(b, '[');
    for (size_t i = o->revisions; i > 0; i--) {
        const struct service_revision *v = o->revision[i - 1];
        json_open(b, '{');
        json_pair_int(b, "number", v->number);
        json_pair_time(b, "made", v->made_ns);
        json_pair_str(b, "by", v->by);
        json_key(b, "job");
        json_open(b, '{');
        job_json_members(b, &v->spec);
        json_close(b, '}');
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void put_jobs(struct services *s, struct buf *b, const struct service_one *o) {
    const struct service_slot *slots[] = {&o->life.now, &o->life.next, &o->life.old};
    json_key(b, "jobs");
    json_open(b, '[');
    for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
        const struct queue_job *j = slots[i]->job > 0 ? queue_find(s->queue, slots[i]->job) : NULL;
        if (j) queue_json_job(s->queue, b, j);
    }
    json_close(b, ']');
}

/* Of the run that is to become healthy: since when it runs, and by when its checks must pass. */
static void put_starting(struct buf *b, const struct service *l, const struct service_revision *v) {
    const struct service_slot *t = l->next.job ? &l->next : &l->now;
    bool is_it = t->job && t->phase == SERVICE_STARTING && t->is_running;
    json_pair_time(b, "starting_since", is_it ? t->since_ns : 0);
    json_pair_time(b, "starting_until", is_it && v && v->rules.probe ? t->since_ns + v->rules.grace_ns : 0);
}

static void put_one(struct services *s, struct buf *b, const struct service_one *o, bool is_whole) {
    const struct service *l = &o->life;
    const struct service_revision *v = service_revision_of(o, l->revision);
    json_open(b, '{');
    json_pair_int(b, "id", o->id);
    json_pair_str(b, "name", o->name);
    json_pair_str(b, "state", service_state_name(service_state(l)));
    json_pair_text(b, "text", l->text);
    json_pair_str(b, "user", o->user);
    json_pair_int(b, "uid", o->uid);
    json_pair_text(b, "account", o->account);
    json_pair_str(b, "node", o->node);
    json_pair_time(b, "made", o->made_ns);
    json_pair_int(b, "revision", l->revision);
    put_number(b, "next_revision", l->next_revision ? l->next_revision : l->back_revision ? l->revision : 0);
    put_number(b, "job", l->now.job);
    put_number(b, "next_job", l->next.job);
    put_number(b, "old_job", l->old.job);
    json_pair_int(b, "restarts", l->restarts);
    json_pair_time(b, "healthy_since", l->well_ns);
    json_pair_time(b, "starts_at", l->now.phase == SERVICE_NONE && l->rest == SERVICE_GOES_ON ? l->due_ns : 0);
    const uint32_t next = l->next.job ? l->next.revision : l->revision;
    put_starting(b, l, service_revision_of(o, next));
    json_pair_int(b, "failures", l->now.failures);
    json_pair_str(b, "probe", v ? service_probe_name(v->rules.probe) : "none");
    if (v) {
        json_pair_str(b, "image", v->spec.image);
        json_pair_int(b, "gpus", v->spec.gpus);
        json_pair_int(b, "priority", v->spec.priority);
        json_key(b, "service");
        service_spec_json(b, &v->rules);
    }
    put_checks(b, o);
    if (is_whole) {
        put_revisions(b, o);
        put_jobs(s, b, o);
    }
    json_close(b, '}');
}

void services_json(struct services *s, struct buf *b) {
    for (size_t i = 0; i < s->count; i++) put_one(s, b, s->of[i], false);
}

bool services_json_one(struct services *s, struct buf *b, int64_t id) {
    const struct service_one *o = service_by_id(s, id);
    if (o) put_one(s, b, o, true);
    return o != NULL;
}

int services_json_spec(struct services *s, struct buf *b, int64_t id, uint32_t revision, const struct queue_who *who,
                       struct error *e) {
    const struct service_one *o = service_by_id(s, id);
    if (!o) return fail(e, -ENOENT, "there is no service %lld", (long long)id);
    if (!service_may(o, who)) return fail(e, -EACCES, "service %s is %s's", o->name, o->user);
    const struct service_revision *v = service_revision_of(o, revision ? revision : o->life.revision);
    if (!v) return fail(e, -ENOENT, "service %s has no revision %u", o->name, revision);
    job_json_spec(b, &v->spec);
    return 0;
}
