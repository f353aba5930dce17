/* Messages to those whom a job's owner named (`notify`): what happened becomes rows in the commit that holds it (queue_letters.c
 * sends them). */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "model/duration.h"
#include "server/queue_own.h"
#include "server/tell_way.h"

/* word: "mail:ADDRESS", "webhook:URL", "terminal", "command:TEXT"; whom the last two reach, and what is run, the seal tells. */
static void post(struct queue *q, const struct queue_job *j, uint16_t number, const char *word, const struct message *m,
                 const char *kind) {
    AUTO(buf_done) struct buf body = {0};
    size_t n = strcspn(word, ":");
    const char *to = word + n + (word[n] == ':');
    const struct tell_way *way = word[n] ? tell_way_find(word, n) : NULL;
    bool is_command = strncmp(word, "command:", 8) == 0, is_nodes = is_command || strcmp(word, "terminal") == 0;
    struct letter_row l = {.job = j->id,
                           .word = number,
                           .made = m->real_ns / NS_PER_S,
                           .way = is_command ? "command" : "terminal",
                           .receiver = "",
                           .user = j->user,
                           .node = j->node,
                           .kind = kind,
                           .body = m->about.text};
    if (!is_nodes) {
        struct settings s = *q->settings;
        if (!way || !tell_way_address(&s, way, to)) return;
        way->write(&body, m, &s);
        l.way = way->name;
        l.receiver = to;
        l.body = body.s;
    }
    queue_add_letter(q, &l);
}

/* What one who reads his mail elsewhere wants to know beside the sentence. */
static void more_of(struct queue *q, const struct queue_job *j, const struct wire_run *w, char *ret, size_t room) {
    AUTO(buf_done) struct buf b = {0};
    const struct queue_run *r = w ? queue_run_find(q, &w->key) : NULL;
    char text[40];
    buf_printf(&b, "Machine: %s\n", j->node);
    if (r) buf_puts(&b, r->gpus == 1 ? "GPU: " : "GPUs: ");
    for (uint16_t i = 0; r && i < r->gpus; i++) {
        const struct queue_gpu *g = queue_gpu_find(q, r->uuid[i]);
        if (g && g->index >= 0) buf_printf(&b, "%s%d", i ? ", " : "", g->index);
    }
    if (r) buf_putc(&b, '\n');
    message_time(j->submitted_ns, text);
    buf_printf(&b, "Handed in: %s\n", text);
    if (w && w->start_ns) {
        message_time(w->start_ns, text);
        buf_printf(&b, "Started: %s\n", text);
    }
    if (w && w->start_ns && w->end_ns >= w->start_ns) {
        int64_t ran_ns = w->end_ns - w->start_ns;
        duration_text(ran_ns < 10 * NS_PER_S ? ran_ns : ran_ns / NS_PER_S * NS_PER_S, text);
        buf_printf(&b, "Ran for: %s\n", text);
    }
    if (w) buf_printf(&b, "Its log: gpumgr logs %lld\n", (long long)j->id);
    snprintf(ret, room, "%s", b.s);
}

/* Elements of an array are told when they fail; that each of a thousand began is no news. */
void queue_notify(struct queue *q, const struct queue_job *j, const struct wire_run *run, const struct event *ev) {
    bool is_quiet = strcmp(ev->kind, "job_started") == 0 || strcmp(ev->kind, "job_done") == 0;
    uint16_t number = 0;
    if (!j->spec.notify.count || (is_quiet && j->elements > 1)) return;
    if (queue_letters_full(q, j->user)) {
        log_line(LOG_WARN, "job_notify", -1, "job %lld: nobody is told, too many messages of %s wait already",
                 (long long)j->id, j->user);
        return;
    }
    const struct event_row row = event_row(ev->kind);
    struct message m = {.real_ns = ev->real_ns, .gpu_index = -1};
    m.about = (struct notice){.code = ev->code, .severity = ev->severity, .count = 1, .opened_ns = ev->real_ns};
    snprintf(m.about.subject, sizeof m.about.subject, "job:%lld", (long long)j->id);
    snprintf(m.about.topic, sizeof m.about.topic, "%s", row.topic);
    snprintf(m.about.title, sizeof m.about.title, "%s", row.title);
    snprintf(m.about.text, sizeof m.about.text, "%s", ev->text);
    snprintf(m.host, sizeof m.host, "%s", j->node);
    m.job.id = j->id;
    snprintf(m.job.event, sizeof m.job.event, "%s", ev->kind);
    snprintf(m.job.name, sizeof m.job.name, "%s", j->spec.name);
    snprintf(m.job.user, sizeof m.job.user, "%s", j->user);
    more_of(q, j, run, m.job.more, sizeof m.job.more);
    if (q->link) snprintf(m.link, sizeof m.link, "%.200s/jobs/%lld", q->link, (long long)j->id);
    snprintf(m.id, sizeof m.id, "job-%lld-%llx", (long long)j->id, (unsigned long long)ev->real_ns);
    for (const char *word = NULL; (word = job_word_next(&j->spec.notify, word)); number++)
        post(q, j, number, word, &m, ev->kind);
}
