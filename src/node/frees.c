#include "node/frees.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/wire_run.h"
#include "node/announce.h"
#include "node/engine.h"
#include "node/faults.h"
#include "node/jobs.h"
#include "node/outside.h"
#include "node/owners.h"
#include "node/tracks.h"

#define LOOK_NS (3 * NS_PER_MS)    /* after an end, until the memory is seen to be free */
#define LOOK_MOST_NS (NS_PER_S)    /* but not for longer */
#define ASK_NS (50 * NS_PER_MS)    /* between two such questions to the samplers */
#define WORKS_RATIO 0.02           /* below this nobody works on it */
#define MEMORY_STEP (256ull << 20) /* a change that is worth telling */

/* What is remembered of a device, by its bit in the task table. */
struct seen {
    bool is_told; /* there is something to tell of it */
    struct wire_free said;
    unsigned listed;     /* processes of the last list */
    int64_t end_ns;      /* when one left it */
    uint64_t idle_bytes; /* least memory in use while nobody was on it; 0: not seen */
    bool was_granted;
    int32_t index, minor, instance; /* instance: which of its card's; -1: a card */
    bool is_cut;                    /* into instances: they are given away, not the card */
    char held_by[96];               /* a container that was given it and runs */
};

static struct {
    pthread_mutex_t lock; /* of seen: the tracker writes, the main thread reads */
    struct seen of[TRACKS_GPUS];
    int64_t next_ns, asked_ns;
    bool is_changed, is_left; /* is_left: the last process of a GPU has just ended */
    struct instance where;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_ns = INT64_MAX};

void frees_begin(const struct instance *where) { self.where = *where; }

int64_t frees_next_ns(void) { return self.next_ns; }

/* ---- what is known ---- */

/* A container that somebody added with GPUs has them while it runs, whether or not it works: else the queue would put a job
 * beside it the moment it is idle. Labels are what the engine told: no file of ours can be wrong about it. */
struct holding {
    const char *uuid;
    struct seen *s;
    struct wire_free *w;
    bool is_held;
};

static bool names(const char *labels, const char *uuid) {
    char gpus[512], key[24];
    size_t n = strlen(uuid);
    for (unsigned part = 0; part < ENGINE_GPUS_PARTS; part++) {
        snprintf(key, sizeof key, part ? "%s.%u" : "%s", ENGINE_GPUS_LABEL, part);
        if (!engine_label_of(labels, key, gpus, sizeof gpus)) continue;
        const char *at = strstr(gpus, uuid);
        if (at && (!at[n] || at[n] == ',')) return true;
    }
    return false;
}

static void on_holder(void *ctx, const struct engine_facts *f, const char *labels) {
    struct holding *h = ctx;
    char uid[16];
    if (h->is_held || !names(labels, h->uuid)) return;
    h->is_held = true;
    snprintf(h->s->held_by, sizeof h->s->held_by, "%s", f->name);
    if (h->w->pid) return; /* somebody who is on it was named already */
    h->w->pid = f->pid;
    h->w->uid = engine_label_of(labels, "gpumgr.uid", uid, sizeof uid) ? (uint32_t)strtoul(uid, NULL, 10) : UINT32_MAX;
    snprintf(h->w->user, sizeof h->w->user, "container %.50s", f->name);
}

static bool is_held(struct seen *s, const char *uuid, struct wire_free *w) {
    struct holding h = {.uuid = uuid, .s = s, .w = w};
    s->held_by[0] = 0;
    if (tracker.engine) engine_each_with(tracker.engine, ENGINE_GPUS_LABEL, on_holder, &h);
    return h.is_held;
}

/* One that has ended is listed until the next look. */
static bool is_there(const struct track *t) { return !t || !t->gone_ns; }

/* Which job it is, and whose. */
static void note_stray(const struct track *t, const char *run, struct wire_free *w) {
    const char *user = t->slot < TABLE_SLOTS ? tracker.said[t->slot].user : NULL;
    w->pid = t->pid;
    w->uid = t->k.uid;
    snprintf(w->user, sizeof w->user, "%s", user ? user : "");
    snprintf(w->note, sizeof w->note, "is used by job %lld%s%s, which was not given it", strtoll(run, NULL, 10),
             *w->user ? " of " : "", w->user);
}

