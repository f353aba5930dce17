/* What the engine has: containers that have to do with GPUs, one of them in full, images. Its answers are bounded by docker_ask,
 * checked as JSON, and then taken apart where they lie. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "node/account.h"
#include "node/container.h"
#include "node/control_own.h"
#include "node/docker_ask.h"
#include "node/frees.h"
#include "node/tasks.h"

#define LOOK_S 20
#define LIST_MOST 2000 /* containers of one machine */

static void nothing(void *ctx, const struct json_scan_value *v) {}

/* ---- asking ---- */

static int refused(const struct buf *answer, int status, struct error *e) {
    char why[200];
    docker_complaint(answer, status, why, sizeof why);
    int code = status == 404 ? -ENOENT : status == 409 ? -EEXIST : status == 400 ? -EINVAL : -EIO;
    return fail(e, code, "%s", why);
}

int control_do(const struct control *c, const char *method, const char *target, const char *body, int timeout_s,
               struct buf *answer, struct error *e) {
    int status = docker_ask(c->socket, method, target, body, timeout_s, answer, e);
    if (status == -ECONNREFUSED || status == -ENOENT)
        return fail(e, -ENOTCONN, "the container engine at %s does not run", c->socket);
    if (status < 0) return status;
    if (status == 304) return 0; /* it is so already */
    return status < 300 ? status : refused(answer, status, e);
}

int control_get(const struct control *c, const char *target, const char *what, struct buf *ret, struct error *e) {
    int r = control_do(c, "GET", target, NULL, LOOK_S, ret, e);
    if (r == -ENOENT) return fail(e, -ENOENT, "%s", what);
    if (r >= 0 && json_scan(ret->s, ret->len, nothing, NULL, e) < 0)
        return fail(e, -EPROTO, "the container engine's answer is no JSON");
    return r;
}

/* ---- small readers ---- */

static void text_of(struct json_slice v, char *ret, size_t room) {
    AUTO(buf_done) struct buf b = {0};
    json_slice_text(v, &b);
    for (size_t i = 0; i < b.len; i++)
        if (iscntrl((unsigned char)b.s[i])) b.s[i] = '?';
    snprintf(ret, room, "%s", b.s ? b.s : "");
}

static int64_t number_of(struct json_slice v) { return v.len ? strtoll(v.s, NULL, 10) : 0; }

static double seconds_of(struct json_slice v) {
    char text[64];
    text_of(v, text, sizeof text);
    return (double)container_time_ns(text) / NS_PER_S;
}

static void put_time(struct buf *b, const char *key, double s) {
    json_key(b, key);
    if (s > 0)
        json_num(b, s);
    else
        json_nil(b);
}

/* ---- one container ---- */

void control_seen_done(struct control_seen *s) {
    buf_done(&s->json);
    buf_done(&s->image_json);
}

static bool is_name(const char *of) {
    size_t n = strlen(of);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)of[i]) && !(i && strchr("_.-", of[i]))) return false;
    return n > 0;
}

static bool has_label_of_ours(struct json_slice labels) {
    struct json_slice key, value;
    for (size_t at = 0; json_slice_next(labels, &at, &key, &value);)
        if (key.len > 8 && memcmp(key.s, "\"gpumgr.", 8) == 0) return true;
    return false;
}

static void judge(struct control_seen *s) {
    AUTO(buf_done) struct buf ids = {0};
    struct task_figures used;
    int count;
    tasks_of_container(s->id, &used);
    s->is_gpu = control_asked(s, &ids, &count) || has_label_of_ours(s->labels) || used.is_measured;
}

static void take_labels(struct control_seen *s) {
    char uid[16], user[64];
    text_of(json_slice_get(s->labels, "gpumgr.uid"), uid, sizeof uid);
    text_of(json_slice_get(s->labels, "gpumgr.account"), s->account, sizeof s->account);
    text_of(json_slice_get(s->labels, "gpumgr.run"), s->run, sizeof s->run);
    text_of(json_slice_get(s->labels, "gpumgr.pin"), s->pin, sizeof s->pin);
    s->is_ours = *uid && strspn(uid, "0123456789") == strlen(uid);
    s->uid = s->is_ours ? (uint32_t)strtoul(uid, NULL, 10) : UINT32_MAX;
    text_of(json_slice_get(s->config, "User"), user, sizeof user);
    const char *colon = strchr(user, ':');
    s->gid = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : s->uid;
    if (strspn(s->pin, "0123456789abcdef") != strlen(s->pin)) s->pin[0] = 0;
}

