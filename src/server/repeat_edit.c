/* Changing a repeating job: what a document of some keys makes of it, and how that becomes durable. The times are the server's to
 * keep and need no new seal; what is run is its owner's, so a record that runs something else is sealed by the node again, for the
 * one who asks.
 *
 * No time is decided twice or by nobody: whatever is due by the old rule is decided by it first, and the new rule begins after the
 * moment of the change. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "model/job_json.h"
#include "server/edit_store.h"
#include "server/json_changes.h"
#include "server/repeat_own.h"

static void tree_free(struct json_tree **j) { json_tree_free(*j); }

/* ---- what it would become ---- */

void repeat_patched_done(struct repeat_patched *p) {
    buf_done(&p->document);
    buf_done(&p->record);
    buf_done(&p->times);
    buf_done(&p->changes);
}

static bool is_owner(const struct repeat *r, const struct queue_who *who) {
    return (who->has_uid && who->uid == r->uid) || (*who->account && strcmp(who->account, r->account) == 0);
}

/* The job as it is, under another rule. */
static void put_document(struct buf *b, const struct repeat *r, const struct repeat_spec *rule) {
    AUTO(buf_done) struct buf words = {0};
    struct job_spec job = r->job;
    repeat_spec_write(rule, &words);
    job.repeat = job_words_of(&words);
    job_json_spec(b, &job);
}

static int canonical(const char *text, size_t len, struct buf *ret_record, struct job_spec *ret, struct error *e) {
    int64_t now_ns = clock_real_ns();
    int r = job_json_record(text, len, now_ns, ret_record, e);
    if (r >= 0) r = job_decode(ret_record->s, ret_record->len, ret, e);
    return r < 0 ? r : job_check(ret, now_ns, e);
}

/* What says the same in other words goes. */
static void drop_others(struct json_tree *job, const struct json_tree *patch) {
    static const char *const instead[][2] = {
        {"gpu_ids", "gpus" },
        {"gpu_ids", "scope"},
    };
    static const char *const rules[] = {"cron", "interval"};
    const struct json_tree *rule = json_tree_get(patch, "repeat");
    struct json_tree *old = (struct json_tree *)(uintptr_t)json_tree_get(job, "repeat"); /* of a tree that is ours */
    for (size_t i = 0; i < ARRAY_LEN(instead); i++)
        if (json_tree_get(patch, instead[i][0])) json_tree_drop(job, instead[i][1]);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (json_tree_text(json_tree_get(rule, rules[i]), NULL)) json_tree_drop(old, rules[1 - i]);
}

static int check_patch(const struct json_tree *patch, struct error *e) {
    if (json_tree_type(patch) != JSON_TREE_OBJECT || json_tree_get(patch, "jobs"))
        return fail(e, -EINVAL,
                    "a change is one object of a job's keys, as in {\"repeat\": {\"cron\": \"0 4 * * *\"}}");
    if (json_tree_is_null(json_tree_get(patch, "repeat")))
        return fail(e, -EINVAL, "repeat: a repeating job has times; remove it instead");
    return 0;
}

/* Whether two documents say the same but for the rule, and what they say differently. */
static int compare(const struct repeat *r, const struct repeat_spec *rule, const struct repeat_spec *was,
                   const struct job_spec *fresh, struct repeat_patched *ret, struct error *e) {
    AUTO(buf_done) struct buf old = {0}, new = {0}, moved = {0}, record = {0}, other = {0};
    AUTO(tree_free) struct json_tree *from = NULL;
    AUTO(tree_free) struct json_tree *to = NULL;
    struct job_spec ignored;
    put_document(&old, r, was);
    job_json_spec(&new, fresh);
    int result = json_tree_parse(old.s, old.len, &from, e);
    if (result >= 0) result = json_tree_parse(new.s, new.len, &to, e);
    if (result < 0) return result;
    json_open(&ret->changes, '[');
    ret->is_same = json_changes(&ret->changes, "", from, to) == 0;
    json_close(&ret->changes, ']');
    put_document(&moved, r, rule); /* both by the same way, so that one meaning is one record */
    result = canonical(moved.s, moved.len, &record, &ignored, e);
    if (result >= 0) result = canonical(new.s, new.len, &other, &ignored, e);
    ret->is_job_new = result < 0 || record.len != other.len || memcmp(record.s, other.s, other.len) != 0;
    return 0;
}

