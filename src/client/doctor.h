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

/* How this card is slowed when it must be: "power limit", ..., "observe only". */
struct doctor_way {
    char name[24];
    char why[160];
    bool is_in_force; /* a running guard says so; else it is what one would do */
};
struct doctor_way doctor_workflow(const struct doctor *d, int32_t index);

/* Findings about the running server. */
void doctor_check_server(struct doctor *d);

/* Findings about container engines. */
void doctor_check_engines(struct doctor *d);

/* Findings about the running guard. */
void doctor_check_guard(struct doctor *d);
