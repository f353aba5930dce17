/* One function and one row a command. The line is split at blanks; no command needs more. */
#include "sim/commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/amount.h"
#include "sim/faults.h"

enum { WORDS_MAX = 16 };

struct call {
    struct machine *m;
    struct children *c;
    int n;
    char *word[WORDS_MAX];
    struct buf *out;
};

PRINTF(2, 3) static int wrong(struct call *c, const char *fmt, ...) {
    buf_clear(c->out);
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(c->out, fmt, ap);
    va_end(ap);
    return CODE_INVALID;
}

/* "3", "all" or a UUID: the range of GPUs it means. */
static int gpus_of(struct call *c, const char *word, uint32_t *ret_from, uint32_t *ret_to) {
    uint32_t i, count = c->m->gpu_count;
    *ret_from = 0;
    *ret_to = count;
    if (word && strcmp(word, "all") == 0) return 0;
    bool found = word && amount_count(word, 0, count - 1, &i);
    for (uint32_t k = 0; word && !found && k < count; k++) {
        if (strcmp(c->m->card[k].uuid, word) != 0) continue;
        i = k;
        found = true;
    }
    if (!found) return wrong(c, "GPU '%s': an index of 0 to %u, a UUID or all is needed", word ? word : "", count - 1);
    *ret_from = i;
    *ret_to = i + 1;
    return 0;
}

static void list_troubles(const struct machine *m, uint32_t i, struct buf *out) {
    const struct board *b = &m->board[i];
    const struct plant_world *w = &m->plant[i].world;
    if (b->lost) buf_puts(out, "  lost");
    if (b->hung) buf_printf(out, "  hang%s%s", *b->hang_call ? " " : "", b->hang_call);
    if (b->hung && b->hang_pid) buf_printf(out, " pid=%d", b->hang_pid);
    for (int a = 0; a < ABILITY_COUNT; a++) {
        if (b->blind >> a & 1) buf_printf(out, "  no %s", ability_name((enum ability)a));
        if (b->flapping >> a & 1) buf_printf(out, "  %s flaps", ability_name((enum ability)a));
    }
    if (b->cooling != 1) buf_printf(out, "  cooling %g", b->cooling);
    if (b->air_add_c != 0) buf_printf(out, "  ambient %+g", b->air_add_c);
    if (w->fans_dead) buf_printf(out, "  fan-stop 0x%x", w->fans_dead);
    if (w->brake) buf_puts(out, "  brake");
    if (b->last_xid) buf_printf(out, "  last xid %u", b->last_xid);
}

static int run_list(struct call *c) {
    static const char *const driver[] = {"", "  (driver not loaded)", "  (driver mismatch)"};
    struct machine *m = c->m;
    for (uint32_t i = 0; i < m->gpu_count; i++) {
        const struct plant *p = &m->plant[i];
        int tasks = 0;
        for (unsigned t = 0; t < m->tasks.high; t++)
            tasks += m->tasks.slot[t].used && m->tasks.slot[t].ask.gpus >> i & 1;
        buf_printf(c->out, "%2u  %-24s %3.0f C  %5.1f W of %3.0f  %4u MHz  %3.0f %%  %d task%s%s", i, m->card[i].name,
                   p->sensor[0], plant_average(p, 1).energy_j, p->set.limit_w, p->gr_mhz,
                   100 * plant_average(p, 1.0 / 6).busy_s, tasks, tasks == 1 ? "" : "s", driver[m->driver]);
        list_troubles(m, i, c->out);
        buf_putc(c->out, '\n');
    }
    return CODE_OK;
}

static int run_fault(struct call *c) {
    uint32_t from, to;
    int r = gpus_of(c, c->word[1], &from, &to);
    if (r) return r;
    const struct fault *f = c->word[2] ? fault_by_name(c->word[2]) : NULL;
    if (!f) return wrong(c, "fault '%s': no such fault; `faults` lists them", c->word[2] ? c->word[2] : "");
    for (uint32_t i = from; i < to; i++) {
        char why[200];
        if (f->apply(c->m, i, c->n - 3, c->word + 3, why, sizeof why) < 0) return wrong(c, "%s", why);
    }
    return CODE_OK;
}

static int run_heal(struct call *c) {
    uint32_t from, to;
    int r = gpus_of(c, c->word[1] ? c->word[1] : "all", &from, &to);
    if (r) return r;
    for (uint32_t i = from; i < to; i++) machine_heal(c->m, i);
    return CODE_OK;
}

