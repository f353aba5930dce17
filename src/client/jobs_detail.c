#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "client/job_id.h"
#include "client/job_table.h"
#include "client/jobs.h"
#include "client/text.h"
#include "client/when.h"
#include "model/duration.h"
#include "model/job.h"

enum { LABEL_WIDTH = 12 };

struct page {
    const struct json_tree *j;
    const struct screen *screen;
    int64_t now_ns;
    struct buf *out;
};

/* What is longer than the screen goes on below its beginning. */
static void line(const struct page *p, const char *label, const char *text) {
    if (!*text) return;
    text_pad(p->out, label, LABEL_WIDTH);
    buf_putc(p->out, ' ');
    text_wrap(p->out, text, p->screen->width - LABEL_WIDTH - 1, LABEL_WIDTH + 1);
}

static void line_text(const struct page *p, const char *label, const char *key) { line(p, label, job_text(p->j, key)); }

static void line_time(const struct page *p, const char *label, const char *key) {
    char when[WHEN_TEXT], age[32], text[96];
    double at = job_number(p->j, key);
    if (!(at > 0)) return;
    int64_t ns = (int64_t)(at * 1e9);
    when_text(ns, p->now_ns, when);
    number_age(ns > p->now_ns ? ns - p->now_ns : p->now_ns - ns, age, sizeof age);
    snprintf(text, sizeof text, ns > p->now_ns ? "%s (in %s)" : "%s (%s ago)", when, age);
    line(p, label, text);
}

static void line_bytes(const struct page *p, const char *label, const char *key) {
    char text[32];
    double bytes = job_number(p->j, key);
    if (!(bytes > 0)) return;
    number_bytes(bytes, text, sizeof text);
    line(p, label, text);
}

/* "1.2 GiB now, 3.4 GiB at most"; of one that is over the second alone. */
static void line_now(const struct page *p, const char *label, const char *now, const char *most) {
    AUTO(buf_done) struct buf text = {0};
    char part[32];
    double bytes = job_number(p->j, now), peak = job_number(p->j, most);
    if (bytes >= 0) {
        number_bytes(bytes, part, sizeof part);
        buf_printf(&text, "%s now", part);
    }
    if (peak > 0) {
        number_bytes(peak, part, sizeof part);
        buf_printf(&text, "%s%s at most", text.len ? ", " : "", part);
    }
    if (text.len) line(p, label, text.s);
}

static void line_disk(const struct page *p) {
    char text[96], in[32], out[32];
    double read = job_number(p->j, "disk_read_bytes"), written = job_number(p->j, "disk_written_bytes");
    if (!(read >= 0) || !(written >= 0)) return;
    number_bytes(read, in, sizeof in);
    number_bytes(written, out, sizeof out);
    snprintf(text, sizeof text, "%s read, %s written", in, out);
    line(p, "disk", text);
}

/* "83%: 50m of the 1h that its GPUs were held" */
static void line_busy(const struct page *p) {
    struct table_cell c = {0}, ran = {0};
    char text[160], used[32];
    double seconds = job_number(p->j, "gpu_seconds"), gpus = (double)json_tree_count(json_tree_get(p->j, "gpu_uuids"));
    job_cell_busy.put(p->j, p->now_ns, &c);
    job_cell_took.put(p->j, p->now_ns, &ran);
    if (!*c.text || isnan(seconds)) return;
    job_span(seconds, used, sizeof used);
    if (gpus > 1)
        snprintf(text, sizeof text, "%.8s: %s of GPU time in %.0f x %.20s", c.text, used, gpus, ran.text);
    else
        snprintf(text, sizeof text, "%.8s: %s of GPU time in %.20s", c.text, used, ran.text);
    line(p, "GPU busy", text);
}

static void line_cpu(const struct page *p) {
    char text[96], used[32];
    double seconds = job_number(p->j, "cpu_seconds"), ratio = job_number(p->j, "cpu_ratio");
    if (!(seconds > 0) || isnan(ratio)) return;
    job_span(seconds, used, sizeof used);
    snprintf(text, sizeof text, "%.0f%% of one core: %s", ratio * 100, used);
    line(p, "CPU busy", text);
}

static void line_span(const struct page *p, const char *label, const char *key) {
    char text[DURATION_TEXT];
    double s = job_number(p->j, key);
    if (!(s > 0)) return;
    duration_text((int64_t)(s * 1e9), text);
    line(p, label, text);
}

static void line_cell(const struct page *p, const char *label, const struct job_cell *cell) {
    struct table_cell c = {0};
    cell->put(p->j, p->now_ns, &c);
    line(p, label, c.text);
}

static void line_pairs(const struct page *p, const char *label, const char *key) {
    AUTO(buf_done) struct buf text = {0};
    job_pairs(json_tree_get(p->j, key), &text);
    if (text.len) line(p, label, text.s);
}

/* "20: 3 done, 1 running, 16 waiting" */
static void line_elements(const struct page *p) {
    AUTO(buf_done) struct buf text = {0};
    const struct json_tree *counts = json_tree_get(p->j, "elements");
    double total = job_number(counts, "total");
    if (isnan(total)) return;
    buf_printf(&text, "%.0f", total);
    for (enum job_state s = JOB_STATE_COUNT; s-- > 0;) {
        double n = job_number(counts, job_state_name(s));
        if (n > 0) buf_printf(&text, "%s%.0f %s", strchr(text.s, ':') ? ", " : ": ", n, job_state_name(s));
    }
    line(p, "elements", text.s);
}

