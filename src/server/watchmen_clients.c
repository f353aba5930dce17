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
    bool is_form;                 /* a browser, which is shown the page again */
    char id[WATCHMEN_ID_MAX];
};

static void caller_gone(struct http_request *r) {
    struct registering *g = r->ctx;
    g->request = NULL;
}

static struct registering *registering_new(struct watchmen *w, struct http_request *r, const char *id) {
    struct registering *g = calloc(1, sizeof *g);
    if (!g) abort();
    g->watchmen = w;
    g->request = r;
    snprintf(g->id, sizeof g->id, "%s", id);
    r->ctx = g;
    http_on_gone(r, caller_gone);
    return g;
}

static void page_again(struct http_request *r) {
    http_add_field(r, "Location", "/");
    http_reply(r, 303, NULL, NULL, 0);
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
    const char *id = json_tree_text(json_tree_get(j, "id"), ""), *mode = "queue";
    const struct json_tree *gpus = json_tree_get(j, "gpus"), *said = json_tree_get(j, "mode");
    if (said && !json_tree_is_null(said)) mode = json_tree_text(said, "?");
    if (!*id || strlen(id) >= sizeof e->id) return "id: a text of 1 to 511 bytes";
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
    char name[JOB_NAME_MAX];
    job_word_put(&command, "watchmen");
    job_word_put(&command, e->id); /* whole; a name may have to be shorter */
    snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, e->id);
    json_utf8_end(name);
    for (int i = 0; i < e->gpus; i++) {
        snprintf(index, sizeof index, "%d", e->gpu[i]);
        job_word_put(&scope, index);
    }
    if (e->is_schedule) job_word_put(&labels, LABEL_SCHEDULE);
    struct job_spec s = {.name = name,
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
    char text[WATCHMEN_ID_MAX + 60];
    struct watchmen_entry fresh = {0};
    struct json_tree *j = watchmen_body(r, 200);
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
    struct registering *g = registering_new(w, r, fresh.id);
    struct watchmen_entry *e = watchmen_entry_new(w);
    fresh.registered_ns = fresh.asked_ns = e->registered_ns;
    fresh.asked_boot_ns = e->asked_boot_ns;
    *e = fresh;
    struct queue_submit s = {&job, 1, watchmen_node(w), "", QUEUE_BY_WATCHMEN};
    struct error why;
    int result = queue_submit(w->server->queue, &s, registered, g, &why);
    if (result < 0) registered(g, result, 0, &why);
}

/* ---- ping, cancel ---- */

/* The one he names; NULL: none, or he sent no JSON, and then he was told. */
static struct watchmen_entry *entry_of(struct watchmen *w, struct http_request *r, char id[WATCHMEN_ID_MAX],
                                       bool *ret_is_read) {
    struct json_tree *j = watchmen_body(r, 200);
    *ret_is_read = j;
    if (!j) return NULL;
    snprintf(id, WATCHMEN_ID_MAX, "%s", json_tree_text(json_tree_get(j, "id"), ""));
    json_tree_free(j);
    struct watchmen_entry *e = entry_find(w, id);
    return e && e->job ? e : NULL;
}

static void answer(struct watchmen *w, struct http_request *r, struct watchmen_entry *e) {
    AUTO(buf_done) struct buf b = {0};
    if (e) watchmen_check(w, e);
    if (e && !watchmen_is_over(e)) {
        e->asked_ns = clock_real_ns();
        e->asked_boot_ns = clock_boot_ns();
        e->is_told |= e->status == READY;
    }
    json_open(&b, '{');
    json_pair_str(&b, "status", e ? "ok" : "err");
    json_key(&b, "available_gpus");
    json_open(&b, '[');
    for (int i = 0; e && i < e->given; i++) json_int(&b, e->got[i]);
    json_close(&b, ']');
    json_pair_str(&b, "msg", e ? watchmen_words[e->status] : "client not registered or has been cancelled");
    json_close(&b, '}');
    watchmen_reply(r, 200, &b);
}

static void settled(void *ctx, int result, const struct error *e) {
    struct registering *g = ctx;
    watchmen_refresh(g->watchmen);
    if (g->request) answer(g->watchmen, g->request, entry_find(g->watchmen, g->id));
    free(g);
}

void watchmen_ping(struct watchmen *w, struct http_request *r) {
    char id[WATCHMEN_ID_MAX];
    bool is_read;
    watchmen_refresh(w);
    struct watchmen_entry *e = entry_of(w, r, id, &is_read);
    if (!is_read) return;
    bool is_first = e && !e->is_asked;
    if (e) e->is_asked = true;
    if (is_first && e->status == WAITING) /* he asks again in ten seconds only: what is free now is found first */
        queue_lease_settle(w->server->queue, settled, registering_new(w, r, e->id));
    else
        answer(w, r, e);
}

static void say_of(struct http_request *r, bool is_ok, const char *id, const char *what) {
    char text[WATCHMEN_ID_MAX + 60];
    snprintf(text, sizeof text, "Client %s %s", id, what);
    watchmen_say(r, 200, is_ok, text);
}

static void cancelled(void *ctx, int result, const struct error *e) {
    struct registering *g = ctx;
    watchmen_refresh(g->watchmen);
    if (g->request && g->is_form)
        page_again(g->request);
    else if (g->request && result >= 0)
        say_of(g->request, true, g->id, "cancelled successfully");
    else if (g->request)
        watchmen_say(g->request, 200, false, e->text);
    free(g);
}

static void cancel(struct watchmen *w, struct http_request *r, const struct watchmen_entry *e, bool is_form) {
    struct registering *g = registering_new(w, r, e->id);
    g->is_form = is_form;
    queue_lease_end(w->server->queue, e->job, JOB_CANCELLED, cancelled, g);
}

void watchmen_cancel(struct watchmen *w, struct http_request *r) {
    char id[WATCHMEN_ID_MAX];
    bool is_read;
    watchmen_refresh(w);
    struct watchmen_entry *e = entry_of(w, r, id, &is_read);
    if (!is_read) return;
    if (e && !watchmen_is_over(e))
        cancel(w, r, e, false);
    else
        say_of(r, false, id, e ? "is not waiting" : "not found");
}

/* A form can be sent from any page of anybody; what only a reader of ours has says that it was ours. */
void watchmen_cancel_form(struct watchmen *w, struct http_request *r) {
    AUTO(buf_done) struct buf name = {0}, value = {0};
    const char *at = r->body.s ? r->body.s : "";
    char id[WATCHMEN_ID_MAX] = "";
    bool is_ours = false;
    struct error why;
    while (http_query_next(&at, &name, &value, &why) > 0) {
        if (strcmp(name.s, "form") == 0) is_ours = secrets_same_text(value.s, w->form);
        if (strcmp(name.s, "id") == 0) snprintf(id, sizeof id, "%s", value.s);
    }
    watchmen_refresh(w);
    const struct watchmen_entry *e = entry_find(w, id);
    if (!is_ours)
        watchmen_say(r, 403, false, "the page is old: load it again");
    else if (e && e->job && !watchmen_is_over(e))
        cancel(w, r, e, true);
    else
        page_again(r);
}
