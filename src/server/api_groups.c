/* Groups: read from memory, changed in the state file first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/routes.h"
#include "server/server.h"
#include "server/state_groups.h"

const struct route_field api_group_body[] = {
    {"members", FIELD_LIST, true, "`gpu:UUID` and `node:NAME`, as many as there are"},
    {"label",     FIELD_TEXT, false, "A name for people"},
    {0        }
};

int api_groups(struct call *c, struct error *e) {
    const struct groups *g = &c->server->groups;
    json_open(&c->out, '{');
    json_key(&c->out, "groups");
    json_open(&c->out, '[');
    for (size_t i = 0; i < g->count; i++) groups_json(&c->out, &g->of[i]);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

int api_group(struct call *c, struct error *e) {
    const struct group *g = groups_find(&c->server->groups, c->param[0]);
    if (!g) return fail(e, -ENOENT, "there is no group of this name");
    groups_json(&c->out, g);
    buf_putc(&c->out, '\n');
    return 0;
}

/* A change on its way to the file. The call owns the texts. */
struct change {
    struct call *call;
    const char *name, *label, *members;
    int64_t now_s;
    bool is_new;
};

static int put_work(struct sql *db, void *ctx, struct error *e) {
    struct change *ch = ctx;
    struct state_group g = {ch->name, ch->label, ch->members, ch->now_s};
    return state_group_put(db, &g, e);
}

static void put_done(void *ctx, int result, const struct error *e) {
    struct change *ch = ctx;
    struct call *c = ch->call;
    struct groups *groups = &c->server->groups;
    if (result >= 0) {
        groups_put(groups, ch->name, ch->label, ch->members, ch->now_s);
        groups_json(&c->out, groups_find(groups, ch->name));
        buf_putc(&c->out, '\n');
    }
    call_end(c, result < 0 ? result : ch->is_new ? 201 : 200, e);
    free(ch);
}

static int drop_work(struct sql *db, void *ctx, struct error *e) {
    const struct change *ch = ctx;
    return state_group_drop(db, ch->name, e);
}

static void drop_done(void *ctx, int result, const struct error *e) {
    struct change *ch = ctx;
    if (result >= 0) groups_drop(&ch->call->server->groups, ch->name);
    call_end(ch->call, result < 0 ? result : 0, e);
    free(ch);
}

int api_group_put(struct call *c, struct error *e) {
    const struct groups *groups = &c->server->groups;
    const char *label = call_field(c, "label"), *members = call_field(c, "members");
    struct change ch = {c, c->param[0], label ? label : "", members, clock_real_ns() / NS_PER_S, false};
    ch.is_new = !groups_find(groups, ch.name);
    int r = groups_check_name(ch.name, e);
    if (r >= 0) r = groups_check_members(members, e);
    if (r < 0) return r;
    if (strlen(ch.label) > GROUP_LABEL_MAX) return fail(e, -EINVAL, "label: longer than %d bytes", GROUP_LABEL_MAX);
    if (ch.is_new && groups->count >= STATE_GROUPS_MAX)
        return fail(e, -EBUSY, "there are %d groups already", STATE_GROUPS_MAX);
    return call_store(c, &ch, sizeof ch, put_work, put_done, e);
}

int api_group_drop(struct call *c, struct error *e) {
    struct change ch = {.call = c, .name = c->param[0]};
    if (!groups_find(&c->server->groups, ch.name)) return fail(e, -ENOENT, "there is no group of this name");
    return call_store(c, &ch, sizeof ch, drop_work, drop_done, e);
}
