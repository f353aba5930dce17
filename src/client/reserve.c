/* `gpumgr reserve`: GPUs for a time, once or again and again; who has which when; taking one back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/zone_file.h"
#include "client/amount.h"
#include "client/command.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"
#include "client/when.h"
#include "model/duration.h"

struct wish {
    bool json, is_dry;
    bool has_gpus;
    double gpus;
    const char *gpu, *node, *from, *length, *every, *until, *user, *group, *note, *zone;
};

/* ---- adding ---- */

/* daily, weekdays, weekly: as often as that at the time at which it begins. */
static void every_text(const char *every, int64_t from_ns, char *ret, size_t room) {
    time_t at = (time_t)(from_ns / NS_PER_S);
    struct tm tm;
    localtime_r(&at, &tm);
    if (strcmp(every, "daily") == 0)
        snprintf(ret, room, "%d %d * * *", tm.tm_min, tm.tm_hour);
    else if (strcmp(every, "weekdays") == 0)
        snprintf(ret, room, "%d %d * * 1-5", tm.tm_min, tm.tm_hour);
    else if (strcmp(every, "weekly") == 0)
        snprintf(ret, room, "%d %d * * %d", tm.tm_min, tm.tm_hour, tm.tm_wday);
    else
        snprintf(ret, room, "%s", every);
}

static void put_ids(const char *ids, struct buf *b) {
    json_key(b, "gpu_ids");
    json_open(b, '[');
    for (const char *at = ids; *at; at += strcspn(at, ","), at += *at == ',') {
        char one[100];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(at, ","), at);
        json_str(b, one);
    }
    json_close(b, ']');
}

/* Times that flags say. */
struct times {
    int64_t from_ns, length_ms, until_ns;
};

static int read_times(const struct wish *w, struct times *t, struct error *e) {
    int64_t now_ns = clock_real_ns();
    int r = w->length ? amount_time("for", w->length, 60000, 31 * 86400000LL, &t->length_ms, e) : 0;
    if (r == 0 && w->from) r = when_parse("from", w->from, now_ns, &t->from_ns, e);
    if (r == 0 && w->until && strcmp(w->until, "never") != 0)
        r = when_parse("until", w->until, now_ns, &t->until_ns, e);
    if (r == 0 && w->gpu && w->has_gpus) r = fail(e, -EINVAL, "--gpus: does not go with --gpu");
    if (r == 0 && w->user && w->group) r = fail(e, -EINVAL, "--user: does not go with --group");
    return r;
}

static void put_texts(const struct wish *w, struct buf *b) {
    const struct {
        const char *key, *text;
    } texts[] = {
        {"node",  w->node },
        {"user",  w->user },
        {"group", w->group},
        {"note",  w->note }
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].text) json_pair_str(b, texts[i].key, texts[i].text);
}

/* zone: that it has already, or "". */
static void put_every(const struct wish *w, int64_t from_ns, const char *zone, struct buf *b) {
    char every[160], local[80];
    every_text(w->every, from_ns, every, sizeof every);
    zone_file_local(local, sizeof local);
    json_pair_str(b, "every", every);
    json_pair_str(b, "zone", w->zone ? w->zone : *zone ? zone : local);
}

static int body_of(const struct wish *w, struct buf *b, struct error *e) {
    struct times t = {.from_ns = clock_real_ns()};
    if (!w->length) return fail(e, -EINVAL, "--for: is missing: how long, as 4h");
    int r = read_times(w, &t, e);
    if (r == 0 && w->zone && !w->every) r = fail(e, -EINVAL, "--zone: is for one that comes again (--every)");
    if (r < 0) return r;
    json_open(b, '{');
    json_pair_int(b, "from", t.from_ns / NS_PER_S);
    json_pair_int(b, "for_s", t.length_ms / 1000);
    if (w->gpu)
        put_ids(w->gpu, b);
    else
        json_pair_num(b, "gpus", w->has_gpus ? w->gpus : 1);
    put_texts(w, b);
    if (w->every) put_every(w, t.from_ns, "", b);
    if (t.until_ns) json_pair_int(b, "until", t.until_ns / NS_PER_S);
    json_close(b, '}');
    return 0;
}

