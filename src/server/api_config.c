/* The settings in force. What is a secret, or may hold one, is not shown. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/api.h"
#include "server/server.h"

/* An address may carry a name and a password, or be a secret itself (incoming webhooks are). */
static bool is_secret(const char *name) {
    static const char *const words[] = {"token", "secret", "password", "webhook", "slack", "smtp_url", "command"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strstr(name, words[i])) return true;
    return false;
}

int api_config(struct call *c, struct error *e) {
    struct buf *b = &c->out;
    json_open(b, '{');
    json_key(b, "settings");
    json_open(b, '[');
    for (size_t i = 0; i < settings_count; i++) {
        const struct option *o = &settings_table[i];
        struct settings preset;
        char text[1100], usual[1100];
        settings_init(&preset);
        option_text(o, &c->server->settings, text, sizeof text);
        option_text(o, &preset, usual, sizeof usual);
        bool is_set = strcmp(text, usual) != 0;
        if (is_set && is_secret(o->name)) snprintf(text, sizeof text, "<hidden>");
        json_open(b, '{');
        json_pair_str(b, "name", o->name);
        json_pair_str(b, "value", text);
        json_pair_str(b, "from", is_set ? "set" : "default");
        json_pair_str(b, "help", o->help);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
    return 0;
}
