#include "client/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/programs.h"
#include "sim/shm.h"

enum { PATIENCE_MS = 5000 };
#define START_NS (2 * NS_PER_S)

/* An instance with simulated GPUs keeps them in its run directory; they are what its driver is. */
static void use_simulator_of(struct source *s) {
    char dir[PATH_MAX];
    const struct shm_root *root;
    struct error e;
    instance_path(&s->instance, dir, sizeof dir, "sim");
    if (shm_open_dir(dir, &root) < 0) return;
    shm_close_dir(root);
    if (program_find(PROGRAM_SIM_LIBRARY, s->library, sizeof s->library, &e) < 0)
        s->library[0] = 0;
    else
        setenv("GPUSIM_DIR", dir, 1);
}

void source_find(struct source *s, const struct settings *settings) {
    struct error e;
    *s = (struct source){
        .direct = {.to_child = -1, .from_child = -1}
    };
    s->has_instance = instance_find(settings->dir, &s->instance, &e) == 0;
    s->holder = s->has_instance ? instance_holder(&s->instance) : 0;
    snprintf(s->library, sizeof s->library, "%s", settings->gpu_library);
    if (!*s->library && s->has_instance) use_simulator_of(s);
}

/* A daemon that has just begun has no ring for a moment. */
static bool daemon_answers(struct source *s) {
    rings_open(&s->rings, &s->instance);
    int64_t until = clock_boot_ns() + START_NS;
    while (s->holder && !rings_count(&s->rings) && clock_boot_ns() < until) {
        usleep(20000);
        rings_refresh(&s->rings);
    }
    return rings_count(&s->rings) && (s->holder || rings_are_live(&s->rings, clock_boot_ns()));
}

static int open_driver(struct source *s, struct error *e) {
    int r = direct_open(&s->direct, s->library, PATIENCE_MS, e);
    if (r < 0) return r;
    s->is_direct = s->is_direct_open = true;
    r = direct_look(&s->direct, DIRECT_INVENTORY, e);
    if (r < 0) {
        struct error why = *e;
        return fail(e, r, "no gpumgr runs here and no GPU driver answers (%.140s); try `gpumgr up --sim 8`", why.text);
    }
    return 0;
}

int source_open(struct source *s, const struct settings *settings, enum source_choice choice, struct error *e) {
    source_find(s, settings);
    if (choice != SOURCE_DRIVER && s->has_instance) {
        if (daemon_answers(s)) return 0;
        bool is_foreign = *s->rings.problem && s->holder;
        if (is_foreign) return fail(e, -EPROTO, "%s", s->rings.problem);
        if (s->holder)
            return fail(e, -EAGAIN, "gpumgr (pid %d) has just started and shows nothing yet; try again",
                        (int)s->holder);
        rings_close(&s->rings);
    }
    if (choice == SOURCE_DAEMON)
        return fail(e, -ESRCH, "no gpumgr runs here, so no GPU is guarded; `gpumgr up` starts one");
    return open_driver(s, e);
}

void source_close(struct source *s) {
    rings_close(&s->rings);
    if (s->is_direct_open) direct_close(&s->direct);
}

int source_view(struct source *s, struct view *v, struct error *e) {
    if (!s->is_direct) {
        rings_refresh(&s->rings);
        rings_fill(&s->rings, v);
        return 0;
    }
    int r = direct_look(&s->direct, DIRECT_READ, e);
    if (r == 0) direct_fill(&s->direct, v);
    return r;
}
