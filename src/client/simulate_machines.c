/* This machine's own GPUs (and those of the machines that tell the same server), for playing its history. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/job_table.h"
#include "client/simulate.h"

void simulate_machines_done(struct simulate_machines *m) {
    free(m->gpu);
    free(m->uuid);
    free(m->name);
    free(m->node);
    *m = (struct simulate_machines){0};
}

uint32_t simulate_machines_node(const struct simulate_machines *m, const char *node) {
    for (uint32_t g = 0; g < m->gpus; g++)
        if (strcmp(m->node[g], node) == 0) return m->gpu[g].node;
    return m->gpus; /* there is no such machine any more, and nothing on it */
}

uint32_t simulate_machines_find(const struct simulate_machines *m, const char *node, const char *word) {
    for (uint32_t g = 0; g < m->gpus; g++)
        if (strcmp(m->node[g], node) == 0 && (strcmp(m->name[g], word) == 0 || strcmp(m->uuid[g], word) == 0)) return g;
    return PLAN_NONE;
}

static void add_gpu(struct simulate_machines *m, const struct json_tree *gpu) {
    uint32_t g = m->gpus++;
    const char *part;
    double bytes = job_number(gpu, "memory_total_bytes");
    snprintf(m->uuid[g], sizeof m->uuid[g], "%s", job_text(gpu, "uuid"));
    snprintf(m->name[g], sizeof m->name[g], "%s", job_text(gpu, "name"));
    snprintf(m->node[g], sizeof m->node[g], "%s", job_text(gpu, "node"));
    part = strchr(m->name[g], ':');
    bool is_new = !g || strcmp(m->node[g], m->node[g - 1]) != 0;
    m->nodes += is_new;
    m->gpu[g] = (struct plan_gpu){.node = is_new ? g : m->gpu[g - 1].node,
                                  .index = (int)job_number(gpu, "index"),
                                  .is_part = part != NULL,
                                  .part = part ? atoi(part + 1) : 0,
                                  .memory_bytes = bytes > 0 ? (uint64_t)bytes : 0,
                                  .is_here = true,
                                  .temp_c = NAN,
                                  .node_name = ""};
}

static bool is_alike(const struct simulate_machines *m) {
    for (uint32_t g = 0; g < m->gpus; g++)
        if (m->gpu[g].node != g / (m->gpus / m->nodes) * (m->gpus / m->nodes)) return false;
    return true;
}

/* Others than its own, of which one figure is not said. */
static int fill_up(struct simulate_view *v, struct error *e) {
    const struct simulate_machines *m = &v->machines;
    struct simulate_setup *s = &v->setup;
    if (!m->is_alike && (!s->nodes || !s->gpus_per_node))
        return fail(e, -EINVAL, "the machines have different numbers of GPUs; say --nodes and --gpus-per-node");
    if (!s->nodes) s->nodes = m->nodes;
    if (!s->gpus_per_node) s->gpus_per_node = m->nodes ? m->gpus / m->nodes : 0;
    for (uint32_t g = 0; g < m->gpus && !s->gpu_bytes; g++) s->gpu_bytes = m->gpu[g].memory_bytes;
    return 0;
}

int simulate_machines(const char *dir, struct simulate_view *v, struct error *e) {
    struct simulate_machines *m = &v->machines;
    struct json_tree *root;
    int r = simulate_get(dir, "/api/v1/queue?limit=1", &root, e);
    if (r < 0) return r;
    const struct json_tree *gpus = json_tree_get(root, "gpus");
    size_t count = json_tree_count(gpus);
    m->gpu = calloc(count + 1, sizeof *m->gpu);
    m->uuid = calloc(count + 1, sizeof *m->uuid);
    m->name = calloc(count + 1, sizeof *m->name);
    m->node = calloc(count + 1, sizeof *m->node);
    if (!m->gpu || !m->uuid || !m->name || !m->node) abort();
    for (size_t i = 0; i < count; i++) add_gpu(m, json_tree_at(gpus, i));
    json_tree_free(root);
    m->is_alike = m->nodes && m->gpus % m->nodes == 0 && is_alike(m);
    bool is_other = v->setup.nodes || v->setup.gpus_per_node || v->setup.gpu_bytes;
    if (!m->gpus && (!v->setup.nodes || !v->setup.gpus_per_node))
        return fail(e, -EINVAL, "the server knows no GPUs; say --nodes and --gpus-per-node");
    if (is_other) return fill_up(v, e);
    v->setup.gpu = m->gpu;
    v->setup.gpus = m->gpus;
    v->setup.nodes = m->nodes;
    v->setup.gpus_per_node = m->is_alike ? m->gpus / m->nodes : 0;
    return 0;
}
