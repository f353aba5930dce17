#include "client/gpu_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gpu_list_next(const char *list, char *ret, size_t room) {
    if (!list || !*list) return NULL;
    size_t n = strcspn(list, ",");
    snprintf(ret, room, "%.*s", (int)n, list);
    return list + n + (list[n] == ',');
}

static bool is_index(const char *item) { return isdigit((unsigned char)*item); }

static int refuse(const struct loaded *l, const char *item, const char *there_are, struct error *e) {
    const struct option *o = option_find(settings_table, settings_count, "gpus");
    const char *from = l->of[o - settings_table].from;
    size_t n = strlen(from);
    return fail(e, -EINVAL, "%s%s%sgpus: there is no GPU %.60s; %s", n > 80 ? "..." : "", n > 80 ? from + n - 80 : from,
                *from ? ": " : "", item, there_are);
}

static bool is_meant(const struct view *v, size_t at, const char *item) {
    const struct inventory *inv = &v->of[at].inventory;
    if (is_index(item)) return !view_is_instance(&v->of[at]) && inv->index == atoi(item);
    return strcmp(inv->uuid, item) == 0;
}

static bool is_there(const struct view *v, const char *item) {
    for (size_t i = 0; i < v->count; i++)
        if (is_meant(v, i, item)) return true;
    return false;
}

bool gpu_list_has(const char *list, const struct view *v, size_t at) {
    char item[100];
    if (strcmp(list, "all") == 0) return true;
    while ((list = gpu_list_next(list, item, sizeof item)))
        if (is_meant(v, at, item)) return true;
    return false;
}

static void name_range(int count, char *ret, size_t room) {
    if (count == 0)
        snprintf(ret, room, "this machine has none");
    else if (count == 1)
        snprintf(ret, room, "allowed are all, 0 and its UUID");
    else
        snprintf(ret, room, "allowed are all, 0 to %d, and their UUIDs", count - 1);
}

int gpu_list_check_indices(const struct loaded *l, struct error *e) {
    char item[100], range[80];
    if (strcmp(l->values.gpus, "all") == 0) return 0;
    name_range(l->values.sim, range, sizeof range);
    for (const char *at = l->values.gpus; (at = gpu_list_next(at, item, sizeof item));)
        if (is_index(item) && atoi(item) >= l->values.sim) return refuse(l, item, range, e);
    return 0;
}

int gpu_list_check(const struct loaded *l, const struct view *v, struct error *e) {
    if (strcmp(l->values.gpus, "all") == 0) return 0;
    int gpus = 0;
    for (size_t i = 0; i < v->count; i++) gpus += !view_is_instance(&v->of[i]);
    char item[100], range[80];
    name_range(gpus, range, sizeof range);
    for (const char *at = l->values.gpus; (at = gpu_list_next(at, item, sizeof item));)
        if (!is_there(v, item)) return refuse(l, item, range, e);
    return 0;
}
