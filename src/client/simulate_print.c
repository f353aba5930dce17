/* What is shown of a simulation: figures side by side, curves below each other on one scale, and all of it as JSON. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "client/job_table.h"
#include "client/simulate.h"

#define NAME_WIDTH 24
#define CELL_WIDTH 9

size_t simulate_columns(const struct simulate_view *v) { return v->results + v->has_truth; }

const struct simulate_result *simulate_column(const struct simulate_view *v, size_t at) {
    return v->has_truth && at == 0 ? &v->truth : &v->result[at - v->has_truth];
}

const char *simulate_column_name(const struct simulate_view *v, size_t at) {
    return v->has_truth && at == 0 ? "as it was" : v->policy[at - v->has_truth]->name;
}

/* ---- figures ---- */

enum form { FORM_SPAN, FORM_PART, FORM_DEADLINES, FORM_NEVER };

/* clang-format off */
static const struct {
    const char *title;
    enum form form;
    bool more_is_better;
    size_t at;
} figures[] = {
    {"wait, mean",              FORM_SPAN,      false, offsetof(struct simulate_result, wait_mean_s)},
    {"      median",            FORM_SPAN,      false, offsetof(struct simulate_result, wait_median_s)},
    {"      90 of 100 at most", FORM_SPAN,      false, offsetof(struct simulate_result, wait_p90_s)},
    {"      99 of 100 at most", FORM_SPAN,      false, offsetof(struct simulate_result, wait_p99_s)},
    {"      longest",           FORM_SPAN,      false, offsetof(struct simulate_result, wait_max_s)},
    {"wait and run, mean",      FORM_SPAN,      false, offsetof(struct simulate_result, turnaround_mean_s)},
    {"all done after",          FORM_SPAN,      false, offsetof(struct simulate_result, makespan_s)},
    {"GPUs in use",             FORM_PART,      true,  offsetof(struct simulate_result, utilisation)},
    {"      while jobs came",   FORM_PART,      true,  offsetof(struct simulate_result, utilisation_coming)},
    {"jobs that never begin",   FORM_NEVER,     false, 0},
    {"deadlines kept",          FORM_DEADLINES, true,  0},
};
/* clang-format on */

static double value_of(const struct simulate_result *r, size_t figure) {
    double v;
    if (figures[figure].form == FORM_DEADLINES) return r->deadlines ? (double)r->deadlines_hit / r->deadlines : NAN;
    if (figures[figure].form == FORM_NEVER) return r->never;
    memcpy(&v, (const char *)r + figures[figure].at, sizeof v);
    return v;
}

/* Short, and with minutes enough to compare: 0, 45s, 12.5m, 3h05m, 4d07h. */
void simulate_span(double s, char *ret, size_t room) {
    long minutes = lround(s / 60), hours = lround(s / 3600);
    if (s < 0.05)
        snprintf(ret, room, "0");
    else if (s < 60)
        snprintf(ret, room, "%.0fs", s);
    else if (s < 3600)
        snprintf(ret, room, "%.1fm", s / 60);
    else if (s < 2 * 86400.0)
        snprintf(ret, room, "%ldh%02ldm", minutes / 60, minutes % 60);
    else
        snprintf(ret, room, "%ldd%02ldh", hours / 24, hours % 24);
}

static void cell_text(double v, enum form form, char *ret, size_t room) {
    if (isnan(v))
        snprintf(ret, room, "-");
    else if (form == FORM_SPAN)
        simulate_span(v, ret, room);
    else if (form == FORM_NEVER)
        snprintf(ret, room, "%.0f", v);
    else
        snprintf(ret, room, "%.1f%%", 100 * v);
}

/* The best of a row, if the others are worse. */
static double best_of(const struct simulate_view *v, size_t figure) {
    double best = NAN, worst = NAN;
    for (size_t i = 0; i < v->results; i++) {
        double x = value_of(&v->result[i], figure);
        if (isnan(best) || (figures[figure].more_is_better ? x > best : x < best)) best = x;
        if (isnan(worst) || (figures[figure].more_is_better ? x < worst : x > worst)) worst = x;
    }
    return best == worst ? NAN : best;
}

