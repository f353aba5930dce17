/* `gpumgr simulate`: what jobs would have waited under other policies. The figures are model/simulate's. */
#include "client/simulate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/nearest.h"
#include "client/begin.h"
#include "client/output.h"
#include "model/job.h"
#include "model/size.h"

struct wish {
    bool json;
    const char *trace, *times, *gpu_memory;
    double nodes, gpus_per_node;
    struct flag_list policies, reserves;
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
    r = w->gpu_memory ? size_parse(w->gpu_memory, &v->setup.gpu_bytes, e) : 0;
    if (r < 0) return fail_in(e, -EINVAL, "--gpu-memory");
    v->setup.nodes = (uint32_t)w->nodes;
    v->setup.gpus_per_node = (uint32_t)w->gpus_per_node;
    v->setup.is_known = w->times && strcmp(w->times, "known") == 0;
    return 0;
}

static int load_csv(const char *path, struct simulate_view *v, struct trace *ret, struct error *e) {
    AUTO(buf_done) struct buf bytes = {0};
    const char *slash = strrchr(path, '/');
    v->source = slash ? slash + 1 : path;
    int r = file_read(path, TRACE_BYTES_MAX, &bytes, e);
    if (r < 0) return r;
    r = trace_read_csv(ret, bytes.s, bytes.len, e);
    if (r < 0) return fail_in(e, r, "%s", path);
    bool has_memory = v->setup.gpu_bytes > 0;
    for (uint32_t i = 0; i < ret->jobs && !has_memory; i++)
        if (ret->job[i].share_bytes || ret->job[i].memory_bytes)
            return fail(e, -EINVAL, "%s: jobs ask for memory of GPUs: say with --gpu-memory how much each has", path);
    return 0;
}

/* Where FROM of --reserve is counted from: the first submission, or for this machine's own days midnight before it. */
static int64_t zero_of(const struct simulate_view *v) {
    int64_t zero_s = v->trace->zero_ns / NS_PER_S;
    time_t at = (time_t)zero_s;
    struct tm tm;
    if (!v->has_truth || !localtime_r(&at, &tm)) return zero_s;
    return zero_s - tm.tm_hour * 3600 - tm.tm_min * 60 - tm.tm_sec;
}

static int load(const struct wish *w, const char *dir, struct simulate_view *v, struct trace *ret, struct error *e) {
    int r = w->trace ? load_csv(w->trace, v, ret, e) : simulate_history(dir, v, ret, e);
    for (size_t i = 0; r >= 0 && i < w->reserves.count; i++) r = simulate_reserve(v, w->reserves.of[i], zero_of(v), e);
    simulate_reserves_order(v);
    return r;
}

static int play(struct simulate_view *v, struct error *e) {
    int r = 0;
    for (size_t i = 0; i < v->results && r >= 0; i++) {
        struct simulate_setup s = v->setup;
        s.policy = v->policy[i];
        r = simulate(v->trace, &s, &v->result[i], e);
    }
    if (r < 0) return r;
    if (v->has_truth) simulate_truth(v->trace, &v->setup, &v->truth);
    const struct simulate_result *first = &v->result[0];
    for (int o = 0; o < SIMULATE_OUT_COUNT && !first->jobs; o++)
        if (first->out[o])
            return fail(e, -EINVAL, "every job is left out: %u %s", first->out[o], simulate_out_texts[o]);
    return 0;
}

static void use_settings(const struct settings *s, struct simulate_view *v) {
    v->is_set = &plan_policies[s->jobs_policy];
    v->setup.half_life_h = s->jobs_fair_half_life_h;
    v->setup.fair_wait_ns = (int64_t)(s->jobs_fair_wait_h * 3600e9);
    v->setup.user_gpus = s->jobs_user_gpus;
    v->setup.user_gpu_hours = s->jobs_user_gpu_hours;
    v->setup.unused_s = 60LL * s->reserve_unused_min;
    v->setup.ahead_s = (int64_t)(s->reserve_ahead_h * 3600);
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
        {.name = "gpu-memory",    .kind = FLAG_TEXT,   .into = &w.gpu_memory},
        {.name = "policy",        .kind = FLAG_LIST,   .into = &w.policies},
        {.name = "reserve",       .kind = FLAG_LIST,   .into = &w.reserves},
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
    use_settings(&loaded.values, &v);
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
    simulate_done(&v.truth);
    simulate_machines_done(&v.machines);
    simulate_reserves_done(&v.reserves);
    return r < 0 ? command_fail(self, &e, r == -EINVAL ? EXIT_INPUT : error_exit_code(r)) : output_exit(&out);
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "Say what jobs would have waited under other policies",
    .run = run,
    .help =
        "usage: gpumgr simulate [--trace FILE --nodes N --gpus-per-node N] [--policy NAME]... [--times past|known]\n"
        "                       [--jobs.user_gpus N] [--jobs.user_gpu_hours H] [--reserve WISH]... [--json] [--dir "
        "DIR]\n"
        "\n"
        "Plays jobs through, by the code that schedules, under each policy, and shows waits, ends, use of the GPUs "
        "and\n"
        "deadlines side by side. Nothing is started, and with --trace no gpumgr needs to run. The same input gives "
        "the\n"
        "same bytes.\n"
        "\n"
        "  --trace FILE         jobs as CSV with columns user, gpus, submit_min, duration_min and, where it has them,\n"
        "                       deadline_min (after the submission), limit_min, share_gib, memory_gib, priority, "
        "name,\n"
        "                       job, after; _s for seconds. Without it: the jobs that this machine's server\n"
        "                       remembers, on its own GPUs, beside what really was\n"
        "  --nodes N            how many machines\n"
        "  --gpus-per-node N    and how many GPUs each has\n"
        "  --gpu-memory SIZE    of each, as 80GiB: needed where jobs of a file ask for memory\n"
        "  --policy NAME        fair (usual), fifo, backfill, edf, sjf; may be given again (all of them)\n"
        "  --times past|known   what the queue knows of a job's time: what the like of it took before, as in real "
        "life\n"
        "                       (past), or all\n"
        "  --jobs.user_gpus N, --jobs.user_gpu_hours H\n"
        "                       what a user may have at once, and in seven days: as these settings, which count here "
        "unless\n"
        "                       others are given; 0: no limit\n"
        "  --reserve \"USER GPUS FROM FOR [EVERY]\"\n"
        "                       and what if these were reserved: \"ada 2 9h 4h 1d\" is every day, from 9 hours after "
        "the\n"
        "                       first submission (of a machine's own days: after midnight) for 4 hours; may be given "
        "again\n"
        "  --json               figures and curves as JSON\n"
        "  --dir DIR            the instance whose history it is\n"
        "\n"
        "A policy is switched on by the setting jobs.policy.\n"
        "\n"
        "example: gpumgr simulate --trace jobs.csv --nodes 4 --gpus-per-node 8 --policy fair --policy edf\n",
};
