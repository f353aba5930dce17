/* What the files watchmen*.c share. */
#pragma once

#include "base/buf.h"
#include "base/json_tree.h"
#include "server/queue.h"
#include "server/secrets.h"
#include "server/watchmen.h"

#define WATCHMEN_ID_MAX 120
#define WATCHMEN_ENTRIES_MAX 10000

enum watchmen_status { WAITING, READY, OK, TIMEOUT, CANCELLED };

/* One client. It is in the queue as a job of origin watchmen; what is shown of it is kept here. */
struct watchmen_entry {
    int64_t job; /* 0: on its way to the file */
    char id[WATCHMEN_ID_MAX];
    bool is_schedule;
    enum watchmen_status status;
    int gpus, gpu[JOB_GPUS_MAX], wanted; /* as he listed them; req_gpu_num */
    int given, got[JOB_GPUS_MAX];
    int64_t registered_ns, asked_ns; /* wall clock, for people ... */
    int64_t asked_boot_ns;           /* ... and for the time-out */
    char msg[200];
};

struct watchmen {
    struct server *server;
    struct http_server *http;
    struct watchmen_entry **entry; /* in the order they came */
    size_t count;
    char token[128]; /* "": nobody is asked for one */
    char session[SECRETS_TEXT];
};

const char *watchmen_node(struct watchmen *w); /* whose GPUs their indices mean; "": no machine is known */
void watchmen_refresh(struct watchmen *w);     /* entries follow the queue */
bool watchmen_is_over(const struct watchmen_entry *e);

struct watchmen_entry *watchmen_entry_new(struct watchmen *w);
void watchmen_entry_drop(struct watchmen *w, size_t at);
/* The form of every answer. */
void watchmen_say(struct http_request *r, int status, bool is_ok, const char *msg);
void watchmen_reply(struct http_request *r, int status, struct buf *json);
/* What he sent; NULL: it is no JSON, and he was told. */
struct json_tree *watchmen_body(struct http_request *r);

/* watchmen_clients.c */
void watchmen_register(struct watchmen *w, struct http_request *r);
void watchmen_ping(struct watchmen *w, struct http_request *r);
void watchmen_cancel(struct watchmen *w, struct http_request *r);

/* watchmen_json.c */
extern const char *const watchmen_words[]; /* of enum watchmen_status */
void watchmen_json_entry(struct buf *b, const struct watchmen_entry *e, int place);
void watchmen_json_list(struct watchmen *w, struct buf *b, bool is_over); /* a list */
void watchmen_json_gpus(struct watchmen *w, struct buf *b);               /* an object, as gpustat prints it */
void watchmen_time(int64_t real_ns, char *ret, size_t room);

/* watchmen_page.c */
void watchmen_page(struct watchmen *w, struct buf *b);
extern const char watchmen_style[];
void watchmen_ask_token(struct buf *b); /* a page that asks for it */
