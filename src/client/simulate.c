/* `gpumgr simulate`: what jobs would have waited under other policies. The figures are model/simulate's. */
#include "client/simulate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/nearest.h"
#include "client/begin.h"
#include "client/output.h"
#include "model/job.h"

struct wish {
    bool json;
    const char *trace, *times;
    double nodes, gpus_per_node;
    struct flag_list policies;
};

static int pick_policies(const struct flag_list *names, struct simulate_view *v, struct error *e) {
    for (size_t i = 0; i < plan_policies_count && !names->count; i++) v->policy[v->results++] = &plan_policies[i];
    for (size_t i = 0; i < names->count; i++) {
        const struct plan_policy *p = plan_policy_find(names->of[i]);
        struct nearest n = {.typed = names->of[i]};
        for (size_t k = 0; k < plan_policies_count; k++) nearest_offer(&n, plan_policies[k].name);
        if (!p)
            return fail(e, -EINVAL, "--policy: there is no \"%.30s\"%s%s%s; there are %s", names->of[i],
                        n.best ? "; did you mean \"" : "", n.best ? n.best : "", n.best ? "\"?" : "",
                        plan_policy_names());
        for (size_t k = 0; k < v->results; k++)
            if (v->policy[k] == p) return fail(e, -EINVAL, "--policy: %s is given twice", p->name);
        v->policy[v->results++] = p;
    }
    return 0;
}

static int check(const struct wish *w, struct simulate_view *v, struct error *e) {
    int r = pick_policies(&w->policies, v, e);
    if (r < 0) return r;
    if (w->times && strcmp(w->times, "past") != 0 && strcmp(w->times, "known") != 0)
        return fail(e, -EINVAL, "--times: \"%.30s\" is none; there are past and known", w->times);
    if (w->trace && (!w->nodes || !w->gpus_per_node))
        return fail(e, -EINVAL, "--trace: needs --nodes and --gpus-per-node: on what it is to be played");
    if (w->nodes != (uint32_t)w->nodes || w->gpus_per_node != (uint32_t)w->gpus_per_node)
        return fail(e, -EINVAL, "--nodes, --gpus-per-node: must be whole numbers");
    v->setup.nodes = (uint32_t)w->nodes;
    v->setup.gpus_per_node = (uint32_t)w->gpus_per_node;
    v->setup.is_known = w->times && strcmp(w->times, "known") == 0;
    return 0;
}

static int load(const struct wish *w, const char *dir, struct simulate_view *v, struct trace *ret, struct error *e) {
    AUTO(buf_done) struct buf bytes = {0};
    if (!w->trace) return simulate_history(dir, v, ret, e);
    const char *slash = strrchr(w->trace, '/');
    v->source = slash ? slash + 1 : w->trace;
    int r = file_read(w->trace, TRACE_BYTES_MAX, &bytes, e);
    if (r < 0) return r;
    r = trace_read_csv(ret, bytes.s, bytes.len, e);
    return r < 0 ? fail_in(e, r, "%s", w->trace) : 0;
}

static int play(struct simulate_view *v, struct error *e) {
    int r = 0;
    for (size_t i = 0; i < v->results && r >= 0; i++) {
        struct simulate_setup s = v->setup;
        s.policy = v->policy[i];
        r = simulate(v->trace, &s, &v->result[i], e);
    }
    if (r >= 0 && v->result[0].jobs == 0)
        return fail(e, -EINVAL, "every job asks for more GPUs than the %u that a machine has", v->setup.gpus_per_node);
    return r;
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {0};
    /* clang-format off */
    const struct flag own[] = {
        {.name = "json",          .kind = FLAG_YES,    .into = &w.json},
        {.name = "trace",         .kind = FLAG_TEXT,   .into = &w.trace},
        {.name = "times",         .kind = FLAG_TEXT,   .into = &w.times},
        {.name = "nodes",         .kind = FLAG_NUMBER, .into = &w.nodes,         .min = 1, .max = 10000},
        {.name = "gpus-per-node", .kind = FLAG_NUMBER, .into = &w.gpus_per_node, .min = 1, .max = JOB_GPUS_MAX},
        {.name = "policy",        .kind = FLAG_LIST,   .into = &w.policies},
    };
    /* clang-format on */
    AUTO(buf_done) struct buf out = {0};
    AUTO(trace_done) struct trace trace = {0};
    struct simulate_view v = {.trace = &trace};
    struct loaded loaded = {0};
    struct error e;
    int code = command_begin(self, argc, argv, own, ARRAY_LEN(own), LOAD_LOOSE, &loaded);
    if (code != COMMAND_GOES_ON) return code;
    int r = check(&w, &v, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    v.setup.half_life_h = loaded.values.jobs_fair_half_life_h;
    v.setup.fair_wait_ns = (int64_t)(loaded.values.jobs_fair_wait_h * 3600e9);
    r = load(&w, loaded.values.dir, &v, &trace, &e);
    if (r >= 0) r = play(&v, &e);
    if (r >= 0 && w.json) {
        simulate_json(&v, &out);
    } else if (r >= 0) {
        struct screen screen = screen_look();
        simulate_table(&v, &screen, &out);
        simulate_chart(&v, &screen, &out);
    }
    for (size_t i = 0; i < v.results; i++) simulate_done(&v.result[i]);
    return r < 0 ? command_fail(self, &e, r == -EINVAL ? EXIT_INPUT : error_exit_code(r)) : output_exit(&out);
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "Say what jobs would have waited under other policies",
    .run = run,
    .help =
        "usage: gpumgr simulate [--trace FILE --nodes N --gpus-per-node N] [--policy NAME]... [--times past|known]\n"
        "                       [--json] [--dir DIR]\n"
        "\n"
        "Plays jobs through, by the code that schedules, under each policy, and shows waits, ends, use of the GPUs "
        "and\n"
        "deadlines side by side. Nothing is started, and with --trace no gpumgr needs to run. The same input gives "
        "the\n"
        "same bytes.\n"
        "\n"
        "  --trace FILE         jobs as CSV with columns user, gpus, submit_min, duration_min and, where it has them,\n"
        "                       deadline_min (after the submission), limit_min, priority, name; _s for seconds.\n"
        "                       Without it: the jobs that this machine's server remembers, on its own GPUs\n"
        "  --nodes N            how many machines\n"
        "  --gpus-per-node N    and how many GPUs each has\n"
        "  --policy NAME        fair (usual), fifo, backfill, edf, sjf; may be given again (all of them)\n"
        "  --times past|known   what the queue knows of a job's time: what the like of it took before, as in real "
        "life\n"
        "                       (past), or all\n"
        "  --json               figures and curves as JSON\n"
        "  --dir DIR            the instance whose history it is\n"
        "\n"
        "A policy is switched on by the setting jobs.policy.\n"
        "\n"
        "example: gpumgr simulate --trace jobs.csv --nodes 4 --gpus-per-node 8 --policy fair --policy edf\n",
};
