/* Notices, messages and marks as rows of the state file. On the store thread, or before it starts (state_run). */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "model/notice.h"
#include "server/state_sql.h"

enum { TELL_STREAM_MAX = 160 };

/* Everything that one event changes: written together, or not at all. */
struct tell_write {
    struct notice notice; /* "" subject: none */
    char stream[TELL_STREAM_MAX];
    int64_t mark;
    int64_t made; /* unix seconds */
    struct tell_post {
        const char *way; /* NULL: none */
        char *body;
        int64_t id; /* filled in */
    } post[4];
};
int tell_store_write(struct sql *db, struct tell_write *w, struct error *e) MUST_CHECK;

/* A message was taken, or given up; or it was tried once more. */
int tell_store_drop(struct sql *db, int64_t id, struct error *e) MUST_CHECK;
int tell_store_tried(struct sql *db, int64_t id, int64_t tries, struct error *e) MUST_CHECK;

struct tell_reader {
    void *ctx;
    void (*notice)(void *ctx, const struct notice *n);
    void (*post)(void *ctx, int64_t id, const char *way, int64_t made, int64_t tries, const char *body);
    void (*mark)(void *ctx, const char *stream, int64_t mark);
};
int tell_store_read(struct sql *db, const struct tell_reader *r, struct error *e) MUST_CHECK;
