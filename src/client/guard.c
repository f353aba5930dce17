/* `gpumgr guard`: what the guard does with each GPU, and by hand: set, confirm, restore. */
#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "client/frames.h"
#include "client/guard.h"

struct options {
    bool json, watch;
    double every_s;
    struct guard_words set;
};

static void print(const struct view *v, const void *ctx, struct buf *out) {
    const struct options *o = ctx;
    struct screen screen = screen_look();
    if (o->json)
        guard_json(v, out);
    else
        guard_table(v, &screen, out);
}

static int show(const struct command *self, const struct loaded *l, const struct options *o) {
    AUTO(source_close) struct source s;
    const struct frames f = {.every_s = o->every_s, .in_place = !o->json, .print = print, .ctx = o};
    struct error e;
    int r = source_open(&s, &l->values, SOURCE_DAEMON, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    if (o->watch) return frames_show(&s, &f);
    r = frames_show_once(&s, &f, &e);
    return r < 0 ? command_fail(self, &e, EXIT_FAILED) : r;
}

static int set(const struct command *self, const struct loaded *l, const struct options *o, const char *gpu) {
    struct guard_wish wish;
    struct error e;
    int r = guard_wish_parse(&o->set, &wish, &e);
    return r < 0 ? command_fail(self, &e, EXIT_INPUT) : guard_set(self, l, gpu, &wish);
}

static int confirm(const struct command *self, const struct loaded *l, const struct options *o, const char *gpu) {
    return guard_confirm(self, l, gpu);
}

static int restore(const struct command *self, const struct loaded *l, const struct options *o, const char *gpu) {
    return guard_restore(self, l, gpu ? gpu : "all");
}

static const struct verb {
    const char *name;
    int (*run)(const struct command *self, const struct loaded *l, const struct options *o, const char *gpu);
    bool needs_gpu;
} verbs[] = {
    {"set",     set,     true },
    {"confirm", confirm, true },
    {"restore", restore, false},
};

static int find_verb(const struct flags *f, const struct verb **ret, struct error *e) {
    struct nearest near = {.typed = f->words[0]};
    *ret = NULL;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        nearest_offer(&near, verbs[i].name);
        if (strcmp(verbs[i].name, f->words[0]) == 0) *ret = &verbs[i];
    }
    if (!*ret && near.best) return fail(e, -EINVAL, "what is \"%.60s\"? did you mean %s?", f->words[0], near.best);
    if (!*ret) return fail(e, -EINVAL, "what is \"%.60s\"? set, confirm or restore", f->words[0]);
    if ((*ret)->needs_gpu && f->word_count < 2)
        return fail(e, -EINVAL, "%s: which GPU? an index, a UUID, or all", (*ret)->name);
    if (f->word_count > 2) return fail(e, -EINVAL, "%s: one GPU at a time, or all", (*ret)->name);
    return 0;
}

static bool has_set_words(const struct options *o) {
    return o->set.limit || o->set.clock || o->set.target || o->set.for_time || o->set.confirm;
}

/* Flags that mean nothing to the word they stand with. */
static int check_flags(const struct options *o, const struct verb *verb, struct error *e) {
    if (has_set_words(o) && (!verb || verb->run != set))
        return fail(e, -EINVAL, "--limit, --clock, --target, --for and --confirm go with `gpumgr guard set GPU`");
    if (verb && (o->json || o->watch)) return fail(e, -EINVAL, "%s: takes neither --json nor --watch", verb->name);
    return 0;
}

static int run(const struct command *self, int argc, char **argv) {
    struct options o = {0};
    const struct flag own[] = {
        {.name = "json",     .kind = FLAG_YES,            .into = &o.json             },
        {.name = "watch",    .kind = FLAG_MAYBE,          .into = &o.every_s,           .min = 0.1, .max = 3600, .given = &o.watch},
        {.name = "limit",       .kind = FLAG_TEXT,                 .into = &o.set.limit                                            },
        {.name = "clock",.kind = FLAG_TEXT,.into = &o.set.clock},
        {.name = "target",       .kind = FLAG_TEXT,                             .into = &o.set.target                                                                                       },
        {.name = "for",.kind = FLAG_TEXT,.into = &o.set.for_time},
        {.name = "confirm",       .kind = FLAG_TEXT,                                       .into = &o.set.confirm                                                                                                                                                         },
    };
    struct flags flags;
    struct loaded loaded = {0};
    const struct verb *verb = NULL;
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0 && flags.word_count) r = find_verb(&flags, &verb, &e);
    if (r == 0) r = check_flags(&o, verb, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e); /* a broken file must not bar the way back */
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    return verb ? verb->run(self, &loaded, &o, flags.word_count > 1 ? flags.words[1] : NULL) : show(self, &loaded, &o);
}

const struct command command_guard = {
    .name = "guard",
    .summary = "Show what the guard does with every GPU; set limits by hand, put them back",
    .run = run,
    .words = "set confirm restore",
    .help =
        "usage: gpumgr guard [--json] [--watch [SECONDS]]\n"
        "       gpumgr guard set GPU (--limit WATTS | --clock MHZ | --target C) [--for TIME] [--confirm TIME]\n"
        "       gpumgr guard confirm GPU\n"
        "       gpumgr guard restore [GPU]\n"
        "\n"
        "A line per GPU: whether its guard acts, observes or is off; what it moves (power limit, locked clocks,\n"
        "application clocks, or none); the temperature that is closest to its target, as 81/84; the limit and its\n"
        "baseline, as 640/700 W; the reason, since when, and for how long the card was held below its baseline.\n"
        "\n"
        "`set` holds a limit, a clock or a target for a time; the guard goes lower where it must. With --confirm it\n"
        "is undone unless `gpumgr guard confirm GPU` comes in time: for changes that may cut you off. `restore` puts\n"
        "a GPU, or all, back to the baseline. Where no gpumgr runs it does so from the records that a killed guard\n"
        "left, and touches no other card; with guard.mode observe it only says what it would set.\n"
        "\n"
        "  GPU               an index, a UUID or its beginning, or all\n"
        "  --limit WATTS     500 or 500W: at most this power limit, from the card's lowest to its baseline\n"
        "  --clock MHZ       1400 or 1400MHz: the same for cards whose clocks are moved\n"
        "  --target C        80 or 80C: from 30 to where the card slows down by itself\n"
        "  --for TIME        500s, 30m, 2h: how long it holds, from 1s to 168h (1h); bare numbers are seconds\n"
        "  --confirm TIME    by when it must be confirmed, from 1s to 1h (need not be)\n"
        "  --watch [SECONDS] refresh in place: when there is news, or every SECONDS; Ctrl-C ends it\n"
        "  --json            one object (with --watch one a line); what is not known is left out\n"
        "  --dir DIR         the instance to look at\n"
        "\n"
        "example: gpumgr guard set 0 --limit 500W --for 30m --confirm 60s\n",
};
