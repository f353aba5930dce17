/* Messages to those whom a job's owner named (`notify`), by the ways that operators are told by. Each is tried once, on a thread of
 * its own: a receiver that hangs delays other owners' messages, and neither the queue nor an operator's. Nothing is kept over a
 * restart; what happened to a job is in the queue. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/queue_own.h"
#include "server/tell_way.h"

#define WAITING_MOST 1000

struct letter {
    const struct tell_way *way;
    struct settings settings; /* with his address in place of the operator's */
    struct buf body;
    int64_t job;
    int result;
    struct error error;
};

static const struct tell_way *way_of(const char *name, size_t len) {
    for (size_t i = 0; i < TELL_WAYS; i++)
        if (strlen(tell_ways[i].name) == len && strncmp(tell_ways[i].name, name, len) == 0) return &tell_ways[i];
    return NULL;
}

static void letter_send(void *ctx) {
    struct letter *l = ctx;
    l->result = l->way->send(&l->settings, l->body.s, l->body.len, &l->error);
}

static void letter_sent(void *ctx) {
    struct letter *l = ctx;
    if (l->result < 0)
        log_line(LOG_WARN, "job_notify", -1, "job %lld: a message by %s was not taken: %s", (long long)l->job,
                 l->way->name, l->error.text);
    buf_done(&l->body);
    free(l);
}

/* word: "mail:ADDRESS" or "webhook:URL"; the terminal is the node's. */
static void post(struct queue *q, const struct queue_job *j, const char *word, const struct message *m) {
    size_t n = strcspn(word, ":");
    const struct tell_way *way = word[n] ? way_of(word, n) : NULL;
    const char *to = word + n + (word[n] == ':');
    bool is_mail = way && strcmp(way->name, "mail") == 0, is_webhook = way && strcmp(way->name, "webhook") == 0;
    if ((!is_mail && !is_webhook) || strpbrk(to, "\r\n")) return;
    struct letter *l = calloc(1, sizeof *l);
    if (!l) abort();
    l->way = way;
    l->settings = *q->settings;
    l->job = j->id;
    snprintf(l->settings.tell_webhook, sizeof l->settings.tell_webhook, "%s", is_webhook ? to : "");
    snprintf(l->settings.tell_mail_to, sizeof l->settings.tell_mail_to, "%s", is_mail ? to : "");
    struct error e = {0};
    int r = way->is_set(&l->settings) ? 0 : fail(&e, -ENOENT, "tell.smtp_url is not set");
    if (r >= 0 && !q->notifier) r = worker_new(q->loop, "notify", WAITING_MOST, &q->notifier, &e);
    if (r >= 0) {
        way->write(&l->body, m, &l->settings);
        r = worker_submit(q->notifier, letter_send, letter_sent, l, &e);
    }
    if (r >= 0) return;
    l->result = r;
    l->error = e;
    letter_sent(l);
}

/* Elements of an array are told when they fail; that each of a thousand began is no news. */
void queue_notify(struct queue *q, const struct queue_job *j, const struct event *ev) {
    bool is_quiet = strcmp(ev->kind, "job_started") == 0 || strcmp(ev->kind, "job_done") == 0;
    if (!j->spec.notify.count || (is_quiet && j->elements > 1)) return;
    const struct event_row row = event_row(ev->kind);
    struct message m = {.real_ns = ev->real_ns, .gpu_index = -1};
    m.about = (struct notice){.code = ev->code, .severity = ev->severity, .count = 1, .opened_ns = ev->real_ns};
    snprintf(m.about.subject, sizeof m.about.subject, "job:%lld", (long long)j->id);
    snprintf(m.about.topic, sizeof m.about.topic, "%s", row.topic);
    snprintf(m.about.title, sizeof m.about.title, "%s", row.title);
    snprintf(m.about.text, sizeof m.about.text, "%s", ev->text);
    snprintf(m.host, sizeof m.host, "%s", j->node);
    snprintf(m.id, sizeof m.id, "job-%lld-%llx", (long long)j->id, (unsigned long long)ev->real_ns);
    for (const char *word = NULL; (word = job_word_next(&j->spec.notify, word));) post(q, j, word, &m);
}
