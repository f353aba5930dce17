/* Messages to those whom jobs name: made in queue_notify.c, kept and sent in queue_letters.c. Belongs to the loop's thread. */
#pragma once

#include "server/letters_store.h"
#include "server/queue.h"

void queue_notify(struct queue *q, const struct queue_job *j, const struct wire_run *run, const struct event *ev);
bool queue_letters_full(const struct queue *q, const char *user);
struct letter_row queue_letter_copy(const struct letter_row *l); /* with texts of its own */
void queue_letter_done(struct letter_row *l);
void queue_letter_stored(struct queue *q, const struct letter_row *l); /* its texts are taken */
int queue_take_noticed(struct queue *q, struct live_node *n, const struct wire_frame *f, struct error *e) MUST_CHECK;
int queue_letters_load(struct queue *q, struct sql *db, struct error *e) MUST_CHECK;
void queue_letters_tick(struct queue *q);
void queue_letters_node(struct queue *q, const char *node); /* its session begins or ends */
void queue_letters_done(struct queue *q);

/* Of a job: what was not taken yet, and why; "": nothing. */
#define QUEUE_UNTOLD 240
void queue_untold(const struct queue *q, int64_t job, char ret[QUEUE_UNTOLD]);
