#include "node/faults.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/event.h"
#include "model/fault.h"
#include "node/tracks.h"

/* What is remembered of a device, by its bit. */
struct known {
    int64_t cured_ns, said_ns; /* wall clock: by what was seen; by an operator */
    unsigned excused;
    bool is_asking, is_without_driver, is_told;
};

static struct known known[TRACKS_GPUS];

static struct {
    pthread_mutex_t lock;
    unsigned count;
    struct {
        char uuid[96];
        int64_t since_ns;
    } of[TRACKS_GPUS];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

void faults_sound(const char *uuid, int64_t since_ns) {
    unsigned i = 0;
    pthread_mutex_lock(&said.lock);
    while (i < said.count && strcmp(said.of[i].uuid, uuid) != 0) i++;
    if (i < TRACKS_GPUS) {
        snprintf(said.of[i].uuid, sizeof said.of[i].uuid, "%s", uuid);
        said.of[i].since_ns = since_ns;
        if (i == said.count) said.count++;
    }
    pthread_mutex_unlock(&said.lock);
}

static int64_t said_of(const char *uuid) {
    int64_t since_ns = 0;
    pthread_mutex_lock(&said.lock);
    for (unsigned i = 0; i < said.count; i++)
        if (strcmp(said.of[i].uuid, uuid) == 0) since_ns = said.of[i].since_ns;
    pthread_mutex_unlock(&said.lock);
    return since_ns;
}

static bool is_on(const struct latest *l, int id, int64_t now_ns) {
    return latest_has(l, id, now_ns) && l->of[id].value > 0;
}

static void read_marks(const struct rings_one *one, uint32_t d, int64_t now_ns, struct fault_facts *f) {
    static struct latest l; /* large; under the tracker's lock */
    if (!ring_latest(&one->ring, d, &l)) return;
    f->recovery = is_on(&l, METRIC_RECOVERY_ACTION, now_ns) ? (unsigned)l.of[METRIC_RECOVERY_ACTION].value : 0;
    f->has_rows_failed = is_on(&l, METRIC_ROWS_FAILED, now_ns);
    f->has_rows_pending = is_on(&l, METRIC_ROWS_PENDING, now_ns);
    f->has_pages_pending = is_on(&l, METRIC_PAGES_PENDING, now_ns);
}

static void see_cures(struct known *k, const struct rings_one *one, const char *uuid, const struct fault_facts *f) {
    struct ring_driver driver;
    bool is_without = ring_driver(&one->ring, &driver) && driver.state == DRIVER_ABSENT;
    int64_t now_ns = clock_real_ns(), said_ns = said_of(uuid);
    if ((k->is_without_driver && !is_without) || (k->is_asking && !f->recovery && !is_without)) k->cured_ns = now_ns;
    k->is_without_driver = is_without;
    k->is_asking = is_without ? k->is_asking : f->recovery != 0;
    if (said_ns > k->said_ns) k->excused = fault_marks(f); /* he knows of these */
    k->said_ns = said_ns > k->said_ns ? said_ns : k->said_ns;
    k->excused &= fault_marks(f);
}

bool faults_look(const struct rings_one *one, uint32_t d, uint32_t card, int bit, int64_t now_ns, char *ret,
                 size_t room) {
    struct known *k = &known[bit];
    struct fault_facts f = {0};
    struct fault_xid xids[RING_XIDS_MAX];
    struct ring_xids x;
    const struct inventory *inv = ring_inventory(&one->ring, d);
    read_marks(one, card, now_ns, &f);
    see_cures(k, one, inv->uuid, &f);
    if (ring_xids(&one->ring, card, &x))
        for (; f.count < x.count && f.count < RING_XIDS_MAX; f.count++)
            xids[f.count] = (struct fault_xid){x.of[f.count].code, x.of[f.count].last_real_ns};
    f.xids = xids;
    f.sound_ns = k->cured_ns > k->said_ns ? k->cured_ns : k->said_ns;
    f.excused = k->excused;
    bool has_fault = fault_find(&f, ret, room);
    if (has_fault != k->is_told && d == card)
        tracker_event(has_fault ? EVENT_WARNING : EVENT_INFO, has_fault ? "gpu_unhealthy" : "gpu_sound",
                      (int)(one->first + d), 0, "GPU %d %s", inv->index,
                      has_fault ? ret : "is sound again, and is given to jobs");
    k->is_told = has_fault;
    return has_fault;
}
