#include "server/exporter_tasks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "model/exposition.h"

/* One line's subject: a container, or what runs in none. */
struct subject {
    const struct live_node *node;
    const struct live_container *container; /* NULL: in none */
};

static bool is_shown(const struct live_container *c, int64_t now_ns) {
    bool has_work = c->of.running || c->of.slack.tasks || c->of.deadline_ns || c->times.count;
    return has_work && (!c->ended_ns || now_ns - c->ended_ns <= LIVE_SERIES_NS);
}

static void put_labels(struct buf *out, const char *name, const struct subject *s) {
    char word[16];
    const struct wire_container *c = s->container ? &s->container->of : NULL;
    buf_puts(out, name);
    exposition_label(out, true, "host", s->node->name);
    if (c) snprintf(word, sizeof word, "%.12s", c->id);
    exposition_label(out, false, "container", !c ? "" : c->name[0] ? c->name : word);
    /* a name is used again, even at the same time on another engine: the id tells them apart */
    exposition_label(out, false, "container_id", c ? word : "");
    exposition_label(out, false, "tenant", c ? c->tenant : "");
}

static void put_times(struct buf *out, const struct subject *s) {
    const struct task_times *t = s->container ? &s->container->times : &s->node->tasks.host_times;
    uint64_t sum = 0;
    char bound[32];
    for (int i = 0; i <= TASK_BUCKETS; i++) {
        sum = i < TASK_BUCKETS ? sum + t->bucket[i] : t->count;
        snprintf(bound, sizeof bound, i < TASK_BUCKETS ? "%g" : "+Inf", i < TASK_BUCKETS ? task_buckets[i] : 0);
        put_labels(out, "gpumgr_task_seconds_bucket", s);
        exposition_label(out, false, "le", bound);
        exposition_value(out, (double)sum);
    }
    put_labels(out, "gpumgr_task_seconds_sum", s);
    exposition_value(out, t->sum_s);
    put_labels(out, "gpumgr_task_seconds_count", s);
    exposition_value(out, (double)t->count);
}

static uint32_t host_running(const struct live_node *n) {
    uint32_t running = 0;
    for (size_t i = 0; i < n->tasks.count; i++)
        running += !n->tasks.task[i]->ended_ns && !n->tasks.task[i]->container[0];
    return running;
}

enum value { HITS, MISSES, PERIODS, PERIODS_HIT, SM, RUNNING, DEADLINE, GPU_SECONDS, ENERGY, MEMORY };

static double container_sm(const struct live_tasks *t, const struct wire_container *c) {
    double sm = 0;
    for (size_t i = 0; i < t->count; i++)
        if (!t->task[i]->ended_ns && !isnan(t->task[i]->sm_share) && strcmp(t->task[i]->of.whose.id, c->id) == 0)
            sm += t->task[i]->sm_share;
    return sm;
}

/* NaN: it has none. */
static double value_of(const struct subject *s, enum value v) {
    const struct live_tasks *t = &s->node->tasks;
    const struct wire_container *c = s->container ? &s->container->of : NULL;
    switch (v) {
    case HITS: return (double)(c ? c->slack.hits : t->host_hits);
    case MISSES: return (double)(c ? c->slack.misses : t->host_misses);
    case PERIODS: return c && c->period_ns ? c->periods : NAN;
    case PERIODS_HIT: return c && c->period_ns ? c->period_hit : NAN;
    case RUNNING: return c ? c->running : host_running(s->node);
    case DEADLINE: return c && c->deadline_ns ? (double)c->deadline_ns / 1e9 : NAN;
    case GPU_SECONDS: return c ? c->gpu_seconds : NAN;
    case ENERGY: return c ? c->energy_joules : NAN;
    case SM: return c ? container_sm(t, c) : NAN;
    case MEMORY: return c ? (double)c->memory_bytes : NAN;
    }
    return NAN;
}

