#include "core/inspect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "model/failing.h"

#define STEP_NS (5 * NS_PER_S)
#define OFFSET_NS (700 * NS_PER_MS) /* between two rounds, not among them */
#define SAVE_NS (600 * NS_PER_S)
#define ECHO_NS (2 * NS_PER_S)
#define STACK_BYTES (256 * 1024)

/* A history as it lies on the disk. Another size is another version, and is not read. */
struct kept {
    char magic[16];
    uint64_t size;
    struct failing_history past;
};
static const char magic[16] = "gpumgr-cooling1";

static struct failing failing; /* too large for a stack */

static void path_of(const struct inspect *x, unsigned device, char *ret, size_t room) {
    snprintf(ret, room, "%s/cooling/%s", x->dir, ring_inventory(&x->common->board->ring, device)->uuid);
}

static void history_load(const struct inspect *x, unsigned i, unsigned device) {
    char path[360];
    struct error e;
    struct kept k;
    AUTO(buf_done) struct buf bytes = {0};
    path_of(x, device, path, sizeof path);
    if (file_read(path, sizeof k, &bytes, &e) < 0 || bytes.len != sizeof k) return;
    memcpy(&k, bytes.s, sizeof k);
    if (memcmp(k.magic, magic, sizeof magic) == 0 && k.size == sizeof k) failing.card[i].past = k.past;
}

static void history_save(const struct inspect *x, unsigned i, unsigned device) {
    char path[360];
    struct error e;
    struct kept k;
    memset(&k, 0, sizeof k);
    memcpy(k.magic, magic, sizeof magic);
    k.size = sizeof k;
    k.past = failing.card[i].past;
    path_of(x, device, path, sizeof path);
    if (file_write(path, 0644, &k, sizeof k, false, &e) < 0)
        log_line(LOG_DEBUG, "cooling_history", (int)x->watches[i].index, "%s", e.text);
}

/* What is known of a GPU now, as one reading. False: it does not answer. */
static bool reading(struct board *b, unsigned device, struct sample *s) {
    struct latest l;
    int64_t now_ns = clock_boot_ns();
    memset(s, 0, sizeof *s);
    s->boot_ns = now_ns;
    if (!board_is_there(b, device) || !ring_latest(&b->ring, device, &l)) return false;
    for (int m = 0; m < METRIC_COUNT; m++)
        if (latest_has(&l, m, now_ns)) sample_put(s, m, l.of[m].value);
    return true;
}

static uint32_t model_of(const char *name) {
    uint32_t h = 2166136261u;
    while (*name) h = (h ^ (unsigned char)*name++) * 16777619u;
    return h;
}

static void tell(struct board *b, int device, uint32_t before, uint32_t after) {
    for (int k = 0; k < FAILING_KINDS; k++) {
        const struct failing_row *row = &failing_rows[k];
        if (!((before ^ after) & BIT(k))) continue;
        bool is_raised = after & BIT(k);
        board_event(b, is_raised ? row->severity : EVENT_INFO, device, row->name, "%s",
                    is_raised ? row->raised : row->cleared);
    }
}

static void look(struct inspect *x) {
    static struct sample samples[GPU_MAX];
    struct failing_input in[GPU_MAX];
    uint32_t before[GPU_MAX], room = failing.room_up;
    struct board *b = x->common->board;
    for (unsigned i = 0; i < x->count; i++) {
        struct watch *w = &x->watches[i];
        struct ring_guard g;
        in[i] = (struct failing_input){.asked_w = NAN, .hot_c = 83};
        before[i] = failing.card[i].up;
        if (!watch_is_running(w) || w->device < 0) continue;
        unsigned device = (unsigned)w->device;
        in[i].model = model_of(ring_inventory(&b->ring, device)->name);
        if (reading(b, device, &samples[i])) in[i].s = &samples[i];
        if (!ring_guard(&b->ring, device, &g)) continue;
        if (!isnan(g.target[0]) && g.target[0] > 0) in[i].hot_c = g.target[0];
        bool is_told = clock_real_ns() - g.since_real_ns > ECHO_NS; /* one that was just set is not read back yet */
        if (g.mode == RING_GUARD_ACTS && g.lever == LEVER_POWER && is_told) in[i].asked_w = g.limit;
    }
    failing_step(&failing, &failing_defaults, in, x->count, clock_boot_ns());
    for (unsigned i = 0; i < x->count; i++)
        if (x->watches[i].device >= 0) tell(b, x->watches[i].device, before[i], failing.card[i].up);
    tell(b, -1, room, failing.room_up);
}

/* What the room is like belongs to the machine, and to the workers' shares of it. */
static void room_path(const struct inspect *x, char *ret, size_t room) {
    snprintf(ret, room, "%s/cooling/room.%u", x->dir, x->worker);
}

static void room_load(const struct inspect *x) {
    char path[360];
    struct error e;
    AUTO(buf_done) struct buf bytes = {0};
    room_path(x, path, sizeof path);
    if (file_read(path, sizeof failing.room, &bytes, &e) >= 0 && bytes.len == sizeof failing.room)
        memcpy(&failing.room, bytes.s, sizeof failing.room);
}

static void room_save(const struct inspect *x) {
    char path[360];
    struct error e;
    room_path(x, path, sizeof path);
    if (file_write(path, 0644, &failing.room, sizeof failing.room, false, &e) < 0)
        log_line(LOG_DEBUG, "cooling_history", -1, "%s", e.text);
}

static void *inspect_main(void *arg) {
    struct inspect *x = arg;
    char path[320];
    struct error e;
    pthread_setname_np(pthread_self(), "inspect");
    snprintf(path, sizeof path, "%s/cooling", x->dir);
    if (dir_make(path, 0755, &e) < 0)
        log_line(LOG_WARN, "cooling_history", -1, "what is learnt of the cooling is not kept: %s", e.text);
    for (unsigned i = 0; i < x->count; i++)
        if (x->watches[i].device >= 0) history_load(x, i, (unsigned)x->watches[i].device);
    room_load(x);
    int64_t save_ns = clock_boot_ns() + SAVE_NS;
    while (!x->common->end && !x->common->leaving) {
        clock_sleep_until((clock_boot_ns() / STEP_NS + 1) * STEP_NS + OFFSET_NS);
        look(x);
        if (clock_boot_ns() < save_ns) continue;
        save_ns = clock_boot_ns() + SAVE_NS;
        room_save(x);
        for (unsigned i = 0; i < x->count; i++)
            if (x->watches[i].device >= 0) history_save(x, i, (unsigned)x->watches[i].device);
    }
    return NULL;
}

void inspect_start(struct inspect *x) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, inspect_main, x) != 0)
        log_line(LOG_ERROR, "thread", -1, "failing parts are not looked for: no thread could be started");
    pthread_attr_destroy(&attr);
}
