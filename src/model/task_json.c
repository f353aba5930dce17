#include "model/task_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/gpu_json.h"

#define NS 1e9

void task_json_id(const char *boot_id, const struct wire_task *t, char ret[TASK_ID_TEXT]) {
    int n = snprintf(ret, TASK_ID_TEXT, "%.8s-%d-%llu", *boot_id ? boot_id : "0", t->task.key.pid,
                     (unsigned long long)t->task.key.ticks);
    if (t->again && n > 0 && n < TASK_ID_TEXT) snprintf(ret + n, (size_t)(TASK_ID_TEXT - n), "-%u", t->again);
}

static bool is_container(enum belonging_kind k) {
    return k == BELONGS_TO_LXC || k == BELONGS_TO_CONTAINERD || k == BELONGS_TO_CRIO || k == BELONGS_TO_PODMAN ||
           k == BELONGS_TO_DOCKER;
}

bool task_has_container(const struct wire_task *t) { return is_container(t->whose.kind) && t->whose.id[0]; }

void task_container_word(const struct wire_task *t, char *ret, size_t room) {
    if (!task_has_container(t))
        snprintf(ret, room, "%s", "");
    else if (t->name[0])
        snprintf(ret, room, "%s", t->name);
    else if (strlen(t->whose.id) == BELONGING_ID_HEX)
        snprintf(ret, room, "%.12s", t->whose.id);
    else
        snprintf(ret, room, "%s", t->whose.id);
}

static void put_text(struct buf *b, const char *key, const char *text) {
    json_key(b, key);
    if (text && *text)
        json_str(b, text);
    else
        json_nil(b);
}

static void put_seconds(struct buf *b, const char *key, int64_t ns, bool is_known) {
    if (is_known) {
        gpu_json_number(b, key, (double)ns / NS, 1e-6);
    } else {
        json_key(b, key);
        json_nil(b);
    }
}

static void put_number(struct buf *b, const char *key, int64_t v, bool is_known) {
    json_key(b, key);
    if (is_known)
        json_int(b, v);
    else
        json_nil(b);
}

static void put_gpus(struct buf *b, const struct wire_task *t) {
    put_text(b, "gpu", t->gpus ? t->gpu[0].uuid : NULL);
    json_key(b, "gpus");
    json_open(b, '[');
    for (uint16_t i = 0; i < t->gpus; i++) json_str(b, t->gpu[i].uuid);
    json_close(b, ']');
    bool is_mig = t->gpus && t->gpu[0].gi != UINT32_MAX;
    put_number(b, "gpu_instance", is_mig ? (int64_t)t->gpu[0].gi : 0, is_mig);
    put_number(b, "compute_instance", is_mig ? (int64_t)t->gpu[0].ci : 0, is_mig && t->gpu[0].ci != UINT32_MAX);
}

static void put_owner(struct buf *b, const struct wire_task *t) {
    char word[128];
    bool has_container = task_has_container(t);
    task_container_word(t, word, sizeof word);
    put_text(b, "user", t->user);
    put_number(b, "uid", t->uid, t->uid != UINT32_MAX);
    json_pair_str(b, "kind", belonging_kind_name(t->whose.kind));
    put_text(b, "container", word);
    put_text(b, "container_id", has_container ? t->whose.id : NULL);
    put_text(b, "image", has_container ? t->image : NULL);
    put_text(b, "pod", t->whose.pod);
    put_number(b, "slurm_job", t->whose.slurm_job, t->whose.slurm_job >= 0);
    put_text(b, "unit", t->whose.kind == BELONGS_TO_UNIT ? t->whose.id : NULL);
    bool is_job = t->whose.kind == BELONGS_TO_JOB;
    put_number(b, "job", strtoll(t->whose.id, NULL, 10), is_job);
    put_text(b, "job_name", is_job ? t->name : NULL);
    put_text(b, "command", *t->command ? t->command : t->comm);
}

static void put_times(struct buf *b, const struct wire_task *t, int64_t now_boot_ns) {
    const struct task *k = &t->task;
    bool is_lost = t->flags & WIRE_TASK_END_UNKNOWN, has_deadline = k->deadline_ns > 0;
    bool is_ended = k->state == TASK_ENDED;
    put_seconds(b, "opened", t->opened_real_ns, t->opened_real_ns > 0);
    put_seconds(b, "start", t->start_real_ns, t->start_real_ns > 0);
    put_seconds(b, "end", t->end_real_ns, is_ended && t->end_real_ns > 0);
    json_pair_bool(b, "end_is_exact", is_ended && !is_lost);
    json_pair_bool(b, "start_is_exact", !(t->flags & WIRE_TASK_FOUND_LATE));
    json_pair_str(b, "source", task_source_name((enum task_source)k->source));
    put_seconds(b, "deadline_s", k->deadline_ns, has_deadline);
    put_seconds(b, "period_s", t->period_ns, t->period_ns > 0);
    int64_t float_ns = is_ended || !now_boot_ns ? k->float_ns : task_left_ns(k, now_boot_ns);
    put_seconds(b, "float_s", float_ns, has_deadline && !(is_ended && is_lost));
    put_seconds(b, "expected_s", k->expected_ns, k->expected_ns > 0);
    bool is_overdue = k->state == TASK_RUNNING && has_deadline && now_boot_ns && float_ns < 0;
    json_pair_str(b, "state", task_state_name(is_overdue ? TASK_OVERDUE : (enum task_state)k->state));
    json_key(b, "hit");
    if (k->verdict == TASK_HIT || k->verdict == TASK_MISS || is_overdue)
        json_bool(b, k->verdict == TASK_HIT);
    else
        json_nil(b);
    put_number(b, "periods", t->periods, t->period_ns > 0);
    put_number(b, "periods_hit", t->period_hit, t->period_ns > 0);
}