static void count(const struct tracked_gpu *g, const struct inventory *inv, struct occupancy_facts *f,
                  struct wire_free *w) {
    char run[OWNERS_NAME];
    for (uint32_t i = 0; i < g->processes.count; i++) {
        const struct track *t = track_find((int32_t)g->processes.of[i].pid);
        if (!is_there(t) && tracker.knows_pids) continue;
        if (t && track_is_stray(t, inv, run)) {
            if (!f->stray++ && !f->foreign) note_stray(t, run, w);
            continue;
        }
        if (t && track_is_ours(t)) {
            f->ours++;
            continue;
        }
        if (!f->foreign++) {
            w->pid = (int32_t)g->processes.of[i].pid;
            w->uid = t ? t->k.uid : UINT32_MAX;
            const char *user = t && t->slot < TABLE_SLOTS ? tracker.said[t->slot].user : NULL;
            snprintf(w->user, sizeof w->user, "%s", user ? user : "");
            w->outside = t ? (uint8_t)outside_of(t->pid, t->k.ticks, &w->ends_ns) : 0;
        }
    }
}

static void read_metrics(const struct rings_one *one, uint32_t d, struct seen *s, struct occupancy_facts *f) {
    static struct latest l; /* large; under the lock */
    if (!ring_latest(&one->ring, d, &l)) return;
    f->has_memory = latest_has(&l, METRIC_MEMORY_USED, f->now_ns);
    f->used_bytes = f->has_memory ? (uint64_t)l.of[METRIC_MEMORY_USED].value : 0;
    if (latest_has(&l, METRIC_MEMORY_TOTAL, f->now_ns)) f->total_bytes = (uint64_t)l.of[METRIC_MEMORY_TOTAL].value;
    f->has_utilisation = latest_has(&l, METRIC_UTIL_GPU, f->now_ns);
    f->utilisation = f->has_utilisation ? l.of[METRIC_UTIL_GPU].value : 0;
    bool has_reserved = latest_has(&l, METRIC_MEMORY_RESERVED, f->now_ns);
    bool is_fresh = f->has_memory && l.of[METRIC_MEMORY_USED].boot_ns > s->end_ns;
    if (!has_reserved && is_fresh && f->has_processes && !s->listed && !f->is_granted &&
        (!s->idle_bytes || f->used_bytes < s->idle_bytes))
        s->idle_bytes = f->used_bytes;
    f->idle_bytes = has_reserved ? 0 : s->idle_bytes;
}

/* What befalls a card befalls its instances: its guard, its faults. */
static uint32_t card_of(const struct rings_one *one, uint32_t d) {
    int32_t parent = ring_inventory(&one->ring, d)->parent;
    return parent >= 0 && (uint32_t)parent < ring_devices(&one->ring) ? (uint32_t)parent : d;
}

static int32_t instance_of(const struct rings_one *one, uint32_t d) {
    int32_t parent = ring_inventory(&one->ring, d)->parent, before = 0;
    if (parent < 0) return -1;
    for (uint32_t i = 0; i < d; i++) before += ring_inventory(&one->ring, i)->parent == parent;
    return before;
}

static bool is_hot(const struct rings_one *one, uint32_t d) {
    struct ring_guard g;
    return ring_guard(&one->ring, d, &g) && g.mode == RING_GUARD_ACTS && g.held_by == RING_HELD_BY_GUARD &&
           isfinite(g.limit) && isfinite(g.baseline) && g.limit < 0.98 * g.baseline;
}

/* ---- the verdict ---- */

static bool is_news(const struct wire_free *a, const struct wire_free *b) {
    uint64_t more =
        a->memory_bytes > b->memory_bytes ? a->memory_bytes - b->memory_bytes : b->memory_bytes - a->memory_bytes;
    return a->verdict != b->verdict || a->pid != b->pid || a->uid != b->uid || strcmp(a->user, b->user) != 0 ||
           strcmp(a->note, b->note) != 0 || a->outside != b->outside || llabs(a->ends_ns - b->ends_ns) > NS_PER_S ||
           !a->idle_ns != !b->idle_ns || more > MEMORY_STEP;
}

static void look_again(const struct seen *s, const struct occupancy_facts *f, enum occupancy verdict) {
    int64_t again_ns = occupancy_again_ns(f);
    bool is_waiting = verdict == OCCUPANCY_MEMORY || verdict == OCCUPANCY_BUSY;
    if (again_ns && again_ns < self.next_ns) self.next_ns = again_ns;
    if (is_waiting && f->now_ns - s->end_ns < LOOK_MOST_NS && f->now_ns + LOOK_NS < self.next_ns)
        self.next_ns = f->now_ns + LOOK_NS;
}

