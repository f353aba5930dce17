/* GPU tasks and containers in the history: documents (the API's JSON) that are kept by name, with the few columns that
 * they are looked for by. A task that is told again is the same row, so nothing is there twice whoever dies. Threads and
 * durability as in history.h: put from the main loop, stored by the next flush, read by readers. */
#pragma once

#include "server/history.h"

struct history_task {
    char key[48], node[64], boot_id[40];
    int64_t start_ms;
    int state, verdict; /* enum task_state, enum task_verdict */
    char container[72], name[128], user[64];
    const char *gpus; /* UUIDs with a space after each */
    const char *body; /* JSON */
};
struct history_container {
    char node[64], id[72], name[128];
    int64_t seen_ms;
    const char *body;
};

/* Copies. -ERANGE: a time before 1970 or after 2248; -ENOSPC as in history_add. */
int history_task_put(struct history *h, const struct history_task *t);
int history_container_put(struct history *h, const struct history_container *c);
/* The node's machine was started anew: tasks of an earlier boot that were not said to have ended are over. */
void history_tasks_lost(struct history *h, const char *node, const char *boot_id);

struct history_tasks_ask {
    int64_t from_ms, to_ms;    /* of the start; to 0: all */
    unsigned states, verdicts; /* bits; 0: any */
    const char *container;     /* id or name; NULL: any, as below */
    const char *gpu, *user, *node;
    int64_t before; /* row: only older ones; 0: from the newest */
    size_t limit;   /* at most 1000 */
};
struct history_document {
    int64_t row; /* a cursor */
    char key[144];
    char *body;
};
void history_documents_free(struct history_document *d, size_t n);

/* The newest first, in ret (room for limit). How many. */
int history_tasks(struct history_reader *r, const struct history_tasks_ask *ask, struct history_document *ret,
                  struct error *e) MUST_CHECK;
/* Those seen last first; id: that one only (an id, its beginning of 12 digits or more, or a name), NULL: all. */
int history_containers(struct history_reader *r, const char *id, struct history_document *ret, size_t limit,
                       struct error *e) MUST_CHECK;
