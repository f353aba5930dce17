#include "client/job_list.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_tree.h"
#include "client/job_table.h"
#include "client/server_ask.h"
#include "model/job_match.h"

enum { PAGE = 1000 };

const char *job_list_me(char *ret, size_t room) {
    const struct passwd *p = getpwuid(geteuid());
    if (p)
        snprintf(ret, room, "%s", p->pw_name);
    else
        snprintf(ret, room, "%u", (unsigned)geteuid());
    return ret;
}

void job_list_rows(struct job_list *l, struct flag *rows, size_t *count) {
    rows[(*count)++] = (struct flag){.name = "name", .kind = FLAG_TEXT, .into = &l->name};
    rows[(*count)++] = (struct flag){.name = "label", .kind = FLAG_LIST, .into = &l->labels};
}

static void put(struct buf *path, const char *key, const char *value) {
    AUTO(buf_done) struct buf part = {0};
    server_path(&part, key, value, "");
    buf_printf(path, "%c%s", path->len ? '&' : '?', part.s);
}

void job_list_query(const struct job_list *l, struct buf *ret) {
    AUTO(buf_done) struct buf labels = {0};
    if (l->name) put(ret, "name=", l->name);
    for (size_t i = 0; i < l->labels.count; i++) job_match_put(&labels, l->labels.of[i]);
    if (l->labels.count) put(ret, "label=", labels.len ? labels.s : "");
    if (l->state) put(ret, "state=", l->state);
    if (l->user) put(ret, "user=", l->user);
}

/* A page: how many of it were taken; *before becomes where the next one begins, 0: there is none. */
static int ask_page(const char *dir, const struct job_list *l, size_t left, int64_t *before, struct buf *ret,
                    struct error *e) {
    AUTO(buf_done) struct buf path = {0}, query = {0}, answer = {0};
    struct json_tree *root;
    int taken = 0;
    job_list_query(l, &query);
    buf_printf(&path, "/api/v1/jobs%s%climit=%zu", query.len ? query.s : "", query.len ? '&' : '?',
               left < PAGE ? left : PAGE);
    if (*before) buf_printf(&path, "&before=%lld", (long long)*before);
    int r = server_ask(dir, "GET", path.s, NULL, &answer, e);
    if (r >= 0)
        r = json_tree_parse(answer.s, answer.len, &root, e) < 0 ? fail_in(e, e->code, "the server's answer") : 0;
    if (r < 0) return r;
    const struct json_tree *jobs = json_tree_get(root, "jobs");
    *before = json_tree_integer(json_tree_get(root, "next"), 0);
    for (size_t i = 0; i < json_tree_count(jobs); i++) {
        const struct json_tree *j = json_tree_at(jobs, i);
        if (job_number(j, "id") < (double)l->from) {
            *before = 0;
            break;
        }
        if (ret->s[ret->len - 1] != '[') buf_putc(ret, ',');
        json_tree_write(j, ret);
        taken++;
    }
    json_tree_free(root);
    return taken;
}

int job_list_ask(const char *dir, const struct job_list *l, struct buf *ret, struct error *e) {
    int64_t before = l->to ? l->to + 1 : 0;
    size_t count = 0;
    buf_puts(ret, "{\"jobs\":[");
    do {
        int r = ask_page(dir, l, l->limit - count, &before, ret, e);
        if (r < 0) return r;
        count += (size_t)r;
    } while (before > l->from && before && count < l->limit);
    buf_puts(ret, "],\"next\":");
    if (before)
        buf_printf(ret, "%lld}\n", (long long)before);
    else
        buf_puts(ret, "null}\n");
    return 0;
}
