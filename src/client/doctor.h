/* What `gpumgr doctor` looks at, shared by its checks, its GPU pages and the support archive. */
#pragma once

#include "client/report.h"
#include "client/settings_load.h"
#include "client/source.h"
#include "client/view.h"

struct doctor {
    struct loaded loaded;
    struct source source;
    bool has_driver;
    struct direct direct; /* open where has_driver */
    struct view view;     /* by the driver itself */
    struct view daemon;   /* by the rings, where there are any */
    struct report report;
};

/* Fills everything but `loaded`, which the caller has. */
void doctor_examine(struct doctor *d);
void doctor_done(struct doctor *d);

/* Findings about the cards themselves. */
void doctor_check_gpus(struct doctor *d);

/* What each GPU can be asked and what it costs: alike GPUs on one page. */
void doctor_print_gpus(const struct doctor *d, int width, struct buf *b);
void doctor_json(const struct doctor *d, struct buf *b);

/* How a guard would slow this card: "power limit"; `why` says what decided it. */
const char *doctor_workflow(const struct inventory *i, const struct settings *s, char *why, size_t room);
