/* What can never be, said when a job is handed in. */
#include <errno.h>

#include "base/number.h"
#include "model/plan.h"

static bool is_asked_for(const struct plan_world *w, const struct plan_job *j, uint32_t gpu) {
    if (j->node != PLAN_NONE && w->gpu[gpu].node != j->node) return false;
    if (!j->is_scoped) return true;
    for (uint32_t i = 0; i < j->scope_len; i++)
        if (j->scope[i] == gpu) return true;
    return false;
}

/* The most of them on one node, with at least so much memory. */
static int most_on_one(const struct plan_world *w, const struct plan_job *j, uint64_t bytes) {
    int most = 0, here = 0;
    for (uint32_t g = 0; g < w->gpus; g++) {
        if (g == 0 || w->gpu[g].node != w->gpu[g - 1].node) here = 0;
        if (is_asked_for(w, j, g) && w->gpu[g].memory_bytes >= bytes) here++;
        if (here > most) most = here;
    }
    return most;
}

static int refuse_memory(const struct plan_world *w, const struct plan_job *j, const char *key, uint64_t bytes,
                         struct error *e) {
    uint64_t largest = 0;
    char asked[32], has[32];
    for (uint32_t g = 0; g < w->gpus; g++)
        if (is_asked_for(w, j, g) && w->gpu[g].memory_bytes > largest) largest = w->gpu[g].memory_bytes;
    number_bytes((double)bytes, asked, sizeof asked);
    number_bytes((double)largest, has, sizeof has);
    if (largest < bytes)
        return fail(e, -EINVAL, "%s: no GPU%s has %s; the largest has %s", key, j->is_scoped ? " of the scope" : "",
                    asked, has);
    int most = most_on_one(w, j, bytes);
    return fail(e, -EINVAL, "%s: %d GPUs with %s are asked for, and no machine has more than %d", key, j->gpus, asked,
                most);
}

int plan_admit(const struct plan_world *w, const struct plan_job *j, struct error *e) {
    int most = most_on_one(w, j, 0);
    if (most == 0) return fail(e, -EINVAL, "%s: there is no such GPU", j->is_scoped ? "scope" : "gpus");
    if (most < j->gpus && j->is_scoped)
        return fail(e, -EINVAL, "scope: %d GPUs are asked for, and of these no machine has more than %d", j->gpus,
                    most);
    if (most < j->gpus)
        return fail(e, -EINVAL, "gpus: %d are asked for, and no machine has more than %d", j->gpus, most);
    if (most_on_one(w, j, j->memory_bytes) < j->gpus) return refuse_memory(w, j, "memory", j->memory_bytes, e);
    if (most_on_one(w, j, j->share_bytes) < j->gpus) return refuse_memory(w, j, "share", j->share_bytes, e);
    const struct plan_user *u = j->user < w->users ? &w->user[j->user] : NULL;
    if (u && u->gpus_max && j->gpus > u->gpus_max && !j->share_bytes)
        return fail(e, -EINVAL, "gpus: %d are asked for, and %s may have %d at once", j->gpus, u->name, u->gpus_max);
    return 0;
}
