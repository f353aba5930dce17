/* The container engines that name containers and their deadlines: are they there, and do they answer us. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_tree.h"
#include "client/doctor.h"
#include "net/http_client.h"

enum { ANSWER_MAX = 65536, WAIT_MS = 2000 };

static void version_of(const struct http_answer *a, char *ret, size_t room) {
    struct json_tree *tree = NULL;
    struct error e;
    snprintf(ret, room, "of an unknown version");
    if (!a->body.s || json_tree_parse(a->body.s, a->body.len, &tree, &e) < 0) return;
    const char *version = json_tree_text(json_tree_get(tree, "Version"), NULL);
    if (version && strspn(version, "0123456789abcdefghijklmnopqrstuvwxyz.+-~") == strlen(version))
        snprintf(ret, room, "%.40s", version);
    json_tree_free(tree);
}

/* True: there is a socket. */
static bool check_one(struct doctor *d, const char *kind, const char *path) {
    AUTO(http_answer_done) struct http_answer a = {0};
    const struct http_ask ask = {.url = "http://engine/version",
                                 .unix_path = path,
                                 .most = ANSWER_MAX,
                                 .connect_ms = WAIT_MS,
                                 .total_ms = WAIT_MS};
    struct error e = {0};
    char version[64];
    if (access(path, F_OK) < 0 && errno == ENOENT) return false;
    if (access(path, R_OK | W_OK) < 0) {
        report_add(&d->report, FINDING_NOTE, kind,
                   "a gpumgr that runs as root may, or add the user to the socket's group",
                   "%s: this user may not talk to it, so its containers have no names", path);
        return true;
    }
    if (http_ask(&ask, &a, &e) < 0 || a.status != 200) {
        if (!e.text[0]) fail(&e, -EPROTO, "it answers with the status %d", a.status);
        report_add(&d->report, FINDING_ATTENTION, kind, "GPUs are looked at more often until it answers", "%s: %s",
                   path, e.text);
        return true;
    }
    version_of(&a, version, sizeof version);
    report_add(&d->report, FINDING_GOOD, kind, NULL, "%s answers at %s", version, path);
    return true;
}

static bool check_list(struct doctor *d, const char *kind, const char *list) {
    char text[512], *rest = text, *one;
    bool has_one = false;
    snprintf(text, sizeof text, "%s", list);
    while ((one = strsep(&rest, ","))) {
        glob_t found;
        one += strspn(one, " ");
        if (!*one) continue;
        if (glob(one, GLOB_NOSORT, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc; i++) has_one |= check_one(d, kind, found.gl_pathv[i]);
        globfree(&found);
    }
    return has_one;
}

void doctor_check_engines(struct doctor *d) {
    const struct settings *s = &d->loaded.values;
    bool has_docker = check_list(d, "docker", s->engines_docker),
         has_podman = check_list(d, "podman", s->engines_podman);
    if (!has_docker && !has_podman)
        report_add(&d->report, FINDING_NOTE, "engines", "engines.docker and engines.podman name their sockets",
                   "neither Docker nor Podman is here: containers would be shown by their ids");
}
