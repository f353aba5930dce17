#include "model/wire_device.h"

#include <math.h>
#include <string.h>

#include "model/wire_frame.h"

/* ---- values by id ---- */

#define WORDS_MAX (WIRE_METRICS_MAX / 64)

static void put_bits(struct buf *b, const uint64_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) out_u64(b, words[i]);
}

static void get_bits(struct wire_in *in, uint64_t words[WORDS_MAX], size_t count) {
    memset(words, 0, WORDS_MAX * sizeof *words);
    for (size_t i = 0; i < count; i++) words[i] = in_u64(in);
}

static uint16_t get_count(struct wire_in *in) {
    uint16_t words = in_u16(in);
    if (words > WORDS_MAX) in->is_bad = true;
    return in->is_bad ? 0 : words;
}

/* The next set bit at or after id, or -1. */
static int next_bit(const uint64_t words[WORDS_MAX], int id) {
    for (; id < WIRE_METRICS_MAX; id = (id / 64 + 1) * 64) {
        uint64_t rest = words[id / 64] >> (id % 64);
        if (rest) return id + __builtin_ctzll(rest);
    }
    return -1;
}

static int mapped(const struct wire_map *map, int theirs, int ours_count) {
    int ours = theirs < map->count ? map->of[theirs] : -1;
    return ours < ours_count ? ours : -1;
}

void wire_put_sample(struct buf *b, uint16_t device, int64_t mark, const struct sample *s) {
    size_t from = wire_begin(b, WIRE_SAMPLE);
    buf_reserve(b, 64 + 16 * SAMPLE_WORDS + 8 * METRIC_COUNT);
    out_u16(b, device);
    out_i64(b, mark);
    out_i64(b, s->boot_ns);
    out_i64(b, s->real_ns);
    out_u16(b, SAMPLE_WORDS);
    put_bits(b, s->asked, SAMPLE_WORDS);
    put_bits(b, s->has, SAMPLE_WORDS);
    for (int i = 0; i < METRIC_COUNT; i++)
        if (sample_has(s, i)) out_f64(b, s->value[i]);
    wire_end(b, from);
}

int wire_get_sample(const struct wire_frame *f, const struct wire_map *map, uint16_t *device, int64_t *mark,
                    struct sample *ret, struct error *e) {
    struct sample s = {0};
    uint64_t asked[WORDS_MAX], has[WORDS_MAX];
    struct wire_in in;
    int r = wire_open(f, WIRE_SAMPLE, &in, e);
    if (r < 0) return r;
    uint16_t number = in_u16(&in);
    int64_t at = in_i64(&in);
    s.boot_ns = in_i64(&in);
    s.real_ns = in_i64(&in);
    uint16_t words = get_count(&in);
    get_bits(&in, asked, words);
    get_bits(&in, has, words);
    for (int i = -1; (i = next_bit(asked, i + 1)) >= 0;) {
        int ours = mapped(map, i, METRIC_COUNT);
        if (ours >= 0) bits_set(s.asked, ours);
    }
    for (int i = -1; !in.is_bad && (i = next_bit(has, i + 1)) >= 0;) {
        double v = in_f64(&in);
        int ours = mapped(map, i, METRIC_COUNT);
        if (ours >= 0) sample_put(&s, ours, v);
    }
    if (in.is_bad || number >= WIRE_DEVICES_MAX || at <= 0) return wire_bad(f, e);
    *device = number;
    *mark = at;
    *ret = s;
    return 0;
}

void wire_put_latest(struct buf *b, uint16_t device, const struct latest *l) {
    size_t from = wire_begin(b, WIRE_LATEST);
    uint16_t count = 0;
    for (int i = 0; i < METRIC_COUNT; i++) count += l->of[i].boot_ns != 0;
    out_u16(b, device);
    out_u16(b, count);
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (!l->of[i].boot_ns) continue;
        out_u16(b, (uint16_t)i);
        out_f64(b, l->of[i].value);
        out_i64(b, l->of[i].boot_ns);
        out_i64(b, l->of[i].until_ns);
    }
    wire_end(b, from);
}

int wire_get_latest(const struct wire_frame *f, const struct wire_map *map, uint16_t *device, struct latest *ret,
                    int64_t *for_ns, struct error *e) {
    struct latest l = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_LATEST, &in, e);
    if (r < 0) return r;
    uint16_t number = in_u16(&in), count = in_u16(&in);
    if (count > WIRE_METRICS_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < count && !in.is_bad; i++) {
        int id = mapped(map, in_u16(&in), METRIC_COUNT);
        double value = in_f64(&in);
        int64_t boot_ns = in_i64(&in), until_ns = in_i64(&in);
        if (id < 0 || !isfinite(value) || boot_ns <= 0 || until_ns < boot_ns) continue;
        l.of[id].value = value;
        l.of[id].boot_ns = boot_ns;
        l.of[id].until_ns = until_ns;
    }
    if (in.is_bad || number >= WIRE_DEVICES_MAX) return wire_bad(f, e);
    *device = number;
    *ret = l;
    for (int i = 0; for_ns && i < METRIC_COUNT; i++)
        if (l.of[i].boot_ns) for_ns[i] = l.of[i].until_ns - l.of[i].boot_ns;
    return 0;
}