static void put_row(const struct simulate_view *v, size_t figure, size_t from, size_t to, bool with_colour,
                    struct buf *b) {
    double best = best_of(v, figure);
    char text[32];
    buf_printf(b, "%-*s", NAME_WIDTH, figures[figure].title);
    for (size_t i = from; i < to; i++) {
        double x = value_of(simulate_column(v, i), figure);
        cell_text(x, figures[figure].form, text, sizeof text);
        bool is_best = with_colour && x == best && i >= v->has_truth;
        buf_printf(b, "%s%*s%s", is_best ? JOB_GREEN : "", CELL_WIDTH, text, is_best ? "\033[0m" : "");
    }
    buf_putc(b, '\n');
}

/* ---- what is played ---- */

static const char *many(double n) { return n == 1 ? "" : "s"; }

static void put_machines(const struct simulate_view *v, struct buf *b) {
    const struct simulate_setup *s = &v->setup;
    char memory[32];
    uint32_t parts = 0;
    for (uint32_t g = 0; s->gpu && g < s->gpus; g++) parts += s->gpu[g].is_part;
    if (s->gpus_per_node)
        buf_printf(b, "on %u machine%s with %u GPU%s each", s->nodes, many(s->nodes), s->gpus_per_node,
                   many(s->gpus_per_node));
    else
        buf_printf(b, "on %u machine%s with %u GPU%s together", s->nodes, many(s->nodes), s->gpus, many(s->gpus));
    if (parts) buf_printf(b, " (%u MIG instance%s)", parts, many(parts));
    if (!s->gpu && s->gpu_bytes) {
        number_bytes((double)s->gpu_bytes, memory, sizeof memory);
        buf_printf(b, " of %s", memory);
    }
    buf_printf(b, "; the queue knows %s\n", s->is_known ? "how long each takes" : "how long the like took before");
}

static void put_rules(const struct simulate_view *v, struct buf *b) {
    const struct simulate_setup *s = &v->setup;
    const struct simulate_reserves *r = &v->reserves;
    uint32_t shares = v->result[0].shares;
    if (shares) buf_printf(b, "%u of them with a part of a GPU's memory\n", shares);
    if (s->user_gpus)
        buf_printf(b, "a user has %d GPU%s at once at most (jobs.user_gpus)\n", s->user_gpus, many(s->user_gpus));
    if (s->user_gpu_hours > 0)
        buf_printf(b, "a user has %g GPU hours in seven days at most (jobs.user_gpu_hours)\n", s->user_gpu_hours);
    if (r->count) buf_printf(b, "%u reservation%s of GPUs\n", r->count, many(r->count));
}

static const struct {
    const char *key, *lead, *noun, *tail;
} notes[SIMULATE_NOTE_COUNT] = {
#define X(id, key, lead, noun, tail) [SIMULATE_NOTE_##id] = {key, lead, noun, tail},
    SIMULATE_NOTES(X)
#undef X
};

static void put_head(const struct simulate_view *v, struct buf *b) {
    const struct simulate_result *r = &v->result[0];
    buf_printf(b, "%u job%s of %u user%s, %.0f GPU hours (%s)\n", r->jobs, many(r->jobs), v->trace->users.count,
               many(v->trace->users.count), r->gpu_hours, v->source);
    put_machines(v, b);
    put_rules(v, b);
    for (int o = 0; o < SIMULATE_OUT_COUNT; o++)
        if (r->out[o]) buf_printf(b, "left out: %u job%s %s\n", r->out[o], many(r->out[o]), simulate_out_texts[o]);
    for (int n = 0; n < SIMULATE_NOTE_COUNT; n++)
        if (v->note[n])
            buf_printf(b, "%s: %u %s%s%s\n", notes[n].lead, v->note[n], notes[n].noun, many(v->note[n]), notes[n].tail);
    if (v->trace->unused.len) buf_printf(b, "columns that nobody reads: %s\n", v->trace->unused.s);
}

