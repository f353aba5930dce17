#include "model/job_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

struct job_name {
    const char *name;
    size_t at;
};

static int by_name(const void *a, const void *b) {
    const struct job_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

void job_names_make(const struct json_tree *list, struct job_names *ret) {
    size_t count = json_tree_count(list);
    *ret = (struct job_names){.of = calloc(count + 1, sizeof *ret->of)};
    if (!ret->of) abort();
    for (size_t i = 0; i < count; i++) {
        const char *name = json_tree_text(json_tree_get(json_tree_at(list, i), "name"), "");
        if (*name) ret->of[ret->count++] = (struct job_name){name, i};
    }
    qsort(ret->of, ret->count, sizeof *ret->of, by_name);
}

void job_names_done(struct job_names *n) {
    free(n->of);
    *n = (struct job_names){0};
}

static const struct job_name *first_of(const struct job_names *n, const char *name) {
    size_t low = 0, high = n->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(n->of[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->count && strcmp(n->of[low].name, name) == 0 ? &n->of[low] : NULL;
}

static int fail_unknown(const struct job_names *n, const char *text, const char *name, struct error *e) {
    struct nearest guess = {.typed = name};
    for (size_t i = 0; i < n->count; i++) nearest_offer(&guess, n->of[i].name);
    if (guess.best)
        return fail(e, -EINVAL, "after: no job here is called \"%.60s\"; did you mean \"%.60s\"?", name, guess.best);
    return fail(e, -EINVAL,
                "after: \"%.60s\" is neither the number of a job, as in 17 or 17:any, nor the name of another one here",
                text);
}

int job_names_after(const struct job_names *names, size_t at, const char *text, struct job_after *ret,
                    struct error *e) {
    char name[JOB_NAME_MAX + 8];
    size_t len = strlen(text);
    bool any = len > 4 && strcmp(text + len - 4, ":any") == 0;
    if (job_after_read(text, ret) && !ret->is_near) return 0;
    if (!names) return fail(e, -EINVAL, "after: \"%.40s\" is not the number of a job, as in 17 or 17:any", text);
    snprintf(name, sizeof name, "%.*s", any ? (int)(len - 4 < sizeof name ? len - 4 : sizeof name) : (int)sizeof name,
             text);
    const struct job_name *one = first_of(names, name);
    if (!one) return fail_unknown(names, text, name, e);
    if (one + 1 < names->of + names->count && strcmp(one[1].name, name) == 0)
        return fail(e, -EINVAL, "after: jobs[%zu] and jobs[%zu] are both called \"%.60s\"", one->at, one[1].at, name);
    if (one->at == at) return fail(e, -EINVAL, "after: \"%.60s\" is this job itself", name);
    *ret = (struct job_after){.job = (int64_t)one->at - (int64_t)at, .is_near = true, .any = any};
    return 0;
}