static void head(const struct page *p) {
    struct table_cell id = {0}, state = {0};
    job_cell_id.put(p->j, p->now_ns, &id);
    job_cell_state.put(p->j, p->now_ns, &state);
    const char *on = p->screen->has_colour && state.colour ? state.colour : "", *off = *on ? "\033[0m" : "";
    buf_printf(p->out, "job %s  %s  %s%s%s  of %s", id.text, job_text(p->j, "name"), on, state.text, off,
               job_text(p->j, "user"));
    if (strcmp(job_text(p->j, "origin"), "account") == 0) buf_printf(p->out, " (%s)", job_text(p->j, "account"));
    const struct json_tree *parent = json_tree_get(p->j, "parent");
    if (parent && !json_tree_is_null(parent))
        buf_printf(p->out, ", of %s %.0f", job_text(parent, "kind"), job_number(parent, "id"));
    buf_puts(p->out, "\n\n");
}

static void wishes(const struct page *p) {
    char text[2048];
    job_command(json_tree_get(p->j, "command"), text, sizeof text);
    line(p, "command", text);
    line_text(p, "image", "image");
    line_text(p, "directory", "cwd");
    job_wants(p->j, text, sizeof text);
    line(p, "asked for", text);
    line_cell(p, "priority", &job_cell_priority);
    line_span(p, "time limit", "time_limit_s");
    line_time(p, "finish by", "finish_by");
    job_list(json_tree_get(p->j, "after"), text, sizeof text);
    line(p, "after", text);
    line_text(p, "array", "array");
    line_pairs(p, "sweep", json_tree_is_null(json_tree_get(p->j, "values")) ? "sweep" : "values");
    line_elements(p);
    line_pairs(p, "labels", "labels");
    if (job_number(p->j, "retries") > 0) {
        snprintf(text, sizeof text, "%.0f; attempt %.0f", job_number(p->j, "retries"), job_number(p->j, "attempt"));
        line(p, "retries", text);
    }
}

static void energy(const struct page *p) {
    char text[64];
    double joules = job_number(p->j, "energy_joules");
    if (!(joules > 0)) return;
    if (joules < 3.6e5)
        snprintf(text, sizeof text, "%.1f kJ", joules / 1e3);
    else
        snprintf(text, sizeof text, "%.2f kWh", joules / 3.6e6);
    line(p, "energy", text);
}

static void figures(const struct page *p) {
    char text[96];
    line_cell(p, "GPU", &job_cell_gpus);
    line_text(p, "machine", "node");
    if (job_number(p->j, "pid") > 0 && !(job_number(p->j, "ended") > 0)) {
        snprintf(text, sizeof text, "%.0f", job_number(p->j, "pid"));
        line(p, "process", text);
    }
    line_time(p, "handed in", "submitted");
    line_time(p, "started", "started");
    line_time(p, "ended", "ended");
    line_cell(p, "ran", &job_cell_took);
    line_cell(p, "time left", &job_cell_left);
    line_cell(p, "exit", &job_cell_exit);
    line_text(p, "because it", "reason");
    line_text(p, "says", *job_text(p->j, "text") ? "text" : "state_text");
    line_busy(p);
    line_now(p, "GPU memory", "memory_now_bytes", "memory_peak_bytes");
    energy(p);
    line_cpu(p);
    line_now(p, "memory", "host_now_bytes", "host_peak_bytes");
    line_disk(p);
    line_bytes(p, "log", "log_bytes");
    line_text(p, "insight", "insight");
    line_text(p, "untold", "untold");
}

static void waiting(const struct page *p) {
    if (job_number(p->j, "place") > 0) line_cell(p, "place", &job_cell_place);
    line_text(p, "waits", "why");
    line_time(p, "starts", "starts_at");
    line_text(p, "sooner", "sooner");
}

/* The runs of an array, or earlier attempts. */
static const struct job_cell *const run_cells[] = {
    &job_cell_id,   &job_cell_values, &job_cell_state, &job_cell_gpus,
    &job_cell_took, &job_cell_exit,   &job_cell_busy,  &job_cell_peak,
};

/* The last try of an element. */
static const struct json_tree *find_run(const struct json_tree *runs, int64_t element) {
    const struct json_tree *found = NULL;
    for (size_t i = 0; i < json_tree_count(runs); i++)
        if (job_number(json_tree_at(runs, i), "element") == (double)element) found = json_tree_at(runs, i);
    return found;
}

int jobs_detail(const struct json_tree *root, int64_t element, const struct screen *screen, struct buf *out,
                struct error *e) {
    const struct json_tree *runs = json_tree_get(root, "runs");
    struct page p = {.j = root, .screen = screen, .now_ns = clock_real_ns(), .out = out};
    if (element >= 0) p.j = find_run(runs, element);
    if (!p.j) return fail(e, -ENOENT, "number %lld of that job has not run", (long long)element);
    head(&p);
    wishes(&p);
    waiting(&p);
    figures(&p);
    if (element >= 0 || json_tree_count(runs) < 2) return 0;
    buf_putc(out, '\n');
    job_table(runs, "element", run_cells, ARRAY_LEN(run_cells), NULL, screen, out);
    return 0;
}