/* Whose it is, is said by a label; one that lies in the image says nothing, for whoever built that could say anybody. */
static void doubt_label(const struct control *c, struct control_seen *s) {
    struct error e;
    if (!s->is_ours) return;
    if (control_see_image(c, s, &e) >= 0) {
        struct json_slice config = json_slice_get((struct json_slice){s->image_json.s, s->image_json.len}, "Config");
        if (!json_slice_get(json_slice_get(config, "Labels"), "gpumgr.uid").len) return;
    }
    s->is_ours = false;
    s->uid = UINT32_MAX;
    s->account[0] = s->run[0] = s->pin[0] = 0;
}

int control_see(const struct control *c, const char *of, struct control_seen *ret, struct error *e) {
    char target[160], what[120], status[32];
    if (!is_name(of)) return fail(e, -EINVAL, "\"%.60s\" is no name or id of a container", of);
    snprintf(target, sizeof target, "/containers/%.70s/json", of);
    snprintf(what, sizeof what, "there is no container %.70s on this machine", of);
    int r = control_get(c, target, what, &ret->json, e);
    if (r < 0) return r;
    struct control_seen *s = ret;
    s->all = (struct json_slice){s->json.s, s->json.len};
    s->config = json_slice_get(s->all, "Config");
    s->host = json_slice_get(s->all, "HostConfig");
    s->state = json_slice_get(s->all, "State");
    s->labels = json_slice_get(s->config, "Labels");
    text_of(json_slice_get(s->all, "Id"), s->id, sizeof s->id);
    text_of(json_slice_get(s->all, "Name"), s->name, sizeof s->name);
    if (s->name[0] == '/') memmove(s->name, s->name + 1, strlen(s->name));
    text_of(json_slice_get(s->config, "Image"), s->image, sizeof s->image);
    text_of(json_slice_get(s->state, "Status"), status, sizeof status);
    s->is_running =
        strcmp(status, "running") == 0 || strcmp(status, "paused") == 0 || strcmp(status, "restarting") == 0;
    if (!container_is_id(s->id)) return fail(e, -EPROTO, "the container engine describes a container without an id");
    take_labels(s);
    judge(s);
    doubt_label(c, s);
    return 0;
}

int control_see_image(const struct control *c, struct control_seen *s, struct error *e) {
    char id[96], target[140];
    if (s->image_json.len) return 0;
    text_of(json_slice_get(s->all, "Image"), id, sizeof id);
    snprintf(target, sizeof target, "/images/%s/json", id);
    return control_get(c, target, "the container's image is not there any more", &s->image_json, e);
}

/* ---- its description ---- */

static bool is_same(struct json_slice a, struct json_slice b) { return a.len == b.len && memcmp(a.s, b.s, a.len) == 0; }

static bool has_item(struct json_slice list, struct json_slice item) {
    struct json_slice key, one;
    for (size_t at = 0; json_slice_next(list, &at, &key, &one);)
        if (is_same(one, item)) return true;
    return false;
}

/* Words lie one behind the other in keep; where they begin is turned into pointers when keep grows no more. */
struct words_at {
    size_t from, len;
    unsigned count;
};

static void begin(struct words_at *w, const struct buf *keep) { *w = (struct words_at){.from = keep->len}; }

static void word(struct words_at *w, struct buf *keep, const char *text) {
    job_word_put(keep, text);
    w->len = keep->len - w->from;
    w->count++;
}

static void word_of(struct words_at *w, struct buf *keep, struct json_slice v) {
    AUTO(buf_done) struct buf text = {0};
    json_slice_text(v, &text);
    word(w, keep, text.s ? text.s : "");
}

static void env_words(const struct control_seen *s, struct json_slice image, struct words_at *w, struct buf *keep) {
    struct json_slice key, one, theirs = json_slice_get(image, "Env");
    char text[64];
    begin(w, keep);
    for (size_t at = 0; json_slice_next(json_slice_get(s->config, "Env"), &at, &key, &one);) {
        text_of(one, text, sizeof text);
        bool is_ours = strncmp(text, "CUDA_VISIBLE_DEVICES=", 21) == 0 ||
                       strncmp(text, "NVIDIA_VISIBLE_DEVICES=", 23) == 0 ||
                       strncmp(text, "CUDA_DEVICE_ORDER=", 18) == 0;
        if (!is_ours && !has_item(theirs, one)) word_of(w, keep, one);
    }
}

