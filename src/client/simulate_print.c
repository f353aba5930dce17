/* What is shown of a simulation: figures side by side, curves below each other on one scale, and all of it as JSON. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/job_table.h"
#include "client/simulate.h"

#define NAME_WIDTH 24
#define CELL_WIDTH 10
#define ROWS_WAIT 3
#define ROWS_BUSY 1

/* ---- figures ---- */

enum form { FORM_SPAN, FORM_PART, FORM_DEADLINES };

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
    {"deadlines kept",          FORM_DEADLINES, true,  0},
};
/* clang-format on */

static double value_of(const struct simulate_result *r, size_t figure) {
    double v;
    if (figures[figure].form == FORM_DEADLINES) return r->deadlines ? (double)r->deadlines_hit / r->deadlines : NAN;
    memcpy(&v, (const char *)r + figures[figure].at, sizeof v);
    return v;
}

/* Short, and with minutes enough to compare: 0, 45s, 12.5m, 3h05m, 4d07h. */
static void span_text(double s, char *ret, size_t room) {
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
        span_text(v, ret, room);
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
        double x = value_of(&v->result[i], figure);
        cell_text(x, figures[figure].form, text, sizeof text);
        bool is_best = with_colour && x == best;
        buf_printf(b, "%s%*s%s", is_best ? JOB_GREEN : "", CELL_WIDTH, text, is_best ? "\033[0m" : "");
    }
    buf_putc(b, '\n');
}

static void put_head(const struct simulate_view *v, struct buf *b) {
    const struct simulate_result *r = &v->result[0];
    const struct simulate_setup *s = &v->setup;
    buf_printf(b,
               "%u job%s of %u user%s, %.0f GPU hours (%s)\non %u machine%s with %u GPU%s each; the queue knows %s\n",
               r->jobs, r->jobs == 1 ? "" : "s", v->trace->users, v->trace->users == 1 ? "" : "s", r->gpu_hours,
               v->source, s->nodes, s->nodes == 1 ? "" : "s", s->gpus_per_node, s->gpus_per_node == 1 ? "" : "s",
               s->is_known ? "how long each takes" : "how long the like took before");
    if (r->left_out)
        buf_printf(b, "left out: %u job%s for more than %u GPUs, which no machine has\n", r->left_out,
                   r->left_out == 1 ? "" : "s", s->gpus_per_node);
    if (v->shares)
        buf_printf(b, "left out: %u job%s with a part of a GPU's memory\n", v->shares, v->shares == 1 ? "" : "s");
    if (v->reservations)
        buf_printf(b, "not played: %u reservation%s\n", v->reservations, v->reservations == 1 ? "" : "s");
}

void simulate_table(const struct simulate_view *v, const struct screen *s, struct buf *b) {
    size_t fit = s->width > NAME_WIDTH + CELL_WIDTH ? (size_t)(s->width - NAME_WIDTH) / CELL_WIDTH : 1;
    put_head(v, b);
    for (size_t from = 0; from < v->results; from += fit) {
        size_t to = from + fit < v->results ? from + fit : v->results;
        buf_printf(b, "\n%*s", NAME_WIDTH, "");
        for (size_t i = from; i < to; i++) buf_printf(b, "%*s", CELL_WIDTH, v->policy[i]->name);
        buf_putc(b, '\n');
        for (size_t f = 0; f < ARRAY_LEN(figures); f++)
            if (figures[f].form != FORM_DEADLINES || v->result[0].deadlines) put_row(v, f, from, to, s->has_colour, b);
    }
}

/* ---- curves ---- */

#define POINTS_MAX 512

/* The part of a column that a row shows, in eighths or as best ASCII can. */
static void put_glyph(double v, double most, int below, int rows, bool has_utf8, struct buf *b) {
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const marks[] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};
    double levels = most > 0 ? v / most * rows * 8 : 0;
    long eighth = lround(levels) - 8L * below;
    if (below == 0 && v > 0 && eighth < 1) eighth = 1; /* little is not nothing */
    if (eighth < 0) eighth = 0;
    if (eighth > 8) eighth = 8;
    buf_puts(b, (has_utf8 ? eighths : marks)[eighth]);
}

