/* `gpumgr user`: accounts of the server, for its administrators. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/json.h"
#include "client/account_words.h"
#include "client/output.h"
#include "client/server_ask.h"

enum { PASSWORD_MAX = 256 };

static int list(const struct command *self, const char *dir, const struct account_flags *f, const char *word) {
    static const struct account_column columns[] = {
        {"name",         "NAME",     's'},
        {"role",         "ROLE",     's'},
        {"uid",          "UID",      's'},
        {"has_password", "PASSWORD", 'b'},
        {"disabled",     "DISABLED", 'b'},
        {"created",      "MADE",     't'},
    };
    return account_list(self, dir, "/api/v1/users", "users", f->json, columns, ARRAY_LEN(columns));
}

/* ---- made and changed ---- */

static int find_uid(const char *text, long long *ret, struct error *e) {
    size_t n = strspn(text, "0123456789");
    if (n && n <= 10 && !text[n]) {
        *ret = strtoll(text, NULL, 10);
        return 0;
    }
    const struct passwd *pw = getpwnam(text);
    if (!pw) return fail(e, -EINVAL, "--uid: there is no Unix user %.60s on this machine", text);
    *ret = pw->pw_uid;
    return 0;
}

static int put(const struct command *self, const char *dir, const struct account_flags *f, const char *name,
               long long uid) {
    AUTO(buf_done) struct buf path = {0}, body = {0}, answer = {0};
    server_path(&path, "/api/v1/users/", name, "");
    json_open(&body, '{');
    if (f->role) json_pair_str(&body, "role", f->role);
    if (f->disable || f->enable) json_pair_bool(&body, "disabled", f->disable);
    if (uid >= 0) json_pair_int(&body, "uid", uid);
    json_close(&body, '}');
    int code = account_ask(self, dir, "PUT", path.s, &body, &answer);
    if (code != EXIT_DONE || !f->json) return code;
    buf_putc(&answer, '\n');
    return output_exit(&answer);
}

static bool is_there(const char *dir, const char *name) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct error ignored;
    server_path(&path, "/api/v1/users/", name, "");
    return server_ask(dir, "GET", path.s, NULL, &answer, &ignored) == 0;
}

/* A name that a Unix user of this machine has means him: he then signs in by `gpumgr web`. */
static int add(const struct command *self, const char *dir, const struct account_flags *f, const char *name) {
    struct error e;
    long long uid = -1;
    if (is_there(dir, name)) {
        fail(&e, -EEXIST, "there is an account %s already; `gpumgr user set` changes it", name);
        return command_fail(self, &e, EXIT_INPUT);
    }
    const struct passwd *pw = f->uid ? NULL : getpwnam(name);
    if (pw) uid = pw->pw_uid;
    if (f->uid && find_uid(f->uid, &uid, &e) < 0) return command_fail(self, &e, EXIT_INPUT);
    return put(self, dir, f, name, uid);
}

static int set(const struct command *self, const char *dir, const struct account_flags *f, const char *name) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    struct error e;
    long long uid = -1;
    if (f->disable && f->enable) {
        fail(&e, -EINVAL, "set: --disable and --enable contradict each other");
        return command_fail(self, &e, EXIT_INPUT);
    }
    if (f->uid && find_uid(f->uid, &uid, &e) < 0) return command_fail(self, &e, EXIT_INPUT);
    server_path(&path, "/api/v1/users/", name, "");
    int code = account_ask(self, dir, "GET", path.s, NULL, &answer); /* a PUT would make one that is mistyped */
    return code == EXIT_DONE ? put(self, dir, f, name, uid) : code;
}

static int drop(const struct command *self, const char *dir, const struct account_flags *f, const char *name) {
    AUTO(buf_done) struct buf path = {0}, answer = {0};
    server_path(&path, "/api/v1/users/", name, "");
    return account_ask(self, dir, "DELETE", path.s, NULL, &answer);
}

/* ---- links and passwords ---- */

