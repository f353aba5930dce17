#include "model/wire_task.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "model/wire_frame.h"

/* ---- TASK ---- */

static void put_task_times(struct buf *b, const struct wire_task *t) {
    size_t record = out_record_begin(b);
    out_i64(b, t->task.opened_ns);
    out_i64(b, t->task.start_ns);
    out_i64(b, t->task.end_ns);
    out_i64(b, t->opened_real_ns);
    out_i64(b, t->start_real_ns);
    out_i64(b, t->end_real_ns);
    out_i64(b, t->task.deadline_ns);
    out_i64(b, t->task.float_ns);
    out_i64(b, t->task.expected_ns);
    out_i64(b, t->period_ns);
    out_u32(b, t->periods);
    out_u32(b, t->period_hit);
    out_u32(b, t->again);
    out_record_end(b, record);
}

static void put_task_owner(struct buf *b, const struct wire_task *t) {
    size_t record = out_record_begin(b);
    out_i32(b, t->ns_pid);
    out_u32(b, t->uid);
    out_text(b, t->user);
    out_text(b, t->comm);
    out_text(b, t->command);
    out_u8(b, (uint8_t)t->whose.kind);
    out_text(b, t->whose.id);
    out_text(b, t->whose.pod);
    out_i64(b, t->whose.uid);
    out_i64(b, t->whose.slurm_job);
    out_text(b, t->whose.slurm_step);
    out_text(b, t->name);
    out_text(b, t->image);
    out_record_end(b, record);
}

void wire_put_task(struct buf *b, const struct wire_task *t) {
    size_t from = wire_begin(b, WIRE_TASK);
    out_i64(b, t->mark);
    out_i32(b, t->task.key.pid);
    out_u64(b, t->task.key.ticks);
    out_u8(b, t->task.state);
    out_u8(b, t->task.source);
    out_u8(b, t->task.verdict);
    out_u8(b, t->task.is_warned);
    out_u32(b, t->flags);
    put_task_times(b, t);
    put_task_owner(b, t);
    out_f64(b, t->gpu_seconds);
    out_f64(b, t->energy_joules);
    out_u64(b, t->memory_bytes);
    out_u64(b, t->memory_peak_bytes);
    out_u16(b, t->gpus);
    for (uint16_t i = 0; i < t->gpus; i++) {
        size_t record = out_record_begin(b);
        out_text(b, t->gpu[i].uuid);
        out_u32(b, t->gpu[i].gi);
        out_u32(b, t->gpu[i].ci);
        out_record_end(b, record);
    }
    wire_end(b, from);
}

static void get_task_times(struct wire_in *in, struct wire_task *t) {
    struct wire_in record = in_record(in);
    t->task.opened_ns = in_i64(&record);
    t->task.start_ns = in_i64(&record);
    t->task.end_ns = in_i64(&record);
    t->opened_real_ns = in_i64(&record);
    t->start_real_ns = in_i64(&record);
    t->end_real_ns = in_i64(&record);
    t->task.deadline_ns = in_i64(&record);
    t->task.float_ns = in_i64(&record);
    t->task.expected_ns = in_i64(&record);
    t->period_ns = in_i64(&record);
    t->periods = in_u32(&record);
    t->period_hit = in_u32(&record);
    t->again = in_u32(&record);
    in->is_bad |= record.is_bad || t->period_hit > t->periods;
}

static void get_task_owner(struct wire_in *in, struct wire_task *t) {
    struct wire_in record = in_record(in);
    t->ns_pid = in_i32(&record);
    t->uid = in_u32(&record);
    in_text(&record, t->user, sizeof t->user);
    in_text(&record, t->comm, sizeof t->comm);
    in_text(&record, t->command, sizeof t->command);
    uint8_t kind = in_u8(&record);
    if (kind >= BELONGING_KINDS) in->is_bad = true;
    t->whose.kind = (enum belonging_kind)kind;
    in_text(&record, t->whose.id, sizeof t->whose.id);
    in_text(&record, t->whose.pod, sizeof t->whose.pod);
    t->whose.uid = in_i64(&record);
    t->whose.slurm_job = in_i64(&record);
    in_text(&record, t->whose.slurm_step, sizeof t->whose.slurm_step);
    in_text(&record, t->name, sizeof t->name);
    in_text(&record, t->image, sizeof t->image);
    in->is_bad |= record.is_bad;
}

static void get_task_gpus(struct wire_in *in, struct wire_task *t) {
    t->gpus = in_u16(in);
    if (t->gpus > WIRE_TASK_GPUS_MAX) in->is_bad = true;
    for (uint16_t i = 0; i < t->gpus && !in->is_bad; i++) {
        struct wire_in record = in_record(in);
        in_text(&record, t->gpu[i].uuid, sizeof t->gpu[i].uuid);
        t->gpu[i].gi = in_u32(&record);
        t->gpu[i].ci = in_u32(&record);
        in->is_bad |= record.is_bad || !t->gpu[i].uuid[0];
    }
}