int repeat_patch(const struct repeats *all, const struct queue_who *who, int64_t id, const char *json, size_t len,
                 struct repeat_patched *ret, struct error *e) {
    AUTO(buf_done) struct buf text = {0}, merged = {0}, record = {0};
    AUTO(tree_free) struct json_tree *job = NULL;
    AUTO(tree_free) struct json_tree *patch = NULL;
    struct job_spec spec;
    struct repeat_spec rule;
    const struct repeat *r = repeat_find(all, id);
    if (!r) return fail(e, -ENOENT, "there is no repeat %lld", (long long)id);
    if (!is_owner(r, who))
        return fail(e, -EACCES, "repeat %lld is %s's: nobody else changes what it does", (long long)id, r->user);
    struct repeat_spec was = r->spec;
    was.zone = r->zone_name; /* the server's own may be another by now */
    put_document(&text, r, &was);
    int result = json_tree_parse(text.s, text.len, &job, e);
    if (result >= 0) result = json_tree_parse(json, len, &patch, e);
    if (result >= 0) result = check_patch(patch, e);
    if (result < 0) return result;
    drop_others(job, patch);
    json_tree_patch(job, patch);
    json_tree_write(job, &merged);
    result = canonical(merged.s, merged.len, &record, &spec, e);
    if (result >= 0 && !spec.repeat.count) result = fail(e, -EINVAL, "repeat: a repeating job has times");
    if (result >= 0) result = repeat_spec_read(&spec.repeat, &rule, e);
    if (result >= 0) result = queue_admit(all->queue, &spec, r->node, e);
    if (result >= 0) result = compare(r, &rule, &was, &spec, ret, e);
    if (result >= 0 && ret->is_job_new && *who->account && *r->account && strcmp(who->account, r->account) != 0)
        result = fail(e, -EACCES, "repeat %lld was handed in by account %s: no other changes what it runs",
                      (long long)id, r->account);
    if (result < 0) return result;
    snprintf(ret->node, sizeof ret->node, "%s", r->node);
    rule.edits = 0;
    repeat_spec_write(&rule, &ret->times);
    rule.edits = id;
    buf_clear(&text);
    repeat_spec_write(&rule, &text);
    job_json_spec(&ret->document, &spec);
    spec.repeat = job_words_of(&text);
    job_encode(&spec, &ret->record);
    return 0;
}

/* ---- it becomes that ---- */

struct changing {
    struct repeats *all;
    struct repeat *fresh;
    struct repeat_step paused; /* times that went by while it was */
    int64_t now_s;
    char ask[QUEUE_ASK];
    bool is_dry, is_known;
    struct buf out;
    repeat_changed_fn done;
    void *ctx;
};

static void changing_free(struct changing *c) {
    repeat_free(c->fresh);
    buf_done(&c->out);
    free(c);
}

static struct repeat_row row_of(const struct repeat *r) {
    return (struct repeat_row){.id = r->id,
                               .made_ns = r->made_ns,
                               .mark_s = r->mark_s,
                               .uid = r->uid,
                               .user = r->user,
                               .account = r->account,
                               .node = r->node,
                               .zone = r->zone_name,
                               .origin = r->origin,
                               .record = r->record.s,
                               .record_len = r->record.len,
                               .seal = r->seal.s,
                               .seal_len = r->seal.len,
                               .times = r->times.s,
                               .times_len = r->times.len};
}

static int store(struct sql *db, const struct changing *c, struct error *e) {
    const struct repeat_row row = row_of(c->fresh);
    CRASH_POINT();
    int r =
        c->paused.count ? repeat_store_slots(db, row.id, c->paused.slot, c->paused.count, c->paused.mark_s, 0, e) : 0;
    if (r >= 0) r = repeat_store_change(db, &row, c->now_s, e);
    CRASH_POINT();
    if (r >= 0) r = edit_store_add(db, EDIT_OF_REPEAT, row.id, c->ask, e);
    CRASH_POINT();
    return r < 0 ? r : 0;
}

