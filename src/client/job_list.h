/* The jobs that somebody asks for by user, state, name and labels: page by page, as the server gives them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "client/flags.h"

struct job_list {
    const char *user, *state, *name; /* NULL: any */
    struct flag_list labels;         /* KEY=VALUE, KEY for any value */
    int64_t from, to;                /* numbers; 0: from the first, to the last */
    size_t limit;
};

/* Rows for flags_parse, appended from *count on: --name and --label. */
void job_list_rows(struct job_list *l, struct flag *rows, size_t *count);
/* "?name=...&label=...", or "". What is wrong with them is said by the server. */
void job_list_query(const struct job_list *l, struct buf *ret);

/* {"jobs": [...], "next"}, as the API has it, appended to ret; the newest first. */
int job_list_ask(const char *dir, const struct job_list *l, struct buf *ret, struct error *e) MUST_CHECK;

/* Who asks, as jobs name their user. */
const char *job_list_me(char *ret, size_t room);
