/* Making containers: a new one, and one anew with a change. What is made here runs as whoever asked, never privileged, in
 * namespaces of its own, and mounts only what he himself can open below jobs.mount_roots, as a job's container does. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "node/control_make.h"
#include "node/docker_ask.h"
#include "node/engine.h"
#include "node/mounts.h"

#define SHM_BYTES (8ll << 30)

/* ---- parts of a description ---- */

void make_words(struct buf *b, const char *key, const struct job_words *w) {
    json_key(b, key);
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(w, at));) json_str(b, at);
    json_close(b, ']');
}

static void put_pair(struct buf *b, const char *name, const char *value) {
    AUTO(buf_done) struct buf pair = {0};
    buf_printf(&pair, "%s=%s", name, value);
    json_str(b, pair.s);
}

/* uuids "": it has none, and an image that asks for all gets none either. */
void make_gpu_env(struct buf *b, const char *uuids) {
    put_pair(b, "NVIDIA_VISIBLE_DEVICES", *uuids ? uuids : "void");
    if (*uuids) put_pair(b, "CUDA_VISIBLE_DEVICES", uuids);
}

void make_devices(const struct control *c, struct buf *b, const char *uuids) {
    json_key(b, "DeviceRequests");
    json_open(b, '[');
    if (*uuids && !c->settings.sim && !*c->settings.gpu_library) { /* simulated GPUs have no devices */
        buf_puts(b, "{\"Driver\":\"nvidia\",\"Capabilities\":[[\"gpu\"]],\"DeviceIDs\":[");
        for (const char *at = uuids; *at;) {
            size_t n = strcspn(at, ",");
            buf_printf(b, "%s\"%.*s\"", at == uuids ? "" : ",", (int)n, at);
            at += n + (at[n] == ',');
        }
        buf_puts(b, "]}");
    }
    json_close(b, ']');
}

void make_restart(struct buf *b, const char *text) {
    const char *colon = strchr(text, ':');
    AUTO(buf_done) struct buf name = {0};
    buf_add(&name, text, colon ? (size_t)(colon - text) : strlen(text));
    json_key(b, "RestartPolicy");
    json_open(b, '{');
    json_pair_str(b, "Name", name.len ? name.s : "no");
    if (colon) json_pair_int(b, "MaximumRetryCount", atoi(colon + 1));
    json_close(b, '}');
}

static void put_given(struct buf *b, const char *key, const char *value) {
    if (*value) json_pair_str(b, key, value);
}

/* A label is read up to some length by whoever keeps GPUs for it: many are several. */
static void put_gpu_labels(struct buf *b, const char *uuids) {
    char key[24];
    unsigned part = 0;
    for (const char *at = uuids; *at; part++) {
        AUTO(buf_done) struct buf some = {0};
        for (unsigned i = 0; i < ENGINE_GPUS_EACH && *at; i++) {
            size_t n = strcspn(at, ",");
            if (i) buf_putc(&some, ',');
            buf_add(&some, at, n);
            at += n + (at[n] == ',');
        }
        snprintf(key, sizeof key, part ? "%s.%u" : "%s", ENGINE_GPUS_LABEL, part);
        json_pair_str(b, key, some.s);
    }
}

void make_labels(struct buf *b, const struct making *m) {
    AUTO(buf_done) struct buf text = {0};
    json_key(b, "Labels");
    json_open(b, '{');
    for (const char *at = NULL; (at = job_word_next(&m->spec->labels, at));) {
        buf_clear(&text);
        buf_add(&text, at, strcspn(at, "="));
        json_pair_str(b, text.s, at + strcspn(at, "=") + 1);
    }
    put_given(b, "gpumgr.deadline", m->spec->deadline);
    put_given(b, "gpumgr.period", m->spec->period);
    put_given(b, "gpumgr.ui", m->spec->ui);
    put_given(b, EDIT_FROM, m->from);
    if (m->is_ours) {
        buf_clear(&text);
        buf_printf(&text, "%u", m->uid);
        json_pair_str(b, "gpumgr.uid", text.s);
        put_given(b, "gpumgr.account", m->account);
        put_given(b, "gpumgr.pin", m->pin);
        put_gpu_labels(b, m->gpus);
        buf_clear(&text);
        for (const char *at = NULL; (at = job_word_next(&m->spec->mounts, at));)
            buf_printf(&text, "%s%s", text.len ? "\n" : "", at);
        if (text.len) json_pair_str(b, "gpumgr.mounts", text.s);
    }
    json_close(b, '}');
}

void make_pin(char ret[40]) {
    char text[64];
    char mark[SEAL_MARK];
    snprintf(text, sizeof text, "pin %lld %p", (long long)clock_boot_ns(), (void *)ret);
    seal_mark(text, mark);
    snprintf(ret, 40, "%.16s", mark);
}

/* ---- a new one ---- */

