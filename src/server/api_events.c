/* Events: live as a stream, or as a list of what was. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/api.h"
#include "server/live_json.h"
#include "server/server.h"

enum { LIMIT_MAX = 1000, LIMIT_USUAL = 100, PAGES_MAX = 20 };

const struct route_field api_events_query[] = {
    {"from",        FIELD_NUMBER, false, "Unix seconds; below zero: before now"},
    {"to",        FIELD_NUMBER, false, "The same"},
    {"severity",             FIELD_TEXT, false, "At least: info, warning, error or critical"},
    {"kind",FIELD_TEXT, false, "One kind: xid, gpu_lost, ..."},
    {"gpu",   FIELD_TEXT, false, "A GPU's UUID"},
    {"node",    FIELD_TEXT, false, "A machine's name: its own events and its GPUs'"},
    {"limit",        FIELD_NUMBER, false, "How many at most: 100 where it is not given, 1000"},
    {"before",             FIELD_NUMBER, false, "An earlier answer's `next`: what is older than that"},
    {0         }
};

/* Where a card is now: history knows cards, not machines. */
struct place {
    char uuid[96], node[64];
    int32_t index;
};

struct asking {
    struct call *call;
    struct history_reader *reader;
    struct history_events_ask ask;
    char subject[208], kind[24], node[64];
    struct place *places;
    size_t place_count;
    struct buf out;
    struct error error;
    int result;
};

static void asking_free(struct asking *a) {
    free(a->places);
    buf_done(&a->out);
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
    live_json_event(&a->out, &ev, h->id, node_of(a, h), is_gpu ? &is : NULL);
}

static void run(void *ctx) {
    struct asking *a = ctx;
    size_t wanted = a->ask.limit, given = 0;
    int64_t next = 0;
    struct history_event *page = calloc(LIMIT_MAX, sizeof *page);
    if (!page) abort();
    if (*a->node) a->ask.limit = LIMIT_MAX; /* those of other machines are left out below */
    json_open(&a->out, '{');
    json_key(&a->out, "events");
    json_open(&a->out, '[');
    for (int n = 0; n < PAGES_MAX && given < wanted; n++) {
        a->result = history_events(a->reader, &a->ask, page, &a->error);
        if (a->result < 0) break;
        bool is_last = (size_t)a->result < a->ask.limit;
        int at = 0;
        for (; at < a->result && given < wanted; at++) {
            a->ask.before = page[at].id;
            if (*a->node && strcmp(node_of(a, &page[at]), a->node) != 0) continue;
            put_event(a, &page[at]);
            given++;
        }
        next = is_last && at == a->result ? 0 : a->ask.before;
        if (is_last) break;
    }
    free(page);
    json_close(&a->out, ']');
    json_key(&a->out, "next");
    char cursor[24];
    snprintf(cursor, sizeof cursor, "%lld", (long long)next);
    if (next)
        json_str(&a->out, cursor);
    else
        json_nil(&a->out);
    json_close(&a->out, '}');
    buf_putc(&a->out, '\n');
}

static void done(void *ctx) {
    struct asking *a = ctx;
    struct call *c = a->call;
    struct error e = a->error;
    int result = a->result;
    if (result >= 0) c->out = TAKE_STRUCT(a->out);
    asking_free(a);
    call_end(c, result < 0 ? result : 0, &e);
}

/* ---- what is asked ---- */

static int severity_of(const char *text, int *ret, struct error *e) {
    for (int s = EVENT_INFO; s <= EVENT_CRITICAL; s++)
        if (strcmp(text, event_severity_name((enum event_severity)s)) == 0) return *ret = s, 0;
    return fail(e, -EINVAL, "severity: %.20s is not info, warning, error or critical", text);
}

static int before_of(const char *text, int64_t *ret, struct error *e) {
    if (!text) return 0;
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno || *end || strspn(text, "0123456789") != strlen(text) || *ret <= 0)
        return fail(e, -EINVAL, "before: %.30s is no `next` of an earlier answer", text);
    return 0;
}

static int time_of(const struct call *c, const char *name, int64_t *ret_ms, struct error *e) {
    double s;
    int r = call_query_number(c, name, -1e10, 1e10, 0, &s, e);
    if (r < 0 || !call_query(c, name)) return r;
    if (s < 0) s += (double)(clock_real_ns() / NS_PER_MS) / 1000;
    *ret_ms = s < 0 ? 0 : llround(s * 1000);
    return 0;
}

static int ask_from(const struct call *c, struct asking *a, struct error *e) {
    const char *severity = call_query(c, "severity"), *kind = call_query(c, "kind"), *gpu = call_query(c, "gpu"),
               *node = call_query(c, "node");
    double limit;
    int r = severity ? severity_of(severity, &a->ask.severity, e) : 0;
    if (r >= 0) r = time_of(c, "from", &a->ask.from_ms, e);
    if (r >= 0) r = time_of(c, "to", &a->ask.to_ms, e);
    if (r >= 0) r = call_query_number(c, "limit", 1, LIMIT_MAX, LIMIT_USUAL, &limit, e);
    if (r >= 0) r = before_of(call_query(c, "before"), &a->ask.before, e);
    if (r < 0) return r;
    if (kind && strlen(kind) >= sizeof a->kind) return fail(e, -EINVAL, "kind: too long");
    if (node && strlen(node) >= sizeof a->node) return fail(e, -EINVAL, "node: too long");
    if (gpu && strlen(gpu) > 95) return fail(e, -EINVAL, "gpu: too long");
    a->ask.limit = (size_t)limit;
    if (node) snprintf(a->node, sizeof a->node, "%s", node);
    if (kind) {
        snprintf(a->kind, sizeof a->kind, "%s", kind);
        a->ask.kind = a->kind;
    }
    if (gpu) {
        snprintf(a->subject, sizeof a->subject, "gpu:%s", gpu);
        a->ask.subject = a->subject;
    }
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
    a->call = c;
    a->reader = recorder_reader(c->server->recorder);
    places_take(a, &c->server->live);
    int r = ask_from(c, a, e);
    if (r >= 0) r = recorder_ask(c->server->recorder, run, done, a, e);
    if (r < 0) {
        asking_free(a);
        return r;
    }
    return CALL_LATER;
}
