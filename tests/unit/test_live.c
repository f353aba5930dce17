/* Live state: frames in, JSON out; marks that keep what was taken from being taken again; what is stale is said. */
#include "server/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/live_json.h"
#include "tests/test.h"

#define NOW_NS (1000 * NS_PER_S)
#define AHEAD_NS (500 * NS_PER_S) /* the node's boot clock is so far ahead of ours */

struct seen {
    int samples, hosts, events, new_events, rounds, gone, back;
};

static void on_sample(void *ctx, struct live_node *n, struct live_device *d, const struct sample *s) {
    ((struct seen *)ctx)->samples++;
}
static void on_host(void *ctx, struct live_node *n, const struct host_sample *s) { ((struct seen *)ctx)->hosts++; }
static void on_round(void *ctx, struct live_node *n) { ((struct seen *)ctx)->rounds++; }
static void on_event(void *ctx, struct live_node *n, uint16_t source, int64_t mark, const struct event *ev,
                     bool is_new) {
    struct seen *s = ctx;
    s->events++;
    s->new_events += is_new;
}

static void on_gone(void *ctx, struct live_node *n) {
    struct seen *s = ctx;
    s->gone += n->is_gone;
    s->back += !n->is_gone;
}

struct rig {
    struct seen seen;
    struct marks_list marks;
    struct live live;
    struct live_node *node;
    struct buf out;
    int64_t now_ns;
    int link;
};

static void rig_init(struct rig *r) {
    *r = (struct rig){.now_ns = NOW_NS};
    r->live = (struct live){.marks = &r->marks,
                            .ctx = &r->seen,
                            .on_sample = on_sample,
                            .on_host = on_host,
                            .on_event = on_event,
                            .on_round = on_round,
                            .on_gone = on_gone};
}

static void rig_done(struct rig *r) {
    live_done(&r->live);
    marks_list_done(&r->marks);
    buf_done(&r->out);
}

/* Hands over what was encoded; the last result. */
static int give(struct rig *r, struct buf *bytes) {
    int result = 0;
    size_t at = 0;
    struct error e = {0};
    while (at < bytes->len && result >= 0) {
        struct wire_frame f;
        int n = wire_frame(bytes->s + at, bytes->len - at, &f, &e);
        assert_true(n > 0);
        result = live_take(&r->live, &r->node, &r->link, &f, r->now_ns, r->now_ns, &e);
        if (result < 0) assert_true(e.text[0]);
        at += (size_t)n;
    }
    buf_done(bytes);
    return result;
}

static int say_hello(struct rig *r, const char *boot_id, uint16_t devices) {
    struct buf b = {0};
    struct wire_hello h = {.devices = devices, .sources = 1, .boot_ns = r->now_ns + AHEAD_NS, .real_ns = r->now_ns};
    snprintf(h.node, sizeof h.node, "lab1");
    snprintf(h.boot_id, sizeof h.boot_id, "%s", boot_id);
    wire_put_hello(&b, &h);
    for (uint16_t i = 0; i < devices; i++) {
        struct inventory is;
        inventory_init(&is, i == 2 ? 0 : 1 - i); /* not in the order of their indices; the third is an instance */
        snprintf(is.uuid, sizeof is.uuid, "GPU-%u", i);
        if (i == 2) is.parent = 0, is.gi = 1, is.ci = 0;
        wire_put_inventory(&b, i, 0, &is);
    }
    return give(r, &b);
}

static void say_sample(struct rig *r, uint16_t device, int64_t mark, double watts) {
    struct buf b = {0};
    struct sample s = {.boot_ns = r->now_ns + AHEAD_NS, .real_ns = r->now_ns};
    bits_set(s.asked, METRIC_POWER);
    sample_put(&s, METRIC_POWER, watts);
    wire_put_sample(&b, device, mark, &s);
    assert_int_equal(give(r, &b), 0);
}

static void say_ok(struct rig *r, uint16_t device) {
    struct buf b = {0};
    struct ring_state s = {.state = DEVICE_OK};
    wire_put_state(&b, device, &s);
    assert_int_equal(give(r, &b), 0);
}

static void say_round(struct rig *r) {
    struct buf b = {0};
    struct wire_round round = {.boot_ns = r->now_ns + AHEAD_NS, .real_ns = r->now_ns, .sources = 1};
    round.source[0].beat_ns = round.boot_ns;
    wire_put_round(&b, &round);
    assert_int_equal(give(r, &b), 0);
}

static const char *gpus_of(struct rig *r) {
    buf_clear(&r->out);
    buf_putc(&r->out, '{');
    live_json_gpus(&r->out, &r->live, r->now_ns);
    return r->out.s;
}

