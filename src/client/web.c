/* `gpumgr web`: a one-time link to the dashboard for whoever calls, opened in his browser or printed. */
#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "client/browser.h"
#include "client/command.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"

static int show(const struct buf *answer, bool json, bool print) {
    AUTO(buf_done) struct buf out = {0};
    char url[600], user[80] = "", role[16] = "", line[200];
    struct error e;
    if (json) {
        buf_add(&out, answer->s, answer->len);
        buf_putc(&out, '\n');
        return output_exit(&out);
    }
    if (!server_field(answer, "url", url, sizeof url)) {
        fail(&e, -EPROTO, "the server's answer has no link");
        return command_fail(&command_web, &e, EXIT_FAILED);
    }
    (void)!server_field(answer, "user", user, sizeof user);
    (void)!server_field(answer, "role", role, sizeof role);
    if (!print && browser_open(url)) {
        buf_printf(&out, "Opened in your browser, signed in as %s (%s). `gpumgr web --print` prints a link instead.\n",
                   user, role);
        return output_exit(&out);
    }
    buf_printf(&out, "%s\n", url);
    int code = output_exit(&out);
    snprintf(line, sizeof line, "Signs in %s (%s), once, within 15 minutes.", user, role);
    if (code == EXIT_DONE) output_note(line);
    return code;
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false, print = false;
    const struct flag own[] = {
        {.name = "json",  .kind = FLAG_YES, .into = &json },
        {.name = "print", .kind = FLAG_YES, .into = &print},
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    AUTO(buf_done) struct buf answer = {0};
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = server_ask(loaded.values.dir, "POST", "/api/v1/links", NULL, &answer, &e);
    if (r < 0) return command_fail(self, &e, error_exit_code(r));
    return show(&answer, json, print);
}

const struct command command_web = {
    .name = "web",
    .summary = "Open the dashboard, signed in",
    .run = run,
    .help =
        "usage: gpumgr web [--print] [--json]\n"
        "\n"
        "Makes a link that signs you in once, within 15 minutes, and opens it in your browser; where there is none\n"
        "it is printed. You are known by your Unix user: everybody sees all GPUs of the machine, root and the owner\n"
        "of the gpumgr that runs are administrators. Whoever has the link is signed in as you: do not pass it on.\n"
        "\n"
        "  --print    print the link, open nothing\n"
        "  --json     print the link, its user, role and end as JSON\n"
        "  --dir DIR  the instance to ask\n"
        "\n"
        "example: gpumgr web --print      # then open it through `ssh -L 7000:localhost:7000 HOST`\n",
};
