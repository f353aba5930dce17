/* A service's life: what it may ask for, and what is done about each fact, by rows and by random histories. */
#include "tests/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/job_json.h"
#include "model/service.h"

#define SECOND 1000000000LL
#define T0 (1763200000 * SECOND)

/* ---- what it may ask for ---- */

static int read_service(const char *service, struct buf *record, struct service_spec *ret, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    struct job_spec s;
    buf_clear(record);
    buf_printf(&text, "{\"command\":[\"serve\"],\"service\":%s}", service);
    int r = job_json_record(text.s, text.len, T0, record, e);
    if (r >= 0) r = job_decode(record->s, record->len, &s, e);
    return r < 0 ? r : service_spec_read(&s.service, ret, e);
}

static void asked_for(void **state) {
    AUTO(buf_done) struct buf record = {0}, json = {0}, again = {0};
    struct service_spec s;
    struct job_spec job;
    struct error e = {0};
    if (read_service("{}", &record, &s, &e) < 0) fail_msg("%s", e.text);
    assert_true(s.restart == SERVICE_ALWAYS && s.pause_ns == SECOND && s.pause_most_ns == 300 * SECOND);
    assert_true(s.give_up == 10 && s.within_ns == 3600 * SECOND && !s.yields && s.probe == SERVICE_UNPROBED);
    if (read_service("{\"restart\":\"on-failure\",\"pause\":\"2s\",\"yield\":true,\"give_up\":3,\"within\":\"1m\","
                     "\"health\":{\"http\":\"/healthz?deep=1\",\"port\":8000,\"status\":204,\"interval\":\"500ms\","
                     "\"timeout\":\"400ms\",\"grace\":\"5s\",\"failures\":2}}",
                     &record, &s, &e) < 0)
        fail_msg("%s", e.text);
    assert_true(s.restart == SERVICE_ON_FAILURE && s.yields && s.probe == SERVICE_HTTP && s.port == 8000);
    assert_true(s.status == 204 && s.interval_ns == SECOND / 2 && s.failures == 2 && s.give_up == 3);
    assert_string_equal(s.path, "/healthz?deep=1");
    assert_int_equal(job_decode(record.s, record.len, &job, &e), 0);
    job_json_spec(&json, &job); /* and back */
    if (job_json_record(json.s, json.len, T0, &again, &e) < 0) fail_msg("%s: %s", e.text, json.s);
    assert_true(again.len == record.len && memcmp(again.s, record.s, again.len) == 0);
    /* a check takes no longer than the next one is away, unless somebody says how long */
    assert_true(read_service("{\"health\":{\"tcp\":5432,\"interval\":\"1s\"}}", &record, &s, &e) >= 0);
    assert_true(s.timeout_ns == SECOND);
    assert_true(read_service("{\"health\":{\"tcp\":5432}}", &record, &s, &e) >= 0 && s.probe == SERVICE_TCP);
    assert_true(read_service("{\"health\":{\"command\":\"test -e up\"}}", &record, &s, &e) >= 0);
    assert_true(s.probe == SERVICE_COMMAND && s.command.count == 3);
    assert_string_equal(job_word_next(&s.command, NULL), "sh");
}

