#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "server/server.h"
#include "server/watchmen_own.h"

#define MIB (1024.0 * 1024)
#define EXPLAINED 100 /* so many that wait are told why */

const char *const watchmen_words[] = {
    [WAITING] = "waiting", [READY] = "ready", [OK] = "ok", [TIMEOUT] = "timeout", [CANCELLED] = "cancelled"};

void watchmen_time(int64_t real_ns, char *ret, size_t room) {
    time_t s = (time_t)(real_ns / NS_PER_S);
    struct tm tm;
    localtime_r(&s, &tm);
    strftime(ret, room, "%Y-%m-%d %H:%M:%S", &tm);
}

static void put_time(struct buf *b, const char *key, int64_t real_ns) {
    char text[32];
    watchmen_time(real_ns, text, sizeof text);
    json_pair_str(b, key, text);
}

static void put_list(struct buf *b, const char *key, const int *of, int count) {
    json_key(b, key);
    json_open(b, '[');
    for (int i = 0; i < count; i++) json_int(b, of[i]);
    json_close(b, ']');
}

static void put_entry(struct buf *b, const struct watchmen_entry *e, int place, const char *msg) {
    json_open(b, '{');
    json_pair_str(b, "id", e->id);
    json_pair_str(b, "mode", e->is_schedule ? "schedule" : "queue");
    put_time(b, "register_time", e->registered_ns);
    put_time(b, "last_request_time", e->asked_ns);
    json_pair_str(b, "status", watchmen_words[e->status]);
    json_pair_int(b, "queue_num", place);
    put_list(b, "gpus", e->gpu, e->gpus);
    json_pair_str(b, "msg", msg);
    json_pair_int(b, "req_gpu_num", e->wanted);
    put_list(b, "available_gpus", e->got, e->given);
    json_close(b, '}');
}

void watchmen_json_list(struct watchmen *w, struct buf *b, bool is_over) {
    int place = 0;
    size_t waiting = 0;
    int64_t job[EXPLAINED];
    char why[EXPLAINED][QUEUE_WHY];
    for (size_t i = 0; i < w->count && !is_over && waiting < EXPLAINED; i++)
        if (w->entry[i]->job && w->entry[i]->status == WAITING) job[waiting++] = w->entry[i]->job;
    if (waiting) queue_lease_why(w->server->queue, job, waiting, why);
    json_open(b, '[');
    for (size_t i = 0, next = 0; i < w->count; i++) {
        const struct watchmen_entry *e = w->entry[i];
        if (!e->job || watchmen_is_over(e) != is_over) continue;
        bool is_explained = next < waiting && job[next] == e->job;
        put_entry(b, e, is_over ? -1 : place++, is_explained ? why[next] : "");
        next += is_explained;
    }
    json_close(b, ']');
}

/* ---- GPUs as gpustat prints them ---- */

static void put_metric(struct buf *b, const char *key, const struct live_device *d, int metric, double unit,
                       int64_t now_ns) {
    json_key(b, key);
    if (latest_has(&d->latest, metric, now_ns))
        json_int(b, llround(d->latest.of[metric].value * unit));
    else
        json_nil(b);
}

static void put_process(struct buf *b, const struct wire_process *p) {
    json_open(b, '{');
    json_pair_str(b, "username", p->user);
    json_pair_str(b, "command", p->comm);
    json_key(b, "full_command");
    json_open(b, '[');
    if (*p->command) json_str(b, p->command);
    json_close(b, ']');
    json_key(b, "gpu_memory_usage");
    if (p->of.memory_bytes == PROCESS_NO_MEMORY)
        json_nil(b);
    else
        json_int(b, llround((double)p->of.memory_bytes / MIB));
    json_pair_int(b, "pid", p->of.pid);
    json_close(b, '}');
}

static void put_gpu(struct buf *b, const struct live_node *n, const struct live_device *d) {
    int64_t now_ns = live_node_now(n, clock_boot_ns());
    json_open(b, '{');
    json_pair_int(b, "index", d->is.index);
    json_pair_str(b, "uuid", d->is.uuid);
    json_pair_str(b, "name", d->is.name);
    put_metric(b, "temperature.gpu", d, METRIC_TEMP_CORE, 1, now_ns);
    put_metric(b, "fan.speed", d, METRIC_FAN_SPEED, 100, now_ns);
    put_metric(b, "utilization.gpu", d, METRIC_UTIL_GPU, 100, now_ns);
    put_metric(b, "utilization.enc", d, METRIC_UTIL_ENCODER, 100, now_ns);
    put_metric(b, "utilization.dec", d, METRIC_UTIL_DECODER, 100, now_ns);
    put_metric(b, "power.draw", d, METRIC_POWER, 1, now_ns);
    put_metric(b, "enforced.power.limit", d, METRIC_POWER_LIMIT_ENFORCED, 1, now_ns);
    put_metric(b, "memory.used", d, METRIC_MEMORY_USED, 1 / MIB, now_ns);
    put_metric(b, "memory.total", d, METRIC_MEMORY_TOTAL, 1 / MIB, now_ns);
    json_key(b, "processes");
    json_open(b, '[');
    for (uint32_t i = 0; i < d->process_count; i++) put_process(b, &d->process[i]);
    json_close(b, ']');
    json_close(b, '}');
}

const struct live_device *watchmen_gpu(const struct live_node *n, int index) {
    for (uint16_t i = 0; n && i < n->devices; i++) {
        const struct live_device *d = &n->device[i];
        if (d->is_known && !live_is_instance(d) && d->is.index == index) return d;
    }
    return NULL;
}

void watchmen_json_gpus(struct watchmen *w, struct buf *b) {
    const struct live_node *n = live_find_node(&w->server->live, watchmen_node(w));
    json_open(b, '{');
    json_pair_str(b, "hostname", n ? n->name : w->server->host);
    put_time(b, "query_time", clock_real_ns());
    json_key(b, "gpus");
    json_open(b, '[');
    for (int index = 0; n && index < n->devices; index++) {
        const struct live_device *d = watchmen_gpu(n, index);
        if (d) put_gpu(b, n, d);
    }
    json_close(b, ']');
    json_close(b, '}');
}
