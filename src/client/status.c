/* `gpumgr status`: what the GPUs do now. Reads the ring of a running gpumgr, which costs the driver nothing; without
 * one it asks the driver itself and says so. */
#include <stdio.h>

#include "base/clock.h"
#include "client/begin.h"
#include "client/command.h"
#include "client/control_ask.h"
#include "client/frames.h"
#include "client/inventory.h"
#include "client/output.h"
#include "client/settings_load.h"
#include "client/source.h"
#include "client/status_json.h"
#include "client/status_table.h"

#define FRESH_NS NS_PER_S

struct wish {
    bool watch, json, no_daemon, fresh, inventory;
    double every_s; /* 0: when there is news */
    double hot_c;
};

/* ---- asking for news ---- */

/* Whether everything that is known was read since then, the slow metrics as well. */
static bool all_are_newer(const struct rings *r, int64_t than_boot_ns) {
    for (unsigned i = 0; i < RINGS_MAX; i++) {
        for (uint32_t d = 0; r->of[i].is_open && d < ring_devices(&r->of[i].ring); d++) {
            struct ring_state state;
            struct latest l;
            const struct ring *ring = &r->of[i].ring;
            if (!ring_state(ring, d, &state) || state.state != DEVICE_OK || !ring_latest(ring, d, &l)) continue;
            for (int m = 0; m < METRIC_COUNT; m++)
                if (l.of[m].boot_ns && l.of[m].boot_ns < than_boot_ns) return false;
        }
    }
    return true;
}

static void look_now(const struct source *s) {
    int64_t asked_ns = clock_boot_ns(), left;
    for (unsigned i = 0; i < RINGS_MAX; i++) {
        struct control_reply reply;
        struct error e;
        if (s->rings.of[i].is_open && control_ask(&s->instance, i, CONTROL_LOOK, NULL, &reply, &e) < 0) {
            char line[300];
            snprintf(line, sizeof line, "gpumgr status: --fresh: %s", e.text);
            output_note(line);
            return;
        }
    }
    while ((left = asked_ns + FRESH_NS - clock_boot_ns()) > 0) {
        struct rings_bells bells = rings_listen(&s->rings);
        if (all_are_newer(&s->rings, asked_ns)) return;
        rings_wait(&s->rings, &bells, left < NS_PER_S / 2 ? left : NS_PER_S / 2);
    }
}

/* ---- showing ---- */

static void print(const struct view *v, const void *ctx, struct buf *out) {
    const struct wish *w = ctx;
    if (w->json) {
        status_json(v, w->inventory, out);
        return;
    }
    struct status_look look = {.screen = screen_look(), .hot_c = w->hot_c};
    if (w->inventory) {
        inventory_text(v, &look.screen, out);
        return;
    }
    status_table(v, &look, out);
    if (w->watch && v->source == VIEW_DAEMON && v->count == 0 && v->driver.state != DRIVER_ABSENT)
        buf_puts(out, "Nothing is being written; waiting for gpumgr.\n");
}

static int show(const struct command *self, const struct loaded *l, const struct wish *w) {
    AUTO(source_close) struct source s;
    struct error e;
    int r = source_open(&s, &l->values, w->no_daemon ? SOURCE_DRIVER : SOURCE_ANY, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    if (s.is_direct && !w->no_daemon) output_note("gpumgr status: no gpumgr runs here; reading the driver itself.");
    if (w->fresh && !s.is_direct) look_now(&s);
    const struct frames f = {.every_s = w->every_s, .in_place = !w->json, .print = print, .ctx = w};
    if (w->watch) return frames_show(&s, &f);
    r = frames_show_once(&s, &f, &e);
    return r < 0 ? command_fail(self, &e, EXIT_FAILED) : r;
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {0};
    const struct flag own[] = {
        {.name = "watch",   .kind = FLAG_MAYBE,    .into = &w.every_s, .min = 0.1, .max = 3600, .given = &w.watch},
        {.name = "json",      .kind = FLAG_YES,          .into = &w.json                           },
        {.name = "no-daemon",.kind = FLAG_YES,.into = &w.no_daemon},
        {.name = "fresh",      .kind = FLAG_YES,               .into = &w.fresh                                                 },
        {.name = "inventory",.kind = FLAG_YES,.into = &w.inventory},
    };
    struct loaded loaded = {0};
    int code = command_begin(self, argc, argv, own, ARRAY_LEN(own), LOAD_LOOSE, &loaded);
    if (code != COMMAND_GOES_ON) return code;
    if (*loaded.warning) output_note(loaded.warning);
    w.hot_c = loaded.values.hot_c;
    return show(self, &loaded, &w);
}

const struct command command_status = {
    .name = "status",
    .summary = "Show what every GPU does now",
    .run = run,
    .help = "usage: gpumgr status [--inventory] [--watch [SECONDS]] [--json] [--fresh] [--no-daemon] [--dir DIR]\n"
            "                     [--gpu-library PATH]\n"
            "\n"
            "A line per GPU: state, temperature, power and its limit, utilisation, memory, SM clock in MHz, why it\n"
            "is slowed if it is (power, heat, brake, clocks; with ! by the hardware itself; guard, budget or by hand:\n"
            "held below its usual limit, see `gpumgr guard`), processes and their users. MIG instances stand under\n"
            "their GPU, recent errors at the bottom. Reads what a running gpumgr publishes, which costs the driver\n"
            "nothing; where none runs it asks the driver itself.\n"
            "\n"
            "  --inventory         what the cards are instead of what they do: serial number, VBIOS, link, limits,\n"
            "                      thresholds, clocks, MIG layout; with --json both\n"
            "  --watch [SECONDS]   refresh in place: when there is news, or every SECONDS; Ctrl-C ends it\n"
            "  --json              one object (with --watch one a line); a metric that is not known is left out\n"
            "  --fresh             have every sensor read now, the slow ones too, before showing\n"
            "  --no-daemon         ask the driver itself even where a gpumgr runs\n"
            "  --dir DIR           the instance to look at\n"
            "  --gpu-library PATH  the driver's library to open when no gpumgr runs\n"
            "\n"
            "example: gpumgr status --watch\n",
};