static void refused(void **state) {
    static const struct {
        const char *service, *starts;
    } rows[] = {
        {"7",                                                                  "service: "                          },
        {"{\"restart\":\"sometimes\"}",                                        "service.restart: "                  },
        {"{\"restrt\":\"always\"}",                                            "service.restrt: "                   },
        {"{\"pause\":\"1h\",\"pause_most\":\"1m\"}",                           "service.pause_most: "               },
        {"{\"pause\":1}",                                                      "service.pause: "                    },
        {"{\"pause\":\"1ms\"}",                                                "service.pause: "                    },
        {"{\"give_up\":65}",                                                   "service.give_up: "                  },
        {"{\"give_up\":-1}",                                                   "service.give_up: "                  },
        {"{\"yield\":\"yes\"}",                                                "service.yield: "                    },
        {"{\"update\":\"now\"}",                                               "service.update: "                   },
        {"{\"health\":{}}",                                                    "service.health: "                   },
        {"{\"health\":[]}",                                                    "service.health: "                   },
        {"{\"health\":{\"http\":\"/x\"}}",                                     "service.health.port: "              },
        {"{\"health\":{\"http\":\"x\",\"port\":80}}",                          "service.health.http: "              },
        {"{\"health\":{\"http\":\"/a b\",\"port\":80}}",                       "service.health.http: "              },
        {"{\"health\":{\"http\":\"/x\",\"port\":0}}",                          "service.health.port: "              },
        {"{\"health\":{\"http\":\"/x\",\"port\":70000}}",                      "service.health.port: "              },
        {"{\"health\":{\"tcp\":-1}}",                                          "service.health.tcp: "               },
        {"{\"health\":{\"tcp\":80,\"port\":80}}",                              "service.health.port: "              },
        {"{\"health\":{\"tcp\":80,\"http\":\"/\"}}",                           "service.health: "                   },
        {"{\"health\":{\"tcp\":80,\"status\":200}}",                           "service.health.status: "            },
        {"{\"health\":{\"command\":[\"x\"],\"port\":80}}",                     "service.health.port: "              },
        {"{\"health\":{\"port\":80}}",                                         "service.health: "                   },
        {"{\"health\":{\"command\":[]}}",                                      "service.health.command: "           },
        {"{\"health\":{\"command\":\" \"}}",                                   "service.health.command: it is empty"},
        {"{\"health\":{\"command\":[7]}}",                                     "service.health.command["            },
        {"{\"health\":{\"http\":\"/\",\"port\":80,\"status\":99}}",            "service.health.status: "            },
        {"{\"health\":{\"http\":\"/\",\"port\":80,\"status\":700}}",           "service.health.status: "            },
        {"{\"health\":{\"tcp\":80,\"interval\":\"1s\",\"timeout\":\"2s\"}}",   "service.health.timeout: "           },
        {"{\"health\":{\"tcp\":80,\"failures\":0}}",                           "service.health.failures: "          },
        {"{\"health\":{\"tcp\":80,\"interval\":\"1ms\",\"timeout\":\"1ms\"}}", "service.health.interval: "          },
        {"{\"health\":{\"htp\":\"/\"}}",                                       "service.health.htp: "               },
    };
    static const char *const beside[] = {"array\":\"1-3", "time_limit\":\"1h", "deadline\":\"1h"};
    AUTO(buf_done) struct buf record = {0};
    struct service_spec s;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct error e = {0};
        if (read_service(rows[i].service, &record, &s, &e) >= 0) fail_msg("%s was taken", rows[i].service);
        if (strncmp(e.text, rows[i].starts, strlen(rows[i].starts)) != 0) fail_msg("%s: %s", rows[i].service, e.text);
    }
    for (size_t i = 0; i < ARRAY_LEN(beside); i++) {
        char text[120];
        struct error e = {0};
        snprintf(text, sizeof text, "{\"command\":[\"a\"],\"%s\",\"service\":{}}", beside[i]);
        if (job_json_record(text, strlen(text), T0, &record, &e) >= 0) fail_msg("%s was taken", text);
        if (!strstr(e.text, "does not go with service")) fail_msg("%s: %s", text, e.text);
    }
}

/* ---- one history a test ---- */

static struct {
    struct service s;
    struct service_spec spec, spec_next;
    struct service_rules rules;
    struct service_orders o;
    int64_t now_ns, jobs;
} it;

static void begin(const struct service_spec *spec) {
    memset(&it, 0, sizeof it);
    it.spec = it.spec_next = *spec;
    it.rules = (struct service_rules){&it.spec, &it.spec_next};
    it.s.revision = 1;
    it.now_ns = T0;
}

static void settle(void) { service_settle(&it.s, &it.rules, it.now_ns, &it.o); }
static void later(double s) { it.now_ns += (int64_t)(s * SECOND); }

