/* One container anew, with a change: everything of the old one that is not to be changed is passed on as the engine said it.
 *
 * The new container is made beside the old one, which keeps everything until the new one has started; control_mend.c puts right what
 * whoever is killed meanwhile leaves. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "node/control_make.h"

#define STOP_S 40
#define STEADY_NS (1500 * NS_PER_MS) /* one that runs for so long has started */
#define LOOK_NS (100 * NS_PER_MS)

/* ---- its description ---- */

static bool is_one_of(struct json_slice key, const char *const *names) {
    for (; *names; names++)
        if (key.len == strlen(*names) + 2 && memcmp(key.s + 1, *names, key.len - 2) == 0) return true;
    return false;
}

/* Members of an object but for some, and but for those that the image has in the same way. */
static void copy_members(struct buf *b, struct json_slice object, struct json_slice image, const char *const *except) {
    struct json_slice key, value, theirs, name;
    AUTO(buf_done) struct buf plain = {0};
    for (size_t at = 0; json_slice_next(object, &at, &key, &value);) {
        if (is_one_of(key, except)) continue;
        buf_clear(&plain);
        json_slice_text(key, &plain);
        theirs = image.len && plain.len ? json_slice_get(image, plain.s) : (struct json_slice){0};
        if (theirs.len && theirs.len == value.len && memcmp(theirs.s, value.s, value.len) == 0) continue;
        name = key;
        json_slice_put(name, b);
        buf_putc(b, ':');
        buf_add(b, value.s, value.len);
    }
}

/* GPUs of a container that was made elsewhere stay as they were asked for. */
static void copy_gpu_env(struct buf *b, struct json_slice env, struct json_slice image) {
    struct json_slice key, one, other;
    for (size_t at = 0; json_slice_next(env, &at, &key, &one);) {
        bool is_gpu = one.len > 24 && (memcmp(one.s, "\"NVIDIA_VISIBLE_DEVICES=", 24) == 0 ||
                                       memcmp(one.s, "\"CUDA_VISIBLE_DEVICES=", 22) == 0);
        bool is_image = false;
        for (size_t k = 0; json_slice_next(image, &k, &key, &other);)
            is_image |= other.len == one.len && memcmp(other.s, one.s, one.len) == 0;
        if (is_gpu && !is_image) json_slice_put(one, b);
    }
}

/* Podman says RLIMIT_NOFILE where it wants to hear nofile. */
static void put_ulimit(struct buf *b, struct json_slice limit) {
    AUTO(buf_done) struct buf name = {0};
    json_slice_text(json_slice_get(limit, "Name"), &name);
    bool is_long = name.len > 7 && strncmp(name.s, "RLIMIT_", 7) == 0;
    for (size_t i = 0; i < name.len; i++) name.s[i] = (char)tolower((unsigned char)name.s[i]);
    json_open(b, '{');
    json_pair_str(b, "Name", !name.len ? "" : is_long ? name.s + 7 : name.s);
    json_key(b, "Soft");
    json_slice_put(json_slice_get(limit, "Soft"), b);
    json_key(b, "Hard");
    json_slice_put(json_slice_get(limit, "Hard"), b);
    json_close(b, '}');
}

static void put_ulimits(struct buf *b, struct json_slice list) {
    struct json_slice key, one;
    json_key(b, "Ulimits");
    json_open(b, '[');
    for (size_t at = 0; json_slice_next(list, &at, &key, &one);) put_ulimit(b, one);
    json_close(b, ']');
}

