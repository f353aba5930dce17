/* What clients of the watchmen port ask for: a place in the queue, whether it is their turn, to be let out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/server.h"
#include "server/watchmen_own.h"

#define LABEL_SCHEDULE "watchmen=schedule"

/* The newest of that name: one that is over may have come again. */
static struct watchmen_entry *entry_find(const struct watchmen *w, const char *id) {
    for (size_t i = w->count; i > 0; i--)
        if (strcmp(w->entry[i - 1]->id, id) == 0) return w->entry[i - 1];
    return NULL;
}

/* ---- registering ---- */

struct registering {
    struct watchmen *watchmen;
    struct http_request *request; /* NULL: he is gone */
    char id[WATCHMEN_ID_MAX];
};

static void caller_gone(struct http_request *r) {
    struct registering *g = r->ctx;
    g->request = NULL;
}

static void registered(void *ctx, int result, int64_t first, const struct error *e) {
    struct registering *g = ctx;
    struct watchmen *w = g->watchmen;
    for (size_t i = w->count; i > 0; i--) {
        struct watchmen_entry *entry = w->entry[i - 1];
        if (entry->job || strcmp(entry->id, g->id) != 0) continue;
        if (result >= 0)
            entry->job = first;
        else
            watchmen_entry_drop(w, i - 1);
        break;
    }
    if (g->request) watchmen_say(g->request, 200, result >= 0, result >= 0 ? "" : e->text);
    free(g);
}

/* A list of whole numbers; false: it is none. */
static bool take_gpus(const struct json_tree *list, struct watchmen_entry *e) {
    for (size_t i = 0; i < json_tree_count(list); i++) {
        double v = json_tree_number(json_tree_at(list, i), -1);
        bool is_known = false;
        for (int k = 0; k < e->gpus; k++) is_known |= e->gpu[k] == (int)v;
        if (v < 0 || v > 4096 || v != (int)v || e->gpus == JOB_GPUS_MAX) return false;
        if (!is_known) e->gpu[e->gpus++] = (int)v;
    }
    return true;
}

/* What he asked for, or a sentence (his own server's, where it had one). */
static const char *entry_read(struct watchmen *w, const struct json_tree *j, struct watchmen_entry *e, char *room,
                              size_t size) {
    const char *id = json_tree_text(json_tree_get(j, "id"), ""),
               *mode = json_tree_text(json_tree_get(j, "mode"), "queue");
    const struct json_tree *gpus = json_tree_get(j, "gpus");
    if (!*id || strlen(id) >= sizeof e->id) return "id: a text of 1 to 119 bytes";
    for (const char *s = id; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) return "id: it has characters that cannot be shown";
    memcpy(e->id, id, strlen(id) + 1);
    if (!json_tree_count(gpus)) return "gpus must not be empty!";
    e->is_schedule = strcmp(mode, "schedule") == 0;
    if (!e->is_schedule && strcmp(mode, "queue") != 0) {
        snprintf(room, size, "mode %.40s is not supported", mode);
        return room;
    }
    bool are_there = take_gpus(gpus, e);
    for (int i = 0; i < e->gpus; i++)
        are_there &= queue_gpu_now(w->server->queue, watchmen_node(w), e->gpu[i]) != QUEUE_GPU_NONE;
    if (!are_there) return "check the gpus existence";
    double wanted = json_tree_number(json_tree_get(j, "req_gpu_num"), 0);
    if (e->is_schedule && (wanted < 1 || wanted > e->gpus || wanted != (int)wanted))
        return "`req_gpu_num` is not valid";
    e->wanted = wanted >= 0 && wanted <= JOB_GPUS_MAX ? (int)wanted : 0;
    const struct watchmen_entry *old = entry_find(w, e->id);
    if (old && !watchmen_is_over(old)) {
        snprintf(room, size, "client_id: %s has been registered!", e->id);
        return room;
    }
    return w->count >= WATCHMEN_ENTRIES_MAX ? "too many clients wait" : NULL;
}