static const struct {
    enum value value;
    const char *name, *type, *help;
} families[] = {
    {HITS,        "gpumgr_deadline_hits_total",           "counter", "GPU tasks that ended within their deadline"      },
    {MISSES,      "gpumgr_deadline_misses_total",         "counter", "GPU tasks that passed their deadline"            },
    {PERIODS,     "gpumgr_container_periods_total",       "counter", "Periods of the container that are over"          },
    {PERIODS_HIT, "gpumgr_container_periods_kept_total",  "counter", "Periods of the container in which a task began"  },
    {RUNNING,     "gpumgr_tasks_running",                 "gauge",   "GPU tasks that run now"                          },
    {DEADLINE,    "gpumgr_container_deadline_seconds",    "gauge",   "Deadline of each of the container's tasks"       },
    {GPU_SECONDS, "gpumgr_container_gpu_seconds_total",   "counter",
     "GPU time of the container's tasks, by share of use"                                                              },
    {ENERGY,      "gpumgr_container_energy_joules_total", "counter", "Energy of the container's tasks, by share of use"},
    {SM,          "gpumgr_container_sm_ratio",            "gauge",   "SM share of its tasks, summed over GPUs"         },
    {MEMORY,      "gpumgr_container_memory_bytes",        "gauge",   "GPU memory that the container's tasks hold"      },
};

/* ---- users ---- */

enum user_value { USER_RUNNING, USER_MEMORY, USER_SM, USER_GPU_SECONDS, USER_ENERGY };

static const struct {
    enum user_value value;
    const char *name, *type, *help;
} user_families[] = {
    {USER_RUNNING,     "gpumgr_user_tasks_running",       "gauge",   "GPU tasks of the user that run now"            },
    {USER_MEMORY,      "gpumgr_user_memory_bytes",        "gauge",   "GPU memory that the user's tasks hold"         },
    {USER_SM,          "gpumgr_user_sm_ratio",            "gauge",   "SM share of the user's tasks, summed over GPUs"},
    {USER_GPU_SECONDS, "gpumgr_user_gpu_seconds_total",   "counter", "GPU time of the user's tasks, by share of use" },
    {USER_ENERGY,      "gpumgr_user_energy_joules_total", "counter", "Energy of the user's tasks, by share of use"   },
};

static double user_value_of(const struct live_tasks *l, const struct live_user *u, enum user_value v) {
    double running = 0, memory = 0, sm = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct live_task *t = l->task[i];
        if (t->ended_ns || t->of.uid != u->uid) continue;
        running++;
        memory += (double)t->of.memory_bytes;
        if (!isnan(t->sm_share)) sm += t->sm_share;
    }
    const double values[] = {[USER_RUNNING] = running,
                             [USER_MEMORY] = memory,
                             [USER_SM] = sm,
                             [USER_GPU_SECONDS] = u->gpu_seconds,
                             [USER_ENERGY] = u->energy_joules};
    return values[v];
}

static void put_users(struct buf *out, const struct live *l, size_t family) {
    for (size_t i = 0; i < l->count; i++) {
        const struct live_tasks *t = &l->node[i]->tasks;
        for (size_t k = 0; k < t->users; k++) {
            const struct live_user *u = &t->user[k];
            char number[16];
            snprintf(number, sizeof number, "%u", u->uid);
            buf_puts(out, user_families[family].name);
            exposition_label(out, true, "host", l->node[i]->name);
            exposition_label(out, false, "user", u->name[0] ? u->name : number);
            exposition_label(out, false, "uid", number);
            exposition_value(out, user_value_of(t, u, user_families[family].value));
        }
    }
}

typedef void (*put_fn)(struct buf *out, const struct subject *s, size_t family);

static void each(struct buf *out, const struct live *l, int64_t now_ns, size_t family, put_fn put) {
    for (size_t i = 0; i < l->count; i++) {
        const struct live_tasks *t = &l->node[i]->tasks;
        struct subject s = {.node = l->node[i]};
        put(out, &s, family);
        for (size_t k = 0; k < t->containers; k++) {
            s.container = t->container[k];
            if (is_shown(s.container, now_ns)) put(out, &s, family);
        }
    }
}

static void put_value(struct buf *out, const struct subject *s, size_t family) {
    double v = value_of(s, families[family].value);
    if (isnan(v)) return;
    put_labels(out, families[family].name, s);
    exposition_value(out, v);
}

static void put_histogram(struct buf *out, const struct subject *s, size_t family) { put_times(out, s); }

void exporter_tasks(struct buf *out, const struct live *l, int64_t now_ns) {
    if (!l->count) return;
    exposition_family(out, "gpumgr_task_seconds", "How long GPU tasks took, from the driver's list to their end",
                      "histogram");
    each(out, l, now_ns, 0, put_histogram);
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        exposition_family(out, families[f].name, families[f].help, families[f].type);
        each(out, l, now_ns, f, put_value);
    }
    for (size_t f = 0; f < ARRAY_LEN(user_families); f++) {
        exposition_family(out, user_families[f].name, user_families[f].help, user_families[f].type);
        put_users(out, l, f);
    }
}
