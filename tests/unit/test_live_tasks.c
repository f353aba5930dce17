/* GPU tasks in the server: what is told twice is one task, what ended leaves in time, containers' series end with them;
 * and in the history: documents by name, in order, through restarts and reboots. */
#include "server/live_tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/task_json.h"
#include "server/exporter_tasks.h"
#include "server/history_tasks.h"
#include "server/live_tasks_json.h"
#include "tests/test.h"
#include "tests/unit/scratch.h"

#define NOW_NS (10000 * NS_PER_S)
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct wire_task task_of(int pid, enum task_state state, double began_s, double took_s, double deadline_s) {
    struct wire_task t = {.mark = 1, .uid = 1000, .gpus = 1};
    t.task = (struct task){
        .key = {pid, 77},
          .state = (uint8_t)state
    };
    t.task.start_ns = (int64_t)(began_s * 1e9);
    t.start_real_ns = t.task.start_ns;
    t.task.deadline_ns = (int64_t)(deadline_s * 1e9);
    if (state == TASK_ENDED) {
        t.task.end_ns = t.end_real_ns = (int64_t)((began_s + took_s) * 1e9);
        t.task.float_ns = t.task.deadline_ns - (t.task.end_ns - t.task.start_ns);
    }
    t.task.verdict = !deadline_s             ? TASK_NO_DEADLINE
                     : state == TASK_RUNNING ? TASK_PENDING
                     : took_s <= deadline_s  ? TASK_HIT
                                             : TASK_MISS;
    t.whose.slurm_job = -1;
    snprintf(t.gpu[0].uuid, sizeof t.gpu[0].uuid, "GPU-1");
    t.gpu[0].gi = t.gpu[0].ci = UINT32_MAX;
    return t;
}

static void in_container(struct wire_task *t, const char *name) {
    t->whose.kind = BELONGS_TO_DOCKER;
    snprintf(t->whose.id, sizeof t->whose.id, ID_A);
    snprintf(t->name, sizeof t->name, "%s", name);
}

static const char *json_of(struct buf *b, const struct wire_task *t, int64_t now_ns) {
    buf_clear(b);
    task_json(b, t, "lab1", "0123456789abcdef", now_ns);
    return b->s;
}

static void test_a_task_as_json(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct wire_task t = task_of(7, TASK_RUNNING, 100, 0, 30);
    in_container(&t, "train");
    static const struct {
        double at_s;
        const char *want[3];
    } rows[] = {
        {110, {"\"float_s\":20", "\"state\":\"running\"", "\"hit\":null"} },
        {131, {"\"float_s\":-1", "\"state\":\"overdue\"", "\"hit\":false"}}, /* before the node has said so */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_of(&b, &t, (int64_t)(rows[i].at_s * 1e9));
        for (int k = 0; k < 3; k++)
            if (!strstr(b.s, rows[i].want[k])) fail_msg("%s is not in %s", rows[i].want[k], b.s);
    }
    assert_non_null(strstr(b.s, "\"id\":\"01234567-7-77\""));
    assert_non_null(strstr(b.s, "\"container\":\"train\",\"container_id\":\"" ID_A "\""));
    t = task_of(7, TASK_ENDED, 100, 12.5, 30);
    t.again = 2;
    json_of(&b, &t, 0);
    assert_non_null(strstr(b.s, "\"id\":\"01234567-7-77-2\""));
    assert_non_null(strstr(b.s, "\"float_s\":17.5"));
    assert_non_null(strstr(b.s, "\"hit\":true"));
    assert_non_null(strstr(b.s, "\"container\":null"));
    t.flags = WIRE_TASK_END_UNKNOWN; /* nobody knows what was left */
    t.task.verdict = TASK_PENDING;
    json_of(&b, &t, 0);
    assert_non_null(strstr(b.s, "\"float_s\":null"));
    assert_non_null(strstr(b.s, "\"hit\":null"));
}

