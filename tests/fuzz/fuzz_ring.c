/* Rings that someone damaged: a reader that maps a file of another user, or one that a bug wrote into, must neither
 * crash nor hand on a count, a state or a text that leads its caller out of bounds. Built with ring.c inside, so that an
 * input can name a part of the layout and the corpus outlives changes of it.
 *
 * An input is a list of 11-byte records: part, word in it (2 bytes), value (8 bytes). Part bit 6: the damage comes after
 * the attach; bit 7: the memory is cut to `value` bytes first. An input that begins with "raw" is the memory itself. */
#include <stdlib.h>

#include "model/ring.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define DEVICES 2u
#define SLOTS 2u

static void require(bool true_for_every_input) {
    if (!true_for_every_input) abort();
}

#define IS_TEXT(t) require(memchr((t), 0, sizeof(t)) != NULL)

static void read_device(const struct ring *r, uint32_t d) {
    struct sample s;
    struct latest l;
    struct ring_state st;
    struct ring_processes p;
    struct ring_xids x;
    uint64_t head = ring_head(r, d);
    require(head <= UINT64_MAX / 4); /* callers count up to it */
    const uint64_t numbers[] = {0, 1, 2, head - 1, head, head + 1, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) ring_sample(r, d, numbers[i], &s);
    ring_latest(r, d, &l);
    if (ring_state(r, d, &st)) require(st.state <= DEVICE_FORBIDDEN);
    IS_TEXT(st.text);
    ring_processes(r, d, &p);
    require(p.count <= RING_PROCESSES_MAX);
    ring_xids(r, d, &x);
    require(x.count <= RING_XIDS_MAX);
}

static void read_inventory(const struct inventory *i, uint32_t devices) {
    IS_TEXT(i->uuid);
    IS_TEXT(i->name);
    IS_TEXT(i->serial);
    IS_TEXT(i->vbios);
    IS_TEXT(i->board_part);
    IS_TEXT(i->inforom);
    IS_TEXT(i->driver);
    IS_TEXT(i->library);
    IS_TEXT(i->pci);
    IS_TEXT(i->architecture);
    require(i->parent >= -1 && i->parent < (int32_t)devices);
    require(i->memory_clocks >= 0 && i->memory_clocks <= MEMORY_CLOCKS_MAX);
    for (int32_t c = 0; c < i->memory_clocks; c++)
        require(i->clocks[c].graphics_count >= 0 && i->clocks[c].graphics_count <= GRAPHICS_CLOCKS_MAX);
}

static void read_all(const struct ring *r) {
    struct ring_driver dr;
    struct event ev;
    if (ring_driver(r, &dr)) require(dr.state <= DRIVER_ABSENT);
    IS_TEXT(dr.text);
    uint64_t head = ring_event_head(r);
    require(head <= UINT64_MAX / 4);
    const uint64_t numbers[] = {0, 1, head - 1, head, head + 1, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        ring_event(r, numbers[i], &ev);
        IS_TEXT(ev.kind);
        IS_TEXT(ev.text);
        require(ev.severity >= EVENT_INFO && ev.severity <= EVENT_CRITICAL);
        require(ev.device >= -1 && ev.device <= (int32_t)r->devices);
    }
    for (uint32_t d = 0; d < ring_devices(r); d++) read_device(r, d);
    ring_writer(r);
    ring_beat_ns(r);
}

/* A ring in which everything has been written once. */
static void *sound_ring(size_t size, struct inventory cards[DEVICES]) {
    struct ring r;
    struct sample s = {.boot_ns = 1};
    struct latest l = {0};
    struct ring_state st = {.since_boot_ns = 1, .state = DEVICE_OK};
    struct ring_processes p = {.boot_ns = 1, .count = 3, .total = 3};
    struct ring_xids x = {.count = 2};
    struct ring_driver dr = {.since_real_ns = 1, .state = DRIVER_OK};
    struct event ev = {.boot_ns = 1, .device = -1};
    void *mem = calloc(1, size);
    if (!mem) abort();
    for (uint32_t d = 0; d < DEVICES; d++) cards[d].parent = -1;
    ring_format(&r, mem, &(struct ring_spec){DEVICES, SLOTS, cards}, 1, 1);
    for (uint32_t d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 3; i++) ring_put_sample(&r, d, &s);
        ring_put_latest(&r, d, &l);
        ring_put_state(&r, d, &st);
        ring_put_processes(&r, d, &p);
        ring_put_xids(&r, d, &x);
    }
    ring_put_driver(&r, &dr);
    ring_put_event(&r, &ev);
    return mem;
}