/* How near the replay is to what was, where the policy that is set is among the others. */
static const struct simulate_result *replay_of(const struct simulate_view *v) {
    for (size_t i = 0; v->has_truth && i < v->results; i++)
        if (v->policy[i] == v->is_set) return &v->result[i];
    return NULL;
}

/* Of a second or less nobody would read the parts. */
static void put_gap(double s, char *ret, size_t room) {
    if (s < 1)
        snprintf(ret, room, "a second");
    else
        simulate_span(s, ret, room);
}

static void put_apart(const struct simulate_view *v, struct buf *b) {
    const struct simulate_result *replay = replay_of(v);
    char half[32], most[32];
    if (!replay || !v->setup.gpu) return; /* on other machines nothing would be as it was */
    put_gap(simulate_apart_s(v->trace, replay, &v->truth, 0.5), half, sizeof half);
    put_gap(simulate_apart_s(v->trace, replay, &v->truth, 0.9), most, sizeof most);
    buf_printf(b,
               "\n%s is set here; replayed, half of the jobs begin within %s of\nwhen they did, 90 of 100 within %s\n",
               v->is_set->name, half, most);
}

/* Rows of what there is none of are left out. */
static bool is_told(const struct simulate_view *v, enum form form) {
    bool is_any = form == FORM_SPAN || form == FORM_PART;
    for (size_t i = 0; i < v->results; i++)
        is_any |= form == FORM_NEVER ? v->result[i].never > 0 : v->result[i].deadlines > 0;
    return is_any;
}

void simulate_table(const struct simulate_view *v, const struct screen *s, struct buf *b) {
    size_t fit = s->width > NAME_WIDTH + CELL_WIDTH ? (size_t)(s->width - NAME_WIDTH) / CELL_WIDTH : 1;
    size_t columns = simulate_columns(v);
    put_head(v, b);
    for (size_t from = 0; from < columns; from += fit) {
        size_t to = from + fit < columns ? from + fit : columns;
        buf_printf(b, "\n%*s", NAME_WIDTH, "");
        for (size_t i = from; i < to; i++) buf_printf(b, "%*s", CELL_WIDTH, simulate_column_name(v, i));
        buf_putc(b, '\n');
        for (size_t f = 0; f < ARRAY_LEN(figures); f++)
            if (is_told(v, figures[f].form)) put_row(v, f, from, to, s->has_colour, b);
    }
    put_apart(v, b);
}

/* ---- JSON ---- */

static void put_list(const struct simulate_result *r, int64_t until_ns, const char *key, bool is_busy, struct buf *b) {
    double curve[SIMULATE_POINTS];
    simulate_curve(r, until_ns, is_busy, curve, SIMULATE_POINTS);
    json_key(b, key);
    json_open(b, '[');
    for (size_t i = 0; i < SIMULATE_POINTS; i++) json_num(b, round(curve[i] * 1000) / 1000);
    json_close(b, ']');
}

/* policy: NULL for what was. */
static void put_result(const struct simulate_result *r, const struct plan_policy *policy, int64_t until_ns,
                       struct buf *b) {
    json_open(b, '{');
    if (policy) {
        json_pair_str(b, "policy", policy->name);
        json_pair_str(b, "meaning", policy->meaning);
    }
    json_key(b, "wait_s");
    json_open(b, '{');
    json_pair_num(b, "mean", r->wait_mean_s);
    json_pair_num(b, "median", r->wait_median_s);
    json_pair_num(b, "p90", r->wait_p90_s);
    json_pair_num(b, "p99", r->wait_p99_s);
    json_pair_num(b, "max", r->wait_max_s);
    json_close(b, '}');
    json_pair_num(b, "turnaround_s_mean", r->turnaround_mean_s);
    json_pair_num(b, "makespan_s", r->makespan_s);
    json_pair_num(b, "utilisation", r->utilisation);
    json_pair_num(b, "utilisation_while_jobs_came", r->utilisation_coming);
    json_pair_int(b, "deadlines", r->deadlines);
    json_pair_int(b, "deadlines_kept", r->deadlines_hit);
    if (policy) json_pair_int(b, "never_begin", r->never);
    if (policy) json_pair_int(b, "passes", (int64_t)r->passes);
    put_list(r, until_ns, "waiting", false, b);
    put_list(r, until_ns, "busy", true, b);
    json_close(b, '}');
}

