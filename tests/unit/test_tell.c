/* Telling someone, with the real state file, loop and threads: what was stored arrives, also after a restart, and what is
 * known is not told twice. The receiver is a command that writes what it gets into a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/file.h"
#include "net/http_client.h"
#include "server/tell.h"
#include "tests/test.h"

struct rig {
    char dir[64], inbox[96], state[96];
    struct loop *loop;
    struct state *db;
    struct tell *tell;
    struct settings settings;
    const char *until; /* stop once this stands in the inbox so many times */
    int times;
    int64_t deadline_ns;
    bool is_late, is_to_be_empty;
};

static int count_in(const char *path, const char *what) {
    AUTO(buf_done) struct buf text = {0};
    struct error e;
    int n = 0;
    if (file_read(path, 1 << 20, &text, &e) < 0 || !text.s) return 0;
    for (const char *at = text.s; (at = strstr(at, what)); at++) n++;
    return n;
}

static bool is_waiting(struct rig *r) {
    AUTO(buf_done) struct buf json = {0};
    tell_json(r->tell, &json);
    return !strstr(json.s, "\"name\":\"command\",\"is_configured\":true,\"waiting\":0");
}

static void look(void *ctx) {
    struct rig *r = ctx;
    if (!r->until) return;
    r->is_late = clock_boot_ns() > r->deadline_ns;
    if (r->is_late || (count_in(r->inbox, r->until) >= r->times && !(r->is_to_be_empty && is_waiting(r))))
        loop_stop(r->loop);
}

static void post(void *loop, void (*fn)(void *), void *arg) { loop_post(loop, fn, arg); }

static void rig_begin(struct rig *r, const char *command) {
    struct error e;
    settings_init(&r->settings);
    snprintf(r->settings.tell_command, sizeof r->settings.tell_command, "%s", command);
    assert_int_equal(loop_new(&r->loop, &e), 0);
    assert_int_equal(state_open(r->state, &r->db, &e), 0);
    assert_int_equal(tell_new(r->loop, r->db, &r->settings, "http://lab:7000", &r->tell, &e), 0);
    assert_int_equal(state_start(r->db, post, r->loop, &e), 0);
    loop_every(r->loop, 5, look, r);
}

static void stop_now(void *loop) { loop_stop(loop); }

static void rig_end(struct rig *r) {
    tell_stop(r->tell);
    state_close(r->db);
    loop_post(r->loop, stop_now, r->loop);
    loop_run(r->loop);
    tell_free(r->tell);
    loop_free(r->loop);
}

static void rig_make(struct rig *r) {
    *r = (struct rig){0};
    snprintf(r->dir, sizeof r->dir, "/tmp/test_tell.XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->inbox, sizeof r->inbox, "%s/inbox", r->dir);
    snprintf(r->state, sizeof r->state, "%s/state.db", r->dir);
}

static void rig_remove(struct rig *r) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", r->dir);
    (void)!system(command);
}

static void run_until(struct rig *r, const char *text, int times) {
    r->until = text;
    r->times = times;
    r->deadline_ns = clock_boot_ns() + 60 * NS_PER_S;
    loop_run(r->loop);
    if (r->is_late) fail_msg("\"%s\" did not come %d times, but %d", text, times, count_in(r->inbox, text));
}

static void happen(struct rig *r, uint64_t mark, const char *kind, enum event_severity severity, const char *text) {
    static struct inventory gpu;
    struct event ev = {.severity = severity};
    inventory_init(&gpu, 5);
    snprintf(gpu.uuid, sizeof gpu.uuid, "GPU-5");
    snprintf(gpu.name, sizeof gpu.name, "NVIDIA H200");
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    snprintf(ev.text, sizeof ev.text, "%s", text);
    struct tell_about about = {.stream = "lab/boot/0", .mark = mark, .node = "lab", .gpu = &gpu, .event = &ev};
    tell_event(r->tell, &about);
}

static void told_and_over(void **state) {
    struct rig r;
    char command[256];
    rig_make(&r);
    snprintf(command, sizeof command, "{ echo \"$GPUMGR_STATUS|$GPUMGR_HEADLINE|$GPUMGR_LINK\"; cat; } >> %s", r.inbox);
    rig_begin(&r, command);
    happen(&r, 1, "gpu_lost", EVENT_CRITICAL, "silent for 10 s");
    happen(&r, 1, "gpu_lost", EVENT_CRITICAL, "the same event again");
    happen(&r, 2, "gpu_lost", EVENT_CRITICAL, "silent for 11 s");
    happen(&r, 3, "gpu_back", EVENT_INFO, "answers again");
    run_until(&r, "\"description\":\"answers again\"", 2); /* in the alert and in what is common */
    assert_int_equal(count_in(r.inbox, "firing|GPU lost: lab GPU 5 (NVIDIA H200)|http://lab:7000/gpus/GPU-5"), 1);
    assert_int_equal(count_in(r.inbox, "\"description\":\"answers again\""),
                     2); /* in the alert and in what is common */
    assert_int_equal(count_in(r.inbox, "firing|"), 1);
    rig_end(&r);
    rig_remove(&r);
}

/* The receiver is down, the server ends; the next one delivers, knows the open notice and the mark. */
static void survives_a_restart(void **state) {
    struct rig r;
    char command[256];
    rig_make(&r);
    snprintf(command, sizeof command, "echo tried >> %s; exit 3", r.inbox);
    rig_begin(&r, command);
    happen(&r, 7, "gpu_lost", EVENT_CRITICAL, "silent for 10 s");
    run_until(&r, "tried", 1);
    AUTO(buf_done) struct buf json = {0};
    rig_end(&r);

    snprintf(command, sizeof command, "echo \"$GPUMGR_STATUS $GPUMGR_TEXT\" >> %s", r.inbox);
    rig_begin(&r, command);
    assert_int_equal(tell_mark(r.tell, "lab/boot/0"), 7);
    assert_int_equal(tell_mark(r.tell, "lab/other/0"), 0);
    tell_json(r.tell, &json);
    assert_non_null(strstr(json.s, "\"title\":\"GPU lost\""));
    happen(&r, 7, "gpu_lost", EVENT_CRITICAL, "sent again by the node");
    happen(&r, 8, "gpu_back", EVENT_INFO, "answers again");
    r.is_to_be_empty = true;
    run_until(&r, "resolved answers again", 1);
    assert_int_equal(count_in(r.inbox, "firing silent for 10 s"), 1);
    assert_int_equal(count_in(r.inbox, "sent again"), 0);
    rig_end(&r);
    rig_begin(&r, command); /* nothing is left to send */
    AUTO(buf_done) struct buf after = {0};
    tell_json(r.tell, &after);
    assert_null(strstr(after.s, "\"waiting\":1"));
    assert_non_null(strstr(after.s, "\"open\":[]"));
    rig_end(&r);
    rig_remove(&r);
}

static void a_try(void **state) {
    struct rig r;
    char command[256];
    struct error e;
    rig_make(&r);
    rig_begin(&r, "");
    assert_true(tell_test(r.tell, "lab", &e) < 0);
    rig_end(&r);
    snprintf(command, sizeof command, "echo \"$GPUMGR_HEADLINE\" >> %s", r.inbox);
    rig_begin(&r, command);
    assert_int_equal(tell_test(r.tell, "lab", &e), 0);
    run_until(&r, "Test: A message to try the way: lab", 1);
    rig_end(&r);
    rig_remove(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(told_and_over), cmocka_unit_test(survives_a_restart),
                                       cmocka_unit_test(a_try)};
    struct error e;
    if (http_client_start(&e) < 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