static void judge(const struct rings_one *one, uint32_t d, int bit, int64_t now_ns) {
    struct seen *s = &self.of[bit];
    const struct tracked_gpu *g = &tracker.gpu[bit];
    const struct inventory *inv = ring_inventory(&one->ring, d);
    struct ring_state state;
    struct wire_free w = {.uid = UINT32_MAX};
    struct occupancy_facts f = {
        .now_ns = now_ns, .has_processes = g->has_list, .is_granted = owners_has_gpu(inv->uuid)};
    memcpy(w.uuid, inv->uuid, sizeof w.uuid);
    count(g, inv, &f, &w);
    s->index = inv->index;
    s->minor = inv->minor;
    s->instance = instance_of(one, d);
    s->is_cut = inv->mig_mode == 1 && inv->mig_count > 0;
    unsigned listed = f.foreign + f.stray + f.ours;
    bool has_left = listed < s->listed;
    if (has_left || (s->was_granted && !f.is_granted)) s->end_ns = now_ns;
    s->listed = listed;
    self.is_left |= has_left && !s->listed;
    s->was_granted = f.is_granted;
    if (is_held(s, inv->uuid, &w) && !f.foreign) f.foreign = 1;
    f.end_ns = s->end_ns;
    uint32_t card = card_of(one, d);
    bool is_read = ring_state(&one->ring, card, &state);
    f.is_lost = is_read && state.state != DEVICE_OK && state.state != DEVICE_STARTING;
    f.is_hot = is_hot(one, card);
    f.is_unhealthy = faults_look(one, d, card, bit, now_ns, w.note, sizeof w.note);
    read_metrics(one, d, s, &f);
    w.verdict = (uint8_t)occupancy_judge(&f, (uint64_t)tracker.settings.jobs_free_memory_mb << 20);
    if (w.verdict != OCCUPANCY_UNHEALTHY && w.verdict != OCCUPANCY_STRAY) w.note[0] = 0;
    w.memory_bytes = f.used_bytes;
    int64_t real_ns = clock_real_ns();
    w.since_ns = s->is_told && s->said.verdict == w.verdict ? s->said.since_ns : real_ns;
    bool works = f.has_utilisation && f.utilisation > WORKS_RATIO;
    w.idle_ns = works ? 0 : s->is_told && s->said.idle_ns ? s->said.idle_ns : real_ns;
    look_again(s, &f, (enum occupancy)w.verdict);
    if (s->is_told && !is_news(&w, &s->said)) return;
    s->said = w;
    s->is_told = true;
    self.is_changed = true;
}

void frees_judge(int64_t now_ns) {
    pthread_mutex_lock(&self.lock);
    self.next_ns = INT64_MAX;
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++) {
            int bit = tracker.bit[one->first + d];
            if (bit >= 0) judge(one, d, bit, now_ns);
        }
    }
    bool is_changed = self.is_changed, is_left = self.is_left && now_ns - self.asked_ns >= ASK_NS;
    self.is_left = false;
    pthread_mutex_unlock(&self.lock);
    if (is_changed) jobs_nudge();
    if (!is_left) return;
    /* Whoever waits for this GPU waits until its memory is seen to be free: the next round may be a second away. */
    self.asked_ns = now_ns;
    announce_look(&self.where, (unsigned)tracker.settings.workers);
}

void frees_put(struct uplink *u, bool all) {
    uint16_t n = 0;
    pthread_mutex_lock(&self.lock);
    if (self.is_changed || all) {
        for (int i = 0; i < TRACKS_GPUS; i++) n += self.of[i].is_told;
        size_t from = wire_begin_frees(&u->out, n);
        for (int i = 0; i < TRACKS_GPUS; i++)
            if (self.of[i].is_told) wire_add_free(&u->out, &self.of[i].said);
        wire_end(&u->out, from);
        self.is_changed = false;
    }
    pthread_mutex_unlock(&self.lock);
}

static void name_holder(const struct seen *s, struct frees_gpu *g) {
    struct owner o;
    g->is_granted = owners_on_gpu(s->said.uuid, &o);
    if (g->is_granted)
        snprintf(g->holder, sizeof g->holder, "job %.*s (%.100s)", (int)strcspn(o.name, "."), o.name, o.title);
    else if (s->held_by[0])
        snprintf(g->holder, sizeof g->holder, "container %s", s->held_by);
    else if (s->said.verdict == OCCUPANCY_FOREIGN)
        snprintf(g->holder, sizeof g->holder, "%s (pid %d)", s->said.user[0] ? s->said.user : "somebody", s->said.pid);
}

unsigned frees_all(struct frees_gpu *ret, unsigned room) {
    unsigned n = 0;
    pthread_mutex_lock(&self.lock);
    for (int i = 0; i < TRACKS_GPUS && n < room; i++) {
        const struct seen *s = &self.of[i];
        if (!s->is_told || s->is_cut) continue;
        struct frees_gpu *g = &ret[n++];
        *g = (struct frees_gpu){
            .index = s->index, .minor = s->minor, .instance = s->instance, .verdict = s->said.verdict};
        if (s->instance < 0)
            snprintf(g->name, sizeof g->name, "%d", s->index);
        else
            snprintf(g->name, sizeof g->name, "%d:%d", s->index, s->instance);
        memcpy(g->uuid, s->said.uuid, sizeof g->uuid);
        name_holder(s, g);
    }
    pthread_mutex_unlock(&self.lock);
    return n;
}
