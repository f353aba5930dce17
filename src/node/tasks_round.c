/* What the tracker does every second: divides the time and energy of each GPU among its tasks, looks for memory that nobody
 * uses, takes names that came late, and judges the machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/share.h"
#include "model/wire_device.h"
#include "node/names.h"
#include "node/outside.h"
#include "node/process.h"
#include "node/tracks.h"

#define LEFT_NS (3 * NS_PER_S) /* out of all lists for so long: the process lives on, its task has ended */
#define DEAD_NS (5 * NS_PER_S)
#define MARK_NS (10 * NS_PER_S)
#define STRETCH_MOST_NS (5 * NS_PER_S)
#define IDLE_LEAST_BYTES (64ull << 20)

static double gib(uint64_t bytes) { return (double)bytes / (double)(1ull << 30); }

/* ---- use ---- */

static double latest_of(const struct latest *l, int id, int64_t now_ns) {
    return latest_has(l, id, now_ns) ? l->of[id].value : NAN;
}

static void add_use(struct track *t, const struct share_holder *h) {
    t->k.gpu_seconds += h->gpu_seconds;
    t->k.energy_joules += h->energy_joules;
    if (!t->group) return;
    t->group->gpu_seconds += h->gpu_seconds;
    t->group->energy_joules += h->energy_joules;
}

/* What it has now, summed over the cards. */
static void add_now(struct track *t, const struct ring_process *p, const struct share_holder *h, int64_t now_ns) {
    uint64_t bytes = p->memory_bytes == PROCESS_NO_MEMORY ? 0 : p->memory_bytes;
    t->memory_now += bytes;
    if (t->group) t->group->memory_bytes += bytes;
    if (!isnan(h->sm)) t->sm_now = (isnan(t->sm_now) ? 0 : t->sm_now) + h->sm;
    if (isnan(h->sm) || h->sm > 0) t->used_ns = now_ns; /* not measured: not known to be idle */
}

/* The instances of a card share its energy: their processes are its processes. */
static unsigned holders_of(const struct rings_one *one, uint32_t card, const struct ring_process **ret, unsigned room) {
    unsigned n = 0;
    for (uint32_t d = 0; d < ring_devices(&one->ring); d++) {
        int bit = tracker.bit[one->first + d];
        if (bit < 0 || (d != card && ring_inventory(&one->ring, d)->parent != (int32_t)card)) continue;
        const struct ring_processes *p = &tracker.gpu[bit].processes;
        for (uint32_t i = 0; i < p->count && n < room; i++) {
            bool is_told = false; /* by the card and by its instance */
            for (unsigned k = 0; k < n; k++) is_told |= ret[k]->pid == p->of[i].pid;
            if (!is_told) ret[n++] = &p->of[i];
        }
    }
    return n;
}

/* The driver does not tell a process's share of an instance: it is what the instance itself worked, divided among those on it. Of
 * the card's energy it counts by the instance's part of the card. Returns how long it worked, as a share of the time; NaN: the card
 * does not tell that either. */
static double on_instance(const struct rings_one *one, uint32_t card, const struct ring_process *p, double card_bytes,
                          int64_t now_ns, struct share_holder *h) {
    static struct latest latest; /* large; under the lock */
    for (uint32_t d = 0; p->gi != UINT32_MAX && d < ring_devices(&one->ring); d++) {
        const struct inventory *inv = ring_inventory(&one->ring, d);
        int bit = tracker.bit[one->first + d];
        if (inv->parent != (int32_t)card || (uint32_t)inv->gi != p->gi || (uint32_t)inv->ci != p->ci || bit < 0)
            continue;
        if (!ring_latest(&one->ring, d, &latest)) return NAN;
        uint32_t among = tracker.gpu[bit].processes.count;
        double works = latest_of(&latest, METRIC_ACTIVE_GRAPHICS, now_ns) / (among ? among : 1);
        double part = latest_of(&latest, METRIC_MEMORY_TOTAL, now_ns) / card_bytes;
        if (isnan(h->sm)) h->sm = works * (part > 0 && part < 1 ? part : 1);
        return works;
    }
    return NAN;
}

