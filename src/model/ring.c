#include "model/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define RING_MAGIC 0x676e6972726d7067ull /* "gpmrring" */
#define RING_SLOTS_MAX 8192u

typedef _Atomic uint64_t word;

#define WORDS(type) (sizeof(type) / sizeof(uint64_t))
#define TWIN_WORDS(type) (2 * (1 + WORDS(type)))
#define WHOLE_WORDS(type) _Static_assert(sizeof(type) % sizeof(uint64_t) == 0, #type " must be whole words")

WHOLE_WORDS(struct sample);
WHOLE_WORDS(struct latest);
WHOLE_WORDS(struct ring_state);
WHOLE_WORDS(struct ring_driver);
WHOLE_WORDS(struct ring_processes);
WHOLE_WORDS(struct ring_xids);
WHOLE_WORDS(struct ring_guard);
WHOLE_WORDS(struct event);

#define EVENT_SLOT_WORDS (1 + WORDS(struct event))
#define SAMPLE_SLOT_WORDS (1 + WORDS(struct sample))

struct ring_header {
    uint64_t magic, size_bytes, catalogue;
    uint32_t version, devices, slots, events;
    _Atomic uint32_t bell, writer;
    word beat_ns, event_head;
    word driver[TWIN_WORDS(struct ring_driver)];
    word event[RING_EVENTS * EVENT_SLOT_WORDS];
    word born_ns; /* boot clock; never changes once it is set */
    uint64_t pad[7];
};

struct device_block {
    struct inventory inventory;
    word head;
    word state[TWIN_WORDS(struct ring_state)];
    word latest[TWIN_WORDS(struct latest)];
    word processes[TWIN_WORDS(struct ring_processes)];
    word xids[TWIN_WORDS(struct ring_xids)];
    word guard[TWIN_WORDS(struct ring_guard)];
    word slot[]; /* slots * SAMPLE_SLOT_WORDS */
};

static size_t block_size(uint32_t slots) {
    size_t bytes = sizeof(struct device_block) + (size_t)slots * SAMPLE_SLOT_WORDS * sizeof(word);
    return (bytes + 63) & ~(size_t)63;
}

static size_t header_size(void) { return (sizeof(struct ring_header) + 63) & ~(size_t)63; }

size_t ring_size(uint32_t devices, uint32_t slots) { return header_size() + devices * block_size(slots); }

static struct device_block *block(const struct ring *r, uint32_t device) {
    return (struct device_block *)(void *)((char *)r->h + header_size() + device * block_size(r->slots));
}

/* ---- seqlocked words ---- */

static void words_put(word *to, const void *from, size_t n) {
    const char *p = from;
    for (size_t i = 0; i < n; i++) {
        uint64_t w;
        memcpy(&w, p + i * sizeof w, sizeof w);
        atomic_store_explicit(&to[i], w, memory_order_relaxed);
    }
}

static void words_get(const word *from, void *to, size_t n) {
    char *p = to;
    for (size_t i = 0; i < n; i++) {
        uint64_t w = atomic_load_explicit(&from[i], memory_order_relaxed);
        memcpy(p + i * sizeof w, &w, sizeof w);
    }
}

static void cell_put(word *cell, uint64_t even, const void *from, size_t n) {
    atomic_store_explicit(&cell[0], even - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    words_put(cell + 1, from, n);
    atomic_store_explicit(&cell[0], even, memory_order_release);
}

/* True when the copy is whole; *seq is what the cell held. */
static bool cell_get(const word *cell, uint64_t *seq, void *to, size_t n) {
    uint64_t before = atomic_load_explicit(&cell[0], memory_order_acquire);
    *seq = before;
    if (before & 1) return false;
    words_get(cell + 1, to, n);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&cell[0], memory_order_relaxed) == before;
}

/* Only the first n of size words are new; the rest keeps what it was (a list with a count). */
static void twin_put(word *twin, size_t size, const void *from, size_t n) {
    uint64_t a = atomic_load_explicit(&twin[0], memory_order_relaxed);
    uint64_t b = atomic_load_explicit(&twin[1 + size], memory_order_relaxed);
    uint64_t even = ((a > b ? a : b) | 1) + 1;
    cell_put(twin, even, from, n);
    cell_put(twin + 1 + size, even, from, n);
}

