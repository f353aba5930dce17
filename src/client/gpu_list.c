#include "client/gpu_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/direct.h"
#include "client/view.h"

enum { PATIENCE_MS = 5000 };

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

static bool is_there(const struct view *v, const char *item) {
    for (size_t i = 0; i < v->count; i++) {
        const struct inventory *inv = &v->of[i].inventory;
        if (is_index(item) && !view_is_instance(&v->of[i]) && inv->index == atoi(item)) return true;
        if (!is_index(item) && strcmp(inv->uuid, item) == 0) return true;
    }
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

/* The simulator's UUIDs are known once it runs; its indices are known now. */
static int check_simulated(const struct loaded *l, struct error *e) {
    char item[100], range[80];
    name_range(l->values.sim, range, sizeof range);
    for (const char *at = l->values.gpus; (at = gpu_list_next(at, item, sizeof item));)
        if (is_index(item) && atoi(item) >= l->values.sim) return refuse(l, item, range, e);
    return 0;
}

static void close_direct(struct direct *d) { direct_close(d); }

int gpu_list_check(const struct loaded *l, struct error *e) {
    if (strcmp(l->values.gpus, "all") == 0) return 0;
    if (l->values.sim > 0) return check_simulated(l, e);
    AUTO(close_direct) struct direct d;
    AUTO(view_done) struct view v = {0};
    int r = direct_open(&d, l->values.gpu_library, PATIENCE_MS, e);
    if (r < 0) return r;
    if (direct_look(&d, DIRECT_INVENTORY, e) < 0) return 0;
    direct_fill(&d, &v);
    int gpus = 0;
    for (size_t i = 0; i < v.count; i++) gpus += !view_is_instance(&v.of[i]);
    char item[100], range[80];
    name_range(gpus, range, sizeof range);
    for (const char *at = l->values.gpus; (at = gpu_list_next(at, item, sizeof item));)
        if (!is_there(&v, item)) return refuse(l, item, range, e);
    return 0;
}
