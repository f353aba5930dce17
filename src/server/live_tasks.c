#include "server/live_tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/task_json.h"

const double task_buckets[TASK_BUCKETS] = {0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400};

void live_tasks_done(struct live_tasks *l) {
    for (size_t i = 0; i < l->count; i++) free(l->task[i]);
    for (size_t i = 0; i < l->containers; i++) free(l->container[i]);
    free(l->task);
    free(l->container);
    free(l->user);
    *l = (struct live_tasks){0};
}

/* ---- tasks ---- */

/* The task of a process; again UINT32_MAX: the last of them. */
static size_t find_task(const struct live_tasks *l, struct task_key key, uint32_t again) {
    for (size_t i = l->count; i > 0; i--) { /* news are mostly of the newest */
        const struct wire_task *t = &l->task[i - 1]->of;
        bool is_it = t->task.key.pid == key.pid && t->task.key.ticks == key.ticks;
        if (is_it && (again == UINT32_MAX || t->again == again)) return i - 1;
    }
    return SIZE_MAX;
}

static void remove_task(struct live_tasks *l, size_t at) {
    l->ended -= l->task[at]->ended_ns != 0;
    free(l->task[at]);
    memmove(l->task + at, l->task + at + 1, (--l->count - at) * sizeof(void *));
}

static size_t size_of(const struct wire_task *t) {
    return sizeof *t - (WIRE_TASK_GPUS_MAX - t->gpus) * sizeof t->gpu[0];
}

/* A copy that is only as long as its GPUs need. */
static struct live_task *copy_of(const struct wire_task *t) {
    struct live_task *copy = calloc(1, offsetof(struct live_task, of) + size_of(t));
    if (!copy) abort();
    memcpy(&copy->of, t, size_of(t));
    copy->sm_share = NAN;
    task_container_word(t, copy->container, sizeof copy->container);
    return copy;
}

static void times_add(struct task_times *x, double s) {
    for (int i = 0; i < TASK_BUCKETS; i++) {
        if (s > task_buckets[i]) continue;
        x->bucket[i]++;
        break;
    }
    x->count++;
    x->sum_s += s;
}

