/* GPU tasks and containers: those that run from memory, those that were from the history. What is in both is told as it is
 * now, so that no two views disagree. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_json.h"
#include "model/task_json.h"
#include "server/api.h"
#include "server/api_later.h"
#include "server/history_tasks.h"
#include "server/live_tasks_json.h"
#include "server/server.h"

enum { CONTAINER_TASKS = 500 };

const struct route_field api_tasks_query[] = {
    {"state",         FIELD_TEXT, false, "running (overdue ones too), overdue, ended, hit or missed"},
    {"gpu",          FIELD_TEXT, false, "A GPU's UUID"},
    {"container",               FIELD_TEXT, false, "A container's id or name"},
    {"user",FIELD_TEXT, false, "A user's name"},
    {"node", FIELD_TEXT, false, "A machine's name"},
    {"from",     FIELD_NUMBER, false, "Started at or after, in Unix seconds; below zero: before now"},
    {"to",          FIELD_NUMBER, false, "Started before, the same"},
    LATER_PAGE_FIELDS("An earlier answer's `next`: what began before that"),
    {0              }
};
const struct route_field api_containers_query[] = {
    {"all",  FIELD_BOOL, false, "Those that ended, too"},
    {"gpu", FIELD_BOOL, false, "Instead: all that have to do with GPUs, as the machines' engines have them now"},
    {0     }
};

const struct route_field api_container_query[] = {
    {"or_none", FIELD_BOOL, false, "204 for one that had no GPU task and no deadline, instead of an error"},
    {0   }
};

/* What is live, as text, to be taken to the reading thread. */
struct current {
    char key[144];
    char *body;
};

struct asking {
    struct later is;
    struct history_tasks_ask ask;
    char container[144], gpu[96], user[64], node[64];
    bool is_one, with_history; /* one container and its tasks; containers that ended, too */
    bool or_none;              /* one that had no task is no error */
    struct current *current;
    size_t current_count;
};

static void asking_drop(struct later *l) {
    struct asking *a = (struct asking *)l;
    for (size_t i = 0; i < a->current_count; i++) free(a->current[i].body);
    free(a->current);
    free(a);
}

static struct asking *asking_new(struct call *c, void (*run)(struct later *l)) {
    struct asking *a = calloc(1, sizeof *a);
    if (!a) abort();
    later_init(&a->is, c, run, asking_drop);
    return a;
}

static void current_add(struct asking *a, const char *key, struct buf *body) {
    a->current = realloc(a->current, (a->current_count + 1) * sizeof *a->current);
    if (!a->current) abort();
    struct current *to = &a->current[a->current_count++];
    snprintf(to->key, sizeof to->key, "%s", key);
    to->body = strdup(body->s);
    buf_clear(body);
}

static const char *current_of(const struct asking *a, const char *key) {
    for (size_t i = 0; i < a->current_count; i++)
        if (strcmp(a->current[i].key, key) == 0) return a->current[i].body;
    return NULL;
}

/* Running tasks: their use so far is not in the history. */
static void tasks_take(struct asking *a, const struct live *l) {
    AUTO(buf_done) struct buf body = {0};
    char id[TASK_ID_TEXT];
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < l->node[i]->tasks.count; k++) {
            const struct live_task *t = l->node[i]->tasks.task[k];
            if (t->ended_ns) continue;
            live_json_task(&body, l->node[i], t, clock_boot_ns());
            task_json_id(l->node[i]->boot_id, &t->of, id);
            current_add(a, id, &body);
        }
}

static void containers_take(struct asking *a, const struct live *l, const char *id) {
    AUTO(buf_done) struct buf body = {0};
    char key[144];
    int64_t now_ns = clock_boot_ns(), now_real_ns = clock_real_ns();
    for (size_t i = 0; i < l->count; i++) {
        const struct live_tasks *t = &l->node[i]->tasks;
        const struct live_container *one = id ? live_tasks_find(t, id) : NULL;
        for (size_t k = 0; k < t->containers; k++) {
            const struct live_container *c = t->container[k];
            if (id ? c != one : c->ended_ns && !a->with_history) continue;
            live_json_container(&body, l->node[i], c, now_ns, now_real_ns);
            snprintf(key, sizeof key, "%s/%s", l->node[i]->name, c->of.id);
            current_add(a, key, &body);
            if (id) snprintf(a->container, sizeof a->container, "%s", c->of.id);
        }
    }
}

/* ---- on the reading thread ---- */

static void put_raw(struct buf *b, const char *text) {
    if (b->len && b->s[b->len - 1] != '[') buf_putc(b, ',');
    buf_puts(b, text);
}

static int64_t put_tasks(struct asking *a) {
    struct history_document *page = calloc(a->ask.limit, sizeof *page);
    int64_t last = 0;
    if (!page) abort();
    a->is.result = history_tasks(a->is.reader, &a->ask, page, &a->is.error);
    json_key(&a->is.out, "tasks");
    json_open(&a->is.out, '[');
    for (int i = 0; i < a->is.result; i++) {
        const char *now = current_of(a, page[i].key);
        put_raw(&a->is.out, now ? now : page[i].body);
        last = page[i].row;
    }
    json_close(&a->is.out, ']');
    if (a->is.result > 0) history_documents_free(page, (size_t)a->is.result);
    free(page);
    return a->is.result == (int)a->ask.limit ? last : 0;
}

