/* The server of this instance: does it answer, where, and to whom in the clear. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "client/doctor.h"
#include "client/server_ask.h"

enum { LISTEN_MAX = 4096 };

/* "http://127.0.0.1:7000 http://[::1]:7000" on one line. */
static void flatten(char *lines) {
    size_t n = strlen(lines);
    while (n && lines[n - 1] == '\n') lines[--n] = 0;
    for (char *c = lines; *c; c++)
        if (*c == '\n') *c = ' ';
}

static bool is_in_the_clear(const char *urls) {
    static const char *const here[] = {"127.", "[::1]", "localhost"};
    for (const char *at = urls; (at = strstr(at, "http://"));) {
        bool is_here = false;
        at += strlen("http://");
        for (size_t i = 0; i < ARRAY_LEN(here); i++) is_here = is_here || strncmp(at, here[i], strlen(here[i])) == 0;
        if (!is_here) return true;
    }
    return false;
}

void doctor_check_server(struct doctor *d) {
    const struct source *s = &d->source;
    char path[300], name[80], role[16];
    AUTO(buf_done) struct buf urls = {0}, answer = {0};
    struct error e;
    if (!s->has_instance || !s->holder) return;
    instance_path(&s->instance, path, sizeof path, "server/listen");
    if (file_read(path, LISTEN_MAX, &urls, &e) < 0 || !urls.len) {
        report_add(&d->report, FINDING_NOTE, "server", NULL, "none runs in this instance");
        return;
    }
    flatten(urls.s);
    if (server_ask(s->instance.dir, "GET", "/api/v1/session", NULL, &answer, &e) < 0) {
        report_add(&d->report, FINDING_ATTENTION, "server", "the log of `gpumgr up` says why", "%s: %s", urls.s,
                   e.text);
        return;
    }
    if (!server_field(&answer, "user.name", name, sizeof name)) snprintf(name, sizeof name, "nobody");
    if (!server_field(&answer, "user.role", role, sizeof role)) snprintf(role, sizeof role, "unknown");
    report_add(&d->report, FINDING_GOOD, "server", NULL, "answers at %s; it knows you as %s (%s)", urls.s, name, role);
    if (is_in_the_clear(urls.s))
        report_add(&d->report, FINDING_NOTE, "server", "give tls.cert and tls.key, unless a proxy in front has them",
                   "plain HTTP beyond this machine: what is sent can be read on the way");
}