static void span_text(const struct json_tree *window, char *ret, size_t room) {
    char from[WHEN_TEXT], to[WHEN_TEXT];
    int64_t now_ns = clock_real_ns();
    if (json_tree_type(window) != JSON_TREE_OBJECT) {
        snprintf(ret, room, "-");
        return;
    }
    when_text((int64_t)job_number(window, "from") * NS_PER_S, now_ns, from);
    when_text((int64_t)job_number(window, "to") * NS_PER_S, now_ns, to);
    snprintf(ret, room, "%s to %s", from, to);
}

static void who_text(const struct json_tree *v, char *ret, size_t room) {
    const char *group = job_text(v, "group");
    snprintf(ret, room, "%s%s", *group ? "group " : "", *group ? group : job_text(v, "user"));
}

static void put_line(const struct json_tree *v, struct buf *out) {
    char gpus[80], span[100], who[80];
    job_list(json_tree_get(v, "gpu_indices"), gpus, sizeof gpus);
    span_text(json_tree_get(v, "next"), span, sizeof span);
    who_text(v, who, sizeof who);
    buf_printf(out, "reservation %.0f: GPU %s of %s for %s, %s%s\n", job_number(v, "id"), gpus, job_text(v, "node"),
               who, span, *job_text(v, "every") ? ", and again" : "");
}

static int add(const struct wish *w, const char *dir, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf body = {0}, answer = {0};
    struct json_tree *v;
    int r = body_of(w, &body, e);
    if (r < 0) return r;
    r = server_ask_once(dir, "POST", "/api/v1/reservations", &body, &answer, e);
    if (r < 0) return r;
    if (w->json) {
        buf_add(out, answer.s, answer.len);
        return 0;
    }
    r = json_tree_parse(answer.s, answer.len, &v, e);
    if (r < 0) return r;
    put_line(v, out);
    json_tree_free(v);
    return 0;
}

/* ---- changing ---- */

static int check_id(const char *id, struct error *e) {
    if (!*id || strspn(id, "0123456789") != strlen(id) || strlen(id) > 15)
        return fail(e, -EINVAL, "\"%.30s\" is no number of a reservation", id);
    return 0;
}

/* What the flags say, and nothing else. old: as it is now. */
static int change_of(const struct wish *w, const struct json_tree *old, struct buf *b, struct error *e) {
    struct times t = {.from_ns = (int64_t)job_number(old, "begins") * NS_PER_S};
    bool is_once = w->every && strcmp(w->every, "once") == 0;
    int r = read_times(w, &t, e);
    if (r == 0 && w->zone && is_once) r = fail(e, -EINVAL, "--zone: is for one that comes again (--every)");
    if (r < 0) return r;
    json_open(b, '{');
    if (w->from) json_pair_int(b, "from", t.from_ns / NS_PER_S);
    if (w->length) json_pair_int(b, "for_s", t.length_ms / 1000);
    if (w->gpu) put_ids(w->gpu, b);
    if (w->has_gpus) json_pair_num(b, "gpus", w->gpus);
    put_texts(w, b);
    if (is_once)
        json_pair_str(b, "every", "");
    else if (w->every)
        put_every(w, t.from_ns, job_text(old, "zone"), b);
    else if (w->zone)
        json_pair_str(b, "zone", w->zone);
    if (w->until) json_pair_int(b, "until", t.until_ns / NS_PER_S);
    json_close(b, '}');
    if (strcmp(b->s, "{}") == 0) return fail(e, -EINVAL, "edit: what is to change? as in --for 6h");
    return 0;
}