/* The job that a start asked for, stored. */
static int64_t made(void) {
    assert_true(it.o.start > 0);
    service_made(&it.s, ++it.jobs, it.o.start);
    return it.jobs;
}
static void runs(int64_t job) {
    service_starts(&it.s, job, it.now_ns);
    service_runs(&it.s, &it.rules, job, it.now_ns);
    settle();
}
static void ends(int64_t job, int code) {
    const struct service_slot *slot = service_slot_of(&it.s, job);
    struct service_end end = {.is_good = code == 0, .is_cancelled = slot && slot->phase == SERVICE_ENDING};
    snprintf(end.text, sizeof end.text, "exit code %d", code);
    service_ends(&it.s, &it.rules, job, &end, it.now_ns);
    settle();
}
static void check(int64_t job, bool is_good) {
    service_checked(&it.s, &it.rules, job, is_good, "no answer", it.now_ns);
    settle();
}
static void is(const char *name) { assert_string_equal(service_state_name(service_state(&it.s)), name); }
static void is_stopped(int64_t job) {
    assert_int_equal(it.o.stops, 1);
    assert_int_equal(it.o.stop[0], job);
}

static struct service_spec usual(void) {
    struct service_spec s;
    service_spec_usual(&s);
    return s;
}
static struct service_spec probed(void) {
    struct service_spec s = usual();
    s.probe = SERVICE_TCP;
    s.port = 80;
    s.grace_ns = 10 * SECOND;
    s.failures = 3;
    return s;
}
static int64_t up(const struct service_spec *spec) {
    begin(spec);
    settle();
    is("starting");
    int64_t job = made();
    settle();
    is("waiting");
    runs(job);
    if (spec->probe != SERVICE_UNPROBED) {
        is("starting");
        check(job, true);
    }
    is("healthy");
    assert_true(it.o.start == 0 && it.o.stops == 0);
    return job;
}

static void storm(void **state) {
    struct service_spec spec = usual();
    int64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300};
    begin(&spec);
    settle();
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        int64_t job = made();
        runs(job);
        ends(job, 1);
        is("backing off");
        assert_int_equal(it.o.start, 0);
        assert_int_equal(it.o.again_ns, it.now_ns + pauses[i] * SECOND);
        later((double)pauses[i] - 0.001);
        settle();
        assert_int_equal(it.o.start, 0);
        later(0.001);
        settle();
        assert_int_equal(it.o.start, 1);
    }
    int64_t job = made();
    runs(job);
    ends(job, 1);
    is("given up");
    assert_int_equal(it.o.start, 0);
    assert_non_null(strstr(it.s.text, "exit code 1"));
    struct error e;
    assert_int_equal(service_resume(&it.s, &e), 0);
    settle();
    assert_int_equal(it.o.start, 1);
}

static void forgets(void **state) {
    struct service_spec spec = usual();
    int64_t job = up(&spec);
    ends(job, 1);
    later(1);
    settle();
    job = made();
    runs(job);
    assert_int_equal(it.s.pause_ns, SECOND);
    assert_int_equal(it.o.again_ns, it.now_ns + spec.forget_ns);
    later(61);
    settle();
    assert_true(it.s.pause_ns == 0 && it.s.recent == 0);
    ends(job, 1);
    assert_int_equal(it.o.again_ns, it.now_ns + SECOND);
}

static void policies(void **state) {
    static const struct {
        enum service_restart restart;
        int code;
        const char *then;
    } rows[] = {
        {SERVICE_ALWAYS,     0, "backing off"},
        {SERVICE_ALWAYS,     1, "backing off"},
        {SERVICE_ON_FAILURE, 0, "ended"      },
        {SERVICE_ON_FAILURE, 1, "backing off"},
        {SERVICE_NEVER,      0, "ended"      },
        {SERVICE_NEVER,      1, "ended"      },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct service_spec spec = usual();
        spec.restart = rows[i].restart;
        ends(up(&spec), rows[i].code);
        is(rows[i].then);
    }
}