void task_json(struct buf *b, const struct wire_task *t, const char *node, const char *boot_id, int64_t now_boot_ns) {
    char id[TASK_ID_TEXT];
    task_json_id(boot_id, t, id);
    json_open(b, '{');
    json_pair_str(b, "id", id);
    json_pair_str(b, "node", node);
    json_pair_int(b, "pid", t->task.key.pid);
    put_gpus(b, t);
    put_owner(b, t);
    put_times(b, t, now_boot_ns);
    gpu_json_number(b, "gpu_seconds", t->gpu_seconds, 1e-3);
    gpu_json_number(b, "energy_joules", t->energy_joules, 1e-3);
    json_key(b, "memory_bytes");
    json_uint(b, t->memory_bytes);
    json_key(b, "memory_peak_bytes");
    json_uint(b, t->memory_peak_bytes);
    json_close(b, '}');
}

/* ---- containers ---- */

static void put_labels(struct buf *b, const char *lines) {
    json_key(b, "labels");
    json_open(b, '{');
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        const char *sign = memchr(lines, '=', n);
        char key[256], value[1024];
        if (sign) {
            snprintf(key, sizeof key, "%.*s", (int)(sign - lines), lines);
            snprintf(value, sizeof value, "%.*s", (int)(lines + n - sign - 1), sign + 1);
            json_pair_str(b, key, value);
        }
        lines += n + (lines[n] == '\n');
    }
    json_close(b, '}');
}

static void put_slack(struct buf *b, const struct slack *s, int64_t ahead_ns) {
    double rate = slack_hit_rate(s);
    bool has_any = s->hits + s->misses > 0;
    json_pair_int(b, "ended", (int64_t)s->tasks);
    json_pair_int(b, "hits", (int64_t)s->hits);
    json_pair_int(b, "misses", (int64_t)s->misses);
    json_key(b, "hit_rate");
    if (isfinite(rate))
        json_num(b, rate);
    else
        json_nil(b);
    put_seconds(b, "float_s", s->float_ns, has_any);
    put_seconds(b, "least_float_s", s->least_ns, s->least_ns != INT64_MAX && has_any);
    put_seconds(b, "last_miss", s->last_miss_ns + ahead_ns, s->last_miss_ns > 0);
    json_key(b, "slack"); /* float time by its share of the deadline: [upper bound or null, how many] */
    json_open(b, '[');
    for (int i = 0; i < SLACK_BANDS; i++) {
        json_open(b, '[');
        if (i < SLACK_BANDS - 1)
            json_num(b, slack_bounds[i]);
        else
            json_nil(b);
        json_uint(b, s->band[i]);
        json_close(b, ']');
    }
    json_close(b, ']');
}

void container_json_pairs(struct buf *b, const struct wire_container *c, const char *node, int64_t ahead_ns) {
    char word[16];
    snprintf(word, sizeof word, "%.12s", c->id);
    json_pair_str(b, "id", c->id);
    json_pair_str(b, "node", node);
    json_pair_str(b, "name", c->name[0] ? c->name : word);
    put_text(b, "image", c->image);
    json_pair_str(b, "engine", belonging_kind_name((enum belonging_kind)c->kind));
    json_pair_str(b, "state", wire_container_state_name((enum wire_container_state)c->state));
    put_text(b, "tenant", c->tenant);
    put_number(b, "priority", c->priority, c->priority != INT32_MIN);
    put_seconds(b, "created", c->created_real_ns, c->created_real_ns > 0);
    put_seconds(b, "deadline_s", c->deadline_ns, c->deadline_ns > 0);
    put_seconds(b, "period_s", c->period_ns, c->period_ns > 0);
    put_number(b, "periods", c->periods, c->period_ns > 0);
    put_number(b, "periods_hit", c->period_hit, c->period_ns > 0);
    json_pair_int(b, "running", c->running);
    put_slack(b, &c->slack, ahead_ns);
    gpu_json_number(b, "gpu_seconds", c->gpu_seconds, 1e-3);
    gpu_json_number(b, "energy_joules", c->energy_joules, 1e-3);
    json_key(b, "memory_bytes");
    json_uint(b, c->memory_bytes);
    put_labels(b, c->labels);
}
