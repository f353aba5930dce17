/* `gpumgr config`: the effective configuration, and where each value came from. With --resolved it prints what the
 * supervisor reads when it is told to reload (model/settings.h). */
#include "client/config.h"
#include "client/begin.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/cards_check.h"
#include "client/command.h"
#include "client/output.h"
#include "client/settings_load.h"
#include "client/text.h"

static void from_text(const struct loaded *l, size_t i, char *ret, size_t room) {
    static const char *const lead[] = {"", "", "variable ", "flag "};
    if (l->of[i].origin == ORIGIN_DEFAULT)
        snprintf(ret, room, "default");
    else
        snprintf(ret, room, "%s%s", lead[l->of[i].origin], l->of[i].from);
}

static int widest(const struct loaded *l, int column) {
    int max = 0;
    for (size_t i = 0; i < settings_count; i++) {
        char text[1100];
        if (column == 0) snprintf(text, sizeof text, "%s", settings_table[i].name);
        if (column == 1) option_text(&settings_table[i], &l->values, text, sizeof text);
        if (text_width(text) > max) max = text_width(text);
    }
    return max < 40 ? max : 40;
}

/* What a row means goes on a line of its own where the row itself has filled the screen. */
static void print_row(const struct loaded *l, size_t i, const int width[2], const struct screen *s, struct buf *b) {
    const struct option *o = &settings_table[i];
    char value[1100], from[320], range[128];
    option_text(o, &l->values, value, sizeof value);
    from_text(l, i, from, sizeof from);
    option_range(o, range, sizeof range);
    text_pad(b, o->name, width[0]);
    buf_puts(b, "  ");
    text_pad(b, *value ? value : "-", width[1]);
    buf_puts(b, "  ");
    buf_printf(b, "%s\n%s    %s: %s%s\n", from, s->has_colour ? "\033[2m" : "", o->help, range,
               s->has_colour ? "\033[0m" : "");
}

static void print_table(const struct loaded *l, struct buf *b) {
    struct screen s = screen_look();
    int width[2] = {widest(l, 0), widest(l, 1)};
    text_pad(b, "KEY", width[0] + 2);
    text_pad(b, "VALUE", width[1] + 2);
    buf_puts(b, "FROM\n");
    for (size_t i = 0; i < settings_count; i++) print_row(l, i, width, &s, b);
    buf_printf(b, "\nFile read: %s. A key is also a flag (--wait-ms 500) and a variable (GPUMGR_WAIT_MS=500).\n",
               *l->file ? l->file : "none");
}

static bool is_secret(const struct option *o) {
    static const char *const words[] = {"token", "secret", "password"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strstr(o->name, words[i])) return true;
    return false;
}

static void put_value(struct buf *b, const struct option *o, const void *values, enum config_secrets secrets) {
    char text[1100];
    option_text(o, values, text, sizeof text);
    if (secrets == CONFIG_HIDE_SECRETS && is_secret(o)) snprintf(text, sizeof text, "<hidden>");
    json_key(b, "value");
    bool is_bare = o->type == OPT_INT || o->type == OPT_REAL || o->type == OPT_BOOL ||
                   (o->type == OPT_CELSIUS && strcmp(text, "auto") != 0);
    if (is_bare)
        buf_puts(b, text);
    else
        json_str(b, text);
}

void config_json(const struct loaded *l, enum config_secrets secrets, struct buf *b) {
    json_open(b, '{');
    for (size_t i = 0; i < settings_count; i++) {
        json_key(b, settings_table[i].name);
        json_open(b, '{');
        put_value(b, &settings_table[i], &l->values, secrets);
        json_pair_str(b, "origin", origin_name(l->of[i].origin));
        json_pair_str(b, "from", l->of[i].from);
        json_close(b, '}');
    }
    json_close(b, '}');
    buf_putc(b, '\n');
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false, resolved = false;
    const struct flag own[] = {
        {.name = "json",     .kind = FLAG_YES, .into = &json    },
        {.name = "resolved", .kind = FLAG_YES, .into = &resolved},
    };
    AUTO(buf_done) struct buf b = {0};
    struct loaded loaded = {0};
    struct error e;
    int code = command_begin(self, argc, argv, own, ARRAY_LEN(own), LOAD_STRICT, &loaded);
    if (code != COMMAND_GOES_ON) return code;
    if (resolved && cards_check_running(&loaded, &e) < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning && !resolved) output_note(loaded.warning);
    if (resolved)
        settings_encode(&loaded.values, &b);
    else if (json)
        config_json(&loaded, CONFIG_SHOW_ALL, &b);
    else
        print_table(&loaded, &b);
    return output_exit(&b);
}

const struct command command_config = {
    .name = "config",
    .summary = "Show the effective configuration and where each value came from",
    .run = run,
    .help =
        "usage: gpumgr config [--json | --resolved] [flags of `gpumgr up`]\n"
        "\n"
        "Shows every key with its value, where that value came from, what it means and what is allowed.\n"
        "Later ones win: defaults, the file, GPUMGR_* variables, flags. The file is JSON: the one named by\n"
        "--config or GPUMGR_CONFIG, else gpumgr.json in the instance's directory, else /etc/gpumgr.json.\n"
        "\n"
        "  --json       one object: {\"wait_ms\": {\"value\": 1000, \"origin\": \"default\", \"from\": \"\"}, ...}\n"
        "  --resolved   lines of key=value, as `gpumgr up` hands them to its supervisor; refuses what the cards of\n"
        "               a running instance do not allow\n"
        "\n"
        "example: GPUMGR_WAIT_MS=500 gpumgr config --guard.hot_c 80\n",
};