static void health(void **state) {
    struct service_spec spec = probed();
    begin(&spec);
    settle();
    int64_t job = made();
    runs(job);
    for (int i = 0; i < 20; i++) { /* within its grace nothing counts */
        later(0.4);
        check(job, false);
        is("starting");
    }
    check(job, true);
    is("healthy");
    check(job, false);
    is("unhealthy");
    check(job, false);
    check(job, true);
    is("healthy");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(it.o.stops, 0);
        check(job, false);
    }
    is_stopped(job);
    is("unhealthy");
    settle(); /* never twice */
    assert_int_equal(it.o.stops, 0);
    check(job, true); /* too late */
    is("unhealthy");
    ends(job, 143);
    is("backing off");
    assert_non_null(strstr(it.s.text, "no answer"));
    begin(&spec); /* one that never gets well */
    settle();
    job = made();
    runs(job);
    later(11);
    check(job, false);
    check(job, false);
    check(job, false);
    is_stopped(job);
}

static void rests(void **state) {
    struct service_spec spec = probed();
    struct error e;
    int64_t job = up(&spec);
    assert_int_equal(service_resume(&it.s, &e), -EBUSY);
    assert_int_equal(service_suspend(&it.s, &e), 0);
    settle();
    is_stopped(job);
    assert_int_equal(service_suspend(&it.s, &e), -EBUSY);
    assert_int_equal(service_restart(&it.s, &e), -EBUSY);
    ends(job, 143);
    is("suspended");
    later(10000);
    settle();
    assert_int_equal(it.o.start, 0);
    assert_int_equal(service_resume(&it.s, &e), 0);
    settle();
    assert_int_equal(it.o.start, 1);
    job = made();
    runs(job);
    check(job, true);
    assert_int_equal(service_restart(&it.s, &e), 0);
    settle();
    is_stopped(job);
    ends(job, 143);
    assert_int_equal(it.o.start, 1); /* at once: somebody wants it */
    job = made();
    runs(job);
    const struct service_end cancelled = {.is_cancelled = true};
    service_ends(&it.s, &it.rules, job, &cancelled, it.now_ns);
    settle();
    is("suspended");
    assert_int_equal(service_remove(&it.s, &e), 0);
    settle();
    assert_true(it.o.is_gone);
    job = up(&spec);
    assert_int_equal(service_remove(&it.s, &e), 0);
    settle();
    is_stopped(job);
    assert_false(it.o.is_gone);
    assert_int_equal(service_resume(&it.s, &e), -EBUSY);
    ends(job, 143);
    assert_true(it.o.is_gone);
}

static void updates(void **state) {
    struct service_spec spec = probed();
    struct error e;
    int64_t old = up(&spec);
    assert_int_equal(service_update(&it.s, 2, false, &e), 0);
    settle();
    assert_int_equal(it.o.start, 2);
    int64_t fresh = made();
    assert_int_equal(service_update(&it.s, 3, false, &e), -EBUSY);
    runs(fresh);
    assert_int_equal(it.o.stops, 0); /* the old one serves on */
    is("healthy");
    check(fresh, true);
    is_stopped(old);
    assert_true(it.s.revision == 2 && it.s.now.job == fresh && it.s.old.job == old);
    ends(old, 143);
    is("healthy");
    assert_true(it.o.start == 0 && it.s.restarts == 0);
    /* One that fails its checks is taken back, and the old one never stopped. */
    assert_int_equal(service_update(&it.s, 3, false, &e), 0);
    settle();
    int64_t bad = made();
    runs(bad);
    later(11);
    check(bad, false);
    check(bad, false);
    check(bad, false);
    is_stopped(bad);
    ends(bad, 143);
    is("healthy");
    assert_true(it.s.revision == 2 && it.s.next_revision == 0 && it.o.start == 0);
    assert_non_null(strstr(it.s.text, "revision 3 was taken back, revision 2 stays"));
    /* So is one that ends. */
    assert_int_equal(service_update(&it.s, 4, false, &e), 0);
    settle();
    bad = made();
    runs(bad);
    ends(bad, 1);
    assert_true(it.s.revision == 2 && it.s.next_revision == 0 && it.o.start == 0 && it.o.stops == 0);
}