static const char *delta_of(struct rig *r) {
    buf_clear(&r->out);
    buf_putc(&r->out, '{');
    live_json_delta(&r->out, &r->live, r->now_ns);
    return r->out.s;
}

static void readings(void **state) {
    AUTO(rig_done) struct rig r;
    rig_init(&r);
    assert_int_equal(say_hello(&r, "boot-1", 3), 1); /* all inventories: welcome is due */
    for (uint16_t i = 0; i < 3; i++) say_ok(&r, i);
    say_sample(&r, 0, 1, 300.5);
    say_sample(&r, 2, 1, 40);
    say_round(&r);
    assert_int_equal(r.seen.samples, 2);
    assert_int_equal(r.seen.rounds, 1);
    const char *json = gpus_of(&r), *first = strstr(json, "\"GPU-1\""), *second = strstr(json, "\"GPU-0\"");
    assert_non_null(first);
    assert_true(second > first); /* by index */
    assert_non_null(strstr(second, "\"gpu_power_watts\":300.5"));
    const char *instances = strstr(second, "\"instances\":[{");
    assert_non_null(instances);
    assert_non_null(strstr(instances, "\"gpu_power_watts\":40"));
    assert_non_null(strstr(json, "\"node\":\"lab1\""));
    assert_null(strstr(json, "stale"));
}

/* A reading that was taken is not taken again, nor one before it; another boot begins anew. */
static void marks(void **state) {
    AUTO(rig_done) struct rig r;
    rig_init(&r);
    assert_int_equal(say_hello(&r, "boot-1", 1), 1);
    say_sample(&r, 0, 5, 1);
    say_sample(&r, 0, 5, 2);
    say_sample(&r, 0, 4, 3);
    assert_int_equal(r.seen.samples, 1);
    live_part(&r.live, r.node);
    r.node = NULL;
    assert_int_equal(say_hello(&r, "boot-1", 1), 1);
    say_sample(&r, 0, 5, 2);
    assert_int_equal(r.seen.samples, 1);
    say_sample(&r, 0, 6, 2);
    assert_int_equal(r.seen.samples, 2);
    assert_int_equal(say_hello(&r, "boot-2", 1), 1);
    say_sample(&r, 0, 1, 2);
    assert_int_equal(r.seen.samples, 3);

    struct buf b = {0};
    struct event ev = {.device = 0, .kind = "xid", .text = "x"};
    wire_put_event(&b, 0, 7, &ev);
    wire_put_event(&b, 0, 7, &ev);
    assert_int_equal(give(&r, &b), 0);
    assert_int_equal(r.seen.events, 2);
    assert_int_equal(r.seen.new_events, 1);
}

static void deltas(void **state) {
    AUTO(rig_done) struct rig r;
    rig_init(&r);
    assert_int_equal(say_hello(&r, "boot-1", 2), 1);
    say_ok(&r, 0);
    say_ok(&r, 1);
    say_sample(&r, 0, 1, 100);
    say_round(&r);
    live_told(&r.live, r.now_ns);
    assert_string_equal(delta_of(&r), "{\"gpus\":{},\"nodes\":{}");
    say_sample(&r, 0, 2, 101);
    assert_string_equal(delta_of(&r), "{\"gpus\":{\"GPU-0\":{\"metrics\":{\"gpu_power_watts\":101}}},\"nodes\":{}");
    assert_string_equal(delta_of(&r), "{\"gpus\":{},\"nodes\":{}");
    /* a reading that is too old is not known any more, and that is news as well */
    r.now_ns += 10 * NS_PER_S;
    say_round(&r);
    assert_string_equal(delta_of(&r), "{\"gpus\":{\"GPU-0\":{\"metrics\":{\"gpu_power_watts\":null}}},\"nodes\":{}");
    struct buf b = {0};
    struct ring_state lost = {.state = DEVICE_LOST, .text = "gone"};
    wire_put_state(&b, 1, &lost);
    assert_int_equal(give(&r, &b), 0);
    assert_string_equal(delta_of(&r),
                        "{\"gpus\":{\"GPU-1\":{\"state\":\"lost\",\"state_reason\":\"gone\"}},\"nodes\":{}");
    /* silence */
    r.now_ns += LIVE_STALE_NS + NS_PER_S;
    const char *json = delta_of(&r);
    assert_non_null(strstr(json, "\"state\":\"stale\",\"state_reason\":\"its node has said nothing for 4 s\""));
    assert_non_null(strstr(json, "\"lab1\":{\"state\":\"stale\""));
}