/* Words after the GPU, in any order: each is of a shape of its own. */
static int load_word(struct call *c, const char *w, struct wire_task *ask) {
    int kind = kind_by_name(w);
    if (kind >= 0)
        ask->kind = (uint32_t)kind;
    else if (strchr(w, '%') || strchr(w, '.')) {
        if (!amount_share(w, &ask->demand)) return wrong(c, "load: '%s' is not a demand of 0%% to 100%%", w);
    } else if (strncmp(w, "for=", 4) == 0) {
        if (!amount_seconds(w + 4, &ask->work_s)) return wrong(c, "load: for=SECONDS, not '%s'", w);
    } else if (!amount_bytes(w, &ask->memory_bytes))
        return wrong(c, "load: '%s' is neither demand (80%%), memory (4G), for=SECONDS nor a kind of task", w);
    return CODE_OK;
}

static int run_load(struct call *c) {
    uint32_t from, to;
    int r = gpus_of(c, c->word[1], &from, &to);
    if (r) return r;
    if (!c->c) return wrong(c, "load: no tasks can be started here");
    if (c->word[2] && strcmp(c->word[2], "off") == 0) {
        int n = 0;
        for (uint32_t i = from; i < to; i++) n += children_stop(c->c, i);
        buf_printf(c->out, "%d task%s told to end\n", n, n == 1 ? "" : "s");
        return CODE_OK;
    }
    struct wire_task ask = {
        .demand = 1, .work_s = INFINITY, .memory_bytes = UINT64_C(1) << 30, .kind = KIND_MATMUL, .mig = UINT32_MAX};
    for (int i = 2; i < c->n; i++) {
        r = load_word(c, c->word[i], &ask);
        if (r) return r;
    }
    for (uint32_t i = from; i < to; i++) {
        struct error e = {0};
        ask.gpus = UINT64_C(1) << i;
        if (children_start(c->c, &ask, "gpusim-task", 1, &e) < 0) return wrong(c, "load: %s", e.text);
    }
    return CODE_OK;
}

static int run_costs(struct call *c) {
    const char *w = c->word[1] ? c->word[1] : "";
    if (strcmp(w, "on") != 0 && strcmp(w, "off") != 0) return wrong(c, "costs: on or off, not '%s'", w);
    c->m->costs_on = strcmp(w, "on") == 0;
    return CODE_OK;
}

static int run_faults(struct call *c) {
    for (size_t i = 0; i < fault_count; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "%s %s", faults[i].name, faults[i].args);
        buf_printf(c->out, "  %-36s %s\n", usage, faults[i].help);
    }
    return CODE_OK;
}

static int run_sensors(struct call *c) {
    for (int i = 0; i < ABILITY_COUNT; i++)
        buf_printf(c->out, "  %-20s %s\n", ability_name((enum ability)i), ability_help((enum ability)i));
    return CODE_OK;
}

static int run_help(struct call *c);

static const struct {
    const char *name, *args, *help;
    bool changes; /* for root and gpusim's own user */
    int (*run)(struct call *c);
} commands[] = {
    {"list",    "",                                                "a line for each GPU: readings, tasks, what is wrong",       false, run_list   },
    {"load",    "GPU [80%] [4G] [matmul] [for=SECONDS] | GPU off", "start a task there, or end those so started",               true,
     run_load                                                                                                                                     },
    {"fault",   "GPU NAME ...",                                    "break something (`faults` lists what)",                     true,  run_fault  },
    {"heal",    "[GPU]",                                           "mend everything, there or everywhere; a changed cap stays", true,  run_heal   },
    {"costs",   "on|off",                                          "NVML calls cost what they cost on an H200",                 true,  run_costs  },
    {"faults",  "",                                                "what can be broken",                                        false, run_faults },
    {"sensors", "",                                                "what `fault GPU sensor` can take away",                     false, run_sensors},
    {"help",    "",                                                "this",                                                      false, run_help   },
};

static int run_help(struct call *c) {
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        char usage[80];
        snprintf(usage, sizeof usage, "%s %s", commands[i].name, commands[i].args);
        buf_printf(c->out, "  %-56s %s\n", usage, commands[i].help);
    }
    return CODE_OK;
}

int commands_run(struct machine *m, struct children *children, bool may_set, const char *line, struct buf *ret) {
    char text[512];
    snprintf(text, sizeof text, "%s", line);
    struct call c = {.m = m, .c = children, .out = ret};
    char *rest = text;
    for (char *w; c.n < WORDS_MAX - 1 && (w = strsep(&rest, " \t\n"));)
        if (*w) c.word[c.n++] = w;
    if (c.n == 0) return wrong(&c, "no command given; `help` lists them");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, c.word[0]) != 0) continue;
        if (!commands[i].changes || may_set) return commands[i].run(&c);
        wrong(&c, "%s: only root and the simulator's own user may do that", c.word[0]);
        return CODE_NO_PERMISSION;
    }
    return wrong(&c, "'%s': no such command; `help` lists them", c.word[0]);
}