static void replaces(void **state) {
    struct service_spec spec = probed();
    struct error e;
    int64_t old = up(&spec);
    assert_int_equal(service_update(&it.s, 2, true, &e), 0);
    settle();
    is_stopped(old);
    ends(old, 143);
    assert_int_equal(it.o.start, 2);
    int64_t fresh = made();
    runs(fresh);
    check(fresh, true);
    assert_true(it.s.revision == 2 && it.s.back_revision == 0);
    assert_string_equal(it.s.text, "updated to revision 2");
    assert_int_equal(service_update(&it.s, 3, true, &e), 0);
    settle();
    ends(fresh, 143);
    assert_int_equal(it.o.start, 3);
    int64_t bad = made();
    runs(bad);
    ends(bad, 1);
    assert_true(it.s.revision == 2 && it.o.start == 2);
    assert_non_null(strstr(it.s.text, "taken back"));
}

static void yields(void **state) {
    struct service_spec spec = probed();
    int64_t job = up(&spec);
    service_waits(&it.s, job, true, it.now_ns);
    settle();
    is("yielded");
    assert_true(it.o.start == 0 && it.o.stops == 0 && it.s.restarts == 0);
    later(5000);
    runs(job);
    is("starting");
    check(job, false); /* its grace begins anew */
    is("starting");
    check(job, true);
    is("healthy");
}

/* ---- random histories ---- */

enum { FATE_QUEUED, FATE_RUNNING, FATE_OVER };
static struct {
    int fate;
    bool is_told, is_new;
    uint32_t revision;
} world[4000];

static unsigned seed;
static bool is_refused; /* the last job could not be stored */
static unsigned any(unsigned n) {
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % n;
}

static void file_round_trip(void) {
    AUTO(buf_done) struct buf a = {0}, b = {0};
    struct service s;
    struct error e = {0};
    service_encode(&it.s, &a);
    if (service_decode(a.s, a.len, &s, &e) < 0) fail_msg("%s", e.text);
    service_encode(&s, &b);
    assert_true(a.len == b.len && memcmp(a.s, b.s, a.len) == 0);
    if (any(10) || it.s.now.phase == SERVICE_ASKED || it.s.next.phase == SERVICE_ASKED) return;
    it.s = s; /* a server was started anew; checks are counted from none on */
}

static unsigned alive(void) {
    unsigned n = 0;
    for (int64_t i = 1; i <= it.jobs; i++) n += world[i].fate != FATE_OVER && !world[i].is_told;
    return n;
}

/* The old one serves until the new one is well. */
static void obey(const struct service *before) {
    if (it.o.start) {
        is_refused = any(20) == 0;
        if (is_refused) {
            service_not_made(&it.s, it.o.start);
        } else {
            int64_t job = made();
            world[job].fate = FATE_QUEUED;
            world[job].is_told = false;
            world[job].revision = it.s.now.job == job ? it.s.now.revision : it.s.next.revision;
        }
    }
    for (unsigned i = 0; i < it.o.stops; i++) {
        int64_t job = it.o.stop[i];
        assert_true(job > 0 && job <= it.jobs && world[job].fate != FATE_OVER && !world[job].is_told);
        world[job].is_told = true;
        bool is_update = before->next_revision && before->now.job == job && before->rest == SERVICE_GOES_ON &&
                         before->now.why == SERVICE_BY_NOBODY && it.s.rest == SERVICE_GOES_ON &&
                         it.s.now.why == SERVICE_BY_NOBODY;
        if (is_update) assert_true(it.s.now.phase == SERVICE_WELL && it.s.now.was_well);
    }
    assert_true(alive() <= 2);
}