static void put_curve(const struct simulate_view *v, size_t at, int64_t until_ns, bool is_busy, double most,
                      size_t width, const struct screen *s, struct buf *b) {
    double curve[POINTS_MAX];
    char scale[24];
    simulate_curve(&v->result[at], until_ns, is_busy, curve, width);
    int rows = is_busy ? ROWS_BUSY : ROWS_WAIT;
    for (int below = rows - 1; below >= 0; below--) {
        snprintf(scale, sizeof scale, "%.0f", most);
        buf_printf(b, "%-10s%6s %s", below == 0 ? v->policy[at]->name : "",
                   below == rows - 1 ? scale
                   : below           ? ""
                                     : "0",
                   s->has_utf8 ? "▕" : "|");
        for (size_t i = 0; i < width; i++) put_glyph(curve[i], most, below, rows, s->has_utf8, b);
        while (b->len && b->s[b->len - 1] == ' ') b->s[--b->len] = 0;
        buf_putc(b, '\n');
    }
}

static double most_of(const struct simulate_view *v, int64_t until_ns, size_t width) {
    double most = 1, curve[POINTS_MAX];
    for (size_t i = 0; i < v->results; i++) {
        simulate_curve(&v->result[i], until_ns, false, curve, width);
        for (size_t k = 0; k < width; k++) most = fmax(most, curve[k]);
    }
    return ceil(most);
}

static int64_t until_of(const struct simulate_view *v) {
    double last_s = 1e-9;
    for (size_t i = 0; i < v->results; i++) last_s = fmax(last_s, v->result[i].makespan_s);
    return (int64_t)ceil(last_s * 1e9);
}

/* Where the time is: from nothing to the end of the slowest. */
static void put_axis(int64_t until_ns, size_t width, bool has_utf8, struct buf *b) {
    char text[32];
    span_text((double)until_ns / 1e9, text, sizeof text);
    buf_printf(b, "%17s%s", "", has_utf8 ? "└" : "+");
    for (size_t i = 0; i < width; i++) buf_puts(b, has_utf8 ? "─" : "-");
    buf_printf(b, "\n%18s0%*s\n", "", (int)width - 1, text);
}

void simulate_chart(const struct simulate_view *v, const struct screen *s, struct buf *b) {
    size_t width = s->width > 40 ? (size_t)s->width - 19 : 21;
    int64_t until_ns = until_of(v);
    if (width > POINTS_MAX) width = POINTS_MAX;
    double most = most_of(v, until_ns, width);
    buf_puts(b, "\njobs that wait\n");
    for (size_t i = 0; i < v->results; i++) put_curve(v, i, until_ns, false, most, width, s, b);
    put_axis(until_ns, width, s->has_utf8, b);
    buf_puts(b, "\nGPUs in use\n");
    most = (double)v->setup.nodes * v->setup.gpus_per_node;
    for (size_t i = 0; i < v->results; i++) put_curve(v, i, until_ns, true, most, width, s, b);
    put_axis(until_ns, width, s->has_utf8, b);
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

static void put_result(const struct simulate_view *v, size_t i, int64_t until_ns, struct buf *b) {
    const struct simulate_result *r = &v->result[i];
    json_open(b, '{');
    json_pair_str(b, "policy", v->policy[i]->name);
    json_pair_str(b, "meaning", v->policy[i]->meaning);
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
    json_pair_int(b, "passes", (int64_t)r->passes);
    put_list(r, until_ns, "waiting", false, b);
    put_list(r, until_ns, "busy", true, b);
    json_close(b, '}');
}

void simulate_json(const struct simulate_view *v, struct buf *b) {
    int64_t until_ns = until_of(v);
    json_open(b, '{');
    json_pair_str(b, "source", v->source);
    json_pair_int(b, "jobs", v->result[0].jobs);
    json_pair_int(b, "left_out", v->result[0].left_out + v->shares);
    json_pair_int(b, "left_out_shares", v->shares);
    json_pair_int(b, "reservations_not_played", v->reservations);
    json_pair_int(b, "users", v->trace->users);
    json_pair_num(b, "gpu_hours", v->result[0].gpu_hours);
    json_pair_int(b, "nodes", v->setup.nodes);
    json_pair_int(b, "gpus_per_node", v->setup.gpus_per_node);
    json_pair_str(b, "times", v->setup.is_known ? "known" : "past");
    json_pair_num(b, "point_s", (double)until_ns / 1e9 / SIMULATE_POINTS);
    json_key(b, "policies");
    json_open(b, '[');
    for (size_t i = 0; i < v->results; i++) put_result(v, i, until_ns, b);
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
}
