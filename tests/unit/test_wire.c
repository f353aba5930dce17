/* The frames between node and server: what goes in comes out, in pieces too; what is cut, swollen or foreign is refused;
 * what a later version appends is skipped. */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/wire.h"
#include "model/wire_code.h"
#include "model/wire_device.h"
#include "model/wire_server.h"
#include "tests/unit/wire_random.h"

static struct wire_frame only_frame(const struct buf *b) {
    struct wire_frame f = {0};
    struct error e;
    int n = wire_frame(b->s, b->len, &f, &e);
    assert_int_equal(n, b->len);
    return f;
}

static void same_ids(struct wire_map *m, int count) {
    m->count = (uint16_t)count;
    for (int i = 0; i < count; i++) m->of[i] = (int16_t)i;
}

/* ---- heads ---- */

static void heads(void **state) {
    static const struct {
        const char *name;
        uint8_t bytes[12];
        size_t n;
        int want;
    } rows[] = {
        {"nothing",            {0},                                      0,  0      },
        {"half a head",        {4, 0, 0, 0, 1, 1, 0},                    7,  0      },
        {"an empty body",      {4, 0, 0, 0, 1, 1, 0, 0},                 8,  8      },
        {"a body to come",     {6, 0, 0, 0, 1, 1, 0, 0, 9},              9,  0      },
        {"a body, and more",   {5, 0, 0, 0, 1, 1, 0, 0, 9, 4, 0, 0},     12, 9      },
        {"an unknown type",    {4, 0, 0, 0, 99, 1, 0, 0},                8,  8      },
        {"a later version",    {4, 0, 0, 0, 1, 2, 0, 0},                 8,  8      },
        {"type 0",             {4, 0, 0, 0, 0, 1, 0, 0},                 8,  -EPROTO},
        {"version 0",          {4, 0, 0, 0, 1, 0, 0, 0},                 8,  -EPROTO},
        {"not zero",           {4, 0, 0, 0, 1, 1, 1, 0},                 8,  -EPROTO},
        {"too short",          {3, 0, 0, 0, 1, 1, 0, 0},                 8,  -EPROTO},
        {"the longest",        {0, 0, 64, 0, 1, 1, 0, 0},                8,  0      },
        {"one byte too long",  {1, 0, 64, 0, 1, 1, 0, 0},                8,  -EPROTO},
        {"huge",               {255, 255, 255, 255, 1, 1, 0, 0},         8,  -EPROTO},
        {"another's protocol", {'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}, 8,  -EPROTO},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wire_frame f;
        struct error e = {0};
        int got = wire_frame(rows[i].bytes, rows[i].n, &f, &e);
        if (got != rows[i].want) fail_msg("%s: %d, not %d", rows[i].name, got, rows[i].want);
        if (got < 0 && !e.text[0]) fail_msg("%s: refused without a sentence", rows[i].name);
    }
}

/* ---- round trips ---- */

static void hello_and_maps(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_hello h = {.node = "box", .boot_id = "b-1", .version = "0.1.0", .boot_ns = 5, .real_ns = -7}, got;
    static struct wire_map map;
    struct error e;
    h.catalogue = metric_catalogue_hash();
    h.devices = 8;
    h.sources = 2;
    wire_put_hello(&b, &h);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(wire_get_hello(&f, &got, &e), 0);
    assert_string_equal(got.node, "box");
    assert_string_equal(got.boot_id, "b-1");
    assert_string_equal(got.version, "0.1.0");
    assert_int_equal(got.boot_ns, 5);
    assert_int_equal(got.real_ns, -7);
    assert_int_equal(got.devices, 8);
    assert_int_equal(got.sources, 2);
    assert_int_equal(got.catalogue, h.catalogue);
    wire_map_make(&map, &got.gpu, metric_find);
    assert_int_equal(map.count, METRIC_COUNT);
    for (int i = 0; i < METRIC_COUNT; i++) assert_int_equal(map.of[i], i);
    wire_map_make(&map, &got.host, host_metric_find);
    assert_int_equal(map.count, HOST_METRIC_COUNT);
    for (int i = 0; i < HOST_METRIC_COUNT; i++) assert_int_equal(map.of[i], i);
}

/* A node of another version: its ids are others, one metric is unknown here, one of ours unknown there. */
static void names_that_differ(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_names names = {.count = 3};
    static struct wire_map map;
    struct error e;
    out_text(&b, "gpu_power_watts");
    out_text(&b, "gpu_of_the_future");
    out_text(&b, "gpu_temperature_celsius");
    names.at = (const uint8_t *)b.s;
    names.len = b.len;
    wire_map_make(&map, &names, metric_find);
    assert_int_equal(map.of[0], METRIC_POWER);
    assert_int_equal(map.of[1], -1);
    assert_int_equal(map.of[2], METRIC_TEMP_CORE);

    AUTO(buf_done) struct buf frame = {0};
    size_t from = wire_begin(&frame, WIRE_SAMPLE);
    out_u16(&frame, 3);
    out_i64(&frame, 44);
    out_i64(&frame, 100);
    out_i64(&frame, 200);
    out_u16(&frame, 1);
    out_u64(&frame, 7 | 1ull << 40); /* asked: all three, and one they never named */
    out_u64(&frame, 7 | 1ull << 40);
    out_f64(&frame, 301.5);
    out_f64(&frame, 1);
    out_f64(&frame, 61);
    out_f64(&frame, 2);
    wire_end(&frame, from);
    struct wire_frame f = only_frame(&frame);
    struct sample s;
    uint16_t device;
    int64_t mark;
    assert_int_equal(wire_get_sample(&f, &map, &device, &mark, &s, &e), 0);
    assert_int_equal(device, 3);
    assert_int_equal(mark, 44);
    for (int i = 0; i < METRIC_COUNT; i++) {
        bool is_told = i == METRIC_POWER || i == METRIC_TEMP_CORE;
        assert_int_equal(sample_has(&s, i), is_told);
        assert_int_equal(bits_test(s.asked, i), is_told);
    }
    assert_true(s.value[METRIC_POWER] == 301.5 && s.value[METRIC_TEMP_CORE] == 61);
}

static void samples(void **state) {
    static struct wire_map map, host_map;
    same_ids(&map, METRIC_COUNT);
    same_ids(&host_map, HOST_METRIC_COUNT);
    for (int round = 0; round < 500; round++) {
        AUTO(buf_done) struct buf b = {0};
        struct sample s, got;
        struct error e;
        uint16_t device;
        int64_t mark;
        random_sample(&s);
        wire_put_sample(&b, (uint16_t)(round % WIRE_DEVICES_MAX), round + 1, &s);
        struct wire_frame f = only_frame(&b);
        assert_int_equal(wire_get_sample(&f, &map, &device, &mark, &got, &e), 0);
        assert_int_equal(device, round % WIRE_DEVICES_MAX);
        assert_int_equal(mark, round + 1);
        assert_memory_equal(&got, &s, sizeof s);

        struct host_sample h, host;
        random_host(&h);
        buf_clear(&b);
        wire_put_host(&b, round + 5, &h);
        f = only_frame(&b);
        assert_int_equal(wire_get_host(&f, &host_map, &mark, &host, &e), 0);
        assert_int_equal(mark, round + 5);
        assert_memory_equal(&host, &h, sizeof h);
    }
}

static void latest(void **state) {
    static struct wire_map map;
    struct latest l = {0}, got;
    int64_t for_ns[METRIC_COUNT] = {0};
    AUTO(buf_done) struct buf b = {0};
    struct error e;
    uint16_t device;
    same_ids(&map, METRIC_COUNT);
    l.of[METRIC_POWER].value = 250;
    l.of[METRIC_POWER].boot_ns = 1000;
    l.of[METRIC_POWER].until_ns = 6000;
    wire_put_latest(&b, 9, &l);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(wire_get_latest(&f, &map, &device, &got, for_ns, &e), 0);
    assert_int_equal(device, 9);
    assert_memory_equal(&got, &l, sizeof l);
    assert_int_equal(for_ns[METRIC_POWER], 5000);
    assert_int_equal(for_ns[METRIC_TEMP_CORE], 0);
}

static void inventories(void **state) {
    for (int round = 0; round < 100; round++) {
        AUTO(buf_done) struct buf b = {0};
        static struct inventory i, got;
        struct error e;
        uint16_t device, source;
        random_inventory(&i);
        wire_put_inventory(&b, 7, 1, &i);
        struct wire_frame f = only_frame(&b);
        memset(&got, 0x5a, sizeof got);
        assert_int_equal(wire_get_inventory(&f, &device, &source, &got, &e), 0);
        assert_int_equal(device, 7);
        assert_int_equal(source, 1);
        AUTO(buf_done) struct buf again = {0};
        wire_put_inventory(&again, 7, 1, &got);
        assert_int_equal(again.len, b.len);
        assert_memory_equal(again.s, b.s, b.len);
        assert_string_equal(got.uuid, i.uuid);
        assert_int_equal(got.margin_gpu_c, i.margin_gpu_c);
        assert_int_equal(got.control, i.control);
    }
}

static void device_matters(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_frame f;
    struct error e;
    uint16_t number;
    int64_t mark;
    struct ring_state s = {.since_boot_ns = 1, .since_real_ns = 2, .state = DEVICE_LOST, .text = "gone"}, s2;
    wire_put_state(&b, 4, &s);
    f = only_frame(&b);
    assert_int_equal(wire_get_state(&f, &number, &s2, &e), 0);
    assert_int_equal(number, 4);
    assert_memory_equal(&s, &s2, sizeof s);

    struct ring_driver d = {.since_real_ns = 3, .state = DRIVER_ABSENT, .text = "no driver"}, d2;
    buf_clear(&b);
    wire_put_driver(&b, 15, &d);
    f = only_frame(&b);
    assert_int_equal(wire_get_driver(&f, &number, &d2, &e), 0);
    assert_int_equal(number, 15);
    assert_memory_equal(&d, &d2, sizeof d);

    struct ring_xids x = {.count = 2}, x2;
    x.of[0].code = 79;
    x.of[1].count = 1ull << 60;
    x.of[1].last_real_ns = -1;
    buf_clear(&b);
    wire_put_xids(&b, 0, &x);
    f = only_frame(&b);
    assert_int_equal(wire_get_xids(&f, &number, &x2, &e), 0);
    assert_memory_equal(&x, &x2, sizeof x);

    struct ring_guard g = {.since_real_ns = 9, .mode = RING_GUARD_ACTS, .lever = 1, .reason = 2, .why = "power"}, g2;
    g.target[0] = 83;
    g.reading[2] = NAN;
    g.limit = 420.5;
    g.confirm_by_ns = 77;
    buf_clear(&b);
    wire_put_guard(&b, 5, &g);
    f = only_frame(&b);
    assert_int_equal(wire_get_guard(&f, &number, &g2, &e), 0);
    assert_memory_equal(&g, &g2, sizeof g);

    struct event ev = {.boot_ns = 1, .real_ns = 2, .severity = EVENT_CRITICAL, .device = -1, .code = 48, .pid = 9}, v2;
    strcpy(ev.kind, "xid");
    strcpy(ev.text, "XID 48");
    for (int device = -1; device < 2; device++) {
        ev.device = device;
        buf_clear(&b);
        wire_put_event(&b, 1, 12345, &ev);
        f = only_frame(&b);
        assert_int_equal(wire_get_event(&f, &number, &mark, &v2, &e), 0);
        assert_int_equal(number, 1);
        assert_int_equal(mark, 12345);
        assert_memory_equal(&ev, &v2, sizeof ev);
    }

    struct wire_round r = {.boot_ns = 8, .real_ns = 9, .sources = 2}, r2;
    r.source[1].beat_ns = 6;
    r.source[1].writer = 4711;
    buf_clear(&b);
    wire_put_round(&b, &r);
    f = only_frame(&b);
    assert_int_equal(wire_get_round(&f, &r2, &e), 0);
    assert_true(r2.boot_ns == 8 && r2.real_ns == 9 && r2.sources == 2);
    assert_true(r2.source[1].beat_ns == 6 && r2.source[1].writer == 4711 && r2.source[0].beat_ns == 0);
}

static void processes(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_processes list = {.device = 2, .count = 3, .total = 200, .boot_ns = 55}, got;
    struct wire_process p[3] = {0}, one;
    struct error e;
    for (uint32_t i = 0; i < 3; i++) {
        p[i].of = (struct ring_process){.pid = 100 + i, .kinds = i, .memory_bytes = PROCESS_NO_MEMORY, .sm = 40};
        p[i].uid = i ? 1000 : UINT32_MAX;
        p[i].start_boot_ns = i * 7;
        memset(p[i].command, 'x', i * 255);
        memset(p[i].user, 'u', i * 31);
        strcpy(p[i].comm, i ? "python3" : "");
    }
    size_t from = wire_begin_processes(&b, &list);
    for (size_t i = 0; i < 3; i++) wire_add_process(&b, &p[i]);
    wire_end(&b, from);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(wire_get_processes(&f, &got, &e), 0);
    assert_int_equal(got.device, 2);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.total, 200);
    assert_int_equal(got.boot_ns, 55);
    for (size_t i = 0; i < 3; i++) {
        assert_true(wire_next_process(&got, &one));
        assert_memory_equal(&one.of, &p[i].of, sizeof one.of); /* no padding in it */
        assert_int_equal(one.uid, p[i].uid);
        assert_int_equal(one.start_boot_ns, p[i].start_boot_ns);
        assert_string_equal(one.user, p[i].user);
        assert_string_equal(one.comm, p[i].comm);
        assert_string_equal(one.command, p[i].command);
    }
    assert_false(wire_next_process(&got, &one));
}

static void from_the_server(void **state) {
    AUTO(buf_done) struct buf b = {0};
    static struct wire_welcome w, w2;
    struct error e;
    strcpy(w.boot_id, "b-1");
    w.host_mark = 5;
    w.sources = 2;
    w.event_mark[1] = 17;
    w.devices = WIRE_DEVICES_MAX;
    w.task_mark = 1ll << 50;
    for (int i = 0; i < WIRE_DEVICES_MAX; i++) {
        snprintf(w.device[i].uuid, sizeof w.device[i].uuid, "GPU-%d", i);
        w.device[i].mark = i * 1000003ll;
    }
    wire_put_welcome(&b, &w);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(wire_get_welcome(&f, &w2, &e), 0);
    assert_true(w2.sources == 2 && w2.event_mark[1] == 17 && w2.host_mark == 5 && w2.devices == w.devices);
    assert_int_equal(w2.task_mark, w.task_mark);
    assert_string_equal(w2.boot_id, "b-1");
    assert_memory_equal(w.device, w2.device, sizeof w.device);

    struct wire_order o =
                          {
                              .id = 9, .verb = 3, .uuid = "GPU-1", .value = {0, 300000, -1, INT64_MIN}
    },
                      o2;
    buf_clear(&b);
    wire_put_order(&b, &o);
    f = only_frame(&b);
    assert_int_equal(wire_get_order(&f, &o2, &e), 0);
    assert_true(o2.id == o.id && o2.verb == o.verb);
    assert_string_equal(o2.uuid, o.uuid);
    assert_memory_equal(o2.value, o.value, sizeof o.value);

    struct wire_order_result a = {.id = 9, .result = -EPERM, .value = 4, .text = "no"}, a2;
    buf_clear(&b);
    wire_put_order_result(&b, &a);
    f = only_frame(&b);
    assert_int_equal(wire_get_order_result(&f, &a2, &e), 0);
    assert_int_equal(a2.result, -EPERM);
    assert_string_equal(a2.text, "no");

    char much[400];
    struct wire_bye bye;
    memset(much, 'y', sizeof much);
    much[399] = 0;
    buf_clear(&b);
    wire_put_bye(&b, much);
    f = only_frame(&b);
    assert_int_equal(wire_get_bye(&f, &bye, &e), 0);
    assert_int_equal(strlen(bye.text), sizeof bye.text - 1);
}

/* ---- what is not sound ---- */

/* Every decoder over one frame; 0 when the one for its type took it. */
static int decode(const struct wire_frame *f) {
    static struct wire_map map;
    static union {
        struct wire_hello hello;
        struct inventory inventory;
        struct sample sample;
        struct latest latest;
        struct ring_state state;
        struct wire_processes processes;
        struct ring_xids xids;
        struct ring_guard guard;
        struct ring_driver driver;
        struct host_sample host;
        struct event event;
        struct wire_round round;
        struct wire_order_result result;
        struct wire_welcome welcome;
        struct wire_order order;
        struct wire_bye bye;
    } u;
    uint16_t a, b;
    int64_t mark;
    struct error e = {0};
    int r = -1;
    same_ids(&map, HOST_METRIC_COUNT);
    switch (f->type) {
    case WIRE_HELLO: r = wire_get_hello(f, &u.hello, &e); break;
    case WIRE_INVENTORY: r = wire_get_inventory(f, &a, &b, &u.inventory, &e); break;
    case WIRE_SAMPLE: r = wire_get_sample(f, &map, &a, &mark, &u.sample, &e); break;
    case WIRE_LATEST: r = wire_get_latest(f, &map, &a, &u.latest, NULL, &e); break;
    case WIRE_STATE: r = wire_get_state(f, &a, &u.state, &e); break;
    case WIRE_PROCESSES: r = wire_get_processes(f, &u.processes, &e); break;
    case WIRE_XIDS: r = wire_get_xids(f, &a, &u.xids, &e); break;
    case WIRE_GUARD: r = wire_get_guard(f, &a, &u.guard, &e); break;
    case WIRE_DRIVER: r = wire_get_driver(f, &a, &u.driver, &e); break;
    case WIRE_HOST: r = wire_get_host(f, &map, &mark, &u.host, &e); break;
    case WIRE_EVENT: r = wire_get_event(f, &a, &mark, &u.event, &e); break;
    case WIRE_ROUND: r = wire_get_round(f, &u.round, &e); break;
    case WIRE_ORDER_RESULT: r = wire_get_order_result(f, &u.result, &e); break;
    case WIRE_WELCOME: r = wire_get_welcome(f, &u.welcome, &e); break;
    case WIRE_ORDER: r = wire_get_order(f, &u.order, &e); break;
    case WIRE_BYE: r = wire_get_bye(f, &u.bye, &e); break;
    default: assert_true(false);
    }
    if (r < 0) assert_true(e.text[0] != 0);
    return r;
}

/* One frame of every type, with something in it. */
static void one_of_each(struct buf *b) {
    static struct inventory i;
    static struct wire_welcome w = {.boot_id = "b", .sources = 1, .devices = 1, .device = {{"GPU-1", 5}}};
    struct sample s;
    struct host_sample h;
    struct latest l = {0};
    const struct wire_hello hello = {.node = "n", .boot_id = "b", .version = "1"};
    const struct ring_state st = {.state = DEVICE_OK, .text = "x"};
    const struct wire_processes list = {.count = 1, .total = 1};
    const struct wire_process p = {.of = {.pid = 4}, .user = "u", .comm = "c", .command = "c d"};
    struct ring_xids x = {.count = 1};
    const struct ring_guard g = {.why = "y"};
    const struct ring_driver d = {.state = DRIVER_OK, .text = "t"};
    const struct event ev = {.kind = "xid", .text = "t"};
    const struct wire_round r = {.sources = 1};
    const struct wire_order o = {.uuid = "GPU-1"};
    const struct wire_order_result a = {.text = "t"};
    random_inventory(&i);
    random_sample(&s);
    random_host(&h);
    l.of[1].boot_ns = l.of[1].until_ns = 1;
    wire_put_hello(b, &hello);
    wire_put_inventory(b, 0, 0, &i);
    wire_put_sample(b, 0, 1, &s);
    wire_put_latest(b, 0, &l);
    wire_put_state(b, 0, &st);
    size_t from = wire_begin_processes(b, &list);
    wire_add_process(b, &p);
    wire_end(b, from);
    wire_put_xids(b, 0, &x);
    wire_put_guard(b, 0, &g);
    wire_put_driver(b, 0, &d);
    wire_put_host(b, 1, &h);
    wire_put_event(b, 0, 1, &ev);
    wire_put_round(b, &r);
    wire_put_order_result(b, &a);
    wire_put_welcome(b, &w);
    wire_put_order(b, &o);
    wire_put_bye(b, "t");
}
#define TYPES 16

/* A frame cut anywhere is refused, whatever it is; one that a later version made longer is taken. */
static void cut_and_swollen(void **state) {
    AUTO(buf_done) struct buf all = {0};
    one_of_each(&all);
    int seen = 0;
    for (size_t at = 0; at < all.len;) {
        struct wire_frame f;
        struct error e;
        int size = wire_frame(all.s + at, all.len - at, &f, &e);
        assert_true(size > 0);
        at += (size_t)size;
        seen++;
        assert_int_equal(decode(&f), 0);
        for (size_t len = 0; len < f.len; len++) {
            uint8_t *copy = malloc(len ? len : 1); /* its own block: a sanitizer sees one step beyond */
            assert_non_null(copy);
            memcpy(copy, f.body, len);
            struct wire_frame cut = {.type = f.type, .version = f.version, .body = copy, .len = len};
            bool is_first_version = f.type == WIRE_WELCOME && len == f.len - sizeof(int64_t); /* without a task mark */
            if (decode(&cut) >= 0 && !is_first_version)
                fail_msg("type %u cut to %zu of %zu bytes was taken", f.type, len, f.len);
            free(copy);
        }
        AUTO(buf_done) struct buf more = {0};
        buf_add(&more, f.body, f.len);
        buf_puts(&more, "and what later versions say");
        struct wire_frame longer = {.type = f.type, .version = 1, .body = (uint8_t *)more.s, .len = more.len};
        if (decode(&longer) < 0) fail_msg("type %u: a longer body was refused", f.type);
        f.version = 2;
        if (decode(&f) >= 0) fail_msg("type %u: version 2 was taken for version 1", f.type);
    }
    assert_int_equal(seen, TYPES);
}

static void in_pieces(void **state) {
    AUTO(buf_done) struct buf all = {0};
    one_of_each(&all);
    static const size_t pieces[] = {1, 3, 8, 100, 5000, 1000000};
    for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
        AUTO(wire_stream_done) struct wire_stream stream = {0};
        int seen = 0, r = 0;
        for (size_t at = 0; at < all.len; at += pieces[p]) {
            size_t n = all.len - at < pieces[p] ? all.len - at : pieces[p];
            struct wire_frame f;
            struct error e;
            wire_stream_add(&stream, all.s + at, n);
            while ((r = wire_stream_next(&stream, &f, &e)) > 0) {
                assert_int_equal(decode(&f), 0);
                seen++;
            }
            assert_int_equal(r, 0);
        }
        assert_int_equal(seen, TYPES);
    }
}

