/* What `gpumgr containers` prints: the list, images, what a change would change. And its flags as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/number.h"
#include "client/containers.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/table.h"
#include "client/text.h"

static void put(struct table_cell *c, const char *text) { snprintf(c->text, sizeof c->text, "%s", text); }

static void put_age(struct table_cell *c, double since) {
    double s = (double)clock_real_ns() / NS_PER_S - since;
    if (since > 0) job_span(s > 10 ? s : 10, c->text, sizeof c->text);
}

static void put_bytes(struct table_cell *c, double bytes) {
    if (bytes > 0) number_bytes(bytes, c->text, sizeof c->text);
}

static void put_gpus(struct table_cell *c, const struct json_tree *row) {
    const struct json_tree *gpus = json_tree_get(row, "gpus");
    size_t used = 0;
    if (json_tree_is_true(json_tree_get(row, "all_gpus"))) put(c, "all");
    for (size_t i = 0; i < json_tree_count(gpus) && used + 16 < sizeof c->text; i++) {
        const struct json_tree *g = json_tree_at(gpus, i);
        used += (size_t)snprintf(c->text + used, sizeof c->text - used, "%s%.12s", i ? "," : "", job_text(g, "name"));
    }
}

/* "up", "exited 3", "created" */
static void put_state(struct table_cell *c, const struct json_tree *row) {
    double code = job_number(row, "exit_code");
    if (isnan(code))
        put(c, job_text(row, "state"));
    else
        snprintf(c->text, sizeof c->text, "%s %.0f", job_text(row, "state"), code);
}

static int print(struct table *t, struct buf *out) {
    struct screen s = screen_look();
    table_print(t, s.width, s.has_colour, out);
    free(t);
    return 0;
}

static struct table *table_of(const struct table_column *columns, int count) {
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = count;
    return t;
}

int containers_table(const struct buf *list, struct buf *out, struct error *e) {
    static const struct table_column columns[] = {
        {"NAME",     false, 0, 12},
        {"IMAGE",    false, 2, 12},
        {"USER",     false, 3, 6 },
        {"GPUS",     false, 0, 0 },
        {"MEMORY",   true,  4, 0 },
        {"DEADLINE", true,  5, 0 },
        {"STATE",    false, 0, 0 },
        {"AGE",      true,  3, 0 },
        {"ID",       false, 6, 12},
    };
    struct json_tree *tree;
    int r = json_tree_parse(list->s, list->len, &tree, e);
    if (r < 0) return r;
    struct table *t = table_of(columns, ARRAY_LEN(columns));
    size_t count = json_tree_count(tree);
    for (size_t i = 0; i < count && t->row_count < TABLE_ROWS_MAX; i++) {
        const struct json_tree *row = json_tree_at(tree, i);
        struct table_cell *cell = t->cell[t->row_count++];
        put(&cell[0], job_text(row, "name"));
        put(&cell[1], job_text(row, "image"));
        put(&cell[2], job_text(row, "user"));
        put_gpus(&cell[3], row);
        put_bytes(&cell[4], job_number(row, "memory_bytes"));
        put(&cell[5], job_text(row, "deadline"));
        put_state(&cell[6], row);
        put_age(&cell[7], job_number(row, "created"));
        snprintf(cell[8].text, sizeof cell[8].text, "%.12s", job_text(row, "id"));
    }
    if (!count)
        buf_puts(out, "No container here has to do with GPUs. `gpumgr containers add IMAGE --gpus 1` adds one.\n");
    json_tree_free(tree);
    return count ? print(t, out) : (free(t), 0);
}

int containers_images(const struct buf *list, struct buf *out, struct error *e) {
    static const struct table_column columns[] = {
        {"IMAGE", false, 0, 20},
        {"SIZE",  true,  0, 0 },
        {"AGE",   true,  0, 0 },
    };
    struct json_tree *tree;
    int r = json_tree_parse(list->s, list->len, &tree, e);
    if (r < 0) return r;
    struct table *t = table_of(columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < json_tree_count(tree) && t->row_count < TABLE_ROWS_MAX; i++) {
        const struct json_tree *row = json_tree_at(tree, i);
        struct table_cell *cell = t->cell[t->row_count++];
        put(&cell[0], job_text(row, "name"));
        put_bytes(&cell[1], job_number(row, "size_bytes"));
        put_age(&cell[2], job_number(row, "created"));
    }
    json_tree_free(tree);
    return print(t, out);
}

int containers_changes(const struct buf *answer, struct buf *out, struct error *e) {
    struct json_tree *tree;
    int r = json_tree_parse(answer->s, answer->len, &tree, e);
    if (r < 0) return r;
    const struct json_tree *changes = json_tree_get(tree, "changes");
    for (size_t i = 0; i < json_tree_count(changes); i++) {
        const struct json_tree *c = json_tree_at(changes, i);
        const char *from = json_tree_text(json_tree_get(c, "from"), NULL),
                   *to = json_tree_text(json_tree_get(c, "to"), NULL);
        buf_printf(out, "  %s: ", job_text(c, "key"));
        text_pad(out, from ? from : "(none)", 0);
        buf_puts(out, " -> ");
        text_pad(out, to ? to : "(none)", 0);
        buf_putc(out, '\n');
    }
    if (json_tree_is_true(json_tree_get(tree, "restarts")))
        buf_puts(out, "It runs: it is stopped and started anew with this; if that fails, it is put back.\n");
    json_tree_free(tree);
    return 0;
}