/* Volumes are kept by their names, those without one in the description too; what is bound is bound as before or, of ours, anew. */
static void put_mounts(struct buf *b, const struct control_seen *s, const struct buf *fresh) {
    struct json_slice key, one;
    json_key(b, "Mounts");
    json_open(b, '[');
    if (s->is_ours) {
        struct json_slice mine = json_slice_get((struct json_slice){fresh->s, fresh->len}, "Mounts");
        for (size_t at = 0; json_slice_next(mine, &at, &key, &one);) json_slice_put(one, b);
    }
    for (size_t at = 0; json_slice_next(json_slice_get(s->host, "Mounts"), &at, &key, &one);) {
        bool is_bind = json_slice_is(json_slice_get(one, "Type"), "\"bind\"");
        bool is_volume = json_slice_is(json_slice_get(one, "Type"), "\"volume\"");
        if (!is_volume && !(is_bind && s->is_ours)) json_slice_put(one, b);
    }
    for (size_t at = 0; json_slice_next(json_slice_get(s->all, "Mounts"), &at, &key, &one);) {
        if (!json_slice_is(json_slice_get(one, "Type"), "\"volume\"")) continue;
        json_open(b, '{');
        json_pair_str(b, "Type", "volume");
        json_key(b, "Source");
        json_slice_put(json_slice_get(one, "Name"), b);
        json_key(b, "Target");
        json_slice_put(json_slice_get(one, "Destination"), b);
        json_pair_bool(b, "ReadOnly", json_slice_is(json_slice_get(one, "RW"), "false"));
        json_close(b, '}');
    }
    json_close(b, ']');
    json_key(b, "Binds");
    json_open(b, '[');
    for (size_t at = 0; json_slice_next(json_slice_get(s->host, "Binds"), &at, &key, &one);)
        if (!s->is_ours && one.len > 2 && one.s[1] == '/') json_slice_put(one, b); /* Podman says there what we bound */
    json_close(b, ']');
}

/* The container's own id is a name that its engine gave it. */
static void put_aliases(struct buf *b, struct json_slice all, const char *id) {
    struct json_slice key, one;
    json_key(b, "Aliases");
    json_open(b, '[');
    for (size_t at = 0; json_slice_next(all, &at, &key, &one);)
        if (one.len != 14 || memcmp(one.s + 1, id, 12) != 0) json_slice_put(one, b);
    json_close(b, ']');
}

/* What an endpoint was asked for, without what the engine made of it. */
static void put_endpoint(struct buf *b, struct json_slice endpoint, const char *id) {
    static const char *const keep[] = {"IPAMConfig", "Links", "DriverOpts"};
    json_open(b, '{');
    for (size_t i = 0; i < ARRAY_LEN(keep); i++) {
        struct json_slice v = json_slice_get(endpoint, keep[i]);
        if (!v.len) continue;
        json_key(b, keep[i]);
        json_slice_put(v, b);
    }
    put_aliases(b, json_slice_get(endpoint, "Aliases"), id);
    json_close(b, '}');
}

/* The network that it was made in: said by its name, its id or the beginning of that; the usual one has no name there. */
static bool is_first(const struct control_seen *s, struct json_slice name, struct json_slice endpoint) {
    struct json_slice mode = json_slice_get(s->host, "NetworkMode"), id = json_slice_get(endpoint, "NetworkID");
    struct json_slice all = json_slice_get(json_slice_get(s->all, "NetworkSettings"), "Networks"), key, other;
    if (mode.len <= 2 || json_slice_is(mode, "\"default\"")) return json_slice_is(name, "\"bridge\"");
    for (size_t at = 0; json_slice_next(all, &at, &key, &other);)
        if (key.len == mode.len && memcmp(key.s, mode.s, key.len) == 0) return key.s == name.s;
    return id.len >= mode.len && memcmp(id.s, mode.s, mode.len - 1) == 0;
}

static bool is_plain(struct json_slice name) {
    return json_slice_is(name, "\"bridge\"") || json_slice_is(name, "\"host\"") || json_slice_is(name, "\"none\"");
}