void wire_put_host(struct buf *b, int64_t mark, const struct host_sample *s) {
    size_t from = wire_begin(b, WIRE_HOST);
    out_i64(b, mark);
    out_i64(b, s->boot_ns);
    out_i64(b, s->real_ns);
    out_u16(b, HOST_WORDS);
    put_bits(b, s->has, HOST_WORDS);
    for (int i = 0; i < HOST_METRIC_COUNT; i++)
        if (host_has(s, i)) out_f64(b, s->value[i]);
    wire_end(b, from);
}

int wire_get_host(const struct wire_frame *f, const struct wire_map *map, int64_t *mark, struct host_sample *ret,
                  struct error *e) {
    struct host_sample s = {0};
    uint64_t has[WORDS_MAX];
    struct wire_in in;
    int r = wire_open(f, WIRE_HOST, &in, e);
    if (r < 0) return r;
    int64_t at = in_i64(&in);
    s.boot_ns = in_i64(&in);
    s.real_ns = in_i64(&in);
    get_bits(&in, has, get_count(&in));
    for (int i = -1; !in.is_bad && (i = next_bit(has, i + 1)) >= 0;) {
        double v = in_f64(&in);
        int ours = mapped(map, i, HOST_METRIC_COUNT);
        if (ours >= 0) host_put(&s, ours, v);
    }
    if (in.is_bad || at <= 0) return wire_bad(f, e);
    *mark = at;
    *ret = s;
    return 0;
}

/* ---- a device's other matters ---- */

void wire_put_state(struct buf *b, uint16_t device, const struct ring_state *s) {
    size_t from = wire_begin(b, WIRE_STATE);
    out_u16(b, device);
    out_i64(b, s->since_boot_ns);
    out_i64(b, s->since_real_ns);
    out_u8(b, (uint8_t)s->state);
    out_text(b, s->text);
    wire_end(b, from);
}

int wire_get_state(const struct wire_frame *f, uint16_t *device, struct ring_state *ret, struct error *e) {
    struct ring_state s = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_STATE, &in, e);
    if (r < 0) return r;
    uint16_t number = in_u16(&in);
    s.since_boot_ns = in_i64(&in);
    s.since_real_ns = in_i64(&in);
    s.state = in_u8(&in);
    in_text(&in, s.text, sizeof s.text);
    if (in.is_bad || number >= WIRE_DEVICES_MAX || s.state > DEVICE_FORBIDDEN) return wire_bad(f, e);
    *device = number;
    *ret = s;
    return 0;
}

void wire_put_xids(struct buf *b, uint16_t device, const struct ring_xids *x) {
    size_t from = wire_begin(b, WIRE_XIDS);
    uint16_t count = x->count < RING_XIDS_MAX ? (uint16_t)x->count : RING_XIDS_MAX;
    out_u16(b, device);
    out_u16(b, count);
    for (uint16_t i = 0; i < count; i++) {
        out_u64(b, x->of[i].code);
        out_u64(b, x->of[i].count);
        out_i64(b, x->of[i].last_real_ns);
    }
    wire_end(b, from);
}

int wire_get_xids(const struct wire_frame *f, uint16_t *device, struct ring_xids *ret, struct error *e) {
    struct ring_xids x = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_XIDS, &in, e);
    if (r < 0) return r;
    uint16_t number = in_u16(&in);
    x.count = in_u16(&in);
    if (x.count > RING_XIDS_MAX) in.is_bad = true;
    for (uint64_t i = 0; i < x.count && !in.is_bad; i++) {
        x.of[i].code = in_u64(&in);
        x.of[i].count = in_u64(&in);
        x.of[i].last_real_ns = in_i64(&in);
    }
    if (in.is_bad || number >= WIRE_DEVICES_MAX) return wire_bad(f, e);
    *device = number;
    *ret = x;
    return 0;
}

#define SENSORS ARRAY_LEN(((struct ring_guard *)0)->target)

