/* Bytes on the link, from either side: whatever they are, reading ends, nothing outside them is looked at, what is taken
 * is within its bounds, and taken once and said again it is taken again. The first byte is the size of the pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/jobs_socket.h"
#include "model/wire.h"
#include "model/wire_device.h"
#include "model/wire_health.h"
#include "model/wire_notice.h"
#include "model/wire_run.h"
#include "model/wire_server.h"
#include "model/wire_stream.h"
#include "model/wire_task.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct wire_map gpu_map, host_map;
static union {
    struct wire_welcome welcome;
    struct inventory inventory;
    struct latest latest;
    struct wire_task task;
    struct wire_container container;
    struct wire_grant grant;
} big;

static void need(bool is_true) {
    if (!is_true) abort();
}

#define ENDS(text) (strnlen((text), sizeof(text)) < sizeof(text))

static bool hello(const struct wire_frame *f, struct error *e) {
    struct wire_hello h;
    if (wire_get_hello(f, &h, e) < 0) return false;
    need(h.node[0] && h.devices <= WIRE_DEVICES_MAX && h.sources <= WIRE_SOURCES_MAX);
    wire_map_make(&gpu_map, &h.gpu, metric_find);
    wire_map_make(&host_map, &h.host, host_metric_find);
    for (int i = 0; i < gpu_map.count; i++) need(gpu_map.of[i] >= -1 && gpu_map.of[i] < METRIC_COUNT);
    return true;
}

static bool processes(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_processes list;
    struct wire_process p;
    if (wire_get_processes(f, &list, e) < 0) return false;
    size_t from = wire_begin_processes(again, &list);
    unsigned seen = 0;
    for (uint16_t count = list.count; wire_next_process(&list, &p); seen++) {
        need(seen < count && ENDS(p.user) && ENDS(p.comm) && ENDS(p.command));
        wire_add_process(again, &p);
    }
    need(seen == list.count);
    wire_end(again, from);
    return true;
}

static bool device_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    uint16_t device = 0, source = 0;
    int64_t mark = 0;
    struct sample s;
    struct ring_state st;
    struct ring_xids x;
    struct ring_guard g;
    int r = 0;
    switch (f->type) {
    case WIRE_INVENTORY:
        r = wire_get_inventory(f, &device, &source, &big.inventory, e);
        if (r == 0) wire_put_inventory(again, device, source, &big.inventory);
        break;
    case WIRE_SAMPLE:
        r = wire_get_sample(f, &gpu_map, &device, &mark, &s, e);
        for (int i = 0; r == 0 && i < METRIC_COUNT; i++) need(!sample_has(&s, i) || __builtin_isfinite(s.value[i]));
        break;
    case WIRE_LATEST:
        r = wire_get_latest(f, &gpu_map, &device, &big.latest, NULL, e);
        for (int i = 0; r == 0 && i < METRIC_COUNT; i++) need(big.latest.of[i].until_ns >= big.latest.of[i].boot_ns);
        break;
    case WIRE_STATE:
        r = wire_get_state(f, &device, &st, e);
        if (r == 0) wire_put_state(again, device, &st);
        break;
    case WIRE_XIDS:
        r = wire_get_xids(f, &device, &x, e);
        if (r == 0) wire_put_xids(again, device, &x);
        break;
    case WIRE_GUARD:
        r = wire_get_guard(f, &device, &g, e);
        if (r == 0) need(g.lever < RING_GUARD_LEVERS && g.reason < RING_GUARD_REASONS && ENDS(g.why));
        break;
    }
    need(r < 0 || device < WIRE_DEVICES_MAX);
    return r == 0;
}

static bool other_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    uint16_t source = 0;
    int64_t mark = 0;
    struct ring_driver d;
    struct host_sample h;
    struct event ev;
    struct wire_round round;
    struct wire_order_result result;
    struct wire_order order;
    struct wire_bye bye;
    int r = 0;
    switch (f->type) {
    case WIRE_DRIVER:
        r = wire_get_driver(f, &source, &d, e);
        if (r == 0) wire_put_driver(again, source, &d);
        break;
    case WIRE_HOST: r = wire_get_host(f, &host_map, &mark, &h, e); break;
    case WIRE_EVENT:
        r = wire_get_event(f, &source, &mark, &ev, e);
        if (r == 0) wire_put_event(again, source, mark, &ev);
        break;
    case WIRE_ROUND:
        r = wire_get_round(f, &round, e);
        if (r == 0) wire_put_round(again, &round);
        break;
    case WIRE_ORDER_RESULT:
        r = wire_get_order_result(f, &result, e);
        if (r == 0) wire_put_order_result(again, &result);
        break;
    case WIRE_WELCOME:
        r = wire_get_welcome(f, &big.welcome, e);
        if (r == 0) wire_put_welcome(again, &big.welcome);
        break;
    case WIRE_ORDER:
        r = wire_get_order(f, &order, e);
        if (r == 0) wire_put_order(again, &order);
        break;
    case WIRE_BYE:
        r = wire_get_bye(f, &bye, e);
        if (r == 0) wire_put_bye(again, bye.text);
        break;
    }
    return r == 0;
}

static bool uses(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_uses list;
    struct wire_use u;
    if (wire_get_uses(f, &list, e) < 0) return false;
    size_t from = wire_begin_uses(again, &list);
    unsigned seen = 0;
    for (uint16_t count = list.count; wire_next_use(&list, &u); seen++) {
        need(seen < count && u.key.pid > 0 && u.gpu_seconds >= 0);
        wire_add_use(again, &u);
    }
    need(seen == list.count);
    wire_end(again, from);
    return true;
}

static bool task_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_node n;
    int r = 0;
    switch (f->type) {
    case WIRE_TASK:
        r = wire_get_task(f, &big.task, e);
        if (r < 0) break;
        need(big.task.gpus <= WIRE_TASK_GPUS_MAX && big.task.whose.kind < BELONGING_KINDS && ENDS(big.task.command));
        need(!big.task.task.end_ns || big.task.task.end_ns >= big.task.task.start_ns);
        wire_put_task(again, &big.task);
        break;
    case WIRE_CONTAINER:
        r = wire_get_container(f, &big.container, e);
        if (r < 0) break;
        need(big.container.state < CONTAINER_STATES && ENDS(big.container.labels));
        wire_put_container(again, &big.container);
        break;
    case WIRE_NODE:
        r = wire_get_node(f, &n, e);
        if (r == 0) wire_put_node(again, &n);
        break;
    }
    return r == 0;
}

static bool call_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct jobs_submit submit;
    struct jobs_follow follow;
    struct jobs_signal number;
    if (f->type == WIRE_CALL_SUBMIT) {
        if (jobs_get_submit(f, &submit, e) < 0) return false;
        size_t from = jobs_begin_submit(again, &submit), len;
        const uint8_t *record;
        for (unsigned left = submit.count; left; left--) {
            need(jobs_next_submit(&submit, &record, &len));
            jobs_add_submit(again, record, len);
        }
        if (*submit.key) jobs_tail_submit(again, &submit);
        wire_end(again, from);
    } else if (f->type == WIRE_CALL_FOLLOW) {
        if (jobs_get_follow(f, &follow, e) < 0) return false;
        jobs_put_follow(again, &follow);
    } else {
        if (jobs_get_signal(f, &number, e) < 0) return false;
        jobs_put_signal(again, &number);
    }
    return true;
}

static bool job_list(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_submit submit;
    struct wire_sealed sealed;
    struct wire_runs runs;
    struct wire_run_key key;
    struct wire_frees frees;
    struct wire_free one;
    size_t from = 0;
    unsigned seen = 0;
    if (f->type == WIRE_JOB_SUBMIT) {
        if (wire_get_submit(f, &submit, e) < 0) return false;
        from = wire_begin_submit(again, &submit);
        for (; wire_next_submit(&submit, &sealed); seen++) {
            need(sealed.record_len > 0 && sealed.record_len <= JOB_RECORD_MAX && sealed.seal_len <= WIRE_SEAL_MAX);
            need(ENDS(sealed.user));
            wire_add_submit(again, &sealed);
        }
        need(seen == submit.count && ENDS(submit.key));
        if (*submit.key || submit.is_part) wire_tail_submit(again, &submit);
    } else if (f->type == WIRE_JOB_RUNS) {
        if (wire_get_runs(f, &runs, e) < 0) return false;
        from = wire_begin_runs(again, runs.count);
        for (; wire_next_run_key(&runs, &key); seen++) wire_add_run_key(again, &key);
        need(seen == runs.count);
    } else if (f->type == WIRE_JOB_FIGURES) {
        struct wire_figures_list figures;
        struct wire_figures of;
        if (wire_get_figures(f, &figures, e) < 0) return false;
        from = wire_begin_figures(again, figures.count);
        for (; wire_next_figures(&figures, &of); seen++) {
            need(of.gpu_seconds >= 0 && of.energy_joules >= 0 && of.key.attempt > 0);
            wire_add_figures(again, &of);
        }
        need(seen == figures.count);
    } else {
        if (wire_get_frees(f, &frees, e) < 0) return false;
        from = wire_begin_frees(again, frees.count);
        for (; wire_next_free(&frees, &one); seen++) {
            need(ENDS(one.uuid) && ENDS(one.user) && one.verdict < OCCUPANCY_COUNT);
            wire_add_free(again, &one);
        }
        need(seen == frees.count);
    }
    wire_end(again, from);
    return true;
}

static bool job_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_seal seal;
    struct wire_sealed_reply sealed;
    struct wire_control control;
    struct wire_job_result result;
    int r = 0;
    switch (f->type) {
    case WIRE_JOB_SEAL:
        r = wire_get_seal(f, &seal, e);
        if (r == 0) wire_put_seal(again, &seal);
        break;
    case WIRE_JOB_SEALED:
        r = wire_get_sealed(f, &sealed, e);
        if (r == 0) wire_put_sealed(again, &sealed);
        break;
    case WIRE_JOB_CONTROL:
        r = wire_get_control(f, &control, e);
        if (r == 0) wire_put_control(again, &control);
        break;
    case WIRE_JOB_SUBMITTED:
    case WIRE_JOB_CONTROLLED:
        r = wire_get_job_result(f, &result, e);
        if (r == 0) wire_put_job_result(again, (enum wire_type)f->type, &result);
        break;
    }
    return r == 0;
}

static bool run_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_stop stop;
    struct wire_run run;
    struct wire_run_key key;
    struct wire_log_ask ask;
    struct wire_log log;
    struct wire_health health;
    struct wire_try trial;
    struct wire_tried tried;
    int r = 0;
    switch (f->type) {
    case WIRE_JOB_HEALTH:
        r = wire_get_health(f, &health, e);
        if (r == 0) wire_put_health(again, &health);
        break;
    case WIRE_JOB_TRY:
        r = wire_get_try(f, &trial, e);
        if (r == 0) wire_put_try(again, &trial);
        break;
    case WIRE_JOB_TRIED:
        r = wire_get_tried(f, &tried, e);
        if (r == 0) wire_put_tried(again, &tried);
        break;
    case WIRE_JOB_GRANT:
        r = wire_get_grant(f, &big.grant, e);
        if (r < 0) break;
        need(big.grant.gpus > 0 && big.grant.gpus <= JOB_GPUS_MAX && big.grant.key.attempt > 0);
        wire_put_grant(again, &big.grant);
        break;
    case WIRE_JOB_STOP:
        r = wire_get_stop(f, &stop, e);
        if (r == 0) wire_put_stop(again, &stop);
        break;
    case WIRE_JOB_RUN:
        r = wire_get_run(f, &run, e);
        if (r < 0) break;
        need(run.state <= RUN_ENDED && run.reason < JOB_REASON_COUNT && !(run.gpu_seconds < 0) && ENDS(run.text));
        wire_put_run(again, &run);
        break;
    case WIRE_JOB_STORED:
        r = wire_get_stored(f, &key, e);
        if (r == 0) wire_put_stored(again, &key);
        break;
    case WIRE_JOB_LOG_ASK:
        r = wire_get_log_ask(f, &ask, e);
        if (r == 0) wire_put_log_ask(again, &ask);
        break;
    case WIRE_JOB_LOG:
        r = wire_get_log(f, &log, e);
        if (r < 0) break;
        need(log.len <= WIRE_LOG_MAX && (!log.len || log.offset + log.len <= log.total));
        wire_put_log(again, &log);
        break;
    }
    return r == 0;
}

static bool stream_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_stream_hello hello;
    struct wire_stream_open open;
    struct wire_stream_opened opened;
    struct wire_stream_data data;
    struct wire_stream_word word;
    int r = 0;
    switch (f->type) {
    case WIRE_STREAM_HELLO:
        r = wire_get_stream_hello(f, &hello, e);
        if (r == 0) wire_put_stream_hello(again, &hello);
        break;
    case WIRE_STREAM_OPEN:
        r = wire_get_stream_open(f, &open, e);
        if (r < 0) break;
        need(open.id && open.kind && ENDS(open.container) && ENDS(open.account) && ENDS(open.argument));
        wire_put_stream_open(again, &open);
        break;
    case WIRE_STREAM_OPENED:
        r = wire_get_stream_opened(f, &opened, e);
        if (r == 0) wire_put_stream_opened(again, &opened);
        break;
    case WIRE_STREAM_DATA:
        r = wire_get_stream_data(f, &data, e);
        if (r < 0) break;
        need(data.len && data.len <= WIRE_STREAM_DATA_MAX);
        wire_put_stream_data(again, &data);
        break;
    default:
        r = wire_get_stream_word(f, &word, e);
        if (r == 0) wire_put_stream_word(again, (enum wire_type)f->type, &word);
    }
    return r == 0;
}

static bool notice_frame(const struct wire_frame *f, struct buf *again, struct error *e) {
    struct wire_wanted list;
    struct wire_notice notice;
    struct wire_noticed noticed;
    char uuid[96];
    int64_t since_ns;
    int r = 0;
    if (f->type == WIRE_JOB_NOTICE) {
        r = wire_get_notice(f, &notice, e);
        if (r == 0) wire_put_notice(again, &notice);
    } else if (f->type == WIRE_JOB_NOTICED) {
        r = wire_get_noticed(f, &noticed, e);
        if (r == 0) wire_put_noticed(again, &noticed);
    } else {
        unsigned seen = 0;
        if (wire_get_wanted(f, &list, e) < 0) return false;
        size_t from = wire_begin_wanted(again, list.count);
        for (; wire_next_wanted(&list, uuid); seen++) wire_add_wanted(again, uuid);
        need(seen == list.count);
        wire_begin_sound(again, list.sound);
        for (seen = 0; wire_next_sound(&list, uuid, &since_ns); seen++) wire_add_sound(again, uuid, since_ns);
        need(seen == list.sound);
        wire_end(again, from);
    }
    return r == 0;
}

static bool take(const struct wire_frame *f, struct buf *again, struct error *e) {
    if (f->type == WIRE_STREAM_HELLO || f->type == WIRE_STREAM_OPENED ||
        (f->type >= WIRE_STREAM_OPEN && f->type <= WIRE_STREAM_SIZE))
        return stream_frame(f, again, e);
    if (f->type == WIRE_JOB_WANTED || f->type == WIRE_JOB_NOTICE || f->type == WIRE_JOB_NOTICED)
        return notice_frame(f, again, e);
    if (f->type >= WIRE_CALL_SUBMIT && f->type <= WIRE_CALL_SIGNAL) return call_frame(f, again, e);
    if (f->type == WIRE_HELLO) return hello(f, e);
    if (f->type == WIRE_PROCESSES) return processes(f, again, e);
    if (f->type == WIRE_USE) return uses(f, again, e);
    if (f->type >= WIRE_TASK && f->type <= WIRE_NODE) return task_frame(f, again, e);
    if (f->type >= WIRE_INVENTORY && f->type <= WIRE_GUARD) return device_frame(f, again, e);
    if (f->type == WIRE_JOB_SUBMIT || f->type == WIRE_JOB_RUNS || f->type == WIRE_JOB_FREE ||
        f->type == WIRE_JOB_FIGURES)
        return job_list(f, again, e);
    if (f->type >= WIRE_JOB_GRANT || f->type == WIRE_JOB_RUN || f->type == WIRE_JOB_LOG || f->type == WIRE_JOB_HEALTH ||
        f->type == WIRE_JOB_TRIED)
        return run_frame(f, again, e);
    if (f->type >= WIRE_JOB_SEAL || (f->type >= WIRE_JOB_SEALED && f->type <= WIRE_JOB_FREE))
        return job_frame(f, again, e);
    return other_frame(f, again, e);
}

static void frame(const struct wire_frame *f) {
    AUTO(buf_done) struct buf once = {0}, twice = {0};
    struct error e = {0};
    struct wire_frame said;
    if (!take(f, &once, &e)) {
        need(e.text[0] != 0);
        return;
    }
    if (!once.len) return;
    need(wire_frame(once.s, once.len, &said, &e) == (int)once.len);
    need(take(&said, &twice, &e) && twice.len == once.len && memcmp(once.s, twice.s, once.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    AUTO(wire_stream_done) struct wire_stream stream = {0};
    struct wire_frame f;
    struct error e = {0};
    if (n < 1) return 0;
    size_t piece = bytes[0] ? bytes[0] : 100000;
    for (size_t at = 1; at < n; at += piece) {
        int r;
        wire_stream_add(&stream, bytes + at, n - at < piece ? n - at : piece);
        while ((r = wire_stream_next(&stream, &f, &e)) > 0) frame(&f);
        if (r < 0) {
            need(e.text[0] != 0);
            return 0;
        }
    }
    return 0;
}