static void put_networks(struct buf *b, const struct control_seen *s) {
    struct json_slice key, one, all = json_slice_get(json_slice_get(s->all, "NetworkSettings"), "Networks");
    for (size_t at = 0; json_slice_next(all, &at, &key, &one);) {
        if (!is_first(s, key, one) || is_plain(key)) continue;
        json_key(b, "NetworkingConfig");
        buf_puts(b, "{\"EndpointsConfig\":{");
        json_slice_put(json_slice_get(s->host, "NetworkMode"), b); /* as the engine knows it already */
        buf_putc(b, ':');
        put_endpoint(b, one, s->id);
        buf_puts(b, "}}");
    }
}

static int join_networks(const struct control *c, const struct control_seen *s, const char *id, struct error *e) {
    struct json_slice key, one, all = json_slice_get(json_slice_get(s->all, "NetworkSettings"), "Networks");
    int r = 0;
    for (size_t at = 0; r >= 0 && json_slice_next(all, &at, &key, &one);) {
        AUTO(buf_done) struct buf target = {0}, body = {0}, answer = {0};
        if (is_first(s, key, one)) continue;
        buf_puts(&target, "/networks/");
        json_slice_text(key, &target);
        buf_puts(&target, "/connect");
        json_open(&body, '{');
        json_pair_str(&body, "Container", id);
        json_key(&body, "EndpointConfig");
        put_endpoint(&body, one, s->id);
        json_close(&body, '}');
        r = control_do(c, "POST", target.s, body.s, MAKE_S, &answer, e);
    }
    return r;
}

static void describe_again(const struct control *c, const struct control_seen *s, const struct making *m,
                           const struct buf *mounts, struct buf *b) {
    static const char *const ours[] = {"Image", "Cmd", "Env", "Labels", "WorkingDir", NULL};
    static const char *const ours_and_host[] = {"Image", "Cmd", "Env", "Labels", "WorkingDir", "Hostname", NULL};
    static const char *const host[] = {"Mounts", "Binds", "RestartPolicy", "Ulimits", NULL};
    static const char *const host_and_gpus[] = {"Mounts", "Binds", "RestartPolicy", "DeviceRequests", "Ulimits", NULL};
    struct json_slice image = json_slice_get((struct json_slice){s->image_json.s, s->image_json.len}, "Config");
    struct json_slice hostname = json_slice_get(s->config, "Hostname");
    bool is_own_name = hostname.len == 14 && memcmp(hostname.s + 1, s->id, 12) == 0; /* as the engine gives them */
    json_open(b, '{');
    json_pair_str(b, "Image", m->spec->image);
    if (m->spec->command.count) make_words(b, "Cmd", &m->spec->command);
    if (*m->spec->cwd) json_pair_str(b, "WorkingDir", m->spec->cwd);
    json_key(b, "Env");
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(&m->spec->env, at));) json_str(b, at);
    if (m->is_ours)
        make_gpu_env(b, m->gpus);
    else
        copy_gpu_env(b, json_slice_get(s->config, "Env"), json_slice_get(image, "Env"));
    json_close(b, ']');
    make_labels(b, m);
    copy_members(b, s->config, image, is_own_name ? ours_and_host : ours);
    json_key(b, "HostConfig");
    json_open(b, '{');
    copy_members(b, s->host, (struct json_slice){0}, m->is_ours ? host_and_gpus : host);
    put_ulimits(b, json_slice_get(s->host, "Ulimits"));
    put_mounts(b, s, mounts);
    if (m->is_ours) make_devices(c, b, m->gpus);
    make_restart(b, m->spec->restart);
    json_close(b, '}');
    put_networks(b, s);
    json_close(b, '}');
}

/* ---- what would change ---- */

struct changes {
    struct buf *b;
    unsigned count;
};

static void on_change(void *ctx, const char *key, const char *from, const char *to) {
    struct changes *all = ctx;
    all->count++;
    json_open(all->b, '{');
    json_pair_str(all->b, "key", key);
    json_key(all->b, "from");
    if (from)
        json_str(all->b, from);
    else
        json_nil(all->b);
    json_key(all->b, "to");
    if (to)
        json_str(all->b, to);
    else
        json_nil(all->b);
    json_close(all->b, '}');
}

