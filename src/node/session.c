#include "node/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "model/wire_device.h"
#include "model/wire_server.h"
#include "node/names.h"
#include "node/tasks.h"

#define QUEUE_MAX (256u << 10) /* bytes that wait for the server; beyond that the rings hold what there is */
#define BATCH 32               /* samples of one device at a time, so that none waits for another's backlog */
#define WELCOME_NS (10 * NS_PER_S)
#define AGAIN_NS (10 * NS_PER_S) /* what did not change is said again so often */
#define HOST_KEPT 64
#define OVERRUN_SAID_NS (60 * NS_PER_S)

/* What the server was last told of a device, by hash: it is told again when it differs. */
struct told {
    uint64_t next; /* the sample to send next; 0: not known before WELCOME */
    uint64_t state, xids, guard, processes;
    int64_t latest_ns, processes_ns;
    uint32_t names; /* names_version of the list that was sent */
};

enum session_state { SESSION_NONE, SESSION_GREETED, SESSION_LIVE };

static struct {
    enum session_state state;
    struct rings rings;
    struct told told[WIRE_DEVICES_MAX];
    uint64_t event_next[RINGS_MAX], driver[RINGS_MAX];
    struct host_sample host[HOST_KEPT];
    uint64_t host_head; /* readings there were */
    int64_t host_sent_ns, greeted_ns, overrun_said_ns;
    uint64_t overrun; /* samples that were overwritten before they could be sent, not said yet */
    bool is_behind;
    char node[64], boot_id[40], version[32];
} self;

/* ---- the beginning ---- */

void session_init(const struct instance *where, unsigned workers, const char *version) {
    struct error e;
    AUTO(buf_done) struct buf text = {0};
    rings_init(&self.rings, where, workers);
    snprintf(self.version, sizeof self.version, "%s", version);
    if (gethostname(self.node, sizeof self.node - 1) < 0 || !self.node[0]) strcpy(self.node, "localhost");
    if (file_read("/proc/sys/kernel/random/boot_id", 64, &text, &e) >= 0)
        snprintf(self.boot_id, sizeof self.boot_id, "%.*s", (int)strcspn(text.s, "\n"), text.s);
    else
        strcpy(self.boot_id, "unknown");
    (void)rings_renew(&self.rings);
}

void session_over(void) { self.state = SESSION_NONE; }
bool session_is_live(void) { return self.state == SESSION_LIVE; }
unsigned session_workers(void) { return self.rings.count; }

static void put_inventories(struct buf *out) {
    for (unsigned i = 0; i < self.rings.count; i++) {
        const struct rings_one *one = &self.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
            struct inventory inventory = *ring_inventory(&one->ring, d);
            if (inventory.parent >= 0) inventory.parent += one->first;
            wire_put_inventory(out, (uint16_t)(one->first + d), (uint16_t)i, &inventory);
        }
    }
}

void session_hello(struct uplink *u, int64_t now_ns) {
    struct wire_hello h = {.boot_ns = now_ns,
                           .real_ns = clock_real_ns(),
                           .catalogue = metric_catalogue_hash(),
                           .devices = self.rings.devices,
                           .sources = (uint16_t)(self.rings.count + 1)}; /* and the node's own */
    memcpy(h.node, self.node, sizeof h.node);
    memcpy(h.boot_id, self.boot_id, sizeof h.boot_id);
    memcpy(h.version, self.version, sizeof h.version);
    wire_put_hello(&u->out, &h);
    put_inventories(&u->out);
    memset(self.told, 0, sizeof self.told[0] * self.rings.devices);
    memset(self.driver, 0, sizeof self.driver);
    self.state = SESSION_GREETED;
    self.greeted_ns = now_ns;
    uplink_flush(u, now_ns);
}

static int64_t mark_of(const struct wire_welcome *w, const char *uuid) {
    for (uint16_t i = 0; i < w->devices; i++)
        if (strcmp(w->device[i].uuid, uuid) == 0) return w->device[i].mark;
    return 0;
}