static void label_words(const struct control_seen *s, struct json_slice image, struct words_at *w, struct buf *keep) {
    struct json_slice key, value, theirs = json_slice_get(image, "Labels");
    AUTO(buf_done) struct buf pair = {0};
    begin(w, keep);
    for (size_t at = 0; json_slice_next(s->labels, &at, &key, &value);) {
        buf_clear(&pair);
        json_slice_text(key, &pair);
        if (!pair.len || is_same(json_slice_get(theirs, pair.s), value)) continue;
        bool is_ours = strncmp(pair.s, "gpumgr.", 7) == 0 && strcmp(pair.s, "gpumgr.tenant") != 0 &&
                       strcmp(pair.s, "gpumgr.priority") != 0;
        if (is_ours) continue;
        buf_putc(&pair, '=');
        json_slice_text(value, &pair);
        word(w, keep, pair.s);
    }
}

/* Lines of a label of ours. */
static void lines(const char *text, char between, struct words_at *w, struct buf *keep) {
    AUTO(buf_done) struct buf one = {0};
    begin(w, keep);
    while (*text) {
        size_t n = strcspn(text, (char[]){between, 0});
        buf_clear(&one);
        buf_add(&one, text, n);
        word(w, keep, one.s);
        text += n + (text[n] != 0);
    }
}

static void mount_words(const struct control_seen *s, struct words_at *w, struct buf *keep) {
    struct json_slice key, one;
    char source[4096], target[4096];
    AUTO(buf_done) struct buf text = {0};
    json_slice_text(json_slice_get(s->labels, "gpumgr.mounts"), &text);
    if (s->is_ours) {
        lines(text.s ? text.s : "", '\n', w, keep);
        return;
    }
    begin(w, keep);
    for (size_t at = 0; json_slice_next(json_slice_get(s->all, "Mounts"), &at, &key, &one);) {
        if (!json_slice_is(json_slice_get(one, "Type"), "\"bind\"")) continue;
        text_of(json_slice_get(one, "Source"), source, sizeof source);
        text_of(json_slice_get(one, "Destination"), target, sizeof target);
        buf_clear(&text);
        buf_printf(&text, "%s:%s%s", source, target, json_slice_is(json_slice_get(one, "RW"), "false") ? ":ro" : "");
        word(w, keep, text.s);
    }
}

/* Of one that was made elsewhere: what it asked the engine for. */
static void gpu_words(const struct control_seen *s, struct words_at *w, struct buf *keep, int *ret_count) {
    AUTO(buf_done) struct buf text = {0};
    char label[24];
    for (unsigned part = 0; part < ENGINE_GPUS_PARTS; part++) {
        snprintf(label, sizeof label, part ? "%s.%u" : "%s", ENGINE_GPUS_LABEL, part);
        struct json_slice ids = json_slice_get(s->labels, label);
        if (ids.len > 2 && text.len) buf_putc(&text, ',');
        json_slice_text(ids, &text);
    }
    bool is_asked = !s->is_ours && !text.len;
    if (is_asked) (void)control_asked(s, &text, ret_count);
    lines(text.s ? text.s : "", ',', w, keep);
    if (!is_asked || w->count) *ret_count = (int)w->count;
}

static void text_at(struct json_slice v, struct buf *keep, size_t *at) {
    AUTO(buf_done) struct buf text = {0};
    json_slice_text(v, &text);
    *at = keep->len;
    buf_add(keep, text.s ? text.s : "", text.len + 1);
}

static void restart_at(const struct control_seen *s, struct buf *keep, size_t *at) {
    struct json_slice policy = json_slice_get(s->host, "RestartPolicy");
    char name[32], text[48];
    int64_t most = number_of(json_slice_get(policy, "MaximumRetryCount"));
    text_of(json_slice_get(policy, "Name"), name, sizeof name);
    if (most > 0)
        snprintf(text, sizeof text, "%s:%d", name, (int)(most < 10000 ? most : 9999));
    else
        snprintf(text, sizeof text, "%s", *name ? name : "no");
    *at = keep->len;
    buf_add(keep, text, strlen(text) + 1);
}

