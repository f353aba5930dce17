/* Where our words end and Docker's begin. Docker's flags pass as they are, but to find the image, behind which every word is the
 * container's own, one has to know which of them take a value. Those that do not are in a table; a flag that is not there
 * is taken to have one, as nearly all have. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/docker.h"
#include "model/duration.h"

#define TENANT_MAX 47 /* bytes that are kept of it */
#define PRIORITY_MOST 1000

enum own { OWN_DEADLINE, OWN_PERIOD, OWN_PRIORITY, OWN_TENANT, OWN_COUNT };
static const char *const own_names[OWN_COUNT] = {"deadline", "period", "priority", "tenant"};

/* Flags without a value: Docker's before the command, Docker's and Podman's of run and create. */
static const char *const global_yes[] = {"debug", "tls", "tlsverify", "version", "help", "remote", NULL};
static const char global_yes_short[] = "Dvr";
static const char *const run_yes[] = {
    "detach",
    "disable-content-trust",
    "help",
    "init",
    "interactive",
    "no-healthcheck",
    "oom-kill-disable",
    "privileged",
    "publish-all",
    "quiet",
    "read-only",
    "rm",
    "sig-proxy",
    "tty",
    "use-api-socket",
    "env-host",
    "http-proxy",
    "no-hostname",
    "no-hosts",
    "passwd",
    "read-only-tmpfs",
    "replace",
    "rmi",
    "tls-verify",
    "unsetenv-all",
    NULL,
};
static const char run_yes_short[] = "diPqt";

static bool is_among(const char *const *table, const char *name, size_t len) {
    for (; *table; table++)
        if (strlen(*table) == len && strncmp(*table, name, len) == 0) return true;
    return false;
}

/* How many words a flag takes, itself included. -it, -eA=b, -e A=b, --env A=b, --env=A=b. */
static int flag_words(const char *word, const char *const *yes, const char *yes_short) {
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        return equals || is_among(yes, word + 2, strlen(word + 2)) ? 1 : 2;
    }
    for (const char *c = word + 1; *c; c++)
        if (!strchr(yes_short, *c)) return c[1] ? 1 : 2; /* what follows the letter is its value */
    return 1;
}

/* ---- values ---- */

static int check_value(enum own which, const char *text, int64_t *ret_ns, struct error *e) {
    const char *flag = own_names[which];
    if (which <= OWN_PERIOD) {
        int r = duration_parse(text, ret_ns, e);
        return r < 0 ? fail_in(e, r, "--%s", flag) : 0;
    }
    if (which == OWN_TENANT) {
        bool is_good = *text && strlen(text) <= TENANT_MAX;
        for (const char *c = text; *c; c++) is_good &= (unsigned char)*c >= 0x20 && *c != 0x7f;
        return is_good ? 0 : fail(e, -EINVAL, "--tenant: \"%.60s\" is not a name of 1 to %d bytes", text, TENANT_MAX);
    }
    char *end;
    long v = strtol(text, &end, 10);
    if (!strspn(text + (*text == '-'), "0123456789") || *end || v < -PRIORITY_MOST || v > PRIORITY_MOST)
        return fail(e, -EINVAL, "--priority: \"%.40s\" is not a whole number from %d to %d", text, -PRIORITY_MOST,
                    PRIORITY_MOST);
    return 0;
}

/* What has been said so far, by our flags and by labels of ours that were written out. */
struct wish {
    const char *value[OWN_COUNT];
    bool is_label[OWN_COUNT];
    int64_t ns[OWN_COUNT];
};

static int take(struct wish *w, enum own which, const char *text, bool is_label, struct error *e) {
    if (w->value[which])
        return fail(e, -EINVAL, "--%s is given twice%s", own_names[which],
                    w->is_label[which] || is_label ? ", once as the label" : "");
    int r = check_value(which, text, &w->ns[which], e);
    w->value[which] = text;
    w->is_label[which] = is_label;
    return r;
}

/* --label gpumgr.deadline=x works without us; it must not be nonsense either. */
static int take_label(struct wish *w, const char *text, struct error *e) {
    if (strncmp(text, "gpumgr.", 7) != 0) return 0;
    const char *name = text + 7, *equals = strchr(name, '=');
    for (int i = 0; equals && i < OWN_COUNT; i++)
        if (strlen(own_names[i]) == (size_t)(equals - name) && strncmp(name, own_names[i], strlen(own_names[i])) == 0)
            return take(w, (enum own)i, equals + 1, true, e);
    return fail(e, -EINVAL,
                "no such label as \"%.60s\": gpumgr knows gpumgr.deadline=, period=, priority=, tenant=", text);
}

static int own_of(const char *word, const char **ret_value) {
    for (int i = 0; i < OWN_COUNT; i++) {
        size_t n = strlen(own_names[i]);
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, own_names[i], n) != 0) continue;
        if (word[2 + n] == 0) return *ret_value = NULL, i;
        if (word[2 + n] == '=') return *ret_value = word + 3 + n, i;
    }
    return -1;
}

