/* `gpumgr ps`: containers and their GPU tasks, with deadlines. Asks the server of this machine; without one it reads the
 * node's task table, which anyone may. */
#include "client/ps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/begin.h"
#include "client/command.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "client/source.h"
#include "client/watch.h"

struct wish {
    bool watch, all, json;
    double every_s;
};

/* ---- the server's word ---- */

/* What lies between two words of an answer of ours; quotation marks within texts are escaped, so neither is in one. */
static int cut(const struct buf *answer, const char *from, const char *until, struct buf *ret, struct error *e) {
    const char *begin = answer->len ? strstr(answer->s, from) : NULL, *end = NULL;
    for (const char *at = begin; at && (at = strstr(at, until)); at++) end = at;
    if (!end) return fail(e, -EPROTO, "the server's answer is of another version");
    buf_add(ret, begin, (size_t)(end - begin));
    return 0;
}

int ps_server(const char *dir, bool all, struct buf *ret, struct error *e) {
    AUTO(buf_done) struct buf containers = {0}, tasks = {0}, whole = {0};
    int r = server_ask(dir, "GET", all ? "/api/v1/containers?all=1" : "/api/v1/containers", NULL, &containers, e);
    if (r >= 0)
        r = server_ask(dir, "GET", all ? "/api/v1/tasks?limit=1000" : "/api/v1/tasks?limit=1000&state=running", NULL,
                       &tasks, e);
    if (r < 0) return r;
    buf_putc(&whole, '{');
    r = cut(&containers, "\"containers\":", "}\n", &whole, e);
    buf_putc(&whole, ',');
    if (r >= 0) r = cut(&tasks, "\"tasks\":", ",\"next\":", &whole, e);
    buf_putc(&whole, '}');
    if (r >= 0) *ret = TAKE_STRUCT(whole);
    return r;
}

/* ---- showing ---- */

static int gather(const char *dir, const struct wish *w, struct buf *document, struct error *e) {
    struct instance i;
    int r = ps_server(dir, w->all, document, e);
    if (r != -ENOTCONN) return r;
    r = instance_find(dir, &i, e);
    if (r == -ENOENT) return fail(e, r, "no gpumgr has followed tasks here yet; `gpumgr up` does");
    return r < 0 ? r : ps_local(&i, w->all, document, e);
}

static int show(const struct settings *s, const struct wish *w, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf document = {0};
    AUTO(view_done) struct view v = {0};
    AUTO(source_close) struct source source = {0};
    struct error ignored;
    int r = gather(s->dir, w, &document, e);
    if (r < 0) return r;
    if (w->json) {
        buf_add(out, document.s, document.len);
        buf_putc(out, '\n');
        return 0;
    }
    struct screen screen = screen_look();
    /* numbers of GPUs, where this machine has any */
    if (source_open(&source, s, SOURCE_DAEMON, &ignored) < 0 || source_view(&source, &v, &ignored) < 0) view_clear(&v);
    return ps_table(&document, &v, w->all, &screen, out, e);
}

struct watched {
    const struct settings *settings;
    const struct wish *wish;
};

static int show_again(void *ctx, struct buf *out, struct error *e) {
    const struct watched *w = ctx;
    return show(w->settings, w->wish, out, e);
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {0};
    const struct flag own[] = {
        {.name = "watch",   .kind = FLAG_MAYBE,  .into = &w.every_s, .min = 0.1, .max = 3600, .given = &w.watch},
        {.name = "all",      .kind = FLAG_YES,        .into = &w.all                         },
        {.name = "json",.kind = FLAG_YES,.into = &w.json},
    };
    struct loaded loaded = {0};
    struct error e;
    int code = command_begin(self, argc, argv, own, ARRAY_LEN(own), LOAD_LOOSE, &loaded);
    if (code != COMMAND_GOES_ON) return code;
    if (*loaded.warning) output_note(loaded.warning);
    struct watched watched = {&loaded.values, &w};
    if (w.watch) return watch_show(w.every_s, w.json, show_again, &watched);
    AUTO(buf_done) struct buf out = {0};
    int r = show(&loaded.values, &w, &out, &e);
    return r < 0 ? command_fail(self, &e, EXIT_FAILED) : output_exit(&out);
}

const struct command command_ps = {
    .name = "ps",
    .summary = "Show containers and GPU tasks with their deadlines",
    .run = run,
    .help =
        "usage: gpumgr ps [--all] [--watch [SECONDS]] [--json] [--dir DIR]\n"
        "\n"
        "First the containers that use GPUs: deadline of each of their tasks, tasks (running+ended), slack (time left\n"
        "to the running task that has least; else the least there ever was), how many kept their deadline. Then the\n"
        "tasks: every process on a GPU, whose it is, how long it has run, and the time left to its deadline (FLOAT);\n"
        "OVERDUE: the deadline has passed and it still runs; hit or MISS: how it ended. Asks the server of this\n"
        "machine; where none runs it reads what the node publishes, which has the tasks since the machine started.\n"
        "\n"
        "  --all              ended tasks and containers, too\n"
        "  --watch [SECONDS]  again every second, or every SECONDS; Ctrl-C ends it\n"
        "  --json             one object (with --watch one a line): {\"containers\": [...], \"tasks\": [...]}, as the\n"
        "                     API has them; times are Unix seconds, what is not known is null\n"
        "  --dir DIR          the instance to look at\n"
        "\n"
        "example: gpumgr ps --watch\n",
};