static void record_make(const struct watchmen_entry *e, struct buf *record) {
    AUTO(buf_done) struct buf command = {0}, scope = {0}, labels = {0};
    char index[16];
    job_word_put(&command, "watchmen");
    for (int i = 0; i < e->gpus; i++) {
        snprintf(index, sizeof index, "%d", e->gpu[i]);
        job_word_put(&scope, index);
    }
    if (e->is_schedule) job_word_put(&labels, LABEL_SCHEDULE);
    struct job_spec s = {.name = e->id,
                         .command = job_words_of(&command),
                         .image = "",
                         .cwd = "",
                         .array = "",
                         .gpus = e->is_schedule ? e->wanted : e->gpus,
                         .scope = job_words_of(&scope),
                         .labels = job_words_of(&labels)};
    job_encode(&s, record);
}

void watchmen_register(struct watchmen *w, struct http_request *r) {
    char text[200];
    struct watchmen_entry fresh = {0};
    struct json_tree *j = watchmen_body(r);
    if (!j) return;
    const char *wrong = entry_read(w, j, &fresh, text, sizeof text);
    json_tree_free(j);
    if (wrong) {
        watchmen_say(r, 200, false, wrong);
        return;
    }
    AUTO(buf_done) struct buf record = {0};
    record_make(&fresh, &record);
    struct wire_sealed job = {.uid = UINT32_MAX - 1, /* nobody's: he is known by his token only */
                              .record = (const uint8_t *)record.s,
                              .record_len = record.len,
                              .seal = (const uint8_t *)"-",
                              .seal_len = 1};
    size_t n = strcspn(fresh.id, "@"); /* his library sends user@name */
    snprintf(job.user, sizeof job.user, "%.*s", fresh.id[n] && n ? (int)(n < 60 ? n : 60) : 8,
             fresh.id[n] && n ? fresh.id : "watchmen");
    struct registering *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->watchmen = w;
    g->request = r;
    memcpy(g->id, fresh.id, sizeof g->id);
    struct watchmen_entry *e = watchmen_entry_new(w);
    fresh.registered_ns = fresh.asked_ns = e->registered_ns;
    fresh.asked_boot_ns = e->asked_boot_ns;
    *e = fresh;
    r->ctx = g;
    http_on_gone(r, caller_gone);
    struct queue_submit s = {&job, 1, watchmen_node(w), "", QUEUE_BY_WATCHMEN};
    struct error why;
    int result = queue_submit(w->server->queue, &s, registered, g, &why);
    if (result < 0) registered(g, result, 0, &why);
}

/* ---- ping, cancel ---- */

static struct watchmen_entry *entry_of(struct watchmen *w, struct http_request *r) {
    struct json_tree *j = watchmen_body(r);
    if (!j) return NULL;
    const char *id = json_tree_text(json_tree_get(j, "id"), "");
    struct watchmen_entry *e = entry_find(w, id);
    bool is_there = e && e->job;
    json_tree_free(j);
    if (is_there) return e;
    watchmen_say(r, 200, false, "client not registered or has been cancelled");
    return NULL;
}

void watchmen_ping(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf b = {0};
    watchmen_refresh(w);
    struct watchmen_entry *e = entry_of(w, r);
    if (!e) return;
    if (e->status == CANCELLED) {
        watchmen_say(r, 200, false, "client not registered or has been cancelled");
        return;
    }
    if (!watchmen_is_over(e)) {
        e->asked_ns = clock_real_ns();
        e->asked_boot_ns = clock_boot_ns();
    }
    json_open(&b, '{');
    json_pair_str(&b, "status", "ok");
    json_key(&b, "available_gpus");
    json_open(&b, '[');
    for (int i = 0; i < e->given; i++) json_int(&b, e->got[i]);
    json_close(&b, ']');
    json_pair_str(&b, "msg", watchmen_words[e->status]);
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

static void cancelled(void *ctx, int result, const struct error *e) {
    struct registering *g = ctx;
    watchmen_refresh(g->watchmen);
    if (g->request) watchmen_say(g->request, 200, result >= 0, result >= 0 ? "" : e->text);
    free(g);
}

void watchmen_cancel(struct watchmen *w, struct http_request *r) {
    watchmen_refresh(w);
    struct watchmen_entry *e = entry_of(w, r);
    if (!e) return;
    if (watchmen_is_over(e)) {
        watchmen_say(r, 200, false, "client is not waiting");
        return;
    }
    struct registering *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->watchmen = w;
    g->request = r;
    r->ctx = g;
    http_on_gone(r, caller_gone);
    queue_lease_end(w->server->queue, e->job, JOB_CANCELLED, cancelled, g);
}