static void value_text(const char *key, const struct json_tree *v, char *ret, size_t room) {
    double number = json_tree_number(v, 0);
    char text[WHEN_TEXT];
    if (!v || json_tree_is_null(v)) {
        snprintf(ret, room, "(none)");
    } else if (strcmp(key, "gpu_indices") == 0) {
        job_list(v, ret, room);
    } else if (strcmp(key, "for_s") == 0) {
        duration_text((int64_t)number * NS_PER_S, text);
        snprintf(ret, room, "%s", text);
    } else if (strcmp(key, "from") == 0 || strcmp(key, "until") == 0) {
        when_text((int64_t)number * NS_PER_S, clock_real_ns(), text);
        snprintf(ret, room, "%s", text);
    } else {
        snprintf(ret, room, "%s", json_tree_text(v, ""));
    }
}

static void put_changes(const struct json_tree *changes, struct buf *out) {
    for (size_t i = 0; i < json_tree_count(changes); i++) {
        const struct json_tree *c = json_tree_at(changes, i);
        const char *key = job_text(c, "key");
        char from[256], to[256];
        value_text(key, json_tree_get(c, "from"), from, sizeof from);
        value_text(key, json_tree_get(c, "to"), to, sizeof to);
        buf_printf(out, "  %s: %s -> %s\n",
                   strcmp(key, "gpu_indices") == 0 ? "gpu"
                   : strcmp(key, "for_s") == 0     ? "for"
                                                   : key,
                   from, to);
    }
}

static int show_change(const struct wish *w, const struct buf *answer, struct buf *out, struct error *e) {
    struct json_tree *root;
    int r = json_tree_parse(answer->s, answer->len, &root, e);
    if (r < 0) return r;
    const struct json_tree *changes = json_tree_get(root, "changes"), *v = json_tree_get(root, "reservation");
    put_changes(changes, out);
    put_line(v, out);
    buf_printf(out, "reservation %.0f %s\n", job_number(v, "id"),
               !json_tree_count(changes) ? "is so already: nothing changes"
               : w->is_dry               ? "is not changed yet"
                                         : "is changed");
    json_tree_free(root);
    return 0;
}

static int edit(const struct wish *w, char *const *ids, size_t count, const char *dir, struct buf *out,
                struct error *e) {
    AUTO(buf_done) struct buf path = {0}, now = {0}, body = {0}, answer = {0};
    struct json_tree *old;
    if (count != 1) return fail(e, -EINVAL, "edit: which reservation? `gpumgr reserve list` lists them");
    int r = check_id(ids[0], e);
    if (r < 0) return r;
    buf_printf(&path, "/api/v1/reservations/%s", ids[0]);
    r = server_ask(dir, "GET", path.s, NULL, &now, e);
    if (r >= 0) r = json_tree_parse(now.s, now.len, &old, e);
    if (r < 0) return r;
    r = change_of(w, old, &body, e);
    json_tree_free(old);
    if (r < 0) return r;
    if (w->is_dry) buf_puts(&path, "?dry_run=1");
    r = server_ask_once(dir, "PUT", path.s, &body, &answer, e);
    if (r >= 0 && w->json) buf_add(out, answer.s, answer.len);
    return r < 0 || w->json ? r : show_change(w, &answer, out, e);
}

/* ---- listing ---- */

/* clang-format off */
static const struct table_column columns[] = {
    {.title = "ID", .to_the_right = true},
    {.title = "FOR", .shrink = 8},
    {.title = "NODE", .shrink = 6, .drop = 3},
    {.title = "GPU", .shrink = 6},
    {.title = "STATE"},
    {.title = "WHEN", .shrink = 20},
    {.title = "EVERY", .shrink = 8, .drop = 2},
    {.title = "NOTE", .shrink = 8, .drop = 1},
};
/* clang-format on */