static void test_told_twice_is_one(void **state) {
    struct live_tasks l = {0};
    struct wire_task t = task_of(7, TASK_RUNNING, 9990, 0, 0);
    assert_true(live_tasks_take(&l, &t, true, NOW_NS, NOW_NS));
    assert_true(live_tasks_take(&l, &t, false, NOW_NS, NOW_NS));
    assert_int_equal(l.count, 1);
    struct wire_use u = {.key = t.task.key, .gpu_seconds = 3, .memory_bytes = 5, .sm_share = 0.5};
    live_tasks_use(&l, &u);
    assert_int_equal(l.task[0]->of.memory_bytes, 5);
    assert_ptr_equal(live_tasks_of_pid(&l, 7), l.task[0]);
    t = task_of(7, TASK_ENDED, 9990, 4, 0);
    live_tasks_take(&l, &t, true, NOW_NS, NOW_NS);
    live_tasks_take(&l, &t, false, NOW_NS, NOW_NS); /* again, after a break */
    assert_int_equal(l.count, 1);
    assert_int_equal(l.host_times.count, 1);
    assert_null(live_tasks_of_pid(&l, 7));
    t.again = 1; /* the process came back: another task */
    live_tasks_take(&l, &t, true, NOW_NS, NOW_NS);
    assert_int_equal(l.count, 2);
    live_tasks_prune(&l, NOW_NS + LIVE_ENDED_NS - 10 * NS_PER_S);
    assert_int_equal(l.count, 2);
    live_tasks_prune(&l, NOW_NS + LIVE_ENDED_NS);
    assert_int_equal(l.count, 0);
    assert_int_equal(l.ended, 0);
    assert_false(live_tasks_take(&l, &t, false, NOW_NS + LIVE_ENDED_NS, NOW_NS + LIVE_ENDED_NS));
    live_tasks_done(&l);
}

static void test_ended_ones_have_a_limit(void **state) {
    struct live_tasks l = {0};
    struct wire_task t = task_of(1, TASK_RUNNING, 9990, 0, 0);
    live_tasks_take(&l, &t, true, NOW_NS, NOW_NS);
    for (int pid = 2; pid < LIVE_ENDED_MAX + 50; pid++) {
        t = task_of(pid, TASK_ENDED, 9990, 1, 0);
        live_tasks_take(&l, &t, true, NOW_NS, NOW_NS);
    }
    assert_int_equal(l.count, LIVE_ENDED_MAX + 1);
    assert_non_null(live_tasks_of_pid(&l, 1)); /* what runs is never dropped for what ended */
    live_tasks_done(&l);
}

static bool is_exposed(const struct live *l, int64_t now_ns, const char *line) {
    AUTO(buf_done) struct buf b = {0};
    exporter_tasks(&b, l, now_ns);
    return strstr(b.s, line) != NULL;
}

static void test_series_end_with_their_container(void **state) {
    struct live_node n = {.name = "lab1"}, *nodes[] = {&n};
    struct live l = {.node = nodes, .count = 1};
    struct wire_task t = task_of(7, TASK_ENDED, 9990, 4, 3);
    in_container(&t, "train");
    live_tasks_take(&n.tasks, &t, true, NOW_NS, NOW_NS);
    struct wire_container c = {.id = ID_A, .kind = BELONGS_TO_DOCKER, .state = CONTAINER_RUNNING, .name = "train"};
    slack_init(&c.slack);
    slack_end(&c.slack, 3 * NS_PER_S, -NS_PER_S, false, NOW_NS);
    live_tasks_container(&n.tasks, &c, NOW_NS);
#define WHO "{host=\"lab1\",container=\"train\",container_id=\"aaaaaaaaaaaa\",tenant=\"\""
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_deadline_misses_total" WHO "} 1\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_deadline_hits_total" WHO "} 0\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_task_seconds_bucket" WHO ",le=\"2.5\"} 0\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_task_seconds_bucket" WHO ",le=\"5\"} 1\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_task_seconds_bucket" WHO ",le=\"+Inf\"} 1\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_task_seconds_sum" WHO "} 4\n"));
    c.state = CONTAINER_EXITED;
    live_tasks_container(&n.tasks, &c, NOW_NS);
    assert_true(is_exposed(&l, NOW_NS + LIVE_SERIES_NS, "container=\"train\"")); /* its last values */
    assert_false(is_exposed(&l, NOW_NS + LIVE_SERIES_NS + 1, "container=\"train\""));
    assert_true(
        is_exposed(&l, NOW_NS + LIVE_SERIES_NS + 1, "gpumgr_deadline_misses_total{host=\"lab1\",container=\"\""));
    c.state = CONTAINER_RUNNING; /* started again */
    live_tasks_container(&n.tasks, &c, NOW_NS + 2 * LIVE_SERIES_NS);
    assert_true(is_exposed(&l, NOW_NS + 2 * LIVE_SERIES_NS, "container=\"train\""));
    live_tasks_done(&n.tasks);
}

