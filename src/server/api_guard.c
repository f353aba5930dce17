/* What a person wants of a card's guard: checked against what is known, then sent to the node, whose sampler has the last
 * word. The server itself can set nothing. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/control.h"
#include "model/guard.h"
#include "model/guard_words.h"
#include "server/api.h"
#include "server/routes.h"
#include "server/server.h"

enum { HOUR_S = 3600, WEEK_S = 168 * HOUR_S };

const struct route_field api_guard_body[] = {
    {"limit_w",                                                          FIELD_NUMBER, false, "Never more than so many watts"},
    {"clock_mhz",                                                             FIELD_NUMBER, false, "Never more than this clock, where the card's guard moves clocks"},
    {"target_c",                                                                  FIELD_NUMBER, false, "Another target temperature"},
    {"for_s",FIELD_NUMBER, false, "How long it holds; an hour where it is not given, a week at most"},
    {"confirm_s", FIELD_NUMBER, false, "It is undone unless `confirm` comes within so many seconds"},
    {"confirm",                                                         FIELD_BOOL, false, "What was set stays for its time"},
    {"restore",                                                             FIELD_BOOL, false, "Back to the baseline; what was set by hand is forgotten"},
    {0                                                                 }
};

static int check_lever(const struct live_device *d, bool is_limit, bool is_clock, struct error *e) {
    const struct ring_guard *g = &d->guard;
    if (!d->has_guard || g->mode == RING_GUARD_OFF)
        return fail(e, -EBUSY, "the guard of this card is off, or not ready yet");
    if (!is_limit && !is_clock) return 0;
    if (g->lever == GUARD_BY_NONE) return fail(e, -EBUSY, "nothing of this card can be set (%s)", g->why);
    if (is_limit && g->lever != GUARD_BY_POWER)
        return fail(e, -EBUSY, "the guard of this card moves %s: give clock_mhz", guard_lever_words(g));
    if (is_clock && g->lever == GUARD_BY_POWER)
        return fail(e, -EBUSY, "the guard of this card moves the power limit: give limit_w");
    return 0;
}

static int wish_from(const struct call *c, const struct live_device *d, struct wire_order *o, struct error *e) {
    static const char *const names[] = {"limit_w", "clock_mhz", "target_c"};
    const char *name = NULL;
    int given = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (call_field(c, names[i])) name = names[i], given++;
    if (given != 1) return fail(e, -EINVAL, "one of limit_w, clock_mhz, target_c, confirm and restore is needed");
    bool is_limit = name == names[0], is_clock = name == names[1];
    int r = check_lever(d, is_limit, is_clock, e);
    if (r < 0) return r;
    bool is_target = !is_limit && !is_clock;
    double value, for_s, confirm_s;
    r = call_field_number(c, name, is_target ? 30 : d->guard.floor, is_target ? 120 : d->guard.baseline, 0, &value, e);
    if (r >= 0) r = call_field_number(c, "for_s", 1, WEEK_S, HOUR_S, &for_s, e);
    if (r >= 0) r = call_field_number(c, "confirm_s", 1, HOUR_S, 0, &confirm_s, e);
    if (r < 0) return r;
    if (confirm_s > for_s)
        return fail(e, -EINVAL, "confirm_s: longer than for_s: there would be nothing left to confirm");
    o->verb = CONTROL_GUARD_SET;
    o->value[0] = is_target ? CONTROL_GUARD_TARGET : CONTROL_GUARD_LIMIT;
    o->value[1] = llround(value * 1000);
    o->value[2] = llround(for_s * 1000);
    o->value[3] = llround(confirm_s * 1000);
    return 0;
}

static void order_done(void *ctx, int result, const char *sentence) {
    struct call *c = ctx;
    struct error e = {0};
    if (result < 0) fail(&e, result, "%s", sentence);
    if (result >= 0) {
        json_open(&c->out, '{');
        json_pair_bool(&c->out, "accepted", true);
        json_close(&c->out, '}');
        buf_putc(&c->out, '\n');
    }
    call_end(c, result < 0 ? result : 202, &e);
}

static bool is_true(const char *text) { return text && strcmp(text, "true") == 0; }

int api_guard(struct call *c, struct error *e) {
    struct live_node *n;
    const struct live_device *d = live_find_gpu(&c->server->live, c->param[0], &n);
    struct wire_order o = {0};
    if (!d) return fail(e, -ENOENT, "no GPU with this UUID is known");
    snprintf(o.uuid, sizeof o.uuid, "%s", d->is.uuid);
    bool confirms = is_true(call_field(c, "confirm")), restores = is_true(call_field(c, "restore"));
    int given = 0;
    for (int i = 0; api_guard_body[i].name; i++) given += call_field(c, api_guard_body[i].name) != NULL;
    if ((confirms || restores) && given != 1) return fail(e, -EINVAL, "confirm and restore stand alone");
    o.verb = confirms ? CONTROL_GUARD_CONFIRM : CONTROL_GUARD_RESTORE;
    int r = confirms || restores ? 0 : wish_from(c, d, &o, e);
    if (r >= 0) r = link_order(c->server->links, n, &o, order_done, c, e);
    return r < 0 ? r : CALL_LATER;
}