static bool is_amount(double v) { return isfinite(v) && v >= 0; }

/* A peer that is wrong about one task must not make a row that no reader expects. */
static bool is_task_sound(const struct wire_task *t) {
    const struct task *k = &t->task;
    if (t->mark <= 0 || k->key.pid <= 0 || k->state > TASK_ENDED || k->source > TASK_BY_CONTAINER ||
        k->verdict > TASK_PENDING)
        return false;
    if (k->start_ns <= 0 || k->opened_ns < 0 || k->deadline_ns < 0 || t->period_ns < 0 || k->is_warned > 1)
        return false;
    if ((k->state == TASK_ENDED) != (k->end_ns > 0) || (k->end_ns && k->end_ns < k->start_ns)) return false;
    return is_amount(t->gpu_seconds) && is_amount(t->energy_joules);
}

int wire_get_task(const struct wire_frame *f, struct wire_task *ret, struct error *e) {
    struct wire_in in;
    int r = wire_open(f, WIRE_TASK, &in, e);
    if (r < 0) return r;
    memset(ret, 0, sizeof *ret); /* it is large: decoded in place, and zero where it is bad */
    ret->mark = in_i64(&in);
    ret->task.key.pid = in_i32(&in);
    ret->task.key.ticks = in_u64(&in);
    ret->task.state = in_u8(&in);
    ret->task.source = in_u8(&in);
    ret->task.verdict = in_u8(&in);
    ret->task.is_warned = in_u8(&in);
    ret->flags = in_u32(&in);
    get_task_times(&in, ret);
    get_task_owner(&in, ret);
    ret->gpu_seconds = in_f64(&in);
    ret->energy_joules = in_f64(&in);
    ret->memory_bytes = in_u64(&in);
    ret->memory_peak_bytes = in_u64(&in);
    get_task_gpus(&in, ret);
    if (!in.is_bad && is_task_sound(ret)) return 0;
    memset(ret, 0, sizeof *ret);
    return wire_bad(f, e);
}

/* ---- CONTAINER ---- */

static void put_slack(struct buf *b, const struct slack *s) {
    size_t record = out_record_begin(b);
    out_u64(b, s->tasks);
    out_u64(b, s->hits);
    out_u64(b, s->misses);
    out_i64(b, s->float_ns);
    out_i64(b, s->least_ns);
    out_i64(b, s->last_miss_ns);
    out_u8(b, SLACK_BANDS);
    for (int i = 0; i < SLACK_BANDS; i++) out_u64(b, s->band[i]);
    out_record_end(b, record);
}

static void get_slack(struct wire_in *in, struct slack *s) {
    struct wire_in record = in_record(in);
    s->tasks = in_u64(&record);
    s->hits = in_u64(&record);
    s->misses = in_u64(&record);
    s->float_ns = in_i64(&record);
    s->least_ns = in_i64(&record);
    s->last_miss_ns = in_i64(&record);
    if (in_u8(&record) != SLACK_BANDS) in->is_bad = true; /* other bands are another meaning: another version */
    for (int i = 0; i < SLACK_BANDS; i++) s->band[i] = in_u64(&record);
    in->is_bad |= record.is_bad;
}

void wire_put_container(struct buf *b, const struct wire_container *c) {
    size_t from = wire_begin(b, WIRE_CONTAINER);
    out_text(b, c->id);
    out_u8(b, c->kind);
    out_u8(b, c->state);
    out_text(b, c->name);
    out_text(b, c->image);
    out_text(b, c->tenant);
    out_i64(b, c->deadline_ns);
    out_i64(b, c->period_ns);
    out_i32(b, c->priority);
    out_i64(b, c->created_real_ns);
    out_text(b, c->labels);
    out_u32(b, c->running);
    put_slack(b, &c->slack);
    out_f64(b, c->gpu_seconds);
    out_f64(b, c->energy_joules);
    out_u64(b, c->memory_bytes);
    out_u32(b, c->periods);
    out_u32(b, c->period_hit);
    wire_end(b, from);
}

