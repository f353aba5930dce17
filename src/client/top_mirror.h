/* What a server has told of its GPUs, kept up to date message by message: a snapshot first, then what changed. Pure:
 * JSON in, a view and its processes out. What is not understood is passed over; nothing of it is believed further than
 * it can be checked. */
#pragma once

#include <stdbool.h>

#include "base/json_tree.h"
#include "client/top_history.h"
#include "client/top_processes.h"
#include "client/view.h"

struct top_mirror {
    struct view view;
    struct top_processes processes;
    char host[65];
    int nodes;
    bool is_begun; /* a snapshot has come */
};

void top_mirror_done(struct top_mirror *m);

/* {"gpus":[...],"nodes":[...]}: all there is. Takes what /api/v1/gpus answers, too. */
void top_mirror_snapshot(struct top_mirror *m, const struct json_tree *j, int64_t now_boot_ns, int64_t now_real_ns);

/* {"gpus":{UUID:{...}},"nodes":{NAME:{...}}}: what changed. */
void top_mirror_delta(struct top_mirror *m, const struct json_tree *j, int64_t now_boot_ns, int64_t now_real_ns);

void top_mirror_event(struct top_mirror *m, const struct json_tree *j);

/* {"series":[{"of":"gpu:UUID","metric","time":[],"mean":[]}]}: the past of the GPUs, into a history. */
void top_mirror_past(const struct json_tree *j, int64_t now_boot_ns, int64_t now_real_ns, struct history *h);