/* What a user's tasks have used is his when they have ended, and what is told twice counts once. */
static void test_users_have_what_their_tasks_used(void **state) {
    struct live_node n = {.name = "lab1"}, *nodes[] = {&n};
    struct live l = {.node = nodes, .count = 1};
    struct wire_task one = task_of(7, TASK_RUNNING, 9990, 0, 0), other = task_of(8, TASK_ENDED, 9990, 2, 0);
    struct wire_use use = {
        .key = {7, 77},
          .gpu_seconds = 3, .energy_joules = 500, .memory_bytes = 4096, .sm_share = 0.5
    };
    one.gpu_seconds = 1;
    other.gpu_seconds = 2;
    other.energy_joules = 100;
    live_tasks_take(&n.tasks, &one, true, NOW_NS, NOW_NS);
    live_tasks_take(&n.tasks, &other, true, NOW_NS, NOW_NS);
    snprintf(other.user, sizeof other.user, "alice"); /* the name comes later, and nothing is used again */
    live_tasks_take(&n.tasks, &other, true, NOW_NS, NOW_NS);
    live_tasks_use(&n.tasks, &use);
    live_tasks_use(&n.tasks, &use);
#define ALICE "{host=\"lab1\",user=\"alice\",uid=\"1000\"}"
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_user_gpu_seconds_total" ALICE " 5\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_user_energy_joules_total" ALICE " 600\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_user_tasks_running" ALICE " 1\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_user_memory_bytes" ALICE " 4096\n"));
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_user_sm_ratio" ALICE " 0.5\n"));
    struct wire_task stored =
        task_of(9, TASK_ENDED, 9990, 2, 0); /* of before this server's start: shown, not counted */
    stored.gpu_seconds = 50;
    live_tasks_take(&n.tasks, &stored, false, NOW_NS, NOW_NS);
    assert_true(is_exposed(&l, NOW_NS, "gpumgr_user_gpu_seconds_total" ALICE " 5\n"));
    for (uint32_t uid = 2000; uid < 2000 + 2 * LIVE_USERS_MAX; uid++) {
        one.uid = uid;
        one.task.key.pid = (int32_t)uid;
        live_tasks_take(&n.tasks, &one, true, NOW_NS, NOW_NS);
    }
    assert_int_equal(n.tasks.users, LIVE_USERS_MAX);
    live_tasks_done(&n.tasks);
}

/* ---- history ---- */

static void keep(struct history *h, const char *boot_id, int pid, int64_t start_ms, enum task_state state,
                 enum task_verdict verdict, const char *container) {
    char body[120];
    struct history_task t = {
        .start_ms = start_ms, .state = (int)state, .verdict = (int)verdict, .gpus = "GPU-1 GPU-2 "};
    snprintf(t.key, sizeof t.key, "%.8s-%d", boot_id, pid);
    snprintf(t.node, sizeof t.node, "lab1");
    snprintf(t.boot_id, sizeof t.boot_id, "%s", boot_id);
    snprintf(t.user, sizeof t.user, "alice");
    if (container) snprintf(t.container, sizeof t.container, ID_A), snprintf(t.name, sizeof t.name, "%s", container);
    snprintf(body, sizeof body, "{\"pid\":%d,\"state\":\"%s\"}", pid, task_state_name(state));
    t.body = body;
    assert_int_equal(history_task_put(h, &t), 0);
}

/* The pids of an answer in one text, each with the first letter of its state. */
static const char *found(struct history_reader *r, struct history_tasks_ask ask, int64_t *last) {
    static char text[400];
    struct history_document *page = calloc(1000, sizeof *page);
    struct error e;
    if (!ask.limit) ask.limit = 1000;
    int n = history_tasks(r, &ask, page, &e);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        int pid = 0;
        char word[16] = "";
        sscanf(page[i].body, "{\"pid\":%d,\"state\":\"%15[a-z]", &pid, word);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d%c ", pid, word[0]);
        if (last) *last = page[i].row;
    }
    assert_true(n >= 0);
    history_documents_free(page, (size_t)n);
    free(page);
    return text;
}