int wire_get_container(const struct wire_frame *f, struct wire_container *ret, struct error *e) {
    struct wire_in in;
    int r = wire_open(f, WIRE_CONTAINER, &in, e);
    if (r < 0) return r;
    memset(ret, 0, sizeof *ret);
    in_text(&in, ret->id, sizeof ret->id);
    ret->kind = in_u8(&in);
    ret->state = in_u8(&in);
    in_text(&in, ret->name, sizeof ret->name);
    in_text(&in, ret->image, sizeof ret->image);
    in_text(&in, ret->tenant, sizeof ret->tenant);
    ret->deadline_ns = in_i64(&in);
    ret->period_ns = in_i64(&in);
    ret->priority = in_i32(&in);
    ret->created_real_ns = in_i64(&in);
    in_text(&in, ret->labels, sizeof ret->labels);
    ret->running = in_u32(&in);
    get_slack(&in, &ret->slack);
    ret->gpu_seconds = in_f64(&in);
    ret->energy_joules = in_f64(&in);
    ret->memory_bytes = in_u64(&in);
    ret->periods = in_u32(&in);
    ret->period_hit = in_u32(&in);
    if (!in.is_bad && ret->period_hit <= ret->periods && ret->id[0] && ret->kind < BELONGING_KINDS &&
        ret->state < CONTAINER_STATES && ret->deadline_ns >= 0 && ret->period_ns >= 0 && is_amount(ret->gpu_seconds) &&
        is_amount(ret->energy_joules))
        return 0;
    memset(ret, 0, sizeof *ret);
    return wire_bad(f, e);
}

const char *wire_container_state_name(enum wire_container_state s) {
    static const char *const names[] = {"unknown",    "created", "running", "paused",
                                        "restarting", "exited",  "dead",    "removed"};
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "unknown";
}

/* ---- NODE ---- */

void wire_put_node(struct buf *b, const struct wire_node *n) {
    uint8_t state[NODE_STATE_BYTES];
    size_t from = wire_begin(b, WIRE_NODE);
    node_state_put(&n->state, state);
    buf_add(b, state, sizeof state);
    out_text(b, n->reasons);
    put_slack(b, &n->slack);
    wire_end(b, from);
}

int wire_get_node(const struct wire_frame *f, struct wire_node *ret, struct error *e) {
    struct wire_node n = {0};
    struct wire_in in;
    int r = wire_open(f, WIRE_NODE, &in, e);
    if (r < 0) return r;
    const uint8_t *state = in_take(&in, NODE_STATE_BYTES);
    if (state) node_state_get(state, &n.state);
    in_text(&in, n.reasons, sizeof n.reasons);
    get_slack(&in, &n.slack);
    if (in.is_bad) return wire_bad(f, e);
    *ret = n;
    return 0;
}

/* ---- USE ---- */

size_t wire_begin_uses(struct buf *b, const struct wire_uses *u) {
    size_t from = wire_begin(b, WIRE_USE);
    out_i64(b, u->boot_ns);
    out_u16(b, u->count);
    return from;
}

void wire_add_use(struct buf *b, const struct wire_use *u) {
    size_t record = out_record_begin(b);
    out_i32(b, u->key.pid);
    out_u64(b, u->key.ticks);
    out_f64(b, u->gpu_seconds);
    out_f64(b, u->energy_joules);
    out_u64(b, u->memory_bytes);
    out_u64(b, u->memory_peak_bytes);
    out_f64(b, u->sm_share);
    out_record_end(b, record);
}

static bool get_use(struct wire_in *in, struct wire_use *u) {
    struct wire_in record = in_record(in);
    u->key.pid = in_i32(&record);
    u->key.ticks = in_u64(&record);
    u->gpu_seconds = in_f64(&record);
    u->energy_joules = in_f64(&record);
    u->memory_bytes = in_u64(&record);
    u->memory_peak_bytes = in_u64(&record);
    u->sm_share = in_f64(&record);
    bool is_share = isnan(u->sm_share) || (u->sm_share >= 0 && u->sm_share <= WIRE_TASK_GPUS_MAX);
    return !record.is_bad && u->key.pid > 0 && is_amount(u->gpu_seconds) && is_amount(u->energy_joules) && is_share;
}

int wire_get_uses(const struct wire_frame *f, struct wire_uses *ret, struct error *e) {
    struct wire_uses list = {0};
    struct wire_use one;
    struct wire_in in;
    int r = wire_open(f, WIRE_USE, &in, e);
    if (r < 0) return r;
    list.boot_ns = in_i64(&in);
    list.count = in_u16(&in);
    list.at = in.at;
    if (list.count > WIRE_USES_MAX) in.is_bad = true;
    for (uint16_t i = 0; i < list.count && !in.is_bad; i++)
        if (!get_use(&in, &one)) in.is_bad = true;
    if (in.is_bad) return wire_bad(f, e);
    list.len = (size_t)(in.at - list.at);
    *ret = list;
    return 0;
}

bool wire_next_use(struct wire_uses *list, struct wire_use *ret) {
    struct wire_in in = {.at = list->at, .end = list->at + list->len};
    if (list->len == 0 || !get_use(&in, ret)) return false;
    list->len -= (size_t)(in.at - list->at);
    list->at = in.at;
    return true;
}