void wire_put_guard(struct buf *b, uint16_t device, const struct ring_guard *g) {
    size_t from = wire_begin(b, WIRE_GUARD);
    out_u16(b, device);
    out_i64(b, g->since_real_ns);
    out_u8(b, (uint8_t)g->mode);
    out_u8(b, (uint8_t)g->lever);
    out_u8(b, (uint8_t)g->reason);
    out_u8(b, SENSORS);
    for (size_t i = 0; i < SENSORS; i++) out_f64(b, g->target[i]);
    for (size_t i = 0; i < SENSORS; i++) out_f64(b, g->reading[i]);
    out_f64(b, g->floor);
    out_f64(b, g->baseline);
    out_f64(b, g->limit);
    out_f64(b, g->throttled_s);
    out_f64(b, g->withheld_w);
    out_i64(b, g->manual_until_ns);
    out_i64(b, g->confirm_by_ns);
    out_text(b, g->why);
    wire_end(b, from);
}

/* A list whose length a later version may have changed: what we have no room for is skipped, what is missing is NaN. */
static void get_reals(struct wire_in *in, size_t count, double *to, size_t room) {
    for (size_t i = 0; i < room; i++) to[i] = NAN;
    for (size_t i = 0; i < count; i++) {
        double v = in_f64(in);
        if (i < room && !in->is_bad) to[i] = v;
    }
}

int wire_get_guard(const struct wire_frame *f, uint16_t *device, struct ring_guard *ret, struct error *e) {
    struct ring_guard g = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_GUARD, &in, e);
    if (r < 0) return r;
    uint16_t number = in_u16(&in);
    g.since_real_ns = in_i64(&in);
    g.mode = in_u8(&in);
    g.lever = in_u8(&in);
    g.reason = in_u8(&in);
    size_t sensors = in_u8(&in);
    get_reals(&in, sensors, g.target, SENSORS);
    get_reals(&in, sensors, g.reading, SENSORS);
    g.floor = in_f64(&in);
    g.baseline = in_f64(&in);
    g.limit = in_f64(&in);
    g.throttled_s = in_f64(&in);
    g.withheld_w = in_f64(&in);
    g.manual_until_ns = in_i64(&in);
    g.confirm_by_ns = in_i64(&in);
    in_text(&in, g.why, sizeof g.why);
    if (in.is_bad || number >= WIRE_DEVICES_MAX) return wire_bad(f, e);
    ring_guard_bound(&g); /* a mode, lever or reason of a later version */
    *device = number;
    *ret = g;
    return 0;
}

void wire_put_driver(struct buf *b, uint16_t source, const struct ring_driver *d) {
    size_t from = wire_begin(b, WIRE_DRIVER);
    out_u16(b, source);
    out_i64(b, d->since_real_ns);
    out_u8(b, (uint8_t)d->state);
    out_text(b, d->text);
    wire_end(b, from);
}

int wire_get_driver(const struct wire_frame *f, uint16_t *source, struct ring_driver *ret, struct error *e) {
    struct ring_driver d = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_DRIVER, &in, e);
    if (r < 0) return r;
    uint16_t number = in_u16(&in);
    d.since_real_ns = in_i64(&in);
    d.state = in_u8(&in);
    in_text(&in, d.text, sizeof d.text);
    if (in.is_bad || number >= WIRE_SOURCES_MAX || d.state > DRIVER_ABSENT) return wire_bad(f, e);
    *source = number;
    *ret = d;
    return 0;
}

void wire_put_event(struct buf *b, uint16_t source, int64_t mark, const struct event *ev) {
    size_t from = wire_begin(b, WIRE_EVENT);
    out_u16(b, source);
    out_i64(b, mark);
    out_i64(b, ev->boot_ns);
    out_i64(b, ev->real_ns);
    out_u8(b, (uint8_t)ev->severity);
    out_u16(b, ev->device < 0 ? WIRE_NO_DEVICE : (uint16_t)ev->device);
    out_i32(b, ev->code);
    out_i32(b, ev->pid);
    out_text(b, ev->kind);
    out_text(b, ev->text);
    wire_end(b, from);
}

int wire_get_event(const struct wire_frame *f, uint16_t *source, int64_t *mark, struct event *ret, struct error *e) {
    struct event ev = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_EVENT, &in, e);
    if (r < 0) return r;
    uint16_t from = in_u16(&in);
    int64_t at = in_i64(&in);
    ev.boot_ns = in_i64(&in);
    ev.real_ns = in_i64(&in);
    ev.severity = in_u8(&in);
    uint16_t device = in_u16(&in);
    ev.device = device == WIRE_NO_DEVICE ? -1 : device;
    ev.code = in_i32(&in);
    ev.pid = in_i32(&in);
    in_text(&in, ev.kind, sizeof ev.kind);
    in_text(&in, ev.text, sizeof ev.text);
    if (in.is_bad || from >= WIRE_SOURCES_MAX || at <= 0 || ev.device >= WIRE_DEVICES_MAX) return wire_bad(f, e);
    if (ev.severity > EVENT_CRITICAL) return wire_bad(f, e);
    *source = from;
    *mark = at;
    *ret = ev;
    return 0;
}
