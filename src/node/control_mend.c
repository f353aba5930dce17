/* Changes that were interrupted: whoever was killed, names and a label say how far a change came.
 *
 *   OLD and NAME-gpumgr-new-up      made, not yet in use: the new one goes, the old one runs again
 *   NAME-gpumgr-up alone            the old one gets its name back, and runs again
 *   NAME-gpumgr-up and a new one    the new one stays if it runs; else the old one comes back
 *
 * and the same with -down, where the old one did not run. Which is whose, the label gpumgr.from of the new one says, which only
 * gpumgr sets; a name alone says nothing, for others give names, too. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/container.h"
#include "node/control_make.h"

static bool ends_with(const char *name, const char *tail, char *ret_base, size_t room) {
    size_t n = strlen(name), t = strlen(tail);
    if (n <= t || strcmp(name + n - t, tail) != 0) return false;
    snprintf(ret_base, room, "%.*s", (int)(n - t), name);
    return true;
}

static bool is_new(const char *name) {
    char base[160];
    return ends_with(name, EDIT_NEW_UP, base, sizeof base) || ends_with(name, EDIT_NEW_DOWN, base, sizeof base);
}

/* The one that was made of this one: its id, or "". */
static void successor(struct json_slice list, const char *id, char ret[72]) {
    struct json_slice key, one;
    ret[0] = 0;
    for (size_t at = 0; json_slice_next(list, &at, &key, &one);) {
        AUTO(buf_done) struct buf from = {0}, own = {0};
        json_slice_text(json_slice_get(json_slice_get(one, "Labels"), EDIT_FROM), &from);
        if (!from.len || strcmp(from.s, id) != 0) continue;
        json_slice_text(json_slice_get(one, "Id"), &own);
        snprintf(ret, 72, "%s", own.len ? own.s : "");
    }
}

static bool mend_old(struct control *c, struct json_slice list, const struct control_seen *old, const char *base,
                     bool was_up) {
    AUTO(control_seen_done) struct control_seen now = {0};
    struct error e;
    char id[72];
    successor(list, old->id, id);
    int r = *id ? control_see(c, id, &now, &e) : -ENOENT;
    if (r < 0 && r != -ENOENT) return false;
    bool is_done = r >= 0 && !is_new(now.name) && (now.is_running || !was_up);
    if (is_done) {
        make_let_go(c, old->pin);
        return edit_force_away(c, old->id) >= 0;
    }
    struct control_seen before = *old;
    snprintf(before.name, sizeof before.name, "%s", base);
    before.is_running = was_up;
    if (r >= 0) make_let_go(c, now.pin);
    return edit_put_back(c, &before, r >= 0 ? now.id : "", true) >= 0;
}

/* It was made, and nothing was done with it yet but that the old one may have been stopped, or set aside: then it is seen to there. */
static bool mend_new(struct control *c, const struct control_seen *fresh, const char *base, bool was_up) {
    AUTO(control_seen_done) struct control_seen old = {0};
    AUTO(buf_done) struct buf from = {0};
    struct error e;
    json_slice_text(json_slice_get(fresh->labels, EDIT_FROM), &from);
    if (!from.len || !container_is_id(from.s)) return true; /* somebody else's */
    if (edit_force_away(c, fresh->id) < 0) return false;
    make_let_go(c, fresh->pin);
    int r = control_see(c, from.s, &old, &e);
    if (r < 0 || !was_up || old.is_running || strcmp(old.name, base) != 0) return r >= 0 || r == -ENOENT;
    return control_post(c, old.id, "start", MAKE_S, &e) >= 0;
}

static bool mend_one(struct control *c, struct json_slice list, const struct control_seen *s) {
    char base[160];
    struct error e;
    if (ends_with(s->name, EDIT_NEW_UP, base, sizeof base)) return mend_new(c, s, base, true);
    if (ends_with(s->name, EDIT_NEW_DOWN, base, sizeof base)) return mend_new(c, s, base, false);
    if (ends_with(s->name, EDIT_UP, base, sizeof base)) return mend_old(c, list, s, base, true);
    if (ends_with(s->name, EDIT_DOWN, base, sizeof base)) return mend_old(c, list, s, base, false);
    if (!control_was_kept(s)) return true;
    return control_ready(c, s, true, &e) >= 0 && control_post(c, s->id, "start", MAKE_S, &e) >= 0;
}

bool control_mend(struct control *c) {
    AUTO(buf_done) struct buf text = {0};
    struct json_slice key, one;
    struct error e;
    bool is_whole = true;
    if (control_get(c, "/containers/json?all=1", "", &text, &e) < 0) return false;
    const struct json_slice list = {text.s, text.len};
    for (size_t at = 0; json_slice_next(list, &at, &key, &one);) {
        AUTO(buf_done) struct buf id = {0};
        struct json_slice names = json_slice_get(one, "Names");
        bool is_between = names.len && memmem(names.s, names.len, CONTAINER_NAME_OURS, strlen(CONTAINER_NAME_OURS));
        if (!is_between && !json_slice_get(json_slice_get(one, "Labels"), "gpumgr.pin").len) continue;
        json_slice_text(json_slice_get(one, "Id"), &id);
        struct control_seen s = {0};
        int r = control_see(c, id.s ? id.s : "", &s, &e);
        if (r >= 0) is_whole &= mend_one(c, list, &s);
        if (r < 0 && r != -ENOENT) is_whole = false; /* one that is gone was seen to, with the other */
        control_seen_done(&s);
    }
    return is_whole;
}
