/* What of the queue is worth an event, and a message to whoever asked for one. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/queue_own.h"

#define NAME 144
#define TEXT 280

static struct event event_of(const struct queue_job *j, enum event_severity severity, const char *kind,
                             const char *text) {
    struct event ev = {.boot_ns = clock_boot_ns(),
                       .real_ns = clock_real_ns(),
                       .severity = (int32_t)severity,
                       .device = -1,
                       .code = (int32_t)(j->id & INT32_MAX)};
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    snprintf(ev.text, sizeof ev.text, "%s", text);
    json_utf8_end(ev.text);
    return ev;
}

static void tell(struct queue *q, const struct queue_job *j, const struct wire_run *run, enum event_severity severity,
                 const char *kind, const char *text) {
    const struct event ev = event_of(j, severity, kind, text);
    queue_notify(q, j, run, &ev);
    if (q->on_event) q->on_event(q->event_ctx, j->node, &ev);
}

/* "job 17 (train.py, alice)", with its element where it has several; element ALL: of the whole. */
#define ALL UINT32_MAX
static void name_of(const struct queue_job *j, uint32_t element, char *ret, size_t room) {
    char number[32] = "";
    if (j->elements > 1 && element != ALL)
        snprintf(number, sizeof number, ".%lld", (long long)job_element_number(&j->spec, element));
    char name[61], user[31];
    snprintf(name, sizeof name, "%.60s", j->spec.name);
    snprintf(user, sizeof user, "%.30s", j->user);
    json_utf8_end(name);
    json_utf8_end(user);
    snprintf(ret, room, "job %lld%s (%s, %s)", (long long)j->id, number, name, user);
}

void queue_tell_start(struct queue *q, const struct queue_run *r) {
    char name[NAME], text[TEXT];
    name_of(r->job, r->of.key.element, name, sizeof name);
    snprintf(text, sizeof text, "%s has started on %u GPU%s", name, r->gpus, r->gpus == 1 ? "" : "s");
    tell(q, r->job, &r->of, EVENT_INFO, "job_started", text);
}

static const struct {
    enum job_reason reason;
    enum event_severity severity;
    const char *kind, *words;
} ends[] = {
    {JOB_BY_MEMORY,     EVENT_WARNING, "job_over_memory", "took more memory than its share and was ended" },
    {JOB_BY_IDLE,       EVENT_WARNING, "job_idle",        "held its GPUs idle and was ended"              },
    {JOB_BY_STRAY,      EVENT_WARNING, "job_stray",       "used a GPU that it was not given and was ended"},
    {JOB_BY_TIME_LIMIT, EVENT_INFO,    "job_timeout",     "reached its time limit"                        },
    {JOB_BY_SHIM,       EVENT_WARNING, "job_unknown",     "ended, and nobody knows how"                   },
    {JOB_BY_LOST,       EVENT_WARNING, "job_unknown",     "was given up"                                  },
    {JOB_BY_REBOOT,     EVENT_WARNING, "job_unknown",     "ended with its machine"                        },
    {JOB_BY_CANCEL,     EVENT_INFO,    "job_cancelled",   "was cancelled"                                 },
    {JOB_BY_START,      EVENT_WARNING, "job_not_started", "could not be started"                          },
    {JOB_BY_PREEMPT,    EVENT_INFO,    "job_yielded",     "gave its GPUs to a job of higher priority"     },
};

void queue_tell_end(struct queue *q, const struct queue_job *j, const struct wire_run *w, enum job_state state,
                    bool again) {
    char name[NAME], text[TEXT], how[40], why[41];
    name_of(j, w->key.element, name, sizeof name);
    const char *tail = again ? "; it is tried again" : "";
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (ends[i].reason != (enum job_reason)w->reason) continue;
        bool is_lease = w->reason == JOB_BY_PREEMPT && j->origin == QUEUE_BY_WATCHMEN;
        const char *words = is_lease ? "lost its GPUs to somebody outside the queue" : ends[i].words;
        snprintf(why, sizeof why, "%.40s", w->text);
        json_utf8_end(why);
        snprintf(text, sizeof text, "%s %s%s%s%s", name, words, *why ? ": " : "", why, tail);
        tell(q, j, w, ends[i].severity, ends[i].kind, text);
        return;
    }
    if (state == JOB_DONE) {
        snprintf(text, sizeof text, "%s is done", name);
        tell(q, j, w, EVENT_INFO, "job_done", text);
    } else if (state == JOB_FAILED) {
        if (w->signal)
            snprintf(how, sizeof how, "ended by signal %d", w->signal);
        else
            snprintf(how, sizeof how, "failed with exit code %d", w->code);
        snprintf(text, sizeof text, "%s %s%s", name, how, tail);
        tell(q, j, w, EVENT_INFO, "job_failed", text);
    }
}

/* No event: ten thousand that are cancelled together are no news to anybody but their owner. */
void queue_tell_unrun(struct queue *q, const struct queue_job *j) {
    char name[NAME], text[TEXT];
    if (!j->spec.notify.count) return;
    name_of(j, ALL, name, sizeof name);
    snprintf(text, sizeof text, "%s was cancelled before it started%s%.90s", name, j->text && *j->text ? ": " : "",
             j->text ? j->text : "");
    const struct event ev = event_of(j, EVENT_INFO, "job_cancelled", text);
    queue_notify(q, j, NULL, &ev);
}