static void divide(const struct rings_one *one, uint32_t d, bool is_round, int64_t now_ns) {
    static struct share_holder h[4 * RING_PROCESSES_MAX];
    static const struct ring_process *who[4 * RING_PROCESSES_MAX];
    static double works[4 * RING_PROCESSES_MAX];
    static struct latest latest;
    int bit = tracker.bit[one->first + d];
    if (bit < 0 || !ring_latest(&one->ring, d, &latest)) return;
    struct tracked_gpu *g = &tracker.gpu[bit];
    if (!is_round && now_ns <= g->spent_ns) return; /* it had left before the last round */
    int64_t for_ns = g->spent_ns ? now_ns - g->spent_ns : 0;
    g->spent_ns = now_ns;
    if (for_ns > STRETCH_MOST_NS) for_ns = STRETCH_MOST_NS;
    double watts = latest_of(&latest, METRIC_POWER, now_ns), seconds = (double)for_ns / 1e9;
    double busy = latest_of(&latest, METRIC_UTIL_GPU, now_ns);
    if (busy <= 0 && watts > 0 && !(g->idle_w < watts)) g->idle_w = watts;
    unsigned n = holders_of(one, d, who, ARRAY_LEN(who));
    double bytes = latest_of(&latest, METRIC_MEMORY_TOTAL, now_ns);
    for (unsigned i = 0; i < n; i++) {
        h[i] = (struct share_holder){.sm = who[i]->sm == PROCESS_NO_SHARE ? NAN : who[i]->sm / 100.0,
                                     .memory_bytes = who[i]->memory_bytes};
        works[i] = on_instance(one, d, who[i], bytes, now_ns, &h[i]);
    }
    struct share_gpu gpu = {.seconds = seconds, .energy_j = watts * seconds, .idle_w = g->idle_w, .busy = busy};
    share_split(&gpu, h, n);
    for (unsigned i = 0; i < n; i++) {
        struct track *t = track_find((int32_t)who[i]->pid);
        if (!isnan(works[i])) h[i].gpu_seconds = works[i] * seconds;
        if (!t) continue;
        /* What a job does on a GPU that it was not given is not to its credit. */
        bool is_stray = track_is_stray(t, ring_inventory(&one->ring, d), NULL);
        int64_t used_ns = t->used_ns;
        if (!is_stray) add_use(t, &h[i]);
        if (is_round) add_now(t, who[i], &h[i], now_ns);
        if (is_stray) t->used_ns = used_ns;
    }
}

/* Of an instance its card. */
static bool is_on_card(const struct track *t, const struct rings_one *one, uint32_t card) {
    for (uint32_t d = 0; d < ring_devices(&one->ring); d++) {
        int bit = tracker.bit[one->first + d];
        bool is_part = d == card || ring_inventory(&one->ring, d)->parent == (int32_t)card;
        if (is_part && bit >= 0 && gpumgr_task_is_on(&t->k, (uint32_t)bit)) return true;
    }
    return false;
}

void tracker_settle(const struct track *t, int64_t now_ns) {
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++)
            if (ring_inventory(&one->ring, d)->parent < 0 && is_on_card(t, one, d)) divide(one, d, false, now_ns);
    }
}

static void take_use(int64_t now_ns) {
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (struct track *t = tracker.bucket[b]; t; t = t->next) {
            t->memory_now = 0;
            t->sm_now = NAN;
            if (t->group) t->group->memory_bytes = 0;
        }
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring); d++)
            if (ring_inventory(&one->ring, d)->parent < 0) divide(one, d, true, now_ns);
    }
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (struct track *t = tracker.bucket[b]; t; t = t->next) {
            if (!t->is_live) continue;
            t->k.memory_bytes = t->memory_now;
            if (t->memory_now > t->k.memory_peak_bytes) t->k.memory_peak_bytes = t->memory_now;
            t->k.float_ns = task_left_ns(&t->task, now_ns);
            table_refresh(&tracker.table, t->slot, &t->k);
            if (t->group) t->group->version++;
        }
}

/* ---- who left, who is dead, who sleeps ---- */

/* Whether all that it was on have been looked at since. */
static bool is_sure(const struct track *t) {
    for (uint32_t bit = 0; bit < tracker.table.head->gpu_count; bit++)
        if (gpumgr_task_is_on(&t->k, bit) && tracker.gpu[bit].list_ns < t->unlisted_ns + LEFT_NS) return false;
    return true;
}

static void mind_dead(struct track *t, int64_t now_ns) {
    if (!tracker.knows_pids || t->is_dead_said || !t->gone_ns || now_ns - t->gone_ns < DEAD_NS || !t->memory_now)
        return;
    if (process_is_there("/proc", t->pid, t->k.ticks)) return;
    t->is_dead_said = true;
    tracker_event(EVENT_ERROR, "dead_memory", tracker_device(t), t->pid,
                  "%.1f GiB of GPU memory are held by process %d%s%.16s, which is gone", gib(t->memory_now), t->pid,
                  t->k.comm[0] ? ", " : "", t->k.comm);
}

