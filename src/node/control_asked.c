/* Which GPUs a container that was made elsewhere asked its engine for: by a request for devices (Docker's --gpus, CDI), by the variable
 * that NVIDIA's runtime reads, or by files of GPUs that it was given as they are. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/control_own.h"
#include "node/frees.h"

#define CDI_GPU "nvidia.com/gpu="
#define VISIBLE "NVIDIA_VISIBLE_DEVICES="

struct asked {
    struct buf *ids; /* with commas */
    int count;       /* -1: all */
};

static void add_id(struct asked *a, const char *id, size_t n) {
    if (a->count < 0 || !n) return;
    if (n == 3 && memcmp(id, "all", 3) == 0) {
        buf_clear(a->ids);
        a->count = -1;
        return;
    }
    if (a->ids->len) buf_putc(a->ids, ',');
    buf_add(a->ids, id, n);
    a->count++;
}

static void add_list(struct asked *a, const char *ids) {
    while (*ids) {
        size_t n = strcspn(ids, ",");
        add_id(a, ids, n);
        ids += n + (ids[n] == ',');
    }
}

/* ---- requests ---- */

/* Others ask for network cards in the same way. */
static bool is_for_gpus(struct json_slice request) {
    struct json_slice key, any_of, one, ids = json_slice_get(request, "DeviceIDs");
    for (size_t at = 0; json_slice_next(json_slice_get(request, "Capabilities"), &at, &key, &any_of);)
        for (size_t k = 0; json_slice_next(any_of, &k, &key, &one);)
            if (json_slice_is(one, "\"gpu\"")) return true;
    for (size_t at = 0; json_slice_next(ids, &at, &key, &one);)
        if (one.len > sizeof CDI_GPU && memcmp(one.s + 1, CDI_GPU, strlen(CDI_GPU)) == 0) return true;
    return json_slice_is(json_slice_get(request, "Driver"), "\"nvidia\"");
}

static void take_request(struct asked *a, struct json_slice request) {
    struct json_slice key, one, count = json_slice_get(request, "Count");
    bool has_ids = false;
    for (size_t at = 0; json_slice_next(json_slice_get(request, "DeviceIDs"), &at, &key, &one);) {
        AUTO(buf_done) struct buf id = {0};
        json_slice_text(one, &id);
        bool is_cdi = id.len > strlen(CDI_GPU) && strncmp(id.s, CDI_GPU, strlen(CDI_GPU)) == 0;
        if (id.len) add_list(a, is_cdi ? id.s + strlen(CDI_GPU) : id.s);
        has_ids = true;
    }
    long n = has_ids || !count.len ? 0 : strtol(count.s, NULL, 10);
    if (n < 0) add_id(a, "all", 3);
    if (n > 0 && a->count >= 0) a->count += (int)(n < FREES_MOST ? n : FREES_MOST); /* the engine picks which */
}

/* ---- a variable ---- */

static bool visible_of(struct json_slice env, struct buf *ret) {
    struct json_slice key, one;
    bool is_found = false;
    for (size_t at = 0; json_slice_next(env, &at, &key, &one);) {
        AUTO(buf_done) struct buf text = {0};
        json_slice_text(one, &text);
        if (!text.len || strncmp(text.s, VISIBLE, strlen(VISIBLE)) != 0) continue;
        buf_clear(ret); /* of two the later counts */
        buf_puts(ret, text.s + strlen(VISIBLE));
        is_found = true;
    }
    return is_found && ret->len && strcmp(ret->s, "void") != 0 && strcmp(ret->s, "none") != 0;
}

/* ---- files ---- */

/* /dev/nvidia3: 3; -2: of no single GPU; -1: no file of GPUs. */
static int minor_of(struct json_slice path) {
    AUTO(buf_done) struct buf text = {0};
    json_slice_text(path, &text);
    const char *slash = text.len ? strrchr(text.s, '/') : NULL;
    if (!slash || strncmp(slash, "/nvidia", 7) != 0) return -1;
    const char *number = slash + 7;
    bool is_one = isdigit((unsigned char)*number) && strspn(number, "0123456789") == strlen(number);
    return is_one && strlen(number) < 5 ? atoi(number) : -2;
}

static void take_file(struct asked *a, int minor) {
    struct frees_gpu gpu[FREES_MOST];
    char name[24];
    unsigned known = frees_all(gpu, FREES_MOST);
    if (minor < 0) return;
    snprintf(name, sizeof name, "nvidia%d", minor);
    const char *is = name;
    for (unsigned i = 0; i < known; i++)
        if (gpu[i].minor == minor) is = gpu[i].uuid;
    add_id(a, is, strlen(is));
}

static bool take_files(struct asked *a, struct json_slice list, const char *which) {
    struct json_slice key, one;
    bool is_found = false;
    for (size_t at = 0; json_slice_next(list, &at, &key, &one);) {
        int minor = minor_of(json_slice_get(one, which));
        take_file(a, minor);
        is_found |= minor != -1;
    }
    return is_found;
}

bool control_asked(const struct control_seen *s, struct buf *ids, int *ret_count) {
    AUTO(buf_done) struct buf visible = {0};
    struct json_slice key, one;
    struct asked a = {.ids = ids};
    bool is_found = false;
    buf_clear(ids);
    for (size_t at = 0; json_slice_next(json_slice_get(s->host, "DeviceRequests"), &at, &key, &one);)
        if (is_for_gpus(one)) take_request(&a, one), is_found = true;
    if (visible_of(json_slice_get(s->config, "Env"), &visible)) {
        if (!is_found) add_list(&a, visible.s);
        is_found = true;
    }
    if (a.count == 0) {
        is_found |= take_files(&a, json_slice_get(s->host, "Devices"), "PathOnHost");
        is_found |= take_files(&a, json_slice_get(s->all, "Mounts"), "Source");
    }
    *ret_count = a.count;
    return is_found || json_slice_is(json_slice_get(s->host, "Runtime"), "\"nvidia\"");
}