void session_welcome(struct uplink *u, const struct wire_frame *f, int64_t now_ns) {
    static struct wire_welcome w;
    struct error e;
    if (self.state != SESSION_GREETED) return;
    if (wire_get_welcome(f, &w, &e) < 0) {
        uplink_close(u, now_ns, e.text);
        return;
    }
    bool is_same_boot = strcmp(w.boot_id, self.boot_id) == 0;
    for (uint16_t n = 0; n < self.rings.devices; n++) {
        uint32_t d;
        const struct rings_one *one = rings_find(&self.rings, n, &d);
        const char *uuid = ring_inventory(&one->ring, d)->uuid;
        self.told[n].next = ring_after(&one->ring, is_same_boot ? mark_of(&w, uuid) : 0);
    }
    for (unsigned i = 0; i < self.rings.count; i++) {
        const struct rings_one *one = &self.rings.of[i];
        int64_t mark = is_same_boot && i < w.sources ? w.event_mark[i] : 0;
        self.event_next[i] = one->is_open ? ring_after(&one->ring, mark) : 1;
    }
    unsigned own = self.rings.count;
    tasks_welcome(is_same_boot ? w.task_mark : 0, is_same_boot && own < w.sources ? w.event_mark[own] : 0);
    self.host_sent_ns = is_same_boot ? w.host_mark : 0;
    self.state = SESSION_LIVE;
    session_round(u, NULL, now_ns);
}

/* ---- samples ---- */

/* The oldest one that is still there. */
static void skip_overwritten(const struct ring *r, uint64_t head, uint64_t *next) {
    uint64_t slots = ring_slots(r);
    if (*next > head + 1) *next = head + 1; /* a mark of a ring that was: go on with what comes */
    if (head >= slots && *next <= head - slots) {
        self.overrun += head - slots + 1 - *next;
        *next = head - slots + 1;
    }
}

/* True: there is more. */
static bool put_samples(struct uplink *u, uint16_t number) {
    uint32_t d;
    const struct rings_one *one = rings_find(&self.rings, number, &d);
    if (!one) return false;
    uint64_t *next = &self.told[number].next, head = ring_head(&one->ring, d);
    skip_overwritten(&one->ring, head, next);
    for (int i = 0; i < BATCH && *next <= head; i++, (*next)++) {
        struct sample s;
        if (ring_sample(&one->ring, d, *next, &s))
            wire_put_sample(&u->out, number, ring_mark(&one->ring, *next), &s);
        else
            self.overrun++;
    }
    return *next <= head;
}

static void put_all_samples(struct uplink *u) {
    bool is_more = true;
    while (is_more && uplink_queued(u) < QUEUE_MAX) {
        is_more = false;
        for (uint16_t n = 0; n < self.rings.devices; n++) is_more |= put_samples(u, n);
    }
    self.is_behind = is_more;
}

/* The spool was too short: the server was away, or does not keep up. */
static void say_overrun(int64_t now_ns) {
    if (!self.overrun || (self.overrun_said_ns && now_ns - self.overrun_said_ns < OVERRUN_SAID_NS)) return;
    log_line(LOG_WARN, "overrun", -1, "%llu samples were overwritten before the server took them",
             (unsigned long long)self.overrun);
    self.overrun = 0;
    self.overrun_said_ns = now_ns;
}

/* ---- what changes now and then ---- */