static struct job_words words_of(const struct words_at *w, const struct buf *keep) {
    return (struct job_words){.s = w->count ? keep->s + w->from : "", .len = w->len, .count = w->count};
}

void control_spec(const struct control_seen *s, struct buf *keep, struct container_spec *ret) {
    struct json_slice image = json_slice_get((struct json_slice){s->image_json.s, s->image_json.len}, "Config"), cmd,
                      cwd, key, one;
    struct words_at command, env, mounts, labels, gpus;
    size_t at[6];
    int count;
    cmd = json_slice_get(s->config, "Cmd");
    cwd = json_slice_get(s->config, "WorkingDir");
    begin(&command, keep);
    if (!is_same(cmd, json_slice_get(image, "Cmd")))
        for (size_t k = 0; json_slice_next(cmd, &k, &key, &one);) word_of(&command, keep, one);
    env_words(s, image, &env, keep);
    mount_words(s, &mounts, keep);
    label_words(s, image, &labels, keep);
    gpu_words(s, &gpus, keep, &count);
    text_at(is_same(cwd, json_slice_get(image, "WorkingDir")) ? (struct json_slice){0} : cwd, keep, &at[0]);
    text_at(json_slice_get(s->labels, "gpumgr.deadline"), keep, &at[1]);
    text_at(json_slice_get(s->labels, "gpumgr.period"), keep, &at[2]);
    text_at(json_slice_get(s->labels, "gpumgr.ui"), keep, &at[3]);
    restart_at(s, keep, &at[4]);
    *ret = (struct container_spec){.name = s->name,
                                   .image = s->image,
                                   .cwd = keep->s + at[0],
                                   .deadline = keep->s + at[1],
                                   .period = keep->s + at[2],
                                   .ui = keep->s + at[3],
                                   .restart = keep->s + at[4],
                                   .command = words_of(&command, keep),
                                   .env = words_of(&env, keep),
                                   .mounts = words_of(&mounts, keep),
                                   .labels = words_of(&labels, keep),
                                   .gpus = count,
                                   .scope = words_of(&gpus, keep)};
}

/* ---- the list ---- */