/* False before the first write, and in the unlikely case that both copies keep changing under us. */
static bool twin_get(const word *twin, size_t size, void *to) {
    for (int attempt = 0; attempt < 64; attempt++) {
        uint64_t seq;
        if (cell_get(twin, &seq, to, size)) return seq > 0;
        if (cell_get(twin + 1 + size, &seq, to, size)) return seq > 0;
    }
    return false;
}

static bool twin_has_whole(const word *twin, size_t size) {
    return !(atomic_load_explicit(&twin[0], memory_order_relaxed) & 1) ||
           !(atomic_load_explicit(&twin[1 + size], memory_order_relaxed) & 1);
}

/* A dead writer may have left one copy half-written: make it equal to the whole one. Of two whole ones that differ,
 * the first is the newer. */
static void twin_mend(word *twin, size_t size) {
    word *a = twin, *b = twin + 1 + size;
    uint64_t sa = atomic_load_explicit(a, memory_order_relaxed), sb = atomic_load_explicit(b, memory_order_relaxed);
    if (sa == sb) return;
    word *whole = sa & 1 ? b : a, *torn = sa & 1 ? a : b;
    if (atomic_load_explicit(whole, memory_order_relaxed) == 0) { /* he died in the very first write */
        atomic_store_explicit(torn, 0, memory_order_release);
        return;
    }
    uint64_t even = ((sa > sb ? sa : sb) | 1) + 1;
    atomic_store_explicit(&torn[0], even - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 1; i <= size; i++)
        atomic_store_explicit(&torn[i], atomic_load_explicit(&whole[i], memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&torn[0], even, memory_order_release);
    atomic_store_explicit(&whole[0], even, memory_order_release);
}

static void fifo_put(word *slots, uint32_t count, size_t slot_words, word *head, const void *from) {
    uint64_t n = atomic_load_explicit(head, memory_order_relaxed) + 1;
    cell_put(slots + (n - 1) % count * slot_words, 2 * n, from, slot_words - 1);
    atomic_store_explicit(head, n, memory_order_release);
}

static bool fifo_get(const word *slots, uint32_t count, size_t slot_words, const word *head, uint64_t n, void *to) {
    if (n == 0 || n > atomic_load_explicit(head, memory_order_acquire)) return false;
    uint64_t seq;
    return cell_get(slots + (n - 1) % count * slot_words, &seq, to, slot_words - 1) && seq == 2 * n;
}

/* An entry that was whole when its writer died, just before he moved the head, counts. */
static void fifo_mend(const word *slots, uint32_t count, size_t slot_words, word *head) {
    uint64_t n = atomic_load_explicit(head, memory_order_relaxed) + 1;
    uint64_t seq = atomic_load_explicit(&slots[(n - 1) % count * slot_words], memory_order_acquire);
    if (seq == 2 * n) atomic_store_explicit(head, n, memory_order_release);
}

/* ---- layout ---- */

void ring_format(struct ring *r, void *mem, const struct ring_spec *spec, uint32_t pid, int64_t now_boot_ns) {
    struct ring_header *h = mem;
    h->magic = RING_MAGIC;
    h->size_bytes = ring_size(spec->devices, spec->slots);
    h->catalogue = metric_catalogue_hash();
    h->version = RING_VERSION;
    h->devices = spec->devices;
    h->slots = spec->slots;
    h->events = RING_EVENTS;
    *r = (struct ring){.h = h, .size = h->size_bytes, .devices = spec->devices, .slots = spec->slots};
    atomic_store_explicit(&h->writer, pid, memory_order_relaxed);
    atomic_store_explicit(&h->born_ns, (uint64_t)now_boot_ns, memory_order_relaxed);
    for (uint32_t d = 0; d < spec->devices; d++) block(r, d)->inventory = spec->inventory[d];
    ring_beat(r, now_boot_ns);
}

#define ENDS(text) (memchr((text), 0, sizeof(text)) != NULL)
#define WITHIN(v, max) ((v) >= 0 && (v) <= (max))

/* Readers get a pointer to it, so everything that could lead them astray is looked at once, here. */
static bool inventory_is_sound(const struct inventory *i, uint32_t devices) {
    if (!ENDS(i->uuid) || !ENDS(i->name) || !ENDS(i->serial) || !ENDS(i->vbios) || !ENDS(i->board_part)) return false;
    if (!ENDS(i->inforom) || !ENDS(i->driver) || !ENDS(i->library) || !ENDS(i->pci) || !ENDS(i->architecture))
        return false;
    if (i->parent < -1 || i->parent >= (int32_t)devices || i->mig_count > MIG_MAX) return false;
    if (!WITHIN(i->memory_clocks, MEMORY_CLOCKS_MAX)) return false;
    for (int32_t c = 0; c < i->memory_clocks; c++)
        if (!WITHIN(i->clocks[c].graphics_count, GRAPHICS_CLOCKS_MAX)) return false;
    return true;
}

int ring_attach(struct ring *r, void *mem, size_t size, struct error *e) {
    const struct ring_header *h = mem;
    if (size < header_size() || h->magic != RING_MAGIC) return fail(e, -EPROTO, "not a ring of gpumgr");
    if (h->version != RING_VERSION || h->catalogue != metric_catalogue_hash() || h->events != RING_EVENTS)
        return fail(e, -EPROTO, "written by another version of gpumgr: restart it");
    struct ring fresh = {.h = mem, .size = h->size_bytes, .devices = h->devices, .slots = h->slots};
    if (fresh.devices > DEVICE_MAX || fresh.slots == 0 || fresh.slots > RING_SLOTS_MAX ||
        fresh.size != ring_size(fresh.devices, fresh.slots) || fresh.size > size)
        return fail(e, -EPROTO, "a ring with impossible sizes");
    for (uint32_t d = 0; d < fresh.devices; d++)
        if (!inventory_is_sound(&block(&fresh, d)->inventory, fresh.devices))
            return fail(e, -EPROTO, "a ring with an impossible inventory");
    *r = fresh;
    return 0;
}

/* False when a copy that a reader could be given is nowhere whole: no writer of ours leaves that behind. */
static bool is_mendable(const struct ring *r) {
    if (!twin_has_whole(r->h->driver, WORDS(struct ring_driver))) return false;
    for (uint32_t d = 0; d < r->devices; d++) {
        const struct device_block *b = block(r, d);
        if (!twin_has_whole(b->state, WORDS(struct ring_state)) || !twin_has_whole(b->latest, WORDS(struct latest)) ||
            !twin_has_whole(b->processes, WORDS(struct ring_processes)) ||
            !twin_has_whole(b->xids, WORDS(struct ring_xids)) || !twin_has_whole(b->guard, WORDS(struct ring_guard)))
            return false;
    }
    return true;
}

bool ring_inherit(struct ring *r, uint32_t pid, int64_t now_boot_ns) {
    if (!is_mendable(r)) return false;
    twin_mend(r->h->driver, WORDS(struct ring_driver));
    fifo_mend(r->h->event, RING_EVENTS, EVENT_SLOT_WORDS, &r->h->event_head);
    for (uint32_t d = 0; d < r->devices; d++) {
        struct device_block *b = block(r, d);
        twin_mend(b->state, WORDS(struct ring_state));
        twin_mend(b->latest, WORDS(struct latest));
        twin_mend(b->processes, WORDS(struct ring_processes));
        twin_mend(b->xids, WORDS(struct ring_xids));
        twin_mend(b->guard, WORDS(struct ring_guard));
        fifo_mend(b->slot, r->slots, SAMPLE_SLOT_WORDS, &b->head);
    }
    atomic_store_explicit(&r->h->writer, pid, memory_order_relaxed);
    ring_beat(r, now_boot_ns);
    return true;
}

bool ring_adopt(struct ring *r, const struct ring_spec *spec, uint32_t pid, int64_t now_boot_ns) {
    if (r->devices != spec->devices || r->slots != spec->slots) return false;
    for (uint32_t d = 0; d < spec->devices; d++)
        if (memcmp(&block(r, d)->inventory, &spec->inventory[d], sizeof spec->inventory[d]) != 0) return false;
    return ring_inherit(r, pid, now_boot_ns);
}

uint32_t ring_devices(const struct ring *r) { return r->devices; }
uint32_t ring_slots(const struct ring *r) { return r->slots; }
uint32_t ring_writer(const struct ring *r) { return atomic_load_explicit(&r->h->writer, memory_order_relaxed); }
int64_t ring_beat_ns(const struct ring *r) {
    return (int64_t)atomic_load_explicit(&r->h->beat_ns, memory_order_relaxed);
}
_Atomic uint32_t *ring_bell(const struct ring *r) { return &r->h->bell; }
const struct inventory *ring_inventory(const struct ring *r, uint32_t device) { return &block(r, device)->inventory; }

static int64_t born_ns(const struct ring *r) {
    uint64_t ns = atomic_load_explicit(&r->h->born_ns, memory_order_relaxed);
    return ns <= INT64_MAX / 2 ? (int64_t)ns : 0;
}

/* A nanosecond makes less than one entry, so a later file begins above all marks of the one before it. */
int64_t ring_mark(const struct ring *r, uint64_t number) {
    return born_ns(r) + (int64_t)(number <= INT64_MAX / 4 ? number : INT64_MAX / 4);
}

uint64_t ring_after(const struct ring *r, int64_t mark) {
    return mark > born_ns(r) ? (uint64_t)(mark - born_ns(r)) + 1 : 1;
}

/* ---- readers ---- */

/* No writer gets that far; a number near the end would make a caller's loop wrap round. */
static uint64_t possible(uint64_t head) { return head <= UINT64_MAX / 4 ? head : 0; }

uint64_t ring_head(const struct ring *r, uint32_t device) {
    return possible(atomic_load_explicit(&block(r, device)->head, memory_order_acquire));
}

/* What lies in the ring is believed only within its bounds: counts are cut, texts end, and a failed copy leaves the
 * zero value, which says that nothing is known. */
#define END(text) ((text)[sizeof(text) - 1] = 0)

static bool whole_or_zero(bool whole, void *ret, size_t size) {
    if (!whole) memset(ret, 0, size);
    return whole;
}

bool ring_sample(const struct ring *r, uint32_t device, uint64_t number, struct sample *ret) {
    const struct device_block *b = block(r, device);
    bool whole = fifo_get(b->slot, r->slots, SAMPLE_SLOT_WORDS, &b->head, number, ret);
    return whole_or_zero(whole, ret, sizeof *ret);
}

bool ring_latest(const struct ring *r, uint32_t device, struct latest *ret) {
    return whole_or_zero(twin_get(block(r, device)->latest, WORDS(struct latest), ret), ret, sizeof *ret);
}

bool ring_state(const struct ring *r, uint32_t device, struct ring_state *ret) {
    bool whole = twin_get(block(r, device)->state, WORDS(struct ring_state), ret);
    if (!whole_or_zero(whole, ret, sizeof *ret)) return false;
    if (ret->state > DEVICE_FORBIDDEN) ret->state = DEVICE_STARTING;
    END(ret->text);
    return true;
}

bool ring_processes(const struct ring *r, uint32_t device, struct ring_processes *ret) {
    bool whole = twin_get(block(r, device)->processes, WORDS(struct ring_processes), ret);
    if (!whole_or_zero(whole, ret, sizeof *ret)) return false;
    if (ret->count > RING_PROCESSES_MAX) ret->count = RING_PROCESSES_MAX;
    return true;
}

uint64_t ring_processes_turn(const struct ring *r, uint32_t device) {
    return atomic_load_explicit(&block(r, device)->processes[0], memory_order_acquire);
}

bool ring_xids(const struct ring *r, uint32_t device, struct ring_xids *ret) {
    bool whole = twin_get(block(r, device)->xids, WORDS(struct ring_xids), ret);
    if (!whole_or_zero(whole, ret, sizeof *ret)) return false;
    if (ret->count > RING_XIDS_MAX) ret->count = RING_XIDS_MAX;
    return true;
}

bool ring_guard(const struct ring *r, uint32_t device, struct ring_guard *ret) {
    bool whole = twin_get(block(r, device)->guard, WORDS(struct ring_guard), ret);
    if (!whole_or_zero(whole, ret, sizeof *ret)) return false;
    ring_guard_bound(ret);
    return true;
}

bool ring_driver(const struct ring *r, struct ring_driver *ret) {
    bool whole = twin_get(r->h->driver, WORDS(struct ring_driver), ret);
    if (!whole_or_zero(whole, ret, sizeof *ret)) return false;
    if (ret->state > DRIVER_ABSENT) ret->state = DRIVER_STARTING;
    END(ret->text);
    return true;
}

uint64_t ring_event_head(const struct ring *r) {
    return possible(atomic_load_explicit(&r->h->event_head, memory_order_acquire));
}

bool ring_event(const struct ring *r, uint64_t number, struct event *ret) {
    bool whole = fifo_get(r->h->event, RING_EVENTS, EVENT_SLOT_WORDS, &r->h->event_head, number, ret);
    if (!whole_or_zero(whole, ret, sizeof *ret)) return false;
    if (ret->severity < EVENT_INFO || ret->severity > EVENT_CRITICAL) ret->severity = EVENT_ERROR;
    if (ret->device < -1 || ret->device >= (int32_t)r->devices) ret->device = -1;
    END(ret->kind);
    END(ret->text);
    return true;
}

/* ---- the writer ---- */

void ring_put_sample(struct ring *r, uint32_t device, const struct sample *s) {
    struct device_block *b = block(r, device);
    fifo_put(b->slot, r->slots, SAMPLE_SLOT_WORDS, &b->head, s);
}

void ring_put_latest(struct ring *r, uint32_t device, const struct latest *l) {
    twin_put(block(r, device)->latest, WORDS(struct latest), l, WORDS(struct latest));
}

void ring_put_state(struct ring *r, uint32_t device, const struct ring_state *s) {
    twin_put(block(r, device)->state, WORDS(struct ring_state), s, WORDS(struct ring_state));
}

void ring_put_processes(struct ring *r, uint32_t device, const struct ring_processes *p) {
    size_t count = p->count < RING_PROCESSES_MAX ? p->count : RING_PROCESSES_MAX;
    size_t n = (offsetof(struct ring_processes, of) + count * sizeof p->of[0]) / sizeof(uint64_t);
    twin_put(block(r, device)->processes, WORDS(struct ring_processes), p, n);
}

void ring_put_xids(struct ring *r, uint32_t device, const struct ring_xids *x) {
    twin_put(block(r, device)->xids, WORDS(struct ring_xids), x, WORDS(struct ring_xids));
}

void ring_put_guard(struct ring *r, uint32_t device, const struct ring_guard *g) {
    twin_put(block(r, device)->guard, WORDS(struct ring_guard), g, WORDS(struct ring_guard));
}

void ring_put_driver(struct ring *r, const struct ring_driver *d) {
    twin_put(r->h->driver, WORDS(struct ring_driver), d, WORDS(struct ring_driver));
}

void ring_put_event(struct ring *r, const struct event *ev) {
    fifo_put(r->h->event, RING_EVENTS, EVENT_SLOT_WORDS, &r->h->event_head, ev);
}

void ring_beat(struct ring *r, int64_t now_boot_ns) {
    atomic_store_explicit(&r->h->beat_ns, (uint64_t)now_boot_ns, memory_order_relaxed);
}

void ring_toll(struct ring *r) { atomic_fetch_add_explicit(&r->h->bell, 1, memory_order_release); }

const char *device_state_name(enum device_state s) {
    static const char *const names[] = {"starting", "ok", "not answering", "lost", "fenced", "forbidden"};
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "unknown";
}