static struct live_container *container_at(struct live_tasks *l, const char *id, size_t *ret) {
    size_t low = 0, high = l->containers;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(l->container[middle]->of.id, id);
        if (order == 0) return *ret = middle, l->container[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return NULL;
}

static struct live_container *container_make(struct live_tasks *l, const char *id) {
    size_t at;
    struct live_container *c = container_at(l, id, &at);
    if (c || l->containers >= LIVE_CONTAINERS_MAX) return c;
    struct live_container **more = realloc(l->container, (l->containers + 1) * sizeof(void *));
    c = calloc(1, sizeof *c);
    if (!more || !c) abort();
    l->container = more;
    memmove(more + at + 1, more + at, (l->containers++ - at) * sizeof(void *));
    more[at] = c;
    memcpy(c->of.id, id, strlen(id) + 1);
    c->of.priority = INT32_MIN;
    slack_init(&c->of.slack);
    return c;
}

/* A container that no engine told of yet is known by its tasks. */
static struct live_container *container_of(struct live_tasks *l, const struct wire_task *t) {
    struct live_container *c = container_make(l, t->whose.id);
    if (!c || c->of.name[0]) return c;
    c->of.kind = (uint8_t)t->whose.kind;
    memcpy(c->of.name, t->name, sizeof c->of.name);
    memcpy(c->of.image, t->image, sizeof c->of.image);
    return c;
}

/* Counts what is new: its end, its hit or miss, which may come before the end. */
static void count_news(struct live_tasks *l, const struct wire_task *t, const struct wire_task *before) {
    struct live_container *c = task_has_container(t) ? container_of(l, t) : NULL;
    if (t->task.state == TASK_ENDED && (!before || before->task.state != TASK_ENDED))
        times_add(c ? &c->times : &l->host_times, (double)(t->task.end_ns - t->task.start_ns) / 1e9);
    if (c || task_has_container(t)) return; /* the node counts a container's hits and misses itself */
    bool was_miss = before && before->task.verdict == TASK_MISS, was_hit = before && before->task.verdict == TASK_HIT;
    l->host_misses += t->task.verdict == TASK_MISS && !was_miss;
    l->host_hits += t->task.verdict == TASK_HIT && !was_hit;
}

/* ---- users ---- */

static struct live_user *user_of(struct live_tasks *l, const struct wire_task *t) {
    struct live_user *u = NULL;
    if (t->uid == UINT32_MAX) return NULL;
    for (size_t i = 0; !u && i < l->users; i++)
        if (l->user[i].uid == t->uid) u = &l->user[i];
    if (!u && l->users < LIVE_USERS_MAX) {
        l->user = realloc(l->user, (l->users + 1) * sizeof *l->user);
        if (!l->user) abort();
        u = &l->user[l->users++];
        *u = (struct live_user){.uid = t->uid};
    }
    if (u && t->user[0]) memcpy(u->name, t->user, sizeof u->name);
    return u;
}

/* What a task has used more than before. */
static void user_spends(struct live_tasks *l, const struct wire_task *t, double gpu_seconds, double energy_joules) {
    struct live_user *u = user_of(l, t);
    if (u && gpu_seconds > 0) u->gpu_seconds += gpu_seconds;
    if (u && energy_joules > 0) u->energy_joules += energy_joules;
}

static void drop_oldest_ended(struct live_tasks *l) {
    for (size_t i = 0; i < l->count; i++) {
        if (!l->task[i]->ended_ns) continue;
        remove_task(l, i);
        return;
    }
}

bool live_tasks_take(struct live_tasks *l, const struct wire_task *t, bool is_new, int64_t now_ns,
                     int64_t node_now_ns) {
    size_t at = find_task(l, t->task.key, t->again);
    struct live_task *old = at == SIZE_MAX ? NULL : l->task[at];
    if (is_new) count_news(l, t, old ? &old->of : NULL);
    if (is_new)
        user_spends(l, t, t->gpu_seconds - (old ? old->of.gpu_seconds : 0),
                    t->energy_joules - (old ? old->of.energy_joules : 0));
    bool is_ended = t->task.state == TASK_ENDED;
    int64_t ended_ns = is_ended ? now_ns - (node_now_ns - t->task.end_ns) : 0;
    if (is_ended && ended_ns <= 0) ended_ns = 1;
    if (is_ended && now_ns - ended_ns > LIVE_ENDED_NS) {
        if (old) remove_task(l, at);
        return false;
    }
    if (task_has_container(t)) container_of(l, t);
    if (!old && l->count >= LIVE_TASKS_MAX) return false;
    struct live_task *fresh = copy_of(t);
    fresh->is_changed = true;
    fresh->ended_ns = ended_ns;
    if (old) {
        l->ended -= old->ended_ns != 0;
        fresh->sm_share = old->sm_share;
        free(old);
    } else {
        l->task = realloc(l->task, (l->count + 1) * sizeof(void *));
        if (!l->task) abort();
        at = l->count++;
    }
    l->task[at] = fresh;
    l->ended += is_ended;
    if (l->ended > LIVE_ENDED_MAX) drop_oldest_ended(l);
    return true;
}

void live_tasks_use(struct live_tasks *l, const struct wire_use *u) {
    size_t at = find_task(l, u->key, UINT32_MAX);
    if (at == SIZE_MAX || l->task[at]->ended_ns) return;
    struct live_task *t = l->task[at];
    user_spends(l, &t->of, u->gpu_seconds - t->of.gpu_seconds, u->energy_joules - t->of.energy_joules);
    t->of.gpu_seconds = u->gpu_seconds;
    t->of.energy_joules = u->energy_joules;
    t->of.memory_bytes = u->memory_bytes;
    t->of.memory_peak_bytes = u->memory_peak_bytes;
    t->sm_share = u->sm_share;
}

const struct live_task *live_tasks_of_pid(const struct live_tasks *l, int32_t pid) {
    for (size_t i = l->count; i > 0; i--)
        if (l->task[i - 1]->of.task.key.pid == pid && !l->task[i - 1]->ended_ns) return l->task[i - 1];
    return NULL;
}

/* ---- containers ---- */

bool live_container_is_over(const struct live_container *c) {
    bool may_run = c->of.state == CONTAINER_CREATED || c->of.state == CONTAINER_RUNNING ||
                   c->of.state == CONTAINER_PAUSED || c->of.state == CONTAINER_RESTARTING;
    return !may_run && !c->of.running;
}

void live_tasks_container(struct live_tasks *l, const struct wire_container *told, int64_t now_ns) {
    struct live_container *c = container_make(l, told->id);
    if (!c) return;
    c->of = *told;
    if (!live_container_is_over(c))
        c->ended_ns = 0;
    else if (!c->ended_ns)
        c->ended_ns = now_ns;
}

const struct live_container *live_tasks_find(const struct live_tasks *l, const char *id) {
    const struct live_container *found = NULL;
    size_t n = strlen(id);
    for (size_t i = 0; i < l->containers; i++) {
        const struct live_container *c = l->container[i];
        if (strcmp(c->of.id, id) == 0) return c;
        bool fits = (n >= 12 && strncmp(c->of.id, id, n) == 0) || strcmp(c->of.name, id) == 0;
        /* a name is used again: the one that runs */
        if (fits && (!found || (found->ended_ns && !c->ended_ns))) found = c;
    }
    return found;
}

/* A container that nobody told of is over with the last of its tasks. */
static void judge_untold(struct live_tasks *l, struct live_container *c, int64_t now_ns) {
    if (c->of.state != CONTAINER_UNKNOWN) return;
    uint32_t running = 0;
    for (size_t i = 0; i < l->count; i++)
        running += !l->task[i]->ended_ns && strcmp(l->task[i]->of.whose.id, c->of.id) == 0;
    c->of.running = running;
    if (running)
        c->ended_ns = 0;
    else if (!c->ended_ns)
        c->ended_ns = now_ns;
}

void live_tasks_prune(struct live_tasks *l, int64_t now_ns) {
    for (size_t i = l->count; i > 0; i--)
        if (l->task[i - 1]->ended_ns && now_ns - l->task[i - 1]->ended_ns > LIVE_ENDED_NS) remove_task(l, i - 1);
    for (size_t i = l->containers; i > 0; i--) {
        struct live_container *c = l->container[i - 1];
        judge_untold(l, c, now_ns);
        if (!c->ended_ns || now_ns - c->ended_ns <= LIVE_ENDED_NS) continue;
        free(c);
        memmove(l->container + i - 1, l->container + i, (--l->containers - (i - 1)) * sizeof(void *));
    }
}
