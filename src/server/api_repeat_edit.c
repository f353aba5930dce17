/* Changing a repeating job by the API: the change is shown, what runs something else is sealed by the node for the caller's account,
 * and the answer comes when the state file has it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/accounts.h"
#include "server/api.h"
#include "server/repeat.h"
#include "server/server.h"

const struct route_field api_edit_query[] = {
    {"dry_run", FIELD_BOOL, false, "Nothing is changed: says what would be"},
    {0   }
};

struct editing {
    struct call *call;
    int64_t id;
    bool is_dry;
    char ask[160];
    struct repeat_patched to;
};

static void editing_free(struct editing *d) {
    repeat_patched_done(&d->to);
    free(d);
}

static void put_answer(struct editing *d, const struct buf *times) {
    struct buf *b = &d->call->out;
    json_open(b, '{');
    json_pair_int(b, "id", d->id);
    json_pair_bool(b, "dry_run", d->is_dry);
    json_key(b, "changes");
    buf_puts(b, d->to.changes.s);
    json_pair_bool(b, "seals", d->to.is_job_new);
    json_key(b, "times");
    buf_puts(b, times->s);
    if (d->is_dry) {
        json_key(b, "job");
        buf_puts(b, d->to.document.s);
    }
    json_close(b, '}');
    buf_putc(b, '\n');
}

static void changed(void *ctx, int result, const struct buf *times, const struct error *e) {
    struct editing *d = ctx;
    if (result >= 0) put_answer(d, times);
    call_end(d->call, result < 0 ? result : 0, e);
    editing_free(d);
}

static int change(struct editing *d, const struct wire_sealed *sealed, struct error *e) {
    const struct repeat_change c = {.id = d->id,
                                    .times = &d->to.times,
                                    .sealed = sealed,
                                    .origin = QUEUE_BY_ACCOUNT,
                                    .account = d->call->who.name,
                                    .ask = d->ask,
                                    .is_dry = d->is_dry || d->to.is_same};
    return repeat_change(d->call->server->repeats, &c, changed, d, e);
}

static void sealed(void *ctx, int result, const struct wire_sealed *s, const char *sentence) {
    struct editing *d = ctx;
    struct error e;
    int r = result < 0 ? fail(&e, result, "%s", sentence) : change(d, s, &e);
    if (r >= 0) return;
    call_end(d->call, r, &e);
    editing_free(d);
}

static int go_on(struct editing *d, struct error *e) {
    const struct call *c = d->call;
    if (d->is_dry || d->to.is_same || !d->to.is_job_new) return change(d, NULL, e);
    if (!c->who.user)
        return fail(e, -EACCES, "%s has no account here: change what it runs with `gpumgr repeat edit`, or sign in",
                    c->who.name);
    return queue_seal(c->server->queue, d->to.node, c->who.name, c->who.role == ROLE_ADMIN, &d->to.record, sealed, d,
                      e);
}

int api_repeat_edit(struct call *c, struct error *e) {
    const struct queue_who who = api_who(c);
    const struct buf *body = &c->request->body;
    const char *key;
    int64_t id = 0;
    int r = accounts_id("repeat", c->param[0], &id, e);
    if (r >= 0) r = call_key(c, &key, e);
    if (r < 0) return r;
    struct editing *d = calloc(1, sizeof *d);
    if (!d) abort();
    *d = (struct editing){.call = c, .id = id, .is_dry = call_query_is_true(c, "dry_run")};
    if (*key) snprintf(d->ask, sizeof d->ask, "%.63s:%.64s", c->who.name, key);
    r = repeat_patch(c->server->repeats, &who, id, body->s ? body->s : "", body->len, &d->to, e);
    if (r >= 0) r = go_on(d, e);
    if (r >= 0) return CALL_LATER;
    editing_free(d);
    return r;
}
