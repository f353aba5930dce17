/* `gpumgr token`: what programs sign in with. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/account_words.h"
#include "client/amount.h"
#include "client/output.h"
#include "client/server_ask.h"

#define HOUR_MS (3600ll * 1000)

static int list(const struct command *self, const char *dir, const struct account_flags *f, const char *word) {
    static const struct account_column columns[] = {
        {"id",        "ID",        's'},
        {"name",      "NAME",      's'},
        {"user",      "USER",      's'},
        {"role",      "ROLE",      's'},
        {"created",   "MADE",      't'},
        {"expires",   "EXPIRES",   't'},
        {"last_used", "LAST USED", 't'},
    };
    return account_list(self, dir, f->all ? "/api/v1/tokens?all=true" : "/api/v1/tokens", "tokens", f->json, columns,
                        ARRAY_LEN(columns));
}

static int make(const struct command *self, const char *dir, const struct account_flags *f, const char *name) {
    AUTO(buf_done) struct buf body = {0}, answer = {0}, out = {0};
    char token[80], line[160];
    struct error e;
    int64_t life_ms = 0;
    if (f->life && amount_time("for", f->life, HOUR_MS, 10 * 366 * 24 * HOUR_MS, &life_ms, &e) < 0)
        return command_fail(self, &e, EXIT_INPUT);
    json_open(&body, '{');
    json_pair_str(&body, "name", name);
    if (f->role) json_pair_str(&body, "role", f->role);
    if (life_ms) json_pair_int(&body, "expires_s", life_ms / 1000);
    json_close(&body, '}');
    int code = account_ask(self, dir, "POST", "/api/v1/tokens", &body, &answer);
    if (code != EXIT_DONE) return code;
    if (f->json) {
        buf_putc(&answer, '\n');
        return output_exit(&answer);
    }
    if (!server_field(&answer, "token", token, sizeof token)) {
        fail(&e, -EPROTO, "the server's answer has no token");
        return command_fail(self, &e, EXIT_FAILED);
    }
    buf_printf(&out, "%s\n", token);
    code = output_exit(&out);
    snprintf(line, sizeof line, "Keep it: it is not shown again. Send it as \"Authorization: Bearer TOKEN\".");
    if (code == EXIT_DONE) output_note(line);
    return code;
}

static int revoke(const struct command *self, const char *dir, const struct account_flags *f, const char *id) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    server_path(&path, "/api/v1/tokens/", id, "");
    return account_ask(self, dir, "DELETE", path.s, NULL, &answer);
}

static const struct account_verb verbs[] = {
    {"list",   NULL,   list,   " json all "     },
    {"new",    "NAME", make,   " json role for "},
    {"revoke", "ID",   revoke, ""               },
};

static int run(const struct command *self, int argc, char **argv) {
    return account_run(self, verbs, ARRAY_LEN(verbs), argc, argv);
}

const struct command command_token = {
    .name = "token",
    .summary = "Tokens that programs call the API with: list, make, revoke",
    .run = run,
    .words = "list new revoke",
    .help =
        "usage: gpumgr token [list] [--all] [--json]\n"
        "       gpumgr token new NAME [--role ROLE] [--for TIME] [--json]\n"
        "       gpumgr token revoke ID\n"
        "\n"
        "A token lets a program (Prometheus, a script) call this machine's server as you. It is printed once and only\n"
        "its hash is kept. You are known by your Unix user, as with `gpumgr web`.\n"
        "\n"
        "  NAME         what it is for\n"
        "  --role ROLE  member (sees everything, hands in jobs; the default) or admin (may change\n"
        "               everything); at most your own\n"
        "  --for TIME   12h, 30d: when it ends, from 1h (never)\n"
        "  --all        everybody's tokens, for administrators\n"
        "  --json       as JSON\n"
        "  --dir DIR    the instance to ask\n"
        "\n"
        "example: gpumgr token new prometheus > /etc/prometheus/gpumgr.token\n",
};
