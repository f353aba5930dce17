/* The cards: what needs attention, what each can be asked and at what cost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "client/doctor.h"
#include "client/table.h"
#include "client/text.h"

static const char *const support_names[] = {
    [SUPPORT_UNKNOWN] = "unknown", [SUPPORT_YES] = "yes", [SUPPORT_NO] = "no", [SUPPORT_FORBIDDEN] = "forbidden"};

/* ---- findings ---- */

/* A value above zero that a person should act on. */
static const struct {
    int metric;
    enum finding_level level;
    const char *text, *advice;
} signs[] = {
    {METRIC_RECOVERY_ACTION,    FINDING_ATTENTION, "the driver asks for a recovery action",
     "drain it and reset the GPU (or reboot): `nvidia-smi -q` names the action"                                                         },
    {METRIC_ROWS_FAILED,        FINDING_ATTENTION, "a memory row could not be remapped",                    "replace the card"          },
    {METRIC_ROWS_PENDING,       FINDING_ATTENTION, "a row remap waits for a reset",                         "drain it and reset the GPU"},
    {METRIC_PAGES_PENDING,      FINDING_ATTENTION, "a page retirement waits for a reset",                   "drain it and reset the GPU"},
    {METRIC_ECC_UNCORRECTED,    FINDING_ATTENTION, "uncorrected memory errors since the driver was loaded",
     "work that ran on it may have failed; reset the GPU, watch whether they come back"                                                 },
    {METRIC_REASON_HW_THERMAL,  FINDING_ATTENTION, "the hardware slows it for heat",                        "look at airflow and fans"  },
    {METRIC_REASON_POWER_BRAKE, FINDING_ATTENTION, "the power brake slows it",                              "look at the power supply"  },
    {METRIC_REASON_SW_THERMAL,  FINDING_NOTE,      "the driver slows it for temperature",                   "look at airflow and fans"  },
};

static void check_signs(struct doctor *d, const struct view_device *g) {
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        const struct latest *l = &g->latest;
        if (latest_has(l, signs[i].metric, d->view.boot_ns) && l->of[signs[i].metric].value > 0)
            report_add(&d->report, signs[i].level, "gpus", signs[i].advice, "GPU %d: %s", g->inventory.index,
                       signs[i].text);
    }
}

static void check_limits(struct doctor *d, const struct view_device *g) {
    const struct latest *l = &g->latest;
    double limit_w = l->of[METRIC_POWER_LIMIT].value, default_w = g->inventory.limit_default_mw / 1000.0;
    if (latest_has(l, METRIC_POWER_LIMIT, d->view.boot_ns) && default_w > 0 && limit_w < default_w - 0.5)
        report_add(&d->report, FINDING_NOTE, "gpus", NULL,
                   "GPU %d: its power limit is set to %.0f W, below the default of %.0f W", g->inventory.index, limit_w,
                   default_w);
    double width = l->of[METRIC_PCIE_WIDTH].value;
    if (latest_has(l, METRIC_PCIE_WIDTH, d->view.boot_ns) && g->inventory.pcie_width_max > 0 &&
        width < g->inventory.pcie_width_max)
        report_add(&d->report, FINDING_NOTE, "gpus", "reseat the card, or check the slot", "GPU %d: PCIe x%.0f of x%d",
                   g->inventory.index, width, (int)g->inventory.pcie_width_max);
}

static void check_state(struct doctor *d, const struct view_device *g, const char *by) {
    char why[160];
    const char *state = view_state(g, why, sizeof why);
    if (view_is_well(g)) return;
    bool is_forbidden = g->state.state == DEVICE_FORBIDDEN;
    report_add(&d->report, is_forbidden ? FINDING_NOTE : FINDING_ATTENTION, "gpus",
               is_forbidden ? NULL : "the kernel log says more; a lost GPU needs a reset or a reboot",
               "GPU %d is %s (%s)%s%s", g->inventory.index, state, by, *why ? ": " : "", why);
}