static void put_left_out(const struct simulate_view *v, struct buf *b) {
    const struct simulate_result *r = &v->result[0];
    json_pair_int(b, "left_out",
                  r->left_out + v->note[SIMULATE_NOTE_NEVER_RAN] + v->note[SIMULATE_NOTE_WAITING] +
                      v->note[SIMULATE_NOTE_UNTOLD]);
    json_key(b, "left_out_by");
    json_open(b, '{');
    for (int o = 0; o < SIMULATE_OUT_COUNT; o++) json_pair_int(b, simulate_out_names[o], r->out[o]);
    for (int n = 0; n <= SIMULATE_NOTE_UNTOLD; n++) json_pair_int(b, notes[n].key, v->note[n]);
    json_close(b, '}');
    for (int n = SIMULATE_NOTE_UNTOLD + 1; n < SIMULATE_NOTE_COUNT; n++) json_pair_int(b, notes[n].key, v->note[n]);
}

static void put_apart_json(const struct simulate_view *v, struct buf *b) {
    const struct simulate_result *replay = replay_of(v);
    json_pair_str(b, "policy_set", v->is_set->name);
    json_key(b, "apart_s");
    if (!replay) {
        json_nil(b);
        return;
    }
    json_open(b, '{');
    json_pair_num(b, "median", simulate_apart_s(v->trace, replay, &v->truth, 0.5));
    json_pair_num(b, "p90", simulate_apart_s(v->trace, replay, &v->truth, 0.9));
    json_pair_num(b, "max", simulate_apart_s(v->trace, replay, &v->truth, 1));
    json_close(b, '}');
}

void simulate_json(const struct simulate_view *v, struct buf *b) {
    const struct simulate_setup *s = &v->setup;
    int64_t until_ns = simulate_until_ns(v);
    json_open(b, '{');
    json_pair_str(b, "source", v->source);
    json_pair_int(b, "jobs", v->result[0].jobs);
    json_pair_int(b, "shares", v->result[0].shares);
    put_left_out(v, b);
    json_pair_int(b, "reservations", v->reserves.count);
    json_pair_int(b, "users", v->trace->users.count);
    json_pair_num(b, "gpu_hours", v->result[0].gpu_hours);
    json_pair_int(b, "nodes", s->nodes);
    json_pair_int(b, "gpus", s->gpu ? s->gpus : (int64_t)s->nodes * s->gpus_per_node);
    json_key(b, "gpus_per_node");
    if (s->gpus_per_node)
        json_int(b, s->gpus_per_node);
    else
        json_nil(b);
    json_pair_int(b, "user_gpus", s->user_gpus);
    json_pair_num(b, "user_gpu_hours", s->user_gpu_hours);
    json_pair_str(b, "times", s->is_known ? "known" : "past");
    json_pair_text(b, "columns_unused", v->trace->unused.len ? v->trace->unused.s : "");
    json_pair_num(b, "point_s", (double)until_ns / 1e9 / SIMULATE_POINTS);
    if (v->has_truth) {
        put_apart_json(v, b);
        json_key(b, "as_it_was");
        put_result(&v->truth, NULL, until_ns, b);
    }
    json_key(b, "policies");
    json_open(b, '[');
    for (size_t i = 0; i < v->results; i++) put_result(&v->result[i], v->policy[i], until_ns, b);
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
}