static int link_for(const struct command *self, const char *dir, const struct account_flags *f, const char *name) {
    AUTO(buf_done) struct buf body = {0}, answer = {0}, out = {0};
    char url[600];
    json_open(&body, '{');
    json_pair_str(&body, "user", name);
    json_close(&body, '}');
    int code = account_ask(self, dir, "POST", "/api/v1/links", &body, &answer);
    if (code != EXIT_DONE) return code;
    if (f->json)
        buf_add(&out, answer.s, answer.len);
    else if (server_field(&answer, "url", url, sizeof url))
        buf_puts(&out, url);
    buf_putc(&out, '\n');
    return output_exit(&out);
}

/* A line from standard input; a terminal does not show it. */
static int read_password(const char *prompt, char ret[PASSWORD_MAX + 2], struct error *e) {
    struct termios shown, hidden;
    bool is_terminal = tcgetattr(STDIN_FILENO, &shown) == 0;
    if (is_terminal) {
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
        fprintf(stderr, "%s", prompt);
    }
    char *line = fgets(ret, PASSWORD_MAX + 2, stdin);
    if (is_terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
        fputc('\n', stderr);
    }
    if (!line) return fail(e, -EINVAL, "password: nothing was given");
    size_t n = strcspn(ret, "\n");
    if (n > PASSWORD_MAX) return fail(e, -EINVAL, "password: longer than %d bytes", PASSWORD_MAX);
    ret[n] = 0;
    return is_terminal;
}

static int password(const struct command *self, const char *dir, const struct account_flags *f, const char *name) {
    AUTO(buf_done) struct buf path = {0}, body = {0}, answer = {0};
    char first[PASSWORD_MAX + 2], again[PASSWORD_MAX + 2];
    struct error e;
    int r = read_password("New password (empty: none, links only): ", first, &e);
    if (r > 0) {
        r = read_password("Again: ", again, &e);
        if (r > 0 && strcmp(first, again) != 0) r = fail(&e, -EINVAL, "password: these are two different ones");
    }
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    json_open(&body, '{');
    json_pair_str(&body, "password", first);
    json_close(&body, '}');
    server_path(&path, "/api/v1/users/", name, "/password");
    int code = account_ask(self, dir, "PUT", path.s, &body, &answer);
    explicit_bzero(first, sizeof first);
    explicit_bzero(again, sizeof again);
    explicit_bzero(body.s, body.len);
    return code;
}

static const struct account_verb verbs[] = {
    {"list",     NULL,   list,     " json "                        },
    {"add",      "NAME", add,      " json role uid disable "       },
    {"set",      "NAME", set,      " json role uid disable enable "},
    {"remove",   "NAME", drop,     ""                              },
    {"link",     "NAME", link_for, " json "                        },
    {"password", "NAME", password, ""                              },
};

static int run(const struct command *self, int argc, char **argv) {
    return account_run(self, verbs, ARRAY_LEN(verbs), argc, argv);
}

const struct command command_user = {
    .name = "user",
    .summary = "Accounts of the server: list, add, change, remove",
    .run = run,
    .words = "list add set link password remove",
    .help = "usage: gpumgr user [list] [--json]\n"
            "       gpumgr user add NAME [--role ROLE] [--uid UNIX-USER]\n"
            "       gpumgr user set NAME [--role ROLE] [--disable | --enable] [--uid UNIX-USER]\n"
            "       gpumgr user link NAME\n"
            "       gpumgr user password NAME\n"
            "       gpumgr user remove NAME\n"
            "\n"
            "Who may look at the dashboard and call the API. Unix users of this machine need no account: `gpumgr web`\n"
            "makes theirs. `link` prints a one-time sign-in link for somebody, good for 15 minutes. A password is "
            "optional;\n"
            "it is asked for on the terminal, or read as a line from standard input.\n"
            "\n"
            "  --role ROLE      member (sees everything, hands in jobs) or admin (may change everything)\n"
            "  --uid UNIX-USER  the Unix user, by name or number, whose account it is (one of the same name)\n"
            "  --disable        nobody can sign in with it, and its sessions end; --enable undoes it\n"
            "  --json           as JSON\n"
            "  --dir DIR        the instance to ask\n"
            "\n"
            "example: gpumgr user add alice --role admin\n",
};