static void garbage_ends_a_stream(void **state) {
    AUTO(wire_stream_done) struct wire_stream stream = {0};
    struct wire_frame f;
    struct error e = {0};
    AUTO(buf_done) struct buf b = {0};
    wire_put_bye(&b, "good");
    buf_puts(&b, "HTTP/1.1 400 Bad Request\r\n");
    wire_stream_add(&stream, b.s, b.len);
    assert_int_equal(wire_stream_next(&stream, &f, &e), 1);
    assert_int_equal(wire_stream_next(&stream, &f, &e), -EPROTO);
    assert_int_equal(wire_stream_next(&stream, &f, &e), -EPROTO);
    assert_true(e.text[0] != 0);
}

/* Bodies that are whole and say what cannot be. */
static void impossible(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct ring_state st = {.state = 200};
    struct event ev = {.severity = 99};
    struct inventory i;
    inventory_init(&i, 0);
    wire_put_inventory(&b, 0, 0, &i); /* no UUID */
    strcpy(i.uuid, "GPU-1");
    wire_put_inventory(&b, WIRE_DEVICES_MAX, 0, &i);
    i.parent = WIRE_DEVICES_MAX;
    wire_put_inventory(&b, 0, 0, &i);
    wire_put_state(&b, 0, &st);
    st.state = 0;
    wire_put_state(&b, WIRE_NO_DEVICE, &st);
    wire_put_event(&b, 0, 1, &ev);
    ev.severity = 0;
    wire_put_event(&b, 0, 0, &ev); /* a mark that cannot be */
    wire_put_event(&b, WIRE_SOURCES_MAX, 1, &ev);
    const struct wire_hello h = {.node = "", .boot_id = "b"};
    wire_put_hello(&b, &h);
    size_t from = wire_begin(&b, WIRE_BYE);
    out_u16(&b, 3);
    buf_add(&b, "a\0b", 3);
    wire_end(&b, from);
    int seen = 0;
    for (size_t at = 0; at < b.len; seen++) {
        struct wire_frame f;
        struct error e;
        int size = wire_frame(b.s + at, b.len - at, &f, &e);
        assert_true(size > 0);
        at += (size_t)size;
        if (decode(&f) >= 0) fail_msg("row %d was taken", seen);
    }
    assert_int_equal(seen, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),           cmocka_unit_test(hello_and_maps), cmocka_unit_test(names_that_differ),
        cmocka_unit_test(samples),         cmocka_unit_test(latest),         cmocka_unit_test(inventories),
        cmocka_unit_test(device_matters),  cmocka_unit_test(processes),      cmocka_unit_test(from_the_server),
        cmocka_unit_test(cut_and_swollen), cmocka_unit_test(in_pieces),      cmocka_unit_test(garbage_ends_a_stream),
        cmocka_unit_test(impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