static void mind_idle(struct track *t, int64_t now_ns) {
    int64_t for_ns = (int64_t)tracker.settings.idle_s * NS_PER_S;
    if (now_ns == t->used_ns) t->is_idle_said = false;
    if (!t->is_live || !for_ns || t->is_idle_said || t->memory_now < IDLE_LEAST_BYTES || now_ns - t->used_ns < for_ns)
        return;
    t->is_idle_said = true;
    tracker_event(EVENT_INFO, "idle_holder", tracker_device(t), t->pid,
                  "%.32s%s%.16s, process %d, holds %.1f GiB and has not used its GPU for %lld s", t->k.container,
                  t->k.container[0] ? ": " : "", t->k.comm, t->pid, gib(t->memory_now),
                  (long long)((now_ns - t->used_ns) / NS_PER_S));
}

/* One that was told by its number alone may be the one before, of the same number. */
void track_name(struct track *t, int64_t now_ns) {
    struct wire_process p = {.of = {.pid = (uint32_t)t->pid}};
    if (t->is_named || t->pidfd < 0 || !t->is_live || t->slot >= TABLE_SLOTS) return;
    names_look(&p, now_ns);
    if (!p.start_boot_ns || p.start_boot_ns != process_born_ns(&(struct process){.ticks = t->k.ticks})) return;
    t->is_named = true;
    free(tracker.said[t->slot].user);
    free(tracker.said[t->slot].command);
    tracker.said[t->slot].user = strdup(p.user);
    tracker.said[t->slot].command = strdup(p.command);
    if (p.comm[0]) memcpy(t->k.comm, p.comm, sizeof t->k.comm); /* after exec it has another */
}

static void take_name(struct track *t, int64_t now_ns) {
    bool was_named = t->is_named;
    track_name(t, now_ns);
    if (t->is_named && !was_named) track_put(t, now_ns);
}

/* Who was told before the name of its user was known is told again. */
static void take_users(int64_t now_ns) {
    struct gpumgr_task k;
    char user[64];
    unsigned left = 0;
    for (unsigned i = 0; i < tracker.unnamed_count; i++) {
        uint32_t slot = tracker.unnamed[i];
        if (tracker.said[slot].user || !table_get(&tracker.table, slot, &k) || k.uid == UINT32_MAX) continue;
        if (!names_user(k.uid, user, sizeof user))
            tracker.unnamed[left++] = slot;
        else if (tracker.at[slot])
            track_put(tracker.at[slot], now_ns);
        else
            slot_put(slot, &k, now_ns);
    }
    tracker.unnamed_count = left;
}

static void mind_tracks(int64_t now_ns) {
    for (unsigned b = 0; b < TRACKS_BUCKETS; b++)
        for (struct track *t = tracker.bucket[b], *next; t; t = next) {
            next = t->next;
            take_name(t, now_ns);
            mind_dead(t, now_ns);
            mind_idle(t, now_ns);
            if (t->is_live && t->unlisted_ns && !track_is_listed(t) && is_sure(t)) track_end(t, t->unlisted_ns, true);
        }
}

/* ---- the machine ---- */

static void judge(int64_t now_ns) {
    static struct node_gpu gpus[WIRE_DEVICES_MAX];
    static struct latest latest;
    struct ring_state state;
    size_t n = 0;
    for (unsigned i = 0; i < tracker.rings.count; i++) {
        const struct rings_one *one = &tracker.rings.of[i];
        for (uint32_t d = 0; one->is_open && d < ring_devices(&one->ring) && n < ARRAY_LEN(gpus); d++) {
            if (ring_inventory(&one->ring, d)->parent >= 0 || !ring_latest(&one->ring, d, &latest)) continue;
            double total = latest_of(&latest, METRIC_MEMORY_TOTAL, now_ns),
                   unused = latest_of(&latest, METRIC_MEMORY_FREE, now_ns);
            gpus[n++] = (struct node_gpu){.busy_ratio = latest_of(&latest, METRIC_UTIL_GPU, now_ns),
                                          .free_bytes = unused > 0 ? (uint64_t)unused : 0,
                                          .total_bytes = total > 0 ? (uint64_t)total : 0,
                                          .is_usable = ring_state(&one->ring, d, &state) && state.state == DEVICE_OK};
        }
    }
    struct node_rules rules = {.miss_window_ns = (int64_t)tracker.settings.miss_window_s * NS_PER_S,
                               .busy_ratio = tracker.settings.busy_percent / 100,
                               .full_ratio = tracker.settings.full_percent / 100};
    tracker.state = node_judge(&rules, &tracker.slack, gpus, n, tracker.live, now_ns);
    node_state_put(&tracker.state, tracker.table.head->node_state);
}

void tracker_round(int64_t now_ns) {
    if (now_ns - tracker.marked_ns > MARK_NS) {
        tracker.marked_ns = now_ns;
        opens_mark(&tracker.opens);
    }
    take_use(now_ns);
    mind_tracks(now_ns);
    take_users(now_ns);
    judge(now_ns);
    outside_look();
}