static int check_change(const struct control_seen *s, const struct container_spec *from,
                        const struct container_spec *to, struct error *e) {
    bool has_mounts = from->mounts.len != to->mounts.len || memcmp(from->mounts.s, to->mounts.s, to->mounts.len) != 0;
    bool has_gpus = from->gpus != to->gpus || from->scope.len != to->scope.len ||
                    memcmp(from->scope.s, to->scope.s, to->scope.len) != 0;
    if (!s->is_ours && (has_mounts || has_gpus))
        return fail(e, -EINVAL, "%s: of a container that was made elsewhere these stay as they are; add a new one",
                    has_mounts ? "mounts" : "gpus");
    if (json_slice_is(json_slice_get(s->host, "AutoRemove"), "true"))
        return fail(e, -EINVAL, "container %s was started with --rm: it could not be kept until the new one runs",
                    s->name);
    return 0;
}

/* ---- the steps ---- */

int edit_rename(const struct control *c, const char *id, const char *name, struct error *e) {
    AUTO(buf_done) struct buf answer = {0}, target = {0};
    buf_printf(&target, "/containers/%s/rename?name=%s", id, name);
    int r = control_do(c, "POST", target.s, NULL, MAKE_S, &answer, e);
    return r == -EEXIST ? fail(e, -EEXIST, "name: there is a container %s already", name) : r;
}

/* One that ends at once with an error has not started. */
static int steady(const struct control *c, const char *id, struct error *e) {
    int64_t until_ns = clock_boot_ns() + STEADY_NS;
    int r = 0;
    while (r >= 0 && clock_boot_ns() < until_ns) {
        struct control_seen s = {0};
        r = control_see(c, id, &s, e);
        struct json_slice code = json_slice_get(s.state, "ExitCode");
        bool is_down = r >= 0 && !s.is_running, is_good = json_slice_is(code, "0");
        bool restarts = r >= 0 && json_slice_is(json_slice_get(s.state, "Restarting"), "true");
        if ((is_down && !is_good) || restarts)
            r = fail(e, -EIO, "the new container ended at once with exit code %.*s", (int)code.len, code.s);
        control_seen_done(&s);
        if (is_down && is_good) break;
        clock_sleep_until(clock_boot_ns() + LOOK_NS);
    }
    return r;
}

int edit_force_away(const struct control *c, const char *id) {
    AUTO(buf_done) struct buf answer = {0}, target = {0};
    struct error ignored;
    buf_printf(&target, "/containers/%s?force=1", id); /* volumes stay: the other one has them */
    int r = control_do(c, "DELETE", target.s, NULL, MAKE_S, &answer, &ignored);
    return r == -ENOENT ? 0 : r;
}

/* The old one as it was. What fails here is tried again by control_mend. */
int edit_put_back(const struct control *c, const struct control_seen *old, const char *new_id, bool is_aside) {
    struct error ignored;
    int r = *new_id ? edit_force_away(c, new_id) : 0;
    if (r >= 0 && is_aside) r = edit_rename(c, old->id, old->name, &ignored);
    if (r >= 0 && old->is_running) r = control_post(c, old->id, "start", MAKE_S, &ignored);
    return r;
}

/* Only what stands still gets another name: engines stumble over others. */
static int swap(struct control *c, const struct control_seen *old, const char *new_id, const char *name,
                struct error *e) {
    char aside[200];
    snprintf(aside, sizeof aside, "%s%s", old->name, old->is_running ? EDIT_UP : EDIT_DOWN);
    int r = old->is_running ? control_post(c, old->id, "stop?t=10", STOP_S, e) : 0;
    if (r >= 0) r = edit_rename(c, old->id, aside, e);
    bool is_aside = r >= 0;
    if (r >= 0) r = edit_rename(c, new_id, name, e);
    if (r >= 0 && old->is_running) r = control_post(c, new_id, "start", MAKE_S, e);
    if (r >= 0 && old->is_running) r = steady(c, new_id, e);
    if (r >= 0) return 0;
    bool is_back = edit_put_back(c, old, new_id, is_aside) >= 0;
    struct error why = *e;
    return is_back ? fail(e, r, "%.160s; %s is as it was before", why.text, old->name)
                   : fail(e, r, "%.160s; %s is put back as soon as the engine answers", why.text, old->name);
}