/* Words, not bytes: all of these are whole words. Never 0, which stands for "was not told". */
static uint64_t hash(const void *bytes, size_t n) {
    uint64_t h = 0x9e3779b97f4a7c15ull, w;
    for (size_t i = 0; i + sizeof w <= n; i += sizeof w) {
        memcpy(&w, (const char *)bytes + i, sizeof w);
        h = (h ^ w) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h | 1;
}

static bool is_news(uint64_t *told, const void *bytes, size_t n) {
    uint64_t h = hash(bytes, n);
    if (h == *told) return false;
    *told = h;
    return true;
}

static void put_states(struct uplink *u) {
    for (uint16_t n = 0; n < self.rings.devices; n++) {
        uint32_t d;
        struct ring_state s;
        const struct rings_one *one = rings_find(&self.rings, n, &d);
        if (one && ring_state(&one->ring, d, &s) && is_news(&self.told[n].state, &s, sizeof s))
            wire_put_state(&u->out, n, &s);
    }
}

static void put_processes(struct uplink *u, uint16_t number, const struct rings_one *one, uint32_t d, int64_t now_ns) {
    static struct ring_processes p; /* large; this is one thread's */
    struct told *t = &self.told[number];
    if (!ring_processes(&one->ring, d, &p)) return;
    int64_t read_ns = p.boot_ns;
    p.boot_ns = read_ns != 0; /* when it was read is no news; that it cannot be read is */
    bool is_due = is_news(&t->processes, &p, offsetof(struct ring_processes, of) + p.count * sizeof p.of[0]);
    is_due |= p.count && (t->names != names_version() || now_ns - t->processes_ns >= AGAIN_NS);
    if (!is_due) return;
    t->names = names_version();
    t->processes_ns = now_ns;
    struct wire_processes list = {.device = number, .count = (uint16_t)p.count, .boot_ns = read_ns};
    list.total = p.total > p.count ? p.total : p.count;
    size_t from = wire_begin_processes(&u->out, &list);
    for (uint32_t i = 0; i < p.count; i++) {
        struct wire_process one_of = {.of = p.of[i]};
        names_look(&one_of, now_ns);
        wire_add_process(&u->out, &one_of);
    }
    wire_end(&u->out, from);
}

static void put_device(struct uplink *u, uint16_t number, int64_t now_ns) {
    uint32_t d;
    struct told *t = &self.told[number];
    const struct rings_one *one = rings_find(&self.rings, number, &d);
    struct latest latest;
    struct ring_xids xids;
    struct ring_guard guard;
    if (!one || uplink_queued(u) > QUEUE_MAX) return;
    if ((!t->latest_ns || now_ns - t->latest_ns >= AGAIN_NS) && ring_latest(&one->ring, d, &latest)) {
        wire_put_latest(&u->out, number, &latest);
        t->latest_ns = now_ns;
    }
    put_processes(u, number, one, d, now_ns);
    if (ring_xids(&one->ring, d, &xids) && is_news(&t->xids, &xids, sizeof xids)) wire_put_xids(&u->out, number, &xids);
    if (ring_guard(&one->ring, d, &guard) && is_news(&t->guard, &guard, sizeof guard))
        wire_put_guard(&u->out, number, &guard);
}

static void put_drivers(struct uplink *u) {
    for (unsigned i = 0; i < self.rings.count; i++) {
        struct ring_driver d;
        const struct rings_one *one = &self.rings.of[i];
        if (one->is_open && ring_driver(&one->ring, &d) && is_news(&self.driver[i], &d, sizeof d))
            wire_put_driver(&u->out, (uint16_t)i, &d);
    }
}

/* True: there were some. */
static bool put_events(struct uplink *u) {
    bool is_some = false;
    for (unsigned i = 0; i < self.rings.count; i++) {
        const struct rings_one *one = &self.rings.of[i];
        if (!one->is_open) continue;
        uint64_t head = ring_event_head(&one->ring), *next = &self.event_next[i];
        if (*next > head + 1) *next = head + 1;
        if (head >= RING_EVENTS && *next <= head - RING_EVENTS) *next = head - RING_EVENTS + 1;
        for (; *next <= head && uplink_queued(u) < 2 * QUEUE_MAX; (*next)++) {
            struct event ev;
            if (!ring_event(&one->ring, *next, &ev)) continue;
            if (ev.device >= 0) ev.device += one->first;
            wire_put_event(&u->out, (uint16_t)i, ring_mark(&one->ring, *next), &ev);
            is_some = true;
        }
    }
    return is_some;
}

/* ---- host readings ---- */

static void keep_host(const struct host_sample *s) { self.host[self.host_head++ % HOST_KEPT] = *s; }

static void put_host(struct uplink *u) {
    uint64_t first = self.host_head > HOST_KEPT ? self.host_head - HOST_KEPT : 0;
    for (uint64_t i = first; i < self.host_head; i++) {
        const struct host_sample *s = &self.host[i % HOST_KEPT];
        if (s->boot_ns <= self.host_sent_ns) continue;
        wire_put_host(&u->out, s->boot_ns, s);
        self.host_sent_ns = s->boot_ns;
    }
}

/* ---- time ---- */

static void put_round(struct uplink *u, int64_t now_ns) {
    struct wire_round r = {.boot_ns = now_ns, .real_ns = clock_real_ns(), .sources = (uint16_t)(self.rings.count + 1)};
    r.source[self.rings.count].beat_ns = now_ns;
    r.source[self.rings.count].writer = (uint32_t)getpid();
    for (unsigned i = 0; i < self.rings.count; i++) {
        const struct rings_one *one = &self.rings.of[i];
        if (!one->is_open) continue;
        r.source[i].beat_ns = ring_beat_ns(&one->ring);
        r.source[i].writer = ring_writer(&one->ring);
    }
    wire_put_round(&u->out, &r);
}

void session_round(struct uplink *u, const struct host_sample *host, int64_t now_ns) {
    if (host) keep_host(host);
    if (self.state == SESSION_GREETED && now_ns - self.greeted_ns > WELCOME_NS)
        uplink_close(u, now_ns, "it does not answer");
    if (self.state != SESSION_LIVE || u->state != UPLINK_UP || uplink_queued(u) > QUEUE_MAX) return;
    put_drivers(u);
    put_states(u);
    put_all_samples(u);
    for (uint16_t n = 0; n < self.rings.devices; n++) put_device(u, n, now_ns);
    put_host(u);
    (void)put_events(u);
    tasks_put_prompt(u, (uint16_t)self.rings.count, 2 * QUEUE_MAX);
    tasks_put_round(u, 2 * QUEUE_MAX);
    if (!self.is_behind) put_round(u, now_ns);
    uplink_flush(u, now_ns);
    say_overrun(now_ns);
}

void session_more(struct uplink *u, int64_t now_ns) {
    if (self.state != SESSION_LIVE || u->state != UPLINK_UP || !self.is_behind || uplink_queued(u) > QUEUE_MAX / 2)
        return;
    put_all_samples(u);
    if (!self.is_behind) put_round(u, now_ns);
    uplink_flush(u, now_ns);
}

void session_prompt(struct uplink *u, int64_t now_ns) {
    static uint32_t names;
    if (self.state != SESSION_LIVE || u->state != UPLINK_UP) return;
    if (put_events(u)) put_states(u);
    tasks_put_prompt(u, (uint16_t)self.rings.count, QUEUE_MAX);
    if (names != names_version() && uplink_queued(u) < QUEUE_MAX) {
        names = names_version();
        for (uint16_t n = 0; n < self.rings.devices; n++) put_device(u, n, now_ns);
    }
    if (uplink_queued(u)) uplink_flush(u, now_ns);
}

void session_look(struct uplink *u, int64_t now_ns) {
    if (!rings_are_stale(&self.rings)) return;
    if (self.state == SESSION_LIVE && u->state == UPLINK_UP) {
        put_all_samples(u);
        (void)put_events(u);
    }
    if (rings_renew(&self.rings) && u->state == UPLINK_UP) session_hello(u, now_ns);
}

bool session_find(const char *uuid, unsigned *worker, int32_t *index) {
    for (unsigned i = 0; i < self.rings.count; i++) {
        const struct rings_one *one = &self.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
            const struct inventory *inventory = ring_inventory(&one->ring, d);
            if (strcmp(inventory->uuid, uuid) != 0) continue;
            *worker = i;
            *index = inventory->index;
            return inventory->parent < 0; /* an instance has no guard of its own */
        }
    }
    return false;
}