/* The word that a record names. */
static word *place(struct ring *r, uint8_t part, uint16_t index) {
    struct device_block *b = block(r, DEVICES - 1);
    const struct {
        void *at;
        size_t words;
    } parts[] = {
        {r->h, offsetof(struct ring_header, driver) / sizeof(word)},
        {r->h->driver,    TWIN_WORDS(struct ring_driver)                   },
        {r->h->event,    RING_EVENTS * EVENT_SLOT_WORDS },
        {&b->inventory,    sizeof b->inventory / sizeof(word)                 },
        {&b->head,    1      },
        {b->state,    TWIN_WORDS(struct ring_state)                 },
        {b->latest,    TWIN_WORDS(struct latest)     },
        {b->processes,    TWIN_WORDS(struct ring_processes)              },
        {b->xids,    TWIN_WORDS(struct ring_xids)          },
        {b->slot,    SLOTS * SAMPLE_SLOT_WORDS              },
    };
    size_t p = part % ARRAY_LEN(parts);
    return (word *)parts[p].at + index % parts[p].words;
}

#define RECORD 11
#define LATER 0x40
#define CUT 0x80

static void damage(struct ring *r, const uint8_t *bytes, size_t len, uint8_t when, size_t *size) {
    for (; len >= RECORD; bytes += RECORD, len -= RECORD) {
        uint16_t index;
        uint64_t value;
        memcpy(&index, bytes + 1, sizeof index);
        memcpy(&value, bytes + 3, sizeof value);
        if ((bytes[0] & LATER) != when) continue;
        if (bytes[0] & CUT)
            *size = value < *size ? (size_t)value : *size;
        else
            atomic_store(place(r, bytes[0] & 0x3f, index), value);
    }
}

static void read_raw(const uint8_t *bytes, size_t len) {
    struct ring r;
    struct error e = {0};
    void *mem = malloc(len ? len : 1);
    if (!mem) abort();
    memcpy(mem, bytes, len);
    if (ring_attach(&r, mem, len, &e) == 0) {
        for (uint32_t d = 0; d < ring_devices(&r); d++) read_inventory(ring_inventory(&r, d), ring_devices(&r));
        read_all(&r);
    }
    free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len >= 3 && memcmp(bytes, "raw", 3) == 0) {
        read_raw(bytes + 3, len - 3);
        return 0;
    }
    static struct inventory cards[DEVICES];
    size_t size = ring_size(DEVICES, SLOTS), cut = size;
    void *mem = sound_ring(size, cards);
    struct ring writer = {.h = mem, .size = size, .devices = DEVICES, .slots = SLOTS}, r;
    struct error e = {0};
    damage(&writer, bytes, len, 0, &cut);
    void *part = malloc(cut ? cut : 1); /* exactly as long as it says, for AddressSanitizer */
    if (!part) abort();
    memcpy(part, mem, cut);
    if (ring_attach(&r, part, cut, &e) < 0) {
        require(e.text[0]);
    } else {
        for (uint32_t d = 0; d < ring_devices(&r); d++) read_inventory(ring_inventory(&r, d), ring_devices(&r));
        read_all(&r);
        if (r.devices == DEVICES && r.slots == SLOTS) {
            struct ring later = r;
            damage(&later, bytes, len, LATER, &cut);
            read_all(&r);
            if (ring_adopt(&r, &(struct ring_spec){DEVICES, SLOTS, cards}, 2, 2)) read_all(&r);
        }
    }
    free(part);
    free(mem);
    return 0;
}