static int check_name(const struct control *c, const char *from, const char *to, struct error *e) {
    AUTO(control_seen_done) struct control_seen other = {0};
    struct error ignored;
    if (strcmp(from, to) == 0 || control_see(c, to, &other, &ignored) == -ENOENT) return 0;
    return fail(e, -EEXIST, "name: there is a container %s already", to);
}

static int make_anew(struct control *c, struct control_seen *s, const struct container_spec *to, struct error *e) {
    AUTO(buf_done) struct buf mounts = {0}, body = {0};
    char gpus[4096] = "", pin[40], id[72], temporary[200];
    struct control_who owner = {0};
    int r = make_check_image(c, to->image, e);
    if (r >= 0) r = check_name(c, s->name, to->name, e);
    if (r >= 0 && s->is_ours) r = control_gpus(to->gpus, &to->scope, to->is_shared, s->name, gpus, sizeof gpus, e);
    if (r < 0) return r;
    make_pin(pin);
    if (s->is_ours) control_login(s->uid, s->gid, &owner);
    if (s->is_ours) r = control_bind(c, &owner.login, pin, &to->mounts, &mounts, e);
    const struct making m = {.spec = to,
                             .uid = s->uid,
                             .account = s->account,
                             .pin = pin,
                             .gpus = gpus,
                             .from = s->id,
                             .is_ours = s->is_ours};
    if (r >= 0) describe_again(c, s, &m, &mounts, &body);
    snprintf(temporary, sizeof temporary, "%s%s", s->name, s->is_running ? EDIT_NEW_UP : EDIT_NEW_DOWN);
    if (r >= 0) r = make_create(c, temporary, body.s, id, e);
    if (r >= 0 && (r = join_networks(c, s, id, e)) < 0) (void)!edit_force_away(c, id);
    if (r >= 0) r = swap(c, s, id, to->name, e);
    control_who_done(&owner);
    if (r < 0) {
        make_let_go(c, pin);
        return r;
    }
    (void)!edit_force_away(c, s->id);
    make_let_go(c, s->pin);
    json_pair_str(&c->out, "id", id);
    json_pair_str(&c->out, "name", to->name);
    snprintf(c->event, sizeof c->event, "container %.100s was changed", s->name);
    return 0;
}

int control_edit(struct control *c, struct error *e) {
    AUTO(buf_done) struct buf keep = {0};
    AUTO(control_seen_done) struct control_seen s = {0};
    struct container_spec change, from, to;
    int r = container_spec_decode(c->call.record, c->call.record_len, &change, e);
    if (r >= 0) r = control_see(c, c->call.of, &s, e);
    if (r >= 0) r = control_may(&c->who, &s, CONTAINER_VERB_EDIT, e);
    if (r >= 0) r = control_see_image(c, &s, e);
    if (r < 0) return r;
    control_spec(&s, &keep, &from);
    to = container_spec_changed(&from, &change);
    r = check_change(&s, &from, &to, e);
    if (r < 0) return r;
    struct changes all = {.b = &c->out};
    json_open(&c->out, '{');
    json_key(&c->out, "changes");
    json_open(&c->out, '[');
    container_spec_diff(&from, &to, on_change, &all);
    json_close(&c->out, ']');
    json_pair_bool(&c->out, "restarts", s.is_running);
    if (!all.count) return fail(e, -EINVAL, "nothing would change");
    if (c->call.verb == CONTAINER_VERB_TRY)
        r = make_check_image(c, to.image, e);
    else
        r = make_anew(c, &s, &to, e);
    json_close(&c->out, '}');
    return r;
}