static void put_row(const struct json_tree *v, struct table_cell *c) {
    snprintf(c[0].text, sizeof c[0].text, "%.0f", job_number(v, "id"));
    who_text(v, c[1].text, sizeof c[1].text);
    snprintf(c[2].text, sizeof c[2].text, "%s", job_text(v, "node"));
    job_list(json_tree_get(v, "gpu_indices"), c[3].text, sizeof c[3].text);
    snprintf(c[4].text, sizeof c[4].text, "%s", job_text(v, "state"));
    if (strcmp(c[4].text, "now") == 0) c[4].colour = JOB_GREEN;
    if (strcmp(c[4].text, "unused") == 0) c[4].colour = JOB_YELLOW;
    span_text(json_tree_get(v, "next"), c[5].text, sizeof c[5].text);
    snprintf(c[6].text, sizeof c[6].text, "%s", job_text(v, "every"));
    snprintf(c[7].text, sizeof c[7].text, "%s", job_text(v, "note"));
}

static int list(const struct wish *w, const char *dir, struct buf *out, struct error *e) {
    AUTO(buf_done) struct buf answer = {0};
    struct json_tree *root;
    struct screen screen = screen_look();
    int r = server_ask(dir, "GET", "/api/v1/reservations", NULL, &answer, e);
    if (r < 0) return r;
    if (w->json) {
        buf_add(out, answer.s, answer.len);
        return 0;
    }
    r = json_tree_parse(answer.s, answer.len, &root, e);
    if (r < 0) return r;
    const struct json_tree *all = json_tree_get(root, "reservations");
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = ARRAY_LEN(columns);
    for (size_t i = 0; i < json_tree_count(all) && t->row_count < TABLE_ROWS_MAX; i++) {
        const struct json_tree *v = json_tree_at(all, i);
        if (strcmp(job_text(v, "state"), "over") != 0) put_row(v, t->cell[t->row_count++]);
    }
    if (t->row_count)
        table_print(t, screen.width, screen.has_colour, out);
    else
        buf_puts(out, "nothing is reserved\n");
    free(t);
    json_tree_free(root);
    return 0;
}

/* ---- taking back ---- */

static int cancel(char *const *ids, size_t count, const char *dir, struct buf *out, struct error *e) {
    if (!count) return fail(e, -EINVAL, "which reservation? `gpumgr reserve list` lists them");
    for (size_t i = 0; i < count; i++) {
        int r = check_id(ids[i], e);
        if (r < 0) return r;
    }
    for (size_t i = 0; i < count; i++) {
        AUTO(buf_done) struct buf answer = {0};
        char path[64];
        snprintf(path, sizeof path, "/api/v1/reservations/%s", ids[i]);
        int r = server_ask(dir, "DELETE", path, NULL, &answer, e);
        if (r < 0) return r;
        buf_printf(out, "reservation %s is taken back\n", ids[i]);
    }
    return 0;
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {0};
    /* clang-format off */
    const struct flag own[] = {
        {.name = "json",  .kind = FLAG_YES,    .into = &w.json},
        {.name = "dry-run", .kind = FLAG_YES,  .into = &w.is_dry},
        {.name = "gpus",  .kind = FLAG_NUMBER, .into = &w.gpus, .min = 1, .max = 64, .given = &w.has_gpus},
        {.name = "gpu",   .kind = FLAG_TEXT,   .into = &w.gpu},
        {.name = "node",  .kind = FLAG_TEXT,   .into = &w.node},
        {.name = "from",  .kind = FLAG_TEXT,   .into = &w.from},
        {.name = "for",   .kind = FLAG_TEXT,   .into = &w.length},
        {.name = "every", .kind = FLAG_TEXT,   .into = &w.every},
        {.name = "until", .kind = FLAG_TEXT,   .into = &w.until},
        {.name = "zone",  .kind = FLAG_TEXT,   .into = &w.zone},
        {.name = "user",  .kind = FLAG_TEXT,   .into = &w.user},
        {.name = "group", .kind = FLAG_TEXT,   .into = &w.group},
        {.name = "note",  .kind = FLAG_TEXT,   .into = &w.note},
    };
    /* clang-format on */
    AUTO(buf_done) struct buf out = {0};
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    const char *verb = r == 0 && flags.word_count ? flags.words[0] : w.length || w.from ? "add" : "list";
    bool is_cancel = strcmp(verb, "cancel") == 0, is_add = strcmp(verb, "add") == 0,
         is_edit = strcmp(verb, "edit") == 0;
    if (r == 0 && !is_cancel && !is_add && !is_edit && strcmp(verb, "list") != 0)
        r = fail(&e, -EINVAL, "\"%.30s\" is none of add, list, edit and cancel", verb);
    if (r == 0 && w.is_dry && !is_edit) r = fail(&e, -EINVAL, "--dry-run: is for edit");
    if (r == 0 && !is_cancel && !is_edit && flags.word_count > 1)
        r = fail(&e, -EINVAL, "\"%.30s\" is one word too many", flags.words[1]);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    const char *dir = loaded.values.dir;
    if (is_edit)
        r = edit(&w, flags.words + 1, flags.word_count - 1, dir, &out, &e);
    else if (is_cancel)
        r = cancel(flags.words + 1, flags.word_count - 1, dir, &out, &e);
    else
        r = is_add ? add(&w, dir, &out, &e) : list(&w, dir, &out, &e);
    if (r < 0) {
        int written = output_write(&out);
        (void)written;
        return command_fail(self, &e, r == -EINVAL ? EXIT_INPUT : error_exit_code(r));
    }
    return output_exit(&out);
}