void doctor_check_gpus(struct doctor *d) {
    size_t before = d->report.count, gpus = 0;
    for (size_t i = 0; i < d->view.count; i++) {
        const struct view_device *g = &d->view.of[i];
        if (view_is_instance(g)) continue;
        gpus++;
        check_state(d, g, "asked directly");
        check_signs(d, g);
        check_limits(d, g);
    }
    for (size_t i = 0; i < d->daemon.count; i++) {
        const struct view_device *g = &d->daemon.of[i];
        check_state(d, g, "as the sampler sees it");
        for (uint64_t x = 0; x < g->xids.count; x++)
            report_add(&d->report, FINDING_NOTE, "gpus", "the kernel log has the driver's own words",
                       "GPU %d: XID %llu, seen %llu time%s", g->inventory.index, (unsigned long long)g->xids.of[x].code,
                       (unsigned long long)g->xids.of[x].count, g->xids.of[x].count == 1 ? "" : "s");
    }
    if (gpus && d->report.count == before)
        report_add(&d->report, FINDING_GOOD, "gpus", NULL, "%zu answer%s, none reports trouble", gpus,
                   gpus == 1 ? "s" : "");
}

/* ---- pages ---- */

static const struct direct_gpu *page(const struct doctor *d, int32_t index) { return &d->direct.shared->gpu[index]; }

static bool are_alike(const struct doctor *d, int32_t a, int32_t b) {
    const struct direct_gpu *x = page(d, a), *y = page(d, b);
    if (strcmp(x->device.inventory.name, y->device.inventory.name) != 0) return false;
    if (x->device.inventory.control != y->device.inventory.control) return false;
    if (strcmp(doctor_workflow(d, a).name, doctor_workflow(d, b).name) != 0) return false;
    for (unsigned c = 0; c < d->direct.shared->call_count; c++)
        if (x->cost[c].support != y->cost[c].support) return false;
    return true;
}

static void cost_text(int64_t ns, char *ret, size_t room) {
    if (ns <= 0)
        ret[0] = 0;
    else if (ns < 10000)
        snprintf(ret, room, "%.1f us", ns / 1e3);
    else if (ns < 10000000)
        snprintf(ret, room, "%.0f us", ns / 1e3);
    else
        snprintf(ret, room, "%.1f ms", ns / 1e6);
}

static const char *why_not(const struct gpu_cost *cost) {
    if (*cost->why) return cost->why;
    return cost->support == SUPPORT_FORBIDDEN ? "the driver does not let this user" : "this GPU cannot";
}

static void add_call(const struct doctor *d, int32_t index, unsigned call, struct table *t) {
    const struct direct_call *c = &d->direct.shared->call[call];
    const struct gpu_cost *cost = &page(d, index)->cost[call];
    struct table_cell *row = t->cell[t->row_count++];
    size_t n = 0;
    snprintf(row[0].text, sizeof row[0].text, "%s", c->name);
    snprintf(row[1].text, sizeof row[1].text, "%s", support_names[cost->support]);
    cost_text(cost->wall_ns, row[2].text, sizeof row[2].text);
    cost_text(cost->cpu_ns, row[3].text, sizeof row[3].text);
    if (cost->support == SUPPORT_NO || cost->support == SUPPORT_FORBIDDEN) {
        snprintf(row[4].text, sizeof row[4].text, "%s", why_not(cost));
        return;
    }
    if (c->lists_processes) n = (size_t)snprintf(row[4].text, sizeof row[4].text, "processes ");
    for (unsigned i = 0; c->metrics[i] >= 0 && n < sizeof row[4].text; i++)
        n += (size_t)snprintf(row[4].text + n, sizeof row[4].text - n, "%s ", metrics[c->metrics[i]].name);
}

static void print_calls(const struct doctor *d, int32_t index, int width, struct buf *b) {
    static const struct table_column columns[] = {
        {"CALL",         false, 0, 0 },
        {"SUPPORTED",    false, 0, 0 },
        {"WALL",         true,  2, 0 },
        {"CPU",          true,  3, 0 },
        {"YIELDS / WHY", false, 0, 12},
    };
    struct table *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->columns = columns;
    t->column_count = ARRAY_LEN(columns);
    for (unsigned c = 0; c < d->direct.shared->call_count; c++) add_call(d, index, c, t);
    table_print(t, width, false, b);
    free(t);
}