static void put_gpus(struct buf *b, const struct control_seen *s) {
    static const struct frees_gpu nobody;
    struct frees_gpu gpu[FREES_MOST];
    AUTO(buf_done) struct buf keep = {0};
    struct words_at w;
    int count;
    unsigned known = frees_all(gpu, FREES_MOST);
    gpu_words(s, &w, &keep, &count);
    struct job_words words = words_of(&w, &keep);
    json_key(b, "gpus");
    json_open(b, '[');
    for (const char *at = NULL; (at = job_word_next(&words, at));) {
        const struct frees_gpu *is = &nobody;
        for (unsigned i = 0; i < known; i++)
            if (strcmp(gpu[i].uuid, at) == 0 || strcmp(gpu[i].name, at) == 0) is = &gpu[i];
        json_open(b, '{');
        json_pair_str(b, "uuid", is->uuid[0] ? is->uuid : at);
        json_key(b, "index");
        if (is->uuid[0])
            json_int(b, is->index);
        else
            json_nil(b);
        json_pair_str(b, "name", is->uuid[0] ? is->name : at);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_pair_bool(b, "all_gpus", count < 0);
}

/* Who it runs as: he that made it here, else what the engine knows, which is not who typed the command. */
static void put_user(struct buf *b, const struct control_seen *s) {
    char user[128];
    if (s->is_ours)
        account_name(s->uid, user, sizeof user);
    else
        text_of(json_slice_get(s->config, "User"), user, sizeof user);
    if (!s->is_ours) {
        size_t n = strcspn(user, ":");
        user[n] = 0;
        if (*user && strspn(user, "0123456789") == n)
            account_name((uint32_t)strtoul(user, NULL, 10), user, sizeof user);
    }
    json_pair_str(b, "user", *user ? user : "root");
    json_key(b, "account");
    if (s->account[0])
        json_str(b, s->account);
    else
        json_nil(b);
    json_pair_bool(b, "is_ours", s->is_ours);
}

static void put_may(struct buf *b, const struct control_who *w, const struct control_seen *s) {
    static const enum container_verb asked[] = {CONTAINER_VERB_LOG,     CONTAINER_VERB_START,  CONTAINER_VERB_STOP,
                                                CONTAINER_VERB_RESTART, CONTAINER_VERB_REMOVE, CONTAINER_VERB_EDIT};
    struct error ignored;
    json_key(b, "may");
    json_open(b, '[');
    for (size_t i = 0; i < ARRAY_LEN(asked); i++)
        if (control_may(w, s, asked[i], &ignored) >= 0) json_str(b, container_verb_name(asked[i]));
    if (control_may_enter(w, s)) json_str(b, "shell");
    json_close(b, ']');
}

static void put_text(struct buf *b, const char *key, struct json_slice v) {
    char text[300];
    text_of(v, text, sizeof text);
    json_key(b, key);
    if (*text)
        json_str(b, text);
    else
        json_nil(b);
}

static void put_row(struct control *c, const struct control_seen *s) {
    struct buf *b = &c->out;
    struct task_figures used;
    tasks_of_container(s->id, &used);
    json_open(b, '{');
    json_pair_str(b, "id", s->id);
    json_pair_str(b, "name", s->name);
    json_pair_str(b, "image", s->image);
    json_pair_str(b, "engine", "docker");
    put_text(b, "state", json_slice_get(s->state, "Status"));
    put_user(b, s);
    put_text(b, "deadline", json_slice_get(s->labels, "gpumgr.deadline"));
    put_text(b, "ui", json_slice_get(s->labels, "gpumgr.ui"));
    json_key(b, "job");
    if (s->run[0])
        json_int(b, strtoll(s->run, NULL, 10));
    else
        json_nil(b);
    put_time(b, "created", seconds_of(json_slice_get(s->all, "Created")));
    put_time(b, "started", seconds_of(json_slice_get(s->state, "StartedAt")));
    put_time(b, "ended", s->is_running ? 0 : seconds_of(json_slice_get(s->state, "FinishedAt")));
    json_key(b, "exit_code");
    if (s->is_running || json_slice_is(json_slice_get(s->state, "Status"), "\"created\""))
        json_nil(b);
    else
        json_int(b, number_of(json_slice_get(s->state, "ExitCode")));
    put_text(b, "error", json_slice_get(s->state, "Error"));
    put_text(b, "restart", json_slice_get(json_slice_get(s->host, "RestartPolicy"), "Name"));
    put_gpus(b, s);
    json_pair_int(b, "tasks", used.running);
    json_pair_int(b, "memory_bytes", (int64_t)used.memory_bytes);
    put_may(b, &c->who, s);
    json_close(b, '}');
}

int control_list(struct control *c, struct error *e) {
    AUTO(buf_done) struct buf list = {0};
    struct json_slice key, one;
    char id[72];
    int rows = 0, r = control_get(c, "/containers/json?all=1", "the engine has no list", &list, e);
    if (r < 0) return r;
    json_open(&c->out, '[');
    for (size_t at = 0; rows < LIST_MOST && json_slice_next((struct json_slice){list.s, list.len}, &at, &key, &one);) {
        struct control_seen s = {0};
        struct error gone;
        text_of(json_slice_get(one, "Id"), id, sizeof id);
        if (control_see(c, id, &s, &gone) >= 0 && (s.is_gpu || s.is_ours) &&
            c->out.len < WIRE_CONTAINER_ANSWER_MAX / 2) {
            put_row(c, &s);
            rows++;
        }
        control_seen_done(&s);
    }
    json_close(&c->out, ']');
    return 0;
}

/* ---- images ---- */

int control_images(struct control *c, struct error *e) {
    AUTO(buf_done) struct buf list = {0};
    struct json_slice key, one, tag;
    int r = control_get(c, "/images/json", "the engine has no list of images", &list, e);
    if (r < 0) return r;
    json_open(&c->out, '[');
    for (size_t at = 0; json_slice_next((struct json_slice){list.s, list.len}, &at, &key, &one);)
        for (size_t k = 0; json_slice_next(json_slice_get(one, "RepoTags"), &k, &key, &tag);) {
            char name[256];
            text_of(tag, name, sizeof name);
            if (!*name || strstr(name, "<none>") || c->out.len > WIRE_CONTAINER_ANSWER_MAX / 2) continue;
            json_open(&c->out, '{');
            json_pair_str(&c->out, "name", name);
            json_pair_int(&c->out, "size_bytes", number_of(json_slice_get(one, "Size")));
            json_pair_int(&c->out, "created", number_of(json_slice_get(one, "Created")));
            json_close(&c->out, '}');
        }
    json_close(&c->out, ']');
    return 0;
}