/* The value of --label, --label=, -l, -lx; NULL: not that flag. */
static const char *label_of(const char *word, const char *next) {
    if (strcmp(word, "--label") == 0 || strcmp(word, "-l") == 0) return next ? next : "";
    if (strncmp(word, "--label=", 8) == 0) return word + 8;
    if (strncmp(word, "-l", 2) == 0) return word + 2;
    return NULL;
}

/* ---- the words ---- */

struct words {
    char **in, **out;
    int count, at, kept;
};

static void keep(struct words *w, int n) {
    while (n-- > 0 && w->at < w->count) w->out[w->kept++] = w->in[w->at++];
}

static bool is_flag(const struct words *w) {
    return w->at < w->count && w->in[w->at][0] == '-' && w->in[w->at][1] && strcmp(w->in[w->at], "--") != 0;
}

static int find_verb(struct words *w, struct error *e) {
    while (is_flag(w)) keep(w, flag_words(w->in[w->at], global_yes, global_yes_short));
    if (w->at < w->count && strcmp(w->in[w->at], "container") == 0) keep(w, 1);
    const char *verb = w->at < w->count ? w->in[w->at] : "";
    if (strcmp(verb, "run") != 0 && strcmp(verb, "create") != 0)
        return fail(e, -EINVAL, "%s%.40s%s: only run and create take a deadline; call %s itself for the rest",
                    *verb ? "\"" : "", *verb ? verb : "no command", *verb ? "\"" : "", w->in[0]);
    keep(w, 1);
    return 0;
}

static int take_own(struct words *w, struct wish *wish, enum own which, const char *value, struct error *e) {
    const char *next = w->at + 1 < w->count ? w->in[w->at + 1] : NULL;
    if (!value && !next) return fail(e, -EINVAL, "--%s needs a value", own_names[which]);
    w->at += value ? 1 : 2;
    return take(wish, which, value ? value : next, false, e);
}

/* Up to the image. */
static int take_flags(struct words *w, struct wish *wish, bool *ret_wants_help, struct error *e) {
    while (is_flag(w)) {
        const char *word = w->in[w->at], *next = w->at + 1 < w->count ? w->in[w->at + 1] : NULL, *value = NULL;
        int which = own_of(word, &value), r = 0;
        const char *label = label_of(word, next);
        *ret_wants_help |= strcmp(word, "--help") == 0;
        if (label) r = take_label(wish, label, e);
        if (r >= 0 && which >= 0) r = take_own(w, wish, (enum own)which, value, e);
        if (r < 0) return r;
        if (which < 0) keep(w, flag_words(word, run_yes, run_yes_short));
    }
    return 0;
}

static int check_wish(const struct wish *w, struct error *e) {
    if (w->value[OWN_PERIOD] && !w->value[OWN_DEADLINE])
        return fail(e, -EINVAL, "--period needs --deadline: what is to be done within each period?");
    if (w->value[OWN_PERIOD] && w->ns[OWN_PERIOD] < w->ns[OWN_DEADLINE])
        return fail(e, -EINVAL, "--period: %.40s is shorter than the deadline, %.40s", w->value[OWN_PERIOD],
                    w->value[OWN_DEADLINE]);
    return 0;
}

static int add_labels(struct words *w, const struct wish *wish, struct docker_plan *p, struct error *e) {
    for (int i = 0; i < OWN_COUNT; i++) {
        if (!wish->value[i] || wish->is_label[i]) continue;
        if (asprintf(&p->labels[i], "--label=gpumgr.%s=%s", own_names[i], wish->value[i]) < 0) {
            p->labels[i] = NULL;
            return fail(e, -ENOMEM, "no memory");
        }
        w->out[w->kept++] = p->labels[i];
    }
    return 0;
}

void docker_plan_done(struct docker_plan *p) {
    for (size_t i = 0; i < ARRAY_LEN(p->labels); i++) free(p->labels[i]);
    free(p->argv);
    *p = (struct docker_plan){0};
}

int docker_plan(int argc, char **argv, struct docker_plan *ret, struct error *e) {
    *ret = (struct docker_plan){.argv = calloc((size_t)argc + OWN_COUNT + 1, sizeof *ret->argv)};
    struct words w = {.in = argv, .out = ret->argv, .count = argc};
    struct wish wish = {0};
    if (!ret->argv) return fail(e, -ENOMEM, "no memory");
    keep(&w, 1);
    int r = find_verb(&w, e);
    if (r >= 0) r = take_flags(&w, &wish, &ret->wants_help, e);
    if (r >= 0) r = check_wish(&wish, e);
    if (r >= 0) r = add_labels(&w, &wish, ret, e);
    if (r < 0)
        docker_plan_done(ret);
    else
        keep(&w, w.count - w.at);
    return r;
}