static void print_page(const struct doctor *d, int32_t first, int width, struct buf *b) {
    const struct inventory *i = &page(d, first)->device.inventory;
    int32_t count = d->direct.shared->gpu_count, alike = 0;
    for (int32_t g = first; g < count; g++) alike += are_alike(d, first, g);
    buf_printf(b, "\n%s%s:", *i->name ? i->name : "a GPU that does not answer", alike > 1 ? ", GPUs" : ", GPU");
    for (int32_t g = first; g < count; g++)
        if (are_alike(d, first, g)) buf_printf(b, " %d", g);
    if (!page(d, first)->is_known) {
        buf_puts(b, "\nnothing more is known\n");
        return;
    }
    struct doctor_way way = doctor_workflow(d, first);
    buf_printf(b, "\n%s: %s (%s)\n", way.is_in_force ? "its guard uses" : "a guard would use", way.name, way.why);
    if (i->limit_min_mw > 0)
        buf_printf(b, "power limit: %d to %d W, %d W by default\n", (int)(i->limit_min_mw / 1000),
                   (int)(i->limit_max_mw / 1000), (int)(i->limit_default_mw / 1000));
    print_calls(d, first, width, b);
}

void doctor_print_gpus(const struct doctor *d, int width, struct buf *b) {
    if (!d->has_driver) return;
    for (int32_t g = 0; g < d->direct.shared->gpu_count; g++) {
        bool is_new = true;
        for (int32_t before = 0; before < g; before++) is_new &= !are_alike(d, before, g);
        if (is_new) print_page(d, g, width, b);
    }
}

/* ---- JSON ---- */

static void put_seconds(struct buf *b, const char *key, int64_t ns) {
    char text[48];
    number_text((double)ns / 1e9, 1e-9, text, sizeof text);
    json_key(b, key);
    buf_puts(b, text);
}

static void json_call(const struct doctor *d, int32_t index, unsigned call, struct buf *b) {
    const struct direct_call *c = &d->direct.shared->call[call];
    const struct gpu_cost *cost = &page(d, index)->cost[call];
    json_open(b, '{');
    json_pair_str(b, "name", c->name);
    json_pair_str(b, "supported", support_names[cost->support]);
    if (cost->support == SUPPORT_NO || cost->support == SUPPORT_FORBIDDEN) json_pair_str(b, "why", why_not(cost));
    if (cost->support == SUPPORT_YES) {
        put_seconds(b, "wall_seconds", cost->wall_ns);
        put_seconds(b, "cpu_seconds", cost->cpu_ns);
    }
    json_key(b, "metrics");
    json_open(b, '[');
    for (unsigned i = 0; c->metrics[i] >= 0; i++) json_str(b, metrics[c->metrics[i]].name);
    json_close(b, ']');
    json_close(b, '}');
}

static void json_gpu(const struct doctor *d, int32_t index, struct buf *b) {
    const struct inventory *i = &page(d, index)->device.inventory;
    struct doctor_way way = doctor_workflow(d, index);
    json_open(b, '{');
    json_pair_int(b, "index", index);
    json_pair_str(b, "uuid", i->uuid);
    json_pair_str(b, "model", i->name);
    json_key(b, "control");
    json_open(b, '{');
    json_pair_str(b, "workflow", way.name);
    json_pair_str(b, "why", way.why);
    json_pair_bool(b, "in_force", way.is_in_force);
    json_pair_bool(b, "power_limit", i->control & CONTROL_POWER);
    json_pair_bool(b, "locked_clocks", i->control & CONTROL_LOCKED_CLOCKS);
    json_pair_bool(b, "application_clocks", i->control & CONTROL_APP_CLOCKS);
    json_close(b, '}');
    json_key(b, "calls");
    json_open(b, '[');
    for (unsigned c = 0; c < d->direct.shared->call_count; c++) json_call(d, index, c, b);
    json_close(b, ']');
    json_close(b, '}');
}

void doctor_json(const struct doctor *d, struct buf *b) {
    json_open(b, '{');
    json_pair_bool(b, "well", report_is_good(&d->report));
    json_key(b, "findings");
    report_json(&d->report, b);
    if (d->has_driver) {
        json_pair_str(b, "driver", d->direct.shared->version);
        json_pair_str(b, "library", d->direct.shared->library);
    }
    json_key(b, "gpus");
    json_open(b, '[');
    for (int32_t g = 0; d->has_driver && g < d->direct.shared->gpu_count; g++) json_gpu(d, g, b);
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
}
