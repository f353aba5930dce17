#include "server/live_tasks_json.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "model/gpu_json.h"
#include "model/task_json.h"

void live_json_task(struct buf *b, const struct live_node *n, const struct live_task *t, int64_t now_ns) {
    /* Of a node that is silent nobody knows whether its tasks still run: the time that is left stays as it was. */
    int64_t then_ns = now_ns - n->seen_ns > LIVE_STALE_NS ? n->seen_ns : now_ns;
    task_json(b, &t->of, n->name, n->boot_id, live_node_now(n, then_ns));
}

void live_json_tasks(struct buf *b, const struct live *l, bool with_ended, int64_t now_ns) {
    json_key(b, "tasks");
    json_open(b, '[');
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < l->node[i]->tasks.count; k++) {
            const struct live_task *t = l->node[i]->tasks.task[k];
            if (with_ended || !t->ended_ns) live_json_task(b, l->node[i], t, now_ns);
        }
    json_close(b, ']');
}

bool live_json_tasks_delta(struct buf *b, struct live *l, int64_t now_ns) {
    bool is_open = false;
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < l->node[i]->tasks.count; k++) {
            struct live_task *t = l->node[i]->tasks.task[k];
            if (!t->is_changed) continue;
            t->is_changed = false;
            if (!b) continue;
            if (!is_open) {
                json_key(b, "tasks");
                json_open(b, '[');
                is_open = true;
            }
            live_json_task(b, l->node[i], t, now_ns);
        }
    if (is_open) json_close(b, ']');
    return is_open;
}

/* The GPUs that a container's tasks are on now, and the least time that is left to any of them. */
static void put_running(struct buf *b, const struct live_node *n, const struct live_container *c, int64_t now_ns) {
    const struct wire_task *last = NULL;
    int64_t least_ns = INT64_MAX;
    json_key(b, "gpus");
    json_open(b, '[');
    for (size_t i = 0; i < n->tasks.count; i++) {
        const struct live_task *t = n->tasks.task[i];
        if (t->ended_ns || strcmp(t->of.whose.id, c->of.id) != 0) continue;
        for (uint16_t g = 0; g < t->of.gpus; g++) {
            bool is_told = false;
            for (uint16_t o = 0; last && o < last->gpus; o++) is_told |= !strcmp(last->gpu[o].uuid, t->of.gpu[g].uuid);
            if (!is_told) json_str(b, t->of.gpu[g].uuid);
        }
        last = &t->of;
        int64_t left_ns = task_left_ns(&t->of.task, live_node_now(n, now_ns));
        if (t->of.task.deadline_ns && left_ns < least_ns) least_ns = left_ns;
    }
    json_close(b, ']');
    if (least_ns != INT64_MAX) {
        gpu_json_number(b, "left_s", (double)least_ns / 1e9, 1e-6);
    } else {
        json_key(b, "left_s");
        json_nil(b);
    }
}

void live_json_container(struct buf *b, const struct live_node *n, const struct live_container *c, int64_t now_ns,
                         int64_t now_real_ns) {
    json_open(b, '{');
    container_json_pairs(b, &c->of, n->name, now_real_ns - live_node_now(n, now_ns));
    put_running(b, n, c, now_ns);
    json_close(b, '}');
}

void live_json_placement(struct buf *b, const struct live_node *n) {
    if (!n->tasks.has_node) return;
    const struct node_state *s = &n->tasks.node.state;
    double rate = slack_hit_rate(&n->tasks.node.slack);
    json_key(b, "placement");
    json_open(b, '{');
    json_pair_bool(b, "is_provisionable", s->reasons == 0);
    json_pair_str(b, "why_not", n->tasks.node.reasons);
    json_pair_int(b, "usable_gpus", s->gpus);
    json_pair_int(b, "tasks", s->tasks);
    json_pair_int(b, "free_bytes", (int64_t)s->free_mib << 20);
    json_pair_int(b, "largest_free_bytes", (int64_t)s->largest_mib << 20);
    gpu_json_number(b, "float_s", (double)s->float_ms / 1000, 1e-3);
    json_pair_int(b, "hits", (int64_t)n->tasks.node.slack.hits);
    json_pair_int(b, "misses", (int64_t)n->tasks.node.slack.misses);
    json_key(b, "hit_rate");
    if (isfinite(rate))
        json_num(b, rate);
    else
        json_nil(b);
    json_close(b, '}');
}