static void random_fact(void) {
    int64_t job = it.jobs ? it.jobs - (int64_t)any(it.jobs < 3 ? (unsigned)it.jobs : 3) : 0;
    struct error e;
    unsigned what = any(24);
    if (what < 14 && job) {
        if (world[job].fate == FATE_QUEUED && world[job].is_told)
            world[job].fate = FATE_OVER, ends(job, 1);
        else if (world[job].fate == FATE_QUEUED)
            world[job].fate = FATE_RUNNING, service_runs(&it.s, &it.rules, job, it.now_ns);
        else if (world[job].fate == FATE_RUNNING && (world[job].is_told || any(6) == 0))
            world[job].fate = FATE_OVER, ends(job, (int)any(2));
        else if (world[job].fate == FATE_RUNNING && any(8) == 0 && !world[job].is_told)
            world[job].fate = FATE_QUEUED, service_waits(&it.s, job, true, it.now_ns);
        else if (world[job].fate == FATE_RUNNING)
            service_checked(&it.s, &it.rules, job, any(3) > 0, "x", it.now_ns);
    } else if (what == 14) {
        (void)!service_suspend(&it.s, &e);
    } else if (what < 17) {
        (void)!service_resume(&it.s, &e);
    } else if (what == 17) {
        (void)!service_restart(&it.s, &e);
    } else if (what == 18) {
        uint32_t most = it.s.revision > it.s.next_revision ? it.s.revision : it.s.next_revision;
        if (it.s.back_revision > most) most = it.s.back_revision;
        (void)!service_update(&it.s, most + 1, any(2), &e);
    } else {
        later(any(4) ? 0.5 : 30);
    }
}

/* Where nothing can be done now, something is under way, or due, or it is not to be up. */
static void is_not_forgotten(void) {
    if (it.s.rest != SERVICE_GOES_ON || is_refused) return;
    bool is_there = it.s.now.phase != SERVICE_NONE || it.s.next.phase == SERVICE_ASKED;
    if (!is_there && it.s.due_ns <= it.now_ns)
        fail_msg("nothing is under way, and nothing is due: next %d/%u old %d start %u", it.s.next.phase,
                 it.s.next_revision, it.s.old.phase, it.o.start);
}

static void random_histories(void **state) {
    for (unsigned h = 0; h < 400; h++) {
        struct service_spec spec = any(2) ? probed() : usual();
        seed = h * 7919 + 1;
        spec.give_up = (int)any(6);
        spec.restart = (enum service_restart)any(3);
        begin(&spec);
        memset(world, 0, sizeof world);
        for (int i = 0; i < 2000 && it.jobs < 3900; i++) {
            struct service before;
            is_refused = false;
            for (int k = 0; k < 3; k++) { /* as often as a server would: after each job that is made */
                before = it.s;
                settle();
                obey(&before);
            }
            is_not_forgotten();
            file_round_trip();
            random_fact();
            before = it.s;
            /* ends() settles by itself: what it ordered counts, too. */
            if (it.o.start || it.o.stops) {
                struct service_orders o = it.o;
                bool is_new = false;
                for (unsigned k = 0; k < o.stops; k++) is_new |= !world[o.stop[k]].is_told;
                if ((it.s.now.phase == SERVICE_ASKED || it.s.next.phase == SERVICE_ASKED) || is_new) obey(&before);
                it.o = (struct service_orders){0};
            }
            unsigned recent = 0;
            for (uint16_t k = 0; k < it.s.recent; k++) recent += it.now_ns - it.s.recent_ns[k] < spec.within_ns;
            if (spec.give_up) assert_true(recent <= (unsigned)spec.give_up);
        }
    }
}

static void file_is_foreign(void **state) {
    AUTO(buf_done) struct buf b = {0};
    struct service s;
    struct error e;
    struct service_spec spec = usual();
    up(&spec);
    service_encode(&it.s, &b);
    for (size_t n = 0; n < b.len; n++) assert_true(service_decode(b.s, n, &s, &e) < 0);
    buf_putc(&b, 0);
    assert_true(service_decode(b.s, b.len, &s, &e) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_for), cmocka_unit_test(refused),          cmocka_unit_test(storm),
        cmocka_unit_test(forgets),   cmocka_unit_test(policies),         cmocka_unit_test(health),
        cmocka_unit_test(rests),     cmocka_unit_test(updates),          cmocka_unit_test(replaces),
        cmocka_unit_test(yields),    cmocka_unit_test(random_histories), cmocka_unit_test(file_is_foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
