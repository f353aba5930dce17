/* What the files watchmen*.c share. */
#pragma once

#include "base/buf.h"
#include "base/json_tree.h"
#include "server/queue_lease.h"
#include "server/secrets.h"
#include "server/watchmen.h"

#define WATCHMEN_ID_MAX 512
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
    bool is_asked; /* he pinged once */
    bool is_told;  /* that it is his turn: his library waits for just that word, and for nothing that comes after it */
    bool is_old;   /* from an earlier server, which may have told him */
    char *uuids;   /* what an earlier server gave him, until the machine has said which indices these are */
    int64_t registered_ns, asked_ns; /* wall clock, for people ... */
    int64_t asked_boot_ns;           /* ... and for the time-out */
};

struct watchmen {
    struct server *server;
    struct http_server *http;
    struct watchmen_entry **entry; /* in the order they came */
    size_t count;
    char token[128]; /* "": nobody is asked for one */
    char session[SECRETS_TEXT];
    char form[SECRETS_TEXT]; /* in the forms of our page: who sends it has read that page */
};

const char *watchmen_node(struct watchmen *w); /* whose GPUs their indices mean; "": no machine is known */
void watchmen_refresh(struct watchmen *w);     /* entries follow the queue */
/* Whose GPUs another one took before he was told of them waits on. */
void watchmen_check(struct watchmen *w, const struct watchmen_entry *e);
bool watchmen_is_over(const struct watchmen_entry *e);

struct watchmen_entry *watchmen_entry_new(struct watchmen *w);
void watchmen_entry_drop(struct watchmen *w, size_t at);
/* The form of every answer. */
void watchmen_say(struct http_request *r, int status, bool is_ok, const char *msg);
void watchmen_reply(struct http_request *r, int status, struct buf *json);
/* What he sent; NULL: it is no JSON, and he was told with the status `otherwise`. */
struct json_tree *watchmen_body(struct http_request *r, int otherwise);

/* watchmen_clients.c */
void watchmen_register(struct watchmen *w, struct http_request *r);
void watchmen_ping(struct watchmen *w, struct http_request *r);
void watchmen_cancel(struct watchmen *w, struct http_request *r);
void watchmen_cancel_form(struct watchmen *w, struct http_request *r); /* the page's own button */

/* watchmen_json.c */
extern const char *const watchmen_words[];                                /* of enum watchmen_status */
void watchmen_json_list(struct watchmen *w, struct buf *b, bool is_over); /* a list */
void watchmen_json_gpus(struct watchmen *w, struct buf *b);               /* an object, as gpustat prints it */
void watchmen_time(int64_t real_ns, char *ret, size_t room);
/* The nth GPU of a machine as people count them; NULL: there is none. */
const struct live_device *watchmen_gpu(const struct live_node *n, int index);

/* watchmen_page.c */
void watchmen_page(struct watchmen *w, struct buf *b);
extern const char watchmen_style[];
void watchmen_ask_token(struct buf *b); /* a page that asks for it */