/* Gone after a while of silence, said once; back with its first word; our own sleep is not its silence. */
static void silence(void **state) {
    AUTO(rig_done) struct rig r;
    rig_init(&r);
    assert_int_equal(say_hello(&r, "boot-1", 1), 1);
    for (int i = 0; i < 60; i++) live_tick(&r.live, r.now_ns += NS_PER_S);
    assert_string_equal(live_node_state(r.node, r.now_ns), "stale");
    live_tick(&r.live, r.now_ns += NS_PER_S);
    live_tick(&r.live, r.now_ns += NS_PER_S);
    assert_string_equal(live_node_state(r.node, r.now_ns), "gone");
    assert_int_equal(r.seen.gone, 1);
    assert_non_null(strstr(delta_of(&r), "\"lab1\":{\"state\":\"gone\",\"last_seen\":"));
    say_round(&r);
    assert_int_equal(r.seen.back, 1);
    assert_string_equal(live_node_state(r.node, r.now_ns), "ok");
    live_tick(&r.live, r.now_ns += 3600 * NS_PER_S); /* the machine slept */
    assert_int_equal(r.seen.gone, 1);
    for (int i = 0; i < 61; i++) live_tick(&r.live, r.now_ns += NS_PER_S);
    assert_int_equal(r.seen.gone, 2);
}

/* One that an earlier server knew is missed although it never came; one that comes is the same. */
static void expected(void **state) {
    AUTO(rig_done) struct rig r;
    rig_init(&r);
    struct live_node *lab1 = live_expect(&r.live, "lab1", 5 * NS_PER_S, false, r.now_ns);
    struct live_node *lab2 = live_expect(&r.live, "lab2", 7 * NS_PER_S, true, r.now_ns);
    assert_null(live_expect(&r.live, "lab1", 1, false, r.now_ns));
    assert_string_equal(live_node_state(lab1, r.now_ns), "stale");
    assert_string_equal(live_node_state(lab2, r.now_ns), "gone");
    assert_int_equal(say_hello(&r, "boot-1", 1), 1);
    assert_ptr_equal(r.node, lab1);
    for (int i = 0; i < 70; i++) {
        live_tick(&r.live, r.now_ns += NS_PER_S);
        say_round(&r);
    }
    assert_int_equal(r.seen.gone + r.seen.back, 0);
    live_forget(&r.live, lab2);
    assert_int_equal(r.live.count, 1);
    assert_null(live_find_node(&r.live, "lab2"));
}

static void refusals(void **state) {
    AUTO(rig_done) struct rig r;
    struct buf b = {0};
    struct sample s = {.boot_ns = 1};
    rig_init(&r);
    wire_put_sample(&b, 0, 1, &s);
    assert_int_equal(give(&r, &b), -EPROTO); /* before its hello */
    assert_int_equal(say_hello(&r, "boot-1", 1), 1);
    wire_put_sample(&b, 1, 1, &s);
    assert_int_equal(give(&r, &b), -EPROTO);
    struct inventory is;
    inventory_init(&is, 0);
    is.parent = 0;
    wire_put_inventory(&b, 0, 0, &is);
    assert_int_equal(give(&r, &b), -EPROTO); /* its own instance */
}

static void marks_as_text(void **state) {
    AUTO(marks_list_done) struct marks_list l = {0}, back = {0};
    AUTO(buf_done) struct buf text = {0}, again = {0};
    struct error e = {0};
    struct marks *m = marks_of(&l, "a node", "boot-1");
    m->host = 7;
    m->event[0] = 1;
    m->event[63] = INT64_MAX;
    marks_device(m, "GPU-1")->mark = 99;
    marks_device(m, "MIG 1/2")->mark = 3;
    marks_of(&l, "b", "boot-2");
    marks_encode(&l, &text);
    assert_int_equal(marks_decode(&back, text.s, text.len, &e), 0);
    marks_encode(&back, &again);
    assert_string_equal(text.s, again.s);
    static const char *const bad[] = {
        "x",
        "marks 2\n",
        "marks 1\nhost 1 \n",
        "marks 1\nnode b\n",
        "marks 1\nnode b n\nhost x \n",
        "marks 1\nnode b n\nhost -1 \n",
        "marks 1\nnode b n\nevent 1 64\n",
        "marks 1\nnode b n\nevent 1 x\n",
        "marks 1\nnode b n\ngpu 1 \n",
        "marks 1\nnode b n\nwhat 1 x\n",
        "marks 1\nnode b n\ngpu 1 GPU-1",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(marks_decode(&back, bad[i], strlen(bad[i]), &e), -EBADMSG);
        assert_int_equal(back.count, 2); /* nothing changed */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings), cmocka_unit_test(marks),         cmocka_unit_test(deltas),
        cmocka_unit_test(refusals), cmocka_unit_test(marks_as_text), cmocka_unit_test(silence),
        cmocka_unit_test(expected),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
