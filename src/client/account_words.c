#include "client/account_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_read.h"
#include "base/nearest.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/table.h"

/* ---- what to do ---- */

static int find_verb(const struct account_verb *verbs, size_t count, const struct flags *f,
                     const struct account_verb **ret, struct error *e) {
    if (!f->word_count) return 0;
    struct nearest near = {.typed = f->words[0]};
    const struct account_verb *found = NULL;
    for (size_t i = 0; i < count; i++) {
        nearest_offer(&near, verbs[i].name);
        if (strcmp(verbs[i].name, f->words[0]) == 0) found = &verbs[i];
    }
    if (!found && near.best) return fail(e, -EINVAL, "what is \"%.60s\"? did you mean %s?", f->words[0], near.best);
    if (!found) return fail(e, -EINVAL, "what is \"%.60s\"? --help lists the words", f->words[0]);
    size_t want = found->needs ? 2 : 1;
    if (f->word_count < want) return fail(e, -EINVAL, "%s: %s is missing", found->name, found->needs);
    if (f->word_count > want) return fail(e, -EINVAL, "%s: what is \"%.60s\"?", found->name, f->words[want]);
    *ret = found;
    return 0;
}

/* A flag that means nothing to this word would otherwise be passed over in silence. */
static int check_flags(const struct account_verb *v, const struct account_flags *f, struct error *e) {
    const struct {
        bool is_given;
        const char *name;
    } given[] = {
        {f->json,         " json "   },
        {f->all,          " all "    },
        {f->disable,      " disable "},
        {f->enable,       " enable " },
        {f->role != NULL, " role "   },
        {f->life != NULL, " for "    },
        {f->uid != NULL,  " uid "    },
    };
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        if (given[i].is_given && !strstr(v->flags, given[i].name))
            return fail(e, -EINVAL, "%s: takes no --%.*s", v->name, (int)strlen(given[i].name) - 2, given[i].name + 1);
    return 0;
}

int account_run(const struct command *self, const struct account_verb *verbs, size_t count, int argc, char **argv) {
    struct account_flags f = {0};
    const struct flag own[] = {
        {.name = "json",    .kind = FLAG_YES,  .into = &f.json   },
        {.name = "all",     .kind = FLAG_YES,  .into = &f.all    },
        {.name = "disable", .kind = FLAG_YES,  .into = &f.disable},
        {.name = "enable",  .kind = FLAG_YES,  .into = &f.enable },
        {.name = "role",    .kind = FLAG_TEXT, .into = &f.role   },
        {.name = "for",     .kind = FLAG_TEXT, .into = &f.life   },
        {.name = "uid",     .kind = FLAG_TEXT, .into = &f.uid    },
    };
    struct flags flags;
    struct loaded loaded = {0};
    const struct account_verb *verb = &verbs[0];
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = find_verb(verbs, count, &flags, &verb, &e);
    if (r == 0) r = check_flags(verb, &f, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    return verb->run(self, loaded.values.dir, &f, verb->needs ? flags.words[1] : NULL);
}

int account_ask(const struct command *self, const char *dir, const char *method, const char *path,
                const struct buf *body, struct buf *ret) {
    struct error e;
    int r = server_ask(dir, method, path, body, ret, &e);
    return r < 0 ? command_fail(self, &e, error_exit_code(r)) : EXIT_DONE;
}

/* ---- lists ---- */

struct list {
    struct table *table;
    const struct account_column *columns;
    size_t count;
    int left_out; /* rows beyond what a table holds */
};

static void begin_row(void *ctx) {
    struct list *l = ctx;
    if (l->table->row_count < TABLE_ROWS_MAX)
        l->table->row_count++;
    else
        l->left_out++;
}

static void time_text(const char *seconds, char *ret, size_t room) {
    time_t t = (time_t)strtoll(seconds, NULL, 10);
    struct tm tm;
    if (!localtime_r(&t, &tm) || strftime(ret, room, "%Y-%m-%d %H:%M", &tm) == 0) snprintf(ret, room, "%s", seconds);
}

static int put_leaf(void *ctx, const struct json_leaf *leaf, struct error *e) {
    struct list *l = ctx;
    if (l->left_out) return 0;
    for (size_t i = 0; i < l->count; i++) {
        struct table_cell *cell = &l->table->cell[l->table->row_count - 1][i];
        if (strcmp(leaf->path, l->columns[i].field) != 0 || leaf->type == JSON_LEAF_NULL) continue;
        if (l->columns[i].kind == 't')
            time_text(leaf->text, cell->text, sizeof cell->text);
        else if (l->columns[i].kind == 'b')
            snprintf(cell->text, sizeof cell->text, "%s", strcmp(leaf->text, "true") == 0 ? "yes" : "");
        else
            snprintf(cell->text, sizeof cell->text, "%.95s", leaf->text);
    }
    return 0;
}

static int print_table(const struct command *self, const struct buf *answer, const char *key,
                       const struct account_column *columns, size_t count) {
    static struct table table; /* large */
    struct table_column shape[TABLE_COLUMNS_MAX] = {0};
    struct list l = {.table = &table, .columns = columns, .count = count};
    AUTO(buf_done) struct buf out = {0};
    struct error e;
    for (size_t i = 0; i < count; i++) shape[i].title = columns[i].title;
    table.columns = shape;
    table.column_count = (int)count;
    int r = json_walk_list(answer->s, answer->len, key, begin_row, put_leaf, &l, &e);
    if (r < 0) {
        fail_in(&e, r, "the server's answer");
        return command_fail(self, &e, EXIT_FAILED);
    }
    struct screen screen = screen_look();
    if (r == 0)
        buf_printf(&out, "There are no %s.\n", key);
    else
        table_print(&table, screen.is_terminal ? screen.width : 200, screen.has_colour, &out);
    if (l.left_out) buf_printf(&out, "and %d more; --json prints all\n", l.left_out);
    return output_exit(&out);
}

int account_list(const struct command *self, const char *dir, const char *path, const char *key, bool json,
                 const struct account_column *columns, size_t count) {
    AUTO(buf_done) struct buf answer = {0};
    int code = account_ask(self, dir, "GET", path, NULL, &answer);
    if (code != EXIT_DONE) return code;
    if (!json) return print_table(self, &answer, key, columns, count);
    buf_putc(&answer, '\n');
    return output_exit(&answer);
}
