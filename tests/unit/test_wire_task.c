/* Tasks, containers, the node's state and uses on the wire: what goes in comes out; what is cut or cannot be is refused;
 * what a later version appends is skipped. */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model/wire_code.h"
#include "model/wire_task.h"

static struct wire_frame only_frame(const struct buf *b) {
    struct wire_frame f = {0};
    struct error e;
    assert_int_equal(wire_frame(b->s, b->len, &f, &e), b->len);
    return f;
}

static void some_task(struct wire_task *t) {
    memset(t, 0, sizeof *t);
    *t = (struct wire_task){
        .mark = 1ll << 60,
        .task = {.key = {4711, 1ull << 63},
                 .state = TASK_OVERDUE,
                 .source = TASK_BY_CONTAINER,
                 .verdict = TASK_MISS,
                 .is_warned = 1,
                 .opened_ns = 5,
                 .start_ns = 6,
                 .deadline_ns = 30,
                 .float_ns = -3,
                 .expected_ns = 41},
        .flags = WIRE_TASK_FOUND_LATE,
        .opened_real_ns = 105,
        .start_real_ns = 106,
        .period_ns = 9,
        .periods = 8,
        .period_hit = 7,
        .again = 2,
        .ns_pid = 1,
        .uid = 1000,
        .user = "ada",
        .comm = "python3",
        .command = "python3 train.py",
        .whose = {.kind = BELONGS_TO_DOCKER,             .pod = "p-1",     .uid = -1,              .slurm_job = 12,    .slurm_step = "batch"},
        .name = "trainer",
        .image = "registry.example/train:1",
        .gpu_seconds = 1.5,
        .energy_joules = 700.25,
        .memory_bytes = 1ull << 40,
        .memory_peak_bytes = 1ull << 41,
        .gpus = 2,
    };
    memset(t->whose.id, 'a', BELONGING_ID_HEX);
    strcpy(t->gpu[0].uuid, "GPU-0");
    strcpy(t->gpu[1].uuid, "MIG-1");
    t->gpu[0].gi = t->gpu[0].ci = UINT32_MAX;
    t->gpu[1].gi = 7;
}

static void some_container(struct wire_container *c) {
    memset(c, 0, sizeof *c);
    strcpy(c->id, "0123abcd");
    c->kind = BELONGS_TO_PODMAN;
    c->state = CONTAINER_PAUSED;
    strcpy(c->name, "nightly");
    strcpy(c->image, "img:2");
    strcpy(c->tenant, "lab");
    c->deadline_ns = 30;
    c->period_ns = 60;
    c->periods = 9;
    c->period_hit = 8;
    c->priority = -5;
    c->created_real_ns = 99;
    strcpy(c->labels, "a=b\nc=d\n");
    c->running = 3;
    slack_init(&c->slack);
    slack_end(&c->slack, 100, 20, false, 7);
    slack_miss(&c->slack, 8);
    c->gpu_seconds = 0.25;
    c->energy_joules = 8;
    c->memory_bytes = 77;
}

static void tasks(void **state) {
    static struct wire_task t, got;
    AUTO(buf_done) struct buf b = {0}, again = {0};
    struct error e;
    some_task(&t);
    wire_put_task(&b, &t);
    struct wire_frame f = only_frame(&b);
    memset(&got, 0x5a, sizeof got);
    assert_int_equal(wire_get_task(&f, &got, &e), 0);
    wire_put_task(&again, &got);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.s, b.s, b.len);
    assert_int_equal(got.mark, t.mark);
    assert_true(got.task.key.pid == 4711 && got.task.key.ticks == 1ull << 63 && got.task.float_ns == -3);
    assert_true(got.task.state == TASK_OVERDUE && got.task.verdict == TASK_MISS && got.task.is_warned == 1);
    assert_true(got.periods == 8 && got.period_hit == 7 && got.again == 2 && got.flags == WIRE_TASK_FOUND_LATE &&
                got.ns_pid == 1);
    assert_true(got.whose.kind == BELONGS_TO_DOCKER && got.whose.slurm_job == 12 && got.uid == 1000);
    assert_string_equal(got.whose.id, t.whose.id);
    assert_string_equal(got.command, t.command);
    assert_string_equal(got.image, t.image);
    assert_int_equal(got.gpus, 2);
    assert_string_equal(got.gpu[1].uuid, "MIG-1");
    assert_true(got.gpu[0].gi == UINT32_MAX && got.gpu[1].gi == 7 && got.energy_joules == 700.25);
    assert_true(got.memory_peak_bytes == 1ull << 41);
}