static void check_answers(struct history_reader *r) {
    int64_t last = 0;
    assert_string_equal(found(r, (struct history_tasks_ask){0}, NULL), "4r 3e 2o 1e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.limit = 2}, &last), "4r 3e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.limit = 2, .before = last}, NULL), "2o 1e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.states = BIT(TASK_ENDED)}, NULL), "3e 1e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.verdicts = BIT(TASK_MISS)}, NULL), "3e 2o ");
    assert_string_equal(found(r, (struct history_tasks_ask){.container = ID_A}, NULL), "3e 1e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.container = "train"}, NULL), "3e 1e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.container = "tra"}, NULL), "");
    assert_string_equal(found(r, (struct history_tasks_ask){.gpu = "GPU-2", .user = "alice"}, NULL), "4r 3e 2o 1e ");
    assert_string_equal(found(r, (struct history_tasks_ask){.user = "bob"}, NULL), "");
    assert_string_equal(found(r, (struct history_tasks_ask){.from_ms = 2000, .to_ms = 4000}, NULL), "3e 2o ");
}

static void test_history(void **state) {
    char dir[64], path[300];
    struct history *h;
    struct history_reader *r;
    struct error e;
    snprintf(path, sizeof path, "%s/history.db", scratch_make(dir, "/dev/shm"));
    assert_int_equal(history_open(path, NULL, &h, &e), 0);
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    keep(h, "boot-one", 1, 1000, TASK_ENDED, TASK_HIT, "train");
    keep(h, "boot-one", 2, 2000, TASK_RUNNING, TASK_PENDING, NULL);
    keep(h, "boot-one", 3, 3000, TASK_RUNNING, TASK_PENDING, "train");
    assert_string_equal(found(r, (struct history_tasks_ask){0}, NULL), "3r 2r 1e "); /* in memory */
    assert_true(history_flush(h, "m", 1, &e) >= 0);
    keep(h, "boot-one", 2, 2000, TASK_OVERDUE, TASK_MISS, NULL); /* news of what is in the file */
    keep(h, "boot-one", 3, 3000, TASK_ENDED, TASK_MISS, "train");
    keep(h, "boot-one", 4, 4000, TASK_RUNNING, TASK_NO_DEADLINE, NULL);
    check_answers(r);
    assert_string_equal(found(r, (struct history_tasks_ask){.states = BIT(TASK_RUNNING)}, NULL), "4r ");
    assert_true(history_flush(h, "n", 1, &e) >= 0);
    check_answers(r);
    history_reader_close(r);
    history_close(h);
    assert_int_equal(history_open(path, NULL, &h, &e), 0);
    assert_int_equal(history_reader_open(h, &r, &e), 0);
    check_answers(r);
    history_tasks_lost(h, "lab1", "boot-two"); /* it was started anew: what ran is over */
    assert_true(history_flush(h, "o", 1, &e) >= 0);
    assert_string_equal(found(r, (struct history_tasks_ask){0}, NULL), "4e 3e 2e 1e ");
    struct history_container c = {.node = "lab1", .id = ID_A, .name = "train", .seen_ms = 5, .body = "{\"a\":1}"};
    struct history_document got[2];
    assert_int_equal(history_container_put(h, &c), 0);
    c.body = "{\"a\":2}";
    for (int round = 0; round < 2; round++) {
        assert_int_equal(history_container_put(h, &c), 0);
        assert_int_equal(history_containers(r, "aaaaaaaaaaaa", got, 2, &e), 1);
        assert_string_equal(got[0].body, "{\"a\":2}");
        history_documents_free(got, 1);
        assert_int_equal(history_containers(r, "other", got, 2, &e), 0);
        assert_true(history_flush(h, "p", 1, &e) >= 0);
    }
    history_reader_close(r);
    history_close(h);
    scratch_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_as_json),
        cmocka_unit_test(test_told_twice_is_one),
        cmocka_unit_test(test_ended_ones_have_a_limit),
        cmocka_unit_test(test_series_end_with_their_container),
        cmocka_unit_test(test_users_have_what_their_tasks_used),
        cmocka_unit_test(test_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