const struct command command_reserve = {
    .name = "reserve",
    .summary = "Keep GPUs for a time, and say who has which when",
    .words = "add list edit cancel",
    .run = run,
    .help =
        "usage: gpumgr reserve [--gpus N | --gpu LIST] [--from MOMENT] --for TIME [--every WHEN [--until MOMENT]]\n"
        "                      [--user NAME | --group NAME] [--node NAME] [--note TEXT] [--json] [--dir DIR]\n"
        "       gpumgr reserve list [--json]\n"
        "       gpumgr reserve edit ID [FLAGS] [--dry-run]\n"
        "       gpumgr reserve cancel ID...\n"
        "\n"
        "Keeps GPUs of a machine for a user or a group. The queue plans around it: what might not be over by then "
        "is not\n"
        "started on them, what surely is (its time limit) may be. Without a word and without times: list.\n"
        "\n"
        "`edit` says what is to change, the rest stays, and shows each change. One that has begun can become longer "
        "or\n"
        "shorter (--for counts from its beginning) or begin later; with --gpus it keeps those that it has where they\n"
        "suffice. --every once: it does not come again; --until never: without end.\n"
        "\n"
        "  --gpus N        so many, chosen now (1)\n"
        "  --gpu LIST      just these, by index or UUID: 0,3\n"
        "  --from MOMENT   when it begins: \"tomorrow 09:00\", \"2026-11-16 08:00\" (now)\n"
        "  --for TIME      how long: 90m, 4h, 2d\n"
        "  --every WHEN    it comes again: daily, weekdays or weekly at that time of the day, a cron expression\n"
        "                  (\"0 9 * * 1-5\") or an ISO 8601 repeating interval\n"
        "  --until MOMENT  no further one from then on\n"
        "  --zone NAME     whose clocks --every means (those of this machine)\n"
        "  --user NAME     for somebody else, as an administrator\n"
        "  --group NAME    for the members of a Unix group, as an administrator\n"
        "  --node NAME     on this machine, where there are several\n"
        "  --note TEXT     what for\n"
        "  --dry-run       with edit: only say what would change\n"
        "  --json          as the API has it\n"
        "  --dir DIR       the instance to ask\n"
        "\n"
        "example: gpumgr reserve --gpus 2 --from \"tomorrow 09:00\" --for 4h --every weekdays --note course\n",
};
