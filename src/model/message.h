/* What a person or a program is sent about a notice, in the form that each way of sending asks for. The webhook's is that of
 * Alertmanager (version 4), which many receivers parse already. Pure: values in, text out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/notice.h"

/* What a message of a job says beside its sentence. */
struct message_job {
    int64_t id; /* 0: it is of no job */
    char event[24], name[128], user[64];
    char more[400]; /* lines "Name: value", each with its end */
};

struct message {
    struct notice about;
    struct message_job job;
    char id[48];   /* the same whenever it is sent again: receivers may drop what they know */
    char host[72]; /* the node */
    char gpu_model[96];
    int gpu_index;   /* -1: the machine */
    char link[256];  /* where to look; "" none */
    int64_t real_ns; /* when the word was due */
    bool is_over, is_test;
};

/* "GPU lost: lab-3 GPU 5 (NVIDIA H200)", "lab-3: job 17 (train.py, alice) is done" */
void message_headline(struct buf *out, const struct message *m);

void message_webhook(struct buf *out, const struct message *m);
void message_slack(struct buf *out, const struct message *m);
/* Headers and text, with CRLF; to and from go into the headers as they are, so they must hold no line breaks. */
void message_mail(struct buf *out, const struct message *m, const char *from, const char *to);

/* GPUMGR_* for a command: names and values, in pairs of calls. */
typedef void (*message_pair_fn)(void *ctx, const char *name, const char *value);
void message_pairs(const struct message *m, message_pair_fn each, void *ctx);

/* RFC 3339, UTC, with milliseconds. */
void message_time(int64_t real_ns, char ret[32]);
