#include "server/queue_ui.h"

#include <errno.h>
#include <stdio.h>

#include "server/queue_own.h"

static const struct queue_run *run_of(const struct queue_job *j, int64_t element) {
    int64_t at = element < 0 ? -1 : job_element_find(&j->spec, element);
    const struct queue_run *found = NULL;
    for (const struct queue_run *r = j->runs; r; r = r->next)
        if (r->state == JOB_RUNNING && (element < 0 || (int64_t)r->of.key.element == at) &&
            (!found || r->of.key.element < found->of.key.element))
            found = r;
    return found;
}

static enum job_state state_of(const struct queue_job *j) {
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        if (j->counts[s]) return (enum job_state)s;
    return JOB_UNKNOWN;
}

int queue_ui(const struct queue *q, int64_t job, int64_t element, const struct queue_who *who, struct queue_ui *ret,
             struct error *e) {
    const struct queue_job *j = queue_find(q, job);
    if (!j) return fail(e, -ENOENT, "job %lld is not there, or over for long", (long long)job);
    if (!queue_may(j, who)) return fail(e, -EACCES, "job %lld is not yours", (long long)job);
    if (!j->spec.ui || !*j->spec.ui)
        return fail(e, -EINVAL, "job %lld declares no UI; it is declared with --ui PORT when the job is handed in",
                    (long long)job);
    const struct queue_run *r = run_of(j, element);
    if (!r && element >= 0)
        return fail(e, -EBUSY, "element %lld of job %lld does not run", (long long)element, (long long)job);
    if (!r) return fail(e, -EBUSY, "job %lld does not run: it is %s", (long long)job, job_state_name(state_of(j)));
    struct queue_ui u = {.key = r->of.key};
    int result = ui_parse(j->spec.ui, &u.ui, e);
    if (result < 0) return result;
    snprintf(u.node, sizeof u.node, "%s", j->node);
    snprintf(u.owner, sizeof u.owner, "%s", j->user);
    snprintf(u.title, sizeof u.title, "%s", j->spec.name);
    *ret = u;
    return 0;
}
