#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/job_table.h"
#include "client/repeat.h"
#include "client/server_ask.h"

void repeat_when(const struct json_tree *slot, char ret[REPEAT_WHEN]) {
    const char *local = job_text(slot, "local");
    if (strlen(local) < 25 || local[10] != 'T')
        snprintf(ret, REPEAT_WHEN, "%.30s", local);
    else
        snprintf(ret, REPEAT_WHEN, "%.10s %.*s %.6s", local, strncmp(local + 17, "00", 2) == 0 ? 5 : 8, local + 11,
                 local + 19);
}

static void put_lines(const struct json_tree *root, struct buf *out) {
    const struct json_tree *next = json_tree_get(root, "next");
    const char *cron = job_text(root, "cron");
    buf_printf(out, "%s (%s):\n", *cron ? cron : job_text(root, "interval"), job_text(root, "zone"));
    for (size_t i = 0; i < json_tree_count(next); i++) {
        char when[REPEAT_WHEN];
        repeat_when(json_tree_at(next, i), when);
        buf_printf(out, "  %s\n", when);
    }
    if (!json_tree_count(next)) buf_puts(out, "  none of its times is still to come\n");
}

int repeat_times_put(const char *dir, const struct repeat_times *t, bool json, struct buf *out, struct error *e) {
    const struct {
        const char *before, *value;
    } parts[] = {
        {"cron=",     t->cron    },
        {"interval=", t->interval},
        {"zone=",     t->zone    },
    };
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct json_tree *root;
    buf_puts(&path, "/api/v1/repeat-times");
    char join = '?';
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        AUTO(buf_done) struct buf part = {0};
        if (!parts[i].value || !*parts[i].value) continue;
        server_path(&part, parts[i].before, parts[i].value, "");
        buf_printf(&path, "%c%s", join, part.s);
        join = '&';
    }
    int r = server_ask(dir, "GET", path.s, NULL, &answer, e);
    if (r >= 0 && json) buf_puts(out, answer.s);
    if (r < 0 || json) return r;
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return r;
    put_lines(root, out);
    json_tree_free(root);
    return 0;
}

bool repeat_first_line(const char *dir, int64_t id, struct buf *out) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct json_tree *root;
    struct error e;
    char when[REPEAT_WHEN];
    buf_printf(&path, "/api/v1/repeats/%lld", (long long)id);
    if (server_ask(dir, "GET", path.s, NULL, &answer, &e) < 0) return false;
    if (json_tree_parse(answer.s, answer.len, &root, &e) < 0) return false;
    const struct json_tree *first = json_tree_at(json_tree_get(root, "next"), 0);
    repeat_when(first, when);
    if (first) buf_printf(out, "repeat %lld comes next %s (%s)", (long long)id, when, job_text(root, "zone"));
    json_tree_free(root);
    return first != NULL;
}