static int work(struct sql *db, void *ctx, struct error *e) {
    struct changing *c = ctx;
    struct repeat *f = c->fresh;
    struct zone zone = {0};
    char name[ZONE_NAME_MAX];
    int r = c->is_dry ? 0 : edit_store_known(db, EDIT_OF_REPEAT, f->id, c->ask, e);
    c->is_known = r > 0;
    if (r >= 0) r = repeat_zone(f->spec.zone, name, &zone, e);
    if (r < 0) return r;
    zone_done(&f->zone);
    f->zone = zone;
    memcpy(f->zone_name, name, sizeof name);
    repeat_mark(f, f->mark_s);
    buf_clear(&c->out);
    repeat_times_json(&c->out, f);
    if (c->is_known) return 0;
    if (f->next_s == RECUR_NEVER)
        return fail(e, -EINVAL, "repeat.%s: all of its times are over", *f->spec.cron ? "cron" : "interval");
    return c->is_dry ? 0 : store(db, c, e);
}

static void changed(void *ctx, int result, const struct error *e) {
    struct changing *c = ctx;
    struct repeats *all = c->all;
    struct repeat *old = repeat_find(all, c->fresh->id);
    CRASH_POINT();
    if (old && !c->is_dry) old->is_busy = false;
    if (old && result >= 0 && !c->is_dry && !c->is_known) {
        struct repeat *f = c->fresh;
        c->fresh = NULL;
        repeat_replace(all, f);
        repeat_tell(all, f, EVENT_INFO, "repeat_changed", "was changed");
        repeat_look(all, f);
    }
    c->done(c->ctx, result, &c->out, e);
    changing_free(c);
}

/* Whether the old rule has something to say first; it is made to say it. */
static bool is_due(struct repeats *all, struct repeat *r, int64_t now_s) {
    if (!r->is_busy && !r->is_paused && !*r->problem &&
        (r->next_s <= now_s || repeat_clock_was_wrong(r->mark_s, now_s)))
        repeat_look(all, r);
    return r->is_busy || (!r->is_paused && !*r->problem && r->next_s <= now_s);
}

static struct repeat *fresh_of(const struct repeat *old, const struct repeat_change *c, int64_t now_s,
                               struct error *e) {
    struct repeat_row row = row_of(old);
    struct zone none = {0};
    if (row.mark_s < now_s) row.mark_s = now_s;
    row.times = c->times->s;
    row.times_len = c->times->len;
    if (c->sealed) {
        row.origin = (uint8_t)c->origin;
        if (*c->account) row.account = c->account;
        row.record = c->sealed->record;
        row.record_len = c->sealed->record_len;
        row.seal = c->sealed->seal;
        row.seal_len = c->sealed->seal_len;
    }
    return repeat_new(&row, &none, e); /* its zone is read on the store thread */
}

int repeat_change(struct repeats *all, const struct repeat_change *c, repeat_changed_fn done, void *ctx,
                  struct error *e) {
    struct repeat *old = repeat_find(all, c->id);
    int64_t now_s = clock_real_ns() / NS_PER_S;
    if (!old) return fail(e, -ENOENT, "there is no repeat %lld", (long long)c->id);
    if (c->sealed && c->sealed->uid != old->uid)
        return fail(e, -EACCES, "repeat %lld is %s's, and this is %s's: nobody else changes what it does",
                    (long long)c->id, old->user, c->sealed->user);
    if (!c->is_dry && is_due(all, old, now_s))
        return fail(e, -EAGAIN, "repeat %lld: one of its times is being decided; ask again", (long long)c->id);
    struct repeat *fresh = fresh_of(old, c, now_s, e);
    if (!fresh) return -EINVAL;
    struct changing *n = calloc(1, sizeof *n);
    if (!n) abort();
    *n = (struct changing){.all = all, .fresh = fresh, .now_s = now_s, .is_dry = c->is_dry, .done = done, .ctx = ctx};
    snprintf(n->ask, sizeof n->ask, "%s", c->ask);
    if (old->is_paused && !*old->problem) {
        const struct repeat_now now = {.mark_s = old->mark_s, .now_s = now_s, .is_paused = true};
        repeat_step(&old->spec, &old->recur, &old->zone, &now, &n->paused);
    }
    int r = state_submit(all->state, work, changed, n, e);
    if (!c->is_dry) old->is_busy = r >= 0;
    if (r < 0) changing_free(n);
    return r;
}