static void tasks_run(struct later *l) {
    json_open(&l->out, '{');
    later_put_next(l, put_tasks((struct asking *)l));
}

/* The containers that are live, then those of the history that are not. */
static void put_containers(struct asking *a) {
    struct history_document *page = calloc(LATER_LIMIT_MAX, sizeof *page);
    if (!page) abort();
    for (size_t i = 0; i < a->current_count; i++) put_raw(&a->is.out, a->current[i].body);
    if (a->with_history) a->is.result = history_containers(a->is.reader, NULL, page, LATER_LIMIT_MAX, &a->is.error);
    for (int i = 0; a->with_history && i < a->is.result; i++)
        if (!current_of(a, page[i].key)) put_raw(&a->is.out, page[i].body);
    if (a->is.result > 0) history_documents_free(page, (size_t)a->is.result);
    free(page);
}

static void containers_run(struct later *l) {
    struct asking *a = (struct asking *)l;
    json_open(&a->is.out, '{');
    gpu_json_number(&a->is.out, "time", (double)clock_real_ns() / NS_PER_S, 0.001);
    json_key(&a->is.out, "containers");
    json_open(&a->is.out, '[');
    put_containers(a);
    json_close(&a->is.out, ']');
    json_close(&a->is.out, '}');
    buf_putc(&a->is.out, '\n');
}

/* One container: an object without its last bracket, its tasks, the bracket. */
static void container_run(struct later *l) {
    struct asking *a = (struct asking *)l;
    struct history_document found = {0};
    const char *body = a->is.result > 0 ? a->current[a->is.result - 1].body : NULL;
    if (!body) {
        a->is.result = history_containers(a->is.reader, a->container, &found, 1, &a->is.error);
        if (a->is.result == 0 && a->or_none) return;
        if (a->is.result == 0) a->is.result = fail(&a->is.error, -ENOENT, "no container of this id or name is known");
        if (a->is.result < 0) return;
        body = found.body;
        const char *slash = strrchr(found.key, '/');
        snprintf(a->container, sizeof a->container, "%s", slash ? slash + 1 : found.key);
    }
    buf_puts(&a->is.out, body);
    a->is.out.len--; /* the bracket */
    a->is.out.s[a->is.out.len] = 0;
    put_tasks(a);
    json_close(&a->is.out, '}');
    buf_putc(&a->is.out, '\n');
    free(found.body);
}

/* ---- what is asked ---- */

static int state_of(const char *text, struct history_tasks_ask *ask, struct error *e) {
    static const struct {
        const char *word;
        unsigned states, verdicts;
    } rows[] = {
        {"running", BIT(TASK_RUNNING) | BIT(TASK_OVERDUE), 0             },
        {"overdue", BIT(TASK_OVERDUE),                     0             },
        {"ended",   BIT(TASK_ENDED),                       0             },
        {"hit",     0,                                     BIT(TASK_HIT) },
        {"missed",  0,                                     BIT(TASK_MISS)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(text, rows[i].word) == 0) return ask->states = rows[i].states, ask->verdicts = rows[i].verdicts, 0;
    return fail(e, -EINVAL, "state: %.20s is not running, overdue, ended, hit or missed", text);
}

static int ask_from(const struct call *c, struct asking *a, struct error *e) {
    const char *state = call_query(c, "state");
    int r = state ? state_of(state, &a->ask, e) : 0;
    if (r >= 0) r = later_text(c, "container", a->container, sizeof a->container, &a->ask.container, e);
    if (r >= 0) r = later_text(c, "gpu", a->gpu, sizeof a->gpu, &a->ask.gpu, e);
    if (r >= 0) r = later_text(c, "user", a->user, sizeof a->user, &a->ask.user, e);
    if (r >= 0) r = later_text(c, "node", a->node, sizeof a->node, &a->ask.node, e);
    if (r >= 0) r = later_time(c, "from", &a->ask.from_ms, e);
    if (r >= 0) r = later_time(c, "to", &a->ask.to_ms, e);
    return r < 0 ? r : later_page(c, &a->ask.limit, &a->ask.before, e);
}

int api_tasks(struct call *c, struct error *e) {
    struct asking *a = asking_new(c, tasks_run);
    int r = ask_from(c, a, e);
    if (r >= 0) tasks_take(a, &c->server->live);
    return later_submit(&a->is, r, e);
}

int api_containers(struct call *c, struct error *e) {
    if (call_query_is_true(c, "gpu")) return api_containers_gpu(c, e);
    struct asking *a = asking_new(c, containers_run);
    a->with_history = call_query_is_true(c, "all");
    containers_take(a, &c->server->live, NULL);
    return later_submit(&a->is, 0, e);
}

int api_container(struct call *c, struct error *e) {
    struct asking *a = asking_new(c, container_run);
    a->or_none = call_query_is_true(c, "or_none");
    int r = 0;
    if (strlen(c->param[0]) >= sizeof a->container)
        r = fail(e, -ENOENT, "no container of this id or name is known");
    else
        snprintf(a->container, sizeof a->container, "%s", c->param[0]);
    if (r >= 0) containers_take(a, &c->server->live, c->param[0]);
    a->is.result = (int)a->current_count; /* of several machines: the last */
    if (r >= 0) tasks_take(a, &c->server->live);
    a->ask.container = a->container;
    a->ask.limit = CONTAINER_TASKS;
    return later_submit(&a->is, r, e);
}
