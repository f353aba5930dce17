/* Repeating jobs as commands ask for them, and their times as `gpumgr repeat` and `gpumgr submit` print them. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json_tree.h"

enum { REPEAT_WHEN = 40 };
/* "2026-11-16 03:00 +01:00" of the API's "local". */
void repeat_when(const struct json_tree *slot, char ret[REPEAT_WHEN]);

/* The next times of an expression, a line each, behind a line that names it; asks the server. NULL: not given. json: the
 * answer as it came. */
struct repeat_times {
    const char *cron, *interval, *zone;
};
/* The lines of such an answer. */
void repeat_times_lines(const struct json_tree *root, struct buf *out);
int repeat_times_put(const char *dir, const struct repeat_times *t, bool json, struct buf *out, struct error *e)
    MUST_CHECK;

/* "repeat 3 comes next 2026-11-16 03:00 +01:00 (Europe/Berlin)"; false: nobody knows. */
bool repeat_first_line(const char *dir, int64_t id, struct buf *out);

/* The server's list: its text, and the same as a tree. */
int repeats_ask(const char *dir, struct json_tree **ret, struct buf *answer, struct error *e) MUST_CHECK;
/* Which one a word means: a number, or a name that only one of them has; one's own come first. *all: the server's list, which is
 * asked for where it is NULL and needed; the caller frees it. */
int repeat_pick(const char *dir, struct json_tree **all, const char *word, int64_t *ret, struct error *e) MUST_CHECK;

/* `gpumgr repeat edit`. argv[0] is "edit". An exit code. */
struct command;
int repeat_edit_run(const struct command *self, int argc, char **argv);