/* ---- flags ---- */

void containers_flags_rows(struct containers_flags *f, struct flag *rows, size_t *count) {
    const struct flag own[CONTAINERS_FLAGS] = {
        {.name = "image",    .kind = FLAG_TEXT, .into = &f->image    },
        {.name = "name",     .kind = FLAG_TEXT, .into = &f->name     },
        {.name = "gpus",     .kind = FLAG_TEXT, .into = &f->gpus     },
        {.name = "gpu",      .kind = FLAG_TEXT, .into = &f->gpu      },
        {.name = "cwd",      .kind = FLAG_TEXT, .into = &f->cwd      },
        {.name = "deadline", .kind = FLAG_TEXT, .into = &f->deadline },
        {.name = "period",   .kind = FLAG_TEXT, .into = &f->period   },
        {.name = "ui",       .kind = FLAG_TEXT, .into = &f->ui       },
        {.name = "restart",  .kind = FLAG_TEXT, .into = &f->restart  },
        {.name = "env",      .kind = FLAG_LIST, .into = &f->env      },
        {.name = "label",    .kind = FLAG_LIST, .into = &f->label    },
        {.name = "mount",    .kind = FLAG_LIST, .into = &f->mount    },
        {.name = "shared",   .kind = FLAG_YES,  .into = &f->is_shared},
    };
    memcpy(rows + *count, own, sizeof own);
    *count += CONTAINERS_FLAGS;
}

struct merging {
    struct buf *b;
    const struct flag_list *given;
};

static bool is_given(const struct flag_list *l, const char *name) {
    for (size_t i = 0; i < l->count; i++)
        if (strncmp(l->of[i], name, strlen(name)) == 0 && (l->of[i][strlen(name)] == '=' || !l->of[i][strlen(name)]))
            return true;
    return false;
}

static void keep_pair(void *ctx, const char *name, const struct json_tree *v) {
    struct merging *m = ctx;
    if (!is_given(m->given, name)) json_pair_str(m->b, name, json_tree_text(v, ""));
}

/* NAME=VALUE sets it, NAME alone takes it away; what is not named stays. */
static int put_pairs(struct buf *b, const char *key, const char *flag, const struct flag_list *l,
                     const struct json_tree *old, struct error *e) {
    AUTO(buf_done) struct buf name = {0};
    struct merging m = {b, l};
    if (!l->count) return 0;
    json_key(b, key);
    json_open(b, '{');
    json_tree_each(json_tree_get(old, key), keep_pair, &m);
    for (size_t i = 0; i < l->count; i++) {
        const char *is = strchr(l->of[i], '=');
        if (!is && !old) return fail(e, -EINVAL, "--%s: \"%.40s\" is not NAME=VALUE", flag, l->of[i]);
        if (!is) continue;
        buf_clear(&name);
        buf_add(&name, l->of[i], (size_t)(is - l->of[i]));
        json_pair_str(b, name.s ? name.s : "", is + 1);
    }
    json_close(b, '}');
    return 0;
}

static void put_gpus_json(struct buf *b, const struct containers_flags *f) {
    char *end;
    long n = f->gpus ? strtol(f->gpus, &end, 10) : 0;
    if (f->gpus) {
        json_key(b, "gpus");
        if (*f->gpus && !*end)
            json_int(b, n);
        else
            json_str(b, f->gpus);
    }
    if (!f->gpu) return;
    json_key(b, "gpu_ids");
    json_open(b, '[');
    for (const char *at = f->gpu; *at;) {
        char word[100];
        size_t len = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : 0), at);
        json_str(b, word);
        at += len + (at[len] == ',');
    }
    json_close(b, ']');
}

int containers_flags_json(const struct containers_flags *f, char *const *command, size_t words, const struct buf *old,
                          struct buf *ret, struct error *e) {
    const char *texts[][2] = {
        {"image",    f->image   },
        {"name",     f->name    },
        {"cwd",      f->cwd     },
        {"deadline", f->deadline},
        {"period",   f->period  },
        {"ui",       f->ui      },
        {"restart",  f->restart }
    };
    struct json_tree *tree = NULL;
    int r = old ? json_tree_parse(old->s, old->len, &tree, e) : 0;
    if (r < 0) return r;
    json_open(ret, '{');
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i][1]) json_pair_str(ret, texts[i][0], texts[i][1]);
    put_gpus_json(ret, f);
    r = put_pairs(ret, "env", "env", &f->env, tree, e);
    if (r >= 0) r = put_pairs(ret, "labels", "label", &f->label, tree, e);
    if (f->mount.count) {
        json_key(ret, "mounts");
        json_open(ret, '[');
        for (size_t i = 0; i < f->mount.count; i++) json_str(ret, f->mount.of[i]);
        json_close(ret, ']');
    }
    if (words) {
        json_key(ret, "command");
        json_open(ret, '[');
        for (size_t i = 0; i < words; i++) json_str(ret, command[i]);
        json_close(ret, ']');
    }
    json_pair_bool(ret, "shared", f->is_shared);
    json_close(ret, '}');
    json_tree_free(tree);
    return r;
}
