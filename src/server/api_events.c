/* Events: live as a stream, or as a list of what was. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/api_later.h"
#include "server/live_json.h"
#include "server/server.h"

enum { PAGES_MAX = 20 };

const struct route_field api_events_query[] = {
    {"from",        FIELD_NUMBER, false, "Unix seconds; below zero: before now"},
    {"to",        FIELD_NUMBER, false, "The same"},
    {"severity",             FIELD_TEXT, false, "At least: info, warning, error or critical"},
    {"kind",FIELD_TEXT, false, "One kind: xid, gpu_lost, ..."},
    {"gpu",   FIELD_TEXT, false, "A GPU's UUID"},
    {"node",    FIELD_TEXT, false, "A machine's name: its own events and its GPUs'"},
    LATER_PAGE_FIELDS("An earlier answer's `next`: what is older than that"),
    {0       }
};

/* Where a card is now: history knows cards, not machines. */
struct place {
    char uuid[96], node[64];
    int32_t index;
};

struct asking {
    struct later is;
    struct history_events_ask ask;
    char gpu[96], subject[208], kind[24], node[64];
    struct place *places;
    size_t place_count;
};

static void asking_drop(struct later *l) {
    struct asking *a = (struct asking *)l;
    free(a->places);
    free(a);
}

static void places_take(struct asking *a, const struct live *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) n += l->node[i]->devices;
    a->places = calloc(n ? n : 1, sizeof *a->places);
    if (!a->places) abort();
    for (size_t i = 0; i < l->count; i++)
        for (uint16_t d = 0; d < l->node[i]->devices; d++) {
            struct place *p = &a->places[a->place_count++];
            snprintf(p->uuid, sizeof p->uuid, "%s", l->node[i]->device[d].is.uuid);
            snprintf(p->node, sizeof p->node, "%s", l->node[i]->name);
            p->index = l->node[i]->device[d].is.index;
        }
}

/* ---- on the reading thread ---- */

static const struct place *place_of(const struct asking *a, const struct history_event *h) {
    for (size_t i = 0; strncmp(h->subject, "gpu:", 4) == 0 && i < a->place_count; i++)
        if (strcmp(a->places[i].uuid, h->subject + 4) == 0) return &a->places[i];
    return NULL;
}

static const char *node_of(const struct asking *a, const struct history_event *h) {
    const struct place *p = place_of(a, h);
    if (p) return p->node;
    return strncmp(h->subject, "host:", 5) == 0 ? h->subject + 5 : "";
}

static void put_event(struct asking *a, const struct history_event *h) {
    struct event ev = {.real_ns = h->at_ms * NS_PER_MS, .severity = h->severity, .code = h->code, .pid = h->pid};
    struct inventory is;
    const struct place *p = place_of(a, h);
    bool is_gpu = strncmp(h->subject, "gpu:", 4) == 0;
    memcpy(ev.kind, h->kind, sizeof ev.kind);
    memcpy(ev.text, h->text, sizeof ev.text);
    inventory_init(&is, p ? p->index : -1);
    if (is_gpu) snprintf(is.uuid, sizeof is.uuid, "%s", h->subject + 4);
    live_json_event(&a->is.out, &ev, h->id, node_of(a, h), is_gpu ? &is : NULL);
}

static void run(struct later *l) {
    struct asking *a = (struct asking *)l;
    size_t wanted = a->ask.limit, given = 0;
    int64_t next = 0;
    struct history_event *page = calloc(LATER_LIMIT_MAX, sizeof *page);
    if (!page) abort();
    if (*a->node) a->ask.limit = LATER_LIMIT_MAX; /* those of other machines are left out below */
    json_open(&l->out, '{');
    json_key(&l->out, "events");
    json_open(&l->out, '[');
    for (int n = 0; n < PAGES_MAX && given < wanted; n++) {
        l->result = history_events(l->reader, &a->ask, page, &l->error);
        if (l->result < 0) break;
        bool is_last = (size_t)l->result < a->ask.limit;
        int at = 0;
        for (; at < l->result && given < wanted; at++) {
            a->ask.before = page[at].id;
            if (*a->node && strcmp(node_of(a, &page[at]), a->node) != 0) continue;
            put_event(a, &page[at]);
            given++;
        }
        next = is_last && at == l->result ? 0 : a->ask.before;
        if (is_last) break;
    }
    free(page);
    json_close(&l->out, ']');
    later_put_next(l, next);
}

/* ---- what is asked ---- */

static int severity_of(const char *text, int *ret, struct error *e) {
    for (int s = EVENT_INFO; s <= EVENT_CRITICAL; s++)
        if (strcmp(text, event_severity_name((enum event_severity)s)) == 0) return *ret = s, 0;
    return fail(e, -EINVAL, "severity: %.20s is not info, warning, error or critical", text);
}

static int ask_from(const struct call *c, struct asking *a, struct error *e) {
    const char *severity = call_query(c, "severity"), *gpu = NULL, *node = NULL;
    int r = severity ? severity_of(severity, &a->ask.severity, e) : 0;
    if (r >= 0) r = later_time(c, "from", &a->ask.from_ms, e);
    if (r >= 0) r = later_time(c, "to", &a->ask.to_ms, e);
    if (r >= 0) r = later_page(c, &a->ask.limit, &a->ask.before, e);
    if (r >= 0) r = later_text(c, "kind", a->kind, sizeof a->kind, &a->ask.kind, e);
    if (r >= 0) r = later_text(c, "node", a->node, sizeof a->node, &node, e);
    if (r >= 0) r = later_text(c, "gpu", a->gpu, sizeof a->gpu, &gpu, e);
    if (r < 0 || !gpu) return r;
    snprintf(a->subject, sizeof a->subject, "gpu:%s", gpu);
    a->ask.subject = a->subject;
    return 0;
}

static int stream(struct call *c, struct error *e) {
    int r = streams_add(c->server->streams, c->request, e);
    return r < 0 ? r : CALL_DONE;
}

int api_events(struct call *c, struct error *e) {
    const struct http_head *h = &c->request->head;
    if (h->method == HTTP_GET && http_list_has(http_field(h, "accept"), "text/event-stream")) return stream(c, e);
    struct asking *a = calloc(1, sizeof *a);
    if (!a) abort();
    later_init(&a->is, c, run, asking_drop);
    places_take(a, &c->server->live);
    return later_submit(&a->is, ask_from(c, a, e), e);
}
