#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
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

void repeat_times_lines(const struct json_tree *root, struct buf *out) {
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
    repeat_times_lines(root, out);
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

/* ---- which one ---- */

int repeats_ask(const char *dir, struct json_tree **ret, struct buf *answer, struct error *e) {
    int r = server_ask(dir, "GET", "/api/v1/repeats", NULL, answer, e);
    return r < 0 ? r : json_tree_parse(answer->s, answer->len, ret, e);
}

int repeat_pick(const char *dir, struct json_tree **all, const char *word, int64_t *ret, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    if (strspn(word, "0123456789") == strlen(word) && strlen(word) < 18) {
        *ret = atoll(word);
        return 0;
    }
    int r = *all ? 0 : repeats_ask(dir, all, &answer, e);
    if (r < 0) return r;
    const struct json_tree *list = json_tree_get(*all, "repeats");
    struct nearest guess = {.typed = word};
    unsigned own = 0, others = 0;
    int64_t mine = 0, theirs = 0;
    for (size_t i = 0; i < json_tree_count(list); i++) {
        const struct json_tree *one = json_tree_at(list, i);
        nearest_offer(&guess, job_text(one, "name"));
        if (strcmp(job_text(one, "name"), word) != 0) continue;
        bool is_mine = job_number(one, "uid") == geteuid();
        own += is_mine;
        others += !is_mine;
        *(is_mine ? &mine : &theirs) = (int64_t)job_number(one, "id");
    }
    if (own > 1 || (!own && others > 1))
        return fail(e, -EINVAL, "%.60s: %u repeating jobs are called that; give a number", word, own ? own : others);
    if (!own && !others)
        return guess.best ? fail(e, -ENOENT, "no repeating job is called %.60s; did you mean %s?", word, guess.best)
                          : fail(e, -ENOENT, "no repeating job is called %.60s", word);
    *ret = own ? mine : theirs;
    return 0;
}
