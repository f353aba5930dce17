#include "client/gpu_pick.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *uuid, const char *word) { return strncasecmp(uuid, word, strlen(word)) == 0; }

static bool is_meant(const struct inventory *i, const char *word) {
    if (strcmp(word, "all") == 0) return true;
    if (strspn(word, "0123456789") == strlen(word) && strlen(word) < 4) return i->index == atoi(word);
    return begins(i->uuid, word) || (begins(i->uuid, "GPU-") && begins(i->uuid + 4, word));
}

static int none(const struct view *v, const char *word, struct error *e) {
    int gpus = 0, last = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (view_is_instance(&v->of[i])) continue;
        gpus++;
        last = v->of[i].inventory.index;
    }
    if (!gpus) return fail(e, -EINVAL, "there is no GPU %.60s: gpumgr watches none", word);
    if (gpus == 1) return fail(e, -EINVAL, "there is no GPU %.60s; allowed are all, %d and its UUID", word, last);
    return fail(e, -EINVAL, "there is no GPU %.60s; allowed are all, indices up to %d, and UUIDs", word, last);
}

int gpu_pick(const struct view *v, const char *word, struct gpu_picked *ret, struct error *e) {
    struct gpu_picked got = {0};
    for (size_t i = 0; *word && i < v->count && got.count < GPU_MAX; i++)
        if (!view_is_instance(&v->of[i]) && is_meant(&v->of[i].inventory, word)) got.of[got.count++] = i;
    if (!got.count) return none(v, word, e);
    if (got.count > 1 && strcmp(word, "all") != 0)
        return fail(e, -EINVAL, "%.60s is the beginning of %zu UUIDs; give more of it, or an index", word, got.count);
    *ret = got;
    return 0;
}