static void containers(void **state) {
    static struct wire_container c, got;
    AUTO(buf_done) struct buf b = {0};
    struct error e;
    some_container(&c);
    wire_put_container(&b, &c);
    struct wire_frame f = only_frame(&b);
    memset(&got, 0x5a, sizeof got);
    assert_int_equal(wire_get_container(&f, &got, &e), 0);
    assert_memory_equal(&got.slack, &c.slack, sizeof c.slack);
    assert_string_equal(got.labels, c.labels);
    assert_string_equal(got.tenant, "lab");
    assert_true(got.priority == -5 && got.running == 3 && got.state == CONTAINER_PAUSED && got.memory_bytes == 77);
    assert_string_equal(wire_container_state_name((enum wire_container_state)got.state), "paused");
}

static void node_and_uses(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_node n =
                         {
                             .state = {.reasons = NODE_MISSED, .gpus = 8, .tasks = 300, .free_mib = 5, .float_ms = -9}
    },
                     got;
    struct error e;
    strcpy(n.reasons, "missed a deadline lately");
    slack_init(&n.slack);
    wire_put_node(&b, &n);
    struct wire_frame f = only_frame(&b);
    assert_int_equal(wire_get_node(&f, &got, &e), 0);
    assert_memory_equal(&got.state, &n.state, sizeof n.state);
    assert_memory_equal(&got.slack, &n.slack, sizeof n.slack);
    assert_string_equal(got.reasons, n.reasons);

    struct wire_uses list = {.boot_ns = 4, .count = 2}, uses;
    struct wire_use u[2] =
        {
            {{7, 8}, 1.5, 2.5, 3, 4, NAN},
            {{9, 1}, 0,   0,   0, 0, 1.0}
    },
                    one;
    buf_clear(&b);
    size_t from = wire_begin_uses(&b, &list);
    for (int i = 0; i < 2; i++) wire_add_use(&b, &u[i]);
    wire_end(&b, from);
    f = only_frame(&b);
    assert_int_equal(wire_get_uses(&f, &uses, &e), 0);
    assert_true(uses.boot_ns == 4 && uses.count == 2);
    assert_true(wire_next_use(&uses, &one) && one.key.ticks == 8 && one.energy_joules == 2.5 && isnan(one.sm_share));
    assert_true(wire_next_use(&uses, &one) && one.key.pid == 9 && one.sm_share == 1.0);
    assert_false(wire_next_use(&uses, &one));
}

static int decode(const struct wire_frame *f) {
    static struct wire_task t;
    static struct wire_container c;
    struct wire_node n;
    struct wire_uses u;
    struct error e = {0};
    int r = f->type == WIRE_TASK        ? wire_get_task(f, &t, &e)
            : f->type == WIRE_CONTAINER ? wire_get_container(f, &c, &e)
            : f->type == WIRE_NODE      ? wire_get_node(f, &n, &e)
                                        : wire_get_uses(f, &u, &e);
    if (r < 0 && !e.text[0]) fail_msg("refused without a sentence");
    return r;
}

static void one_of_each(struct buf *b) {
    static struct wire_task t;
    static struct wire_container c;
    struct wire_node n = {.reasons = "why"};
    const struct wire_uses list = {.boot_ns = 4, .count = 1};
    const struct wire_use u = {
        .key = {7, 8}
    };
    some_task(&t);
    some_container(&c);
    wire_put_task(b, &t);
    wire_put_container(b, &c);
    wire_put_node(b, &n);
    size_t from = wire_begin_uses(b, &list);
    wire_add_use(b, &u);
    wire_end(b, from);
}