static void describe(const struct control *c, const struct making *m, const struct buf *mounts, struct buf *b) {
    const struct seal_context *who = &c->who.login;
    char user[32];
    snprintf(user, sizeof user, "%u:%u", who->uid, who->gid);
    json_open(b, '{');
    json_pair_str(b, "Image", m->spec->image);
    if (m->spec->command.count) make_words(b, "Cmd", &m->spec->command);
    json_pair_str(b, "User", user);
    if (*m->spec->cwd) json_pair_str(b, "WorkingDir", m->spec->cwd);
    json_key(b, "Env");
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(&m->spec->env, at));) json_str(b, at);
    make_gpu_env(b, m->gpus);
    json_close(b, ']');
    make_labels(b, m);
    json_key(b, "HostConfig");
    json_open(b, '{');
    json_pair_bool(b, "Privileged", false);
    json_key(b, "SecurityOpt");
    buf_puts(b, "[\"no-new-privileges\"]");
    json_pair_int(b, "ShmSize", SHM_BYTES);
    mounts_put_groups(who, b);
    json_key(b, "Mounts");
    json_slice_put(json_slice_get((struct json_slice){mounts->s, mounts->len}, "Mounts"), b);
    make_devices(c, b, m->gpus);
    make_restart(b, m->spec->restart);
    json_close(b, '}');
    json_close(b, '}');
}

/* Whose image it is says nothing about whose containers are: one with our labels is not taken. */
int make_check_image(const struct control *c, const char *image, struct error *e) {
    static const char *const ours[] = {"gpumgr.uid", "gpumgr.run", "gpumgr.pin", EDIT_FROM};
    AUTO(buf_done) struct buf json = {0}, target = {0};
    char what[340];
    buf_puts(&target, "/images/");
    for (const char *at = image; *at; at++)
        if (strchr("?#% ", *at))
            buf_printf(&target, "%%%02X", (unsigned char)*at);
        else
            buf_putc(&target, *at);
    buf_puts(&target, "/json");
    snprintf(what, sizeof what, "image: %s is not on this machine; `gpumgr containers images` lists those that are",
             image);
    int r = control_get(c, target.s, what, &json, e);
    if (r < 0) return r;
    struct json_slice config = json_slice_get((struct json_slice){json.s, json.len}, "Config");
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (json_slice_get(json_slice_get(config, "Labels"), ours[i]).len)
            return fail(e, -EPERM, "image: %s carries labels that only gpumgr sets", image);
    return 0;
}

int make_create(const struct control *c, const char *name, const char *body, char ret_id[72], struct error *e) {
    AUTO(buf_done) struct buf answer = {0}, target = {0}, id = {0};
    buf_printf(&target, "/containers/create%s%s", *name ? "?name=" : "", name);
    int r = control_do(c, "POST", target.s, body, MAKE_S, &answer, e);
    if (r == -EEXIST) return fail(e, -EEXIST, "name: there is a container %s already", name);
    if (r < 0) return r;
    json_slice_text(json_slice_get((struct json_slice){answer.s, answer.len}, "Id"), &id);
    if (id.len != ENGINE_ID_HEX) return fail(e, -EPROTO, "the container engine does not say what it made");
    snprintf(ret_id, 72, "%s", id.s);
    return 0;
}

static void answer_id(struct control *c, const char *id, const char *name) {
    json_open(&c->out, '{');
    json_pair_str(&c->out, "id", id);
    json_pair_str(&c->out, "name", name);
    json_close(&c->out, '}');
}

void make_let_go(const struct control *c, const char *pin) {
    char dir[300];
    if (!*pin) return;
    control_pin_dir(c, pin, dir, sizeof dir);
    mounts_let_go(dir);
    (void)remove(dir);
}

static int start_new(struct control *c, const char *id, struct error *e) {
    int r = control_post(c, id, "start", MAKE_S, e);
    if (r >= 0) return 0;
    AUTO(buf_done) struct buf answer = {0}, target = {0};
    struct error ignored;
    buf_printf(&target, "/containers/%s?force=1&v=1", id);
    (void)!control_do(c, "DELETE", target.s, NULL, MAKE_S, &answer, &ignored);
    return r;
}

int control_add(struct control *c, struct error *e) {
    AUTO(buf_done) struct buf mounts = {0}, body = {0};
    struct container_spec spec;
    char gpus[4096] = "", pin[40], id[72];
    int r = container_spec_decode(c->call.record, c->call.record_len, &spec, e);
    if (r >= 0 && !*spec.image) r = fail(e, -EINVAL, "image: there is none");
    if (r >= 0) r = make_check_image(c, spec.image, e);
    if (r >= 0) r = control_gpus(spec.gpus, &spec.scope, spec.is_shared, "", gpus, sizeof gpus, e);
    if (r < 0) return r;
    make_pin(pin);
    r = control_bind(c, &c->who.login, pin, &spec.mounts, &mounts, e);
    const struct making m = {.spec = &spec,
                             .uid = c->who.login.uid,
                             .account = c->who.account,
                             .pin = pin,
                             .gpus = gpus,
                             .from = "",
                             .is_ours = true};
    if (r >= 0) describe(c, &m, &mounts, &body);
    if (r >= 0) r = make_create(c, spec.name, body.s, id, e);
    if (r >= 0) r = start_new(c, id, e);
    if (r < 0) {
        make_let_go(c, pin);
        return r;
    }
    struct control_seen s = {0};
    struct error ignored;
    bool is_seen = control_see(c, id, &s, &ignored) >= 0;
    answer_id(c, id, is_seen ? s.name : spec.name);
    snprintf(c->event, sizeof c->event, "container %.60s of image %.60s was added", is_seen ? s.name : id, spec.image);
    control_seen_done(&s);
    return 0;
}