static void cut_and_swollen(void **state) {
    AUTO(buf_done) struct buf all = {0};
    int seen = 0;
    one_of_each(&all);
    for (size_t at = 0; at < all.len; seen++) {
        struct wire_frame f;
        struct error e;
        int size = wire_frame(all.s + at, all.len - at, &f, &e);
        assert_true(size > 0);
        at += (size_t)size;
        assert_int_equal(decode(&f), 0);
        for (size_t len = 0; len < f.len; len++) {
            uint8_t *copy = malloc(len ? len : 1); /* its own block: a sanitizer sees one step beyond */
            assert_non_null(copy);
            memcpy(copy, f.body, len);
            struct wire_frame cut = {.type = f.type, .version = f.version, .body = copy, .len = len};
            if (decode(&cut) >= 0) fail_msg("type %u cut to %zu of %zu bytes was taken", f.type, len, f.len);
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
    assert_int_equal(seen, 4);
}

/* Frames that are whole and say what cannot be. */
static void impossible(void **state) {
    static struct wire_task good, t;
    static struct wire_container fine, c;
    some_task(&good);
    some_container(&fine);
#define TASKS(X)                                                                                                       \
    X(t.mark = 0)                                                                                                      \
    X(t.task.key.pid = 0)                                                                                              \
    X(t.task.key.pid = -4)                                                                                             \
    X(t.task.state = 3)                                                                                                \
    X(t.task.source = 3)                                                                                               \
    X(t.task.verdict = 4)                                                                                              \
    X(t.task.is_warned = 2)                                                                                            \
    X(t.task.start_ns = 0)                                                                                             \
    X(t.task.opened_ns = -1)                                                                                           \
    X(t.task.deadline_ns = -1)                                                                                         \
    X(t.period_ns = -1)                                                                                                \
    X(t.period_hit = t.periods + 1)                                                                                    \
    X(t.task.end_ns = 100)                            /* and yet it runs */                                            \
    X(t.task.state = TASK_ENDED)                      /* and yet without an end */                                     \
    X((t.task.state = TASK_ENDED, t.task.end_ns = 3)) /* before its start */                                           \
    X(t.gpu_seconds = NAN)                                                                                             \
    X(t.energy_joules = -1)                                                                                            \
    X(t.whose.kind = (enum belonging_kind)BELONGING_KINDS)                                                             \
    X(t.gpu[1].uuid[0] = 0)
#define CONTAINERS(X)                                                                                                  \
    X(c.id[0] = 0)                                                                                                     \
    X(c.kind = BELONGING_KINDS)                                                                                        \
    X(c.state = CONTAINER_STATES)                                                                                      \
    X(c.deadline_ns = -1)                                                                                              \
    X(c.period_ns = -1)                                                                                                \
    X(c.period_hit = c.periods + 1)                                                                                    \
    X(c.gpu_seconds = INFINITY)
#define TRY_TASK(change)                                                                                               \
    {                                                                                                                  \
        AUTO(buf_done) struct buf b = {0};                                                                             \
        t = good;                                                                                                      \
        change;                                                                                                        \
        wire_put_task(&b, &t);                                                                                         \
        struct wire_frame f = only_frame(&b);                                                                          \
        if (decode(&f) >= 0) fail_msg("taken: %s", #change);                                                           \
    }
#define TRY_CONTAINER(change)                                                                                          \
    {                                                                                                                  \
        AUTO(buf_done) struct buf b = {0};                                                                             \
        c = fine;                                                                                                      \
        change;                                                                                                        \
        wire_put_container(&b, &c);                                                                                    \
        struct wire_frame f = only_frame(&b);                                                                          \
        if (decode(&f) >= 0) fail_msg("taken: %s", #change);                                                           \
    }
    TASKS(TRY_TASK)
    CONTAINERS(TRY_CONTAINER)
    AUTO(buf_done) struct buf b = {0};
    size_t from = wire_begin(&b, WIRE_USE);
    out_i64(&b, 1);
    out_u16(&b, 2); /* one is there */
    const struct wire_use u = {
        .key = {7, 8}
    };
    wire_add_use(&b, &u);
    wire_end(&b, from);
    struct wire_frame f = only_frame(&b);
    assert_true(decode(&f) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks),           cmocka_unit_test(containers), cmocka_unit_test(node_and_uses),
        cmocka_unit_test(cut_and_swollen), cmocka_unit_test(impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
