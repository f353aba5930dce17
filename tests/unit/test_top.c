/* gpumgr top without a terminal: what goes where on a screen of any size, in which order, in which words, and what a key
 * does. Frames are drawn on a canvas and read back as text. */
#include "tests/test.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/text.h"
#include "client/top_draw.h"
#include "client/top_figures.h"
#include "client/top_keys.h"
#include "client/top_mirror.h"
#include "client/top_stream.h"
#include "model/guard.h"

#define COMPLAIN(...) (print_error(__VA_ARGS__), assert_true(0))
#define GIB (1024.0 * 1024 * 1024)

/* ---- layout ---- */

static void the_size_decides(void **state) {
    static const struct {
        const char *name;
        int width, height, gpus, processes;
        enum top_form wish, want;
        int columns, band_least;
    } rows[] = {
        {"one GPU has charts even in 80x24", 80,  24, 1,  3,  FORM_AUTO,   FORM_PANELS, 1, 3},
        {"two as well",                      80,  24, 2,  3,  FORM_AUTO,   FORM_PANELS, 1, 1},
        {"four do not fit there",            80,  24, 4,  3,  FORM_AUTO,   FORM_LINES,  0, 0},
        {"eight in 120x40, side by side",    120, 40, 8,  12, FORM_AUTO,   FORM_PANELS, 2, 1},
        {"eight in 300x80, tall charts",     300, 80, 8,  12, FORM_AUTO,   FORM_PANELS, 4, 4},
        {"sixteen in 300x80",                300, 80, 16, 32, FORM_AUTO,   FORM_PANELS, 4, 2},
        {"sixteen in 80x24",                 80,  24, 16, 32, FORM_AUTO,   FORM_LINES,  0, 0},
        {"sixty-four in 300x80",             300, 80, 64, 64, FORM_AUTO,   FORM_LINES,  0, 0},
        {"lines where one wants lines",      300, 80, 8,  12, FORM_LINES,  FORM_LINES,  0, 0},
        {"panels where one wants panels",    80,  24, 16, 32, FORM_PANELS, FORM_PANELS, 1, 1},
        {"too narrow for a panel",           40,  50, 2,  2,  FORM_AUTO,   FORM_LINES,  0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct top_shape s = {.width = rows[i].width,
                              .height = rows[i].height,
                              .gpus = rows[i].gpus,
                              .lines = rows[i].gpus,
                              .processes = rows[i].processes,
                              .wish = rows[i].wish};
        struct top_layout l = top_layout(&s);
        if (l.form != rows[i].want || (rows[i].columns && l.columns != rows[i].columns) ||
            l.band_h < rows[i].band_least)
            COMPLAIN("%s: form %d, %d columns, bands of %d", rows[i].name, l.form, l.columns, l.band_h);
    }
}

static void parts_lie_below_each_other_at_any_size(void **state) {
    for (int width = 10; width <= 320; width += 7)
        for (int height = 3; height <= 110; height++)
            for (int gpus = 0; gpus <= 64; gpus = gpus * 2 + (gpus == 0))
                for (int wish = FORM_AUTO; wish <= FORM_PANELS; wish++) {
                    struct top_shape s = {.width = width,
                                          .height = height,
                                          .gpus = gpus,
                                          .lines = gpus,
                                          .processes = gpus * 2,
                                          .events = 4,
                                          .wish = (enum top_form)wish};
                    struct top_layout l = top_layout(&s);
                    bool is_sound = l.gpu_y >= l.header_h && l.gpu_h >= 0 && l.process_y == l.gpu_y + l.gpu_h &&
                                    (l.process_h == 0 || l.process_y + l.process_h <= l.event_y) &&
                                    l.event_y + l.event_h == l.footer_y && l.footer_y == height - 1;
                    if (height >= 10 && l.gpu_y + l.gpu_h > l.footer_y) is_sound = false;
                    if (l.form == FORM_PANELS && (l.columns < 1 || l.rows < 1 || l.columns * l.panel_w > width))
                        is_sound = false;
                    if (!is_sound) COMPLAIN("%dx%d, %d GPUs, wish %d", width, height, gpus, wish);
                }
}

static void lists_scroll_with_their_selection(void **state) {
    static const struct {
        int first, selected, count, room, want;
    } rows[] = {
        {0, 0,  5,  10, 0}, /* all of it fits */
        {0, 9,  20, 5,  5}, /* down */
        {9, 3,  20, 5,  3}, /* up */
        {4, 6,  20, 5,  4}, /* within what is shown nothing moves */
        {9, 12, 13, 5,  8}, /* no empty lines at the end */
        {7, 0,  0,  5,  0},
        {7, 2,  3,  0,  3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(top_scroll(rows[i].first, rows[i].selected, rows[i].count, rows[i].room), rows[i].want);
}

/* ---- processes ---- */

static void add_process(struct top_processes *p, uint32_t pid, int gpu, const char *user, double gib, double sm,
                        const char *command) {
    struct top_process *one = top_processes_add(p);
    one->pid = pid;
    one->gpu = gpu;
    one->kinds = PROCESS_COMPUTE;
    one->memory_bytes = gib * GIB;
    one->sm = sm;
    one->is_here = true;
    one->uid = strcmp(user, "alice") == 0 ? 1000 : 1001;
    one->start_ticks = pid;
    snprintf(one->user, sizeof one->user, "%s", user);
    snprintf(one->command, sizeof one->command, "%s", command);
}

static void fill_processes(struct top_processes *p) {
    add_process(p, 30, 1, "bob", 4, 0.5, "/usr/bin/python3 train.py");
    add_process(p, 20, 0, "alice", 8, 0.1, "vllm-serve --port 80");
    add_process(p, 10, 1, "alice", 2, NAN, "/opt/gmx mdrun");
}

static void processes_are_sorted(void **state) {
    static const struct {
        enum top_sort by;
        bool reverse;
        uint32_t want[3];
    } rows[] = {
        {SORT_GPU,     false, {20, 10, 30}},
        {SORT_GPU,     true,  {10, 30, 20}}, /* equal ones stay in their order */
        {SORT_PID,     false, {10, 20, 30}},
        {SORT_USER,    false, {20, 10, 30}},
        {SORT_MEMORY,  false, {20, 30, 10}},
        {SORT_MEMORY,  true,  {10, 30, 20}},
        {SORT_SM,      false, {30, 20, 10}}, /* what is not known comes last */
        {SORT_COMMAND, false, {10, 30, 20}}, /* by the program's name, not by its directory */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(top_processes_done) struct top_processes p = {0};
        fill_processes(&p);
        top_processes_sort(&p, rows[i].by, rows[i].reverse);
        for (int k = 0; k < 3; k++)
            if (p.of[k].pid != rows[i].want[k])
                COMPLAIN("by %s%s: %u at %d", top_sort_word(rows[i].by), rows[i].reverse ? ", reversed" : "",
                         p.of[k].pid, k);
    }
}

static void processes_are_filtered(void **state) {
    static const struct {
        const char *filter;
        int want;
    } rows[] = {
        {"",                 3},
        {"alice",            2},
        {"ALICE",            2},
        {"user:bob",         1},
        {"gpu:1",            2},
        {"gpu:1 alice",      1},
        {"gpu:11",           0},
        {"cmd:py",           1},
        {"!alice",           1},
        {"!gpu:1 !user:bob", 1},
        {"pid:2",            1},
        {"30",               1}, /* a whole pid */
        {"gpu:",             3}, /* not typed to its end yet */
        {"  train   ",       1},
        {"nobody",           0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(top_processes_done) struct top_processes p = {0};
        fill_processes(&p);
        top_processes_filter(&p, rows[i].filter);
        if (p.count != rows[i].want) COMPLAIN("\"%s\" leaves %d", rows[i].filter, p.count);
    }
}

static void times_are_short(void **state) {
    static const struct {
        double seconds;
        const char *want;
    } rows[] = {
        {0,      "0:00"    },
        {65,     "1:05"    },
        {3599.9, "59:59"   },
        {11232,  "3:07:12" },
        {187800, "2d 04:10"},
        {NAN,    "-"       },
        {-5,     "-"       },
        {1e300,  "-"       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        top_time_text(rows[i].seconds, text, sizeof text);
        assert_string_equal(text, rows[i].want);
    }
}

/* ---- canvas ---- */

static void text_fits_its_cells(void **state) {
    static const struct {
        const char *text;
        int width;
        bool has_utf8;
        const char *want;
    } rows[] = {
        {"plain",        10, true,  "plain"   },
        {"plain",        5,  true,  "plain"   },
        {"plainer",      5,  true,  "plai…" },
        {"plainer",      5,  false, "plai~"   },
        {"81°C",        10, true,  "81°C"   },
        {"81°C",        10, false, "81?C"    },
        {"a\033[31mb\n", 10, true,  "a?[31mb?"},
        {"\xff\xfe",     10, true,  "??"      },
        {"\xe7\x8c\xab", 10, true,  "?"       }, /* two columns wide: would break the grid */
        {"plain",        0,  true,  ""        },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(canvas_done) struct canvas c;
        AUTO(buf_done) struct buf out = {0};
        canvas_init(&c, 20, 1, rows[i].has_utf8);
        canvas_text(&c, 0, 0, rows[i].width, rows[i].text, STYLE_PLAIN);
        canvas_print(&c, &out);
        out.s[out.len - 1] = 0;
        assert_string_equal(out.s, rows[i].want);
    }
}

static void meters_say_how_much(void **state) {
    static const struct {
        double ratio, notch;
        bool has_utf8;
        const char *want;
    } rows[] = {
        {0,      NAN, true,  "░░░░"},
        {0.0001, NAN, true,  "▏░░░"}, /* little is not nothing */
        {0.5,    NAN, true,  "██░░"},
        {0.53,   NAN, true,  "██▏░"},
        {1,      NAN, true,  "████"},
        {7,      NAN, true,  "████"},
        {NAN,    NAN, true,  "░░░░"},
        {0.5,    0.8, true,  "██░┃"},
        {0.5,    NAN, false, "##.."        },
        {0.5,    0.8, false, "##.|"        },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(canvas_done) struct canvas c;
        AUTO(buf_done) struct buf out = {0};
        canvas_init(&c, 4, 1, rows[i].has_utf8);
        canvas_meter(&c, 0, 0, 4, rows[i].ratio, rows[i].notch, STYLE_UTIL);
        canvas_print(&c, &out);
        out.s[out.len - 1] = 0;
        assert_string_equal(out.s, rows[i].want);
    }
}

static void charts_show_gaps_and_limits(void **state) {
    AUTO(canvas_done) struct canvas c;
    AUTO(buf_done) struct buf out = {0};
    static const float values[] = {0, 50, NAN, 100}, line[] = {100, 100, 100, 100};
    canvas_init(&c, 5, 2, true);
    canvas_chart(&c, 0, 0, 5, 2, &(struct chart){.values = values, .line = line, .count = 4, .lo = 0, .hi = 100});
    canvas_print(&c, &out);
    assert_string_equal(out.s, " ╌╌╌█\n ▁█ █\n");
}

/* ---- history ---- */

static void history_holds_and_forgets(void **state) {
    AUTO(history_done) struct history h = {0};
    struct history_device *d = history_of(&h, "GPU-1");
    float out[6];
    history_put(d, METRIC_TEMP_CORE, 100, 50);
    history_put(d, METRIC_TEMP_CORE, 100, 60); /* the catalogue keeps the highest */
    history_put(d, METRIC_TEMP_CORE, 100, 40);
    history_put(d, METRIC_UTIL_GPU, 102, 0.5);
    history_series(d, METRIC_TEMP_CORE, 103, 1, out, 6);
    assert_true(isnan(out[0]) && isnan(out[1]));               /* 98, 99 */
    assert_true(out[2] == 60 && out[3] == 60 && out[5] == 60); /* held while the card is being read */
    history_series(d, METRIC_TEMP_CORE, 110, 1, out, 6);       /* nothing at all came since 102 */
    assert_true(out[0] == 60 && isnan(out[1]));
    history_series(d, METRIC_TEMP_CORE, 103, 2, out, 6);
    assert_true(isnan(out[3]) && out[4] == 60 && out[5] == 60); /* columns of two seconds: 100-101, 102-103 */
    history_put(d, METRIC_TEMP_CORE, 100 + HISTORY_ROWS, 70);
    history_put(d, METRIC_TEMP_CORE, 100, 99); /* too old to be kept */
    history_series(d, METRIC_TEMP_CORE, 100 + HISTORY_ROWS, 1, out, 6);
    assert_true(out[5] == 70);
    history_series(NULL, METRIC_TEMP_CORE, 100, 1, out, 6);
    assert_true(isnan(out[0]) && isnan(out[5]));
}

/* ---- figures ---- */

static struct view_device *add_gpu(struct view *v, int index) {
    struct view_device *d = view_add(v);
    inventory_init(&d->inventory, index);
    snprintf(d->inventory.name, sizeof d->inventory.name, "NVIDIA H200");
    snprintf(d->inventory.uuid, sizeof d->inventory.uuid, "GPU-%08d", index);
    d->state.state = DEVICE_OK;
    d->processes.boot_ns = v->boot_ns;
    return d;
}

static void put(struct view *v, struct view_device *d, int metric, double value) {
    d->latest.of[metric].value = value;
    d->latest.of[metric].boot_ns = v->boot_ns;
    d->latest.of[metric].until_ns = v->boot_ns + NS_PER_S;
}

static void fill_gpu(struct view *v, struct view_device *d) {
    put(v, d, METRIC_UTIL_GPU, 0.97);
    put(v, d, METRIC_MEMORY_USED, 101.2 * GIB);
    put(v, d, METRIC_MEMORY_TOTAL, 140.4 * GIB);
    put(v, d, METRIC_TEMP_CORE, 78);
    put(v, d, METRIC_POWER, 688);
    put(v, d, METRIC_POWER_LIMIT_ENFORCED, 700);
    put(v, d, METRIC_CLOCK_SM, 1755e6);
}

static void hold(struct view_device *d, enum ring_guard_mode mode, double limit, enum guard_reason reason) {
    d->has_guard = true;
    d->guard = (struct ring_guard){
        .mode = mode, .lever = GUARD_BY_POWER, .reason = reason, .limit = limit, .baseline = 700, .floor = 200};
    for (int i = 0; i < GUARD_SENSORS; i++) d->guard.target[i] = d->guard.reading[i] = NAN;
    d->guard.target[GUARD_CORE] = 75;
}

static void the_note_says_what_matters_most(void **state) {
    enum what { WELL, LOST, SILENT, HELD, WOULD_HOLD, CAPPED, HEAT, XID };
    static const struct {
        enum what what;
        const char *want, *brief;
    } rows[] = {
        {WELL,       "",                                        ""                      },
        {LOST,       "LOST 5 s: fell off the bus",              "LOST 5 s: fell off the"},
        {SILENT,     "STALE 9 s: its sampler is silent",        "STALE 9 s: its sampler"},
        {HELD,       "held at 412 of 700 W: core hot",          "held: core hot"        },
        {WOULD_HOLD, "would be held at 412 of 700 W: core hot", "wants less: core hot"  },
        {CAPPED,     "at power limit",                          "at power limit"        },
        {HEAT,       "slowed by heat (hardware)",               "heat! (hardware)"      },
        {XID,        "XID 79 12 s ago",                         "XID 79 12 s ago"       },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(view_done) struct view v = {.boot_ns = 1000 * NS_PER_S, .real_ns = 1700000000 * NS_PER_S};
        struct view_device *d = add_gpu(&v, 0);
        struct top_figures f;
        fill_gpu(&v, d);
        if (rows[i].what == LOST)
            d->state = (struct ring_state){
                .state = DEVICE_LOST, .since_real_ns = v.real_ns - 5 * NS_PER_S, .text = "fell off the bus"};
        if (rows[i].what == SILENT) d->silent_ns = 9 * NS_PER_S;
        if (rows[i].what == HELD) hold(d, RING_GUARD_ACTS, 412, GUARD_HOT_CORE);
        if (rows[i].what == WOULD_HOLD) hold(d, RING_GUARD_OBSERVES, 412, GUARD_HOT_CORE);
        if (rows[i].what == CAPPED) put(&v, d, METRIC_REASON_POWER_CAP, 1);
        if (rows[i].what == HEAT) put(&v, d, METRIC_REASON_HW_THERMAL, 1), put(&v, d, METRIC_REASON_POWER_CAP, 1);
        if (rows[i].what == XID) {
            d->xids.count = 1;
            d->xids.of[0].code = 79;
            d->xids.of[0].last_real_ns = v.real_ns - 12 * NS_PER_S;
        }
        top_figures(&v, d, NAN, &f);
        assert_string_equal(f.note, rows[i].want);
        if (strncmp(f.brief, rows[i].brief, strlen(rows[i].brief)) != 0 || (!*rows[i].brief && *f.brief))
            COMPLAIN("%s: in brief \"%s\"", rows[i].want, f.brief);
    }
}

static void figures_have_words(void **state) {
    AUTO(view_done) struct view v = {.boot_ns = 1000 * NS_PER_S};
    struct view_device *d = add_gpu(&v, 0);
    struct top_figures f;
    char text[64];
    static const char *const want[2][GAUGES] = {
        {"97%", "101/140G",           "78/75C!",     "688/412W"    },
        {"97%", "101.2 of 140.4 GiB", "78 of 75 C!", "688 of 412 W"}
    };
    fill_gpu(&v, d);
    put(&v, d, METRIC_POWER_LIMIT_ENFORCED, 412);
    hold(d, RING_GUARD_ACTS, 412, GUARD_HOT_CORE);
    top_figures(&v, d, NAN, &f);
    for (int is_long = 0; is_long < 2; is_long++)
        for (int g = 0; g < GAUGES; g++) {
            top_gauge_text(&f, (enum top_gauge)g, false, is_long, text, sizeof text);
            assert_string_equal(text, want[is_long][g]);
        }
    assert_true(fabs(f.notch[GAUGE_POWER] - 412.0 / 700) < 1e-9);
    v.boot_ns += 100 * NS_PER_S; /* by then all of it is too old to show */
    top_figures(&v, d, NAN, &f);
    for (int g = 0; g < GAUGES; g++) {
        top_gauge_text(&f, (enum top_gauge)g, false, false, text, sizeof text);
        assert_string_equal(text, "-");
    }
}

/* ---- frames and keys ---- */

struct scene {
    struct top_data data;
    struct top_state state;
    struct canvas canvas;
    struct buf text;
};

static void scene_done(struct scene *s) {
    top_data_done(&s->data);
    top_state_done(&s->state);
    canvas_done(&s->canvas);
    buf_done(&s->text);
}

static void scene_init(struct scene *s, int gpus, int lost) {
    *s = (struct scene){0};
    struct view *v = &s->data.view;
    v->boot_ns = s->state.now_ns = s->data.newest_ns = 1000 * NS_PER_S;
    v->real_ns = s->state.now_real_ns = 1700000000 * NS_PER_S;
    v->driver.state = DRIVER_OK;
    for (int i = 0; i < gpus; i++) {
        struct view_device *d = add_gpu(v, i);
        fill_gpu(v, d);
        for (int t = 900; t <= 1000; t++)
            history_put(history_of(&s->data.history, d->inventory.uuid), METRIC_UTIL_GPU, t, t % 7 / 7.0);
    }
    if (lost >= 0)
        v->of[lost].state =
            (struct ring_state){.state = DEVICE_LOST, .since_real_ns = v->real_ns - 5 * NS_PER_S, .text = "gone"};
    snprintf(s->data.host, sizeof s->data.host, "gpu7");
    snprintf(s->data.source, sizeof s->data.source, "ring");
    fill_processes(&s->data.processes);
    s->state.hot_c = NAN;
    s->state.uid = 1000;
    canvas_init(&s->canvas, 80, 24, true);
}

static const char *frame(struct scene *s, int width, int height) {
    canvas_resize(&s->canvas, width, height);
    top_settle(&s->state, &s->data);
    top_draw(&s->canvas, &s->data, &s->state);
    buf_clear(&s->text);
    canvas_print(&s->canvas, &s->text);
    return s->text.s;
}

static enum top_action press(struct scene *s, int key) {
    top_settle(&s->state, &s->data);
    return top_key(&s->state, &s->data, key);
}

static void type(struct scene *s, const char *keys) {
    for (; *keys; keys++) press(s, *keys);
}

static void a_lost_card_is_seen_at_any_size(void **state) {
    static const int counts[] = {1, 2, 8, 16};
    for (size_t n = 0; n < ARRAY_LEN(counts); n++) {
        AUTO(scene_done) struct scene s;
        scene_init(&s, counts[n], 0);
        for (int width = 60; width <= 320; width += 13)
            for (int height = 12; height <= 90; height += 6) {
                const char *text = frame(&s, width, height);
                if (!strstr(text, "LOST") || !strstr(text, "gpu7"))
                    COMPLAIN("%d GPUs at %dx%d:\n%s", counts[n], width, height, text);
            }
    }
}

/* Nothing may fall over, whatever is chosen on a screen of whatever size. */
static void any_size_can_be_drawn(void **state) {
    AUTO(scene_done) struct scene s;
    scene_init(&s, 16, 3);
    for (int ascii = 0; ascii < 2; ascii++)
        for (int width = 1; width <= 321; width += 16)
            for (int height = 1; height <= 100; height += 9)
                for (int overlay = OVERLAY_NONE; overlay <= OVERLAY_PROCESS; overlay++)
                    for (int page = PAGE_ALL; page <= PAGE_GPU; page++) {
                        s.canvas.has_utf8 = !ascii;
                        s.state.overlay = (enum top_overlay)overlay;
                        s.state.page = (enum top_page)page;
                        s.state.target = s.data.processes.of[0];
                        const char *text = frame(&s, width, height);
                        for (const char *c = text; ascii && *c; c++)
                            if ((unsigned char)*c >= 0x80) COMPLAIN("a byte beyond ASCII at %dx%d", width, height);
                    }
}

static void old_data_are_called_stale(void **state) {
    AUTO(scene_done) struct scene s;
    scene_init(&s, 2, -1);
    assert_null(strstr(frame(&s, 80, 24), "STALE"));
    s.state.now_ns += 12 * NS_PER_S;
    assert_non_null(strstr(frame(&s, 80, 24), "STALE 12 s"));
    s.state.is_paused = true;
    assert_non_null(strstr(frame(&s, 80, 24), "PAUSED"));
}

static void keys_sort_and_filter(void **state) {
    AUTO(scene_done) struct scene s;
    scene_init(&s, 8, -1);
    frame(&s, 80, 24);
    press(&s, 's');
    assert_int_equal(s.state.sort, SORT_PID);
    press(&s, 'S');
    press(&s, 'S');
    assert_int_equal(s.state.sort, SORT_COMMAND);
    press(&s, '/');
    type(&s, "gpu:1 bobx");
    press(&s, TOP_KEY_BACKSPACE);
    assert_non_null(strstr(frame(&s, 80, 24), "1 of 3 processes: gpu:1 bob"));
    press(&s, '\r');
    assert_int_equal(s.state.overlay, OVERLAY_NONE);
    press(&s, '/');
    type(&s, "zzz");
    press(&s, 27); /* back to what it was */
    assert_string_equal(s.state.filter, "gpu:1 bob");
    press(&s, 27);
    assert_string_equal(s.state.filter, "");
    press(&s, '/');
    for (int i = 0; i < 500; i++) press(&s, 'x');
    assert_true(strlen(s.state.filter) < sizeof s.state.filter);
    press(&s, 27);
    assert_int_equal(press(&s, 'q'), ACT_QUIT);
}

static void the_selection_follows_its_process(void **state) {
    AUTO(scene_done) struct scene s;
    scene_init(&s, 2, -1);
    press(&s, '\t');
    press(&s, TOP_KEY_END);
    assert_int_equal(s.state.shown.of[s.state.process].pid, 30);
    s.state.sort = SORT_SM;
    top_settle(&s.state, &s.data);
    assert_int_equal(s.state.process, 0);
    assert_int_equal(s.state.shown.of[s.state.process].pid, 30);
}

static void signals_need_leave_ownership_and_a_yes(void **state) {
    AUTO(scene_done) struct scene s;
    scene_init(&s, 2, -1);
    press(&s, '\t');
    s.state.sort = SORT_PID; /* 10 alice, 20 alice, 30 bob */
    press(&s, 'K');
    assert_non_null(strstr(s.state.message, "--signals"));
    s.state.has_signals = true;
    press(&s, TOP_KEY_END);
    press(&s, 'K');
    assert_int_equal(s.state.overlay, OVERLAY_NONE);
    assert_non_null(strstr(s.state.message, "belongs to bob"));
    press(&s, TOP_KEY_HOME);
    press(&s, 'K');
    assert_int_equal(s.state.overlay, OVERLAY_SIGNAL);
    assert_non_null(strstr(frame(&s, 80, 24), "SIGTERM to process 10 of alice on GPU 1?"));
    assert_int_equal(press(&s, '\n'), ACT_NONE); /* Enter is no yes */
    assert_int_equal(s.state.overlay, OVERLAY_NONE);
    press(&s, 'K');
    press(&s, '\t');
    press(&s, '\t');
    assert_string_equal(top_signals[s.state.signal].name, "SIGKILL");
    assert_int_equal(press(&s, 'y'), ACT_SIGNAL);
    assert_int_equal(s.state.target.pid, 10);
    s.data.is_remote = true;
    press(&s, 'K');
    assert_int_equal(s.state.overlay, OVERLAY_NONE);
    s.data.is_remote = false;
    s.state.uid = 0;
    press(&s, TOP_KEY_END);
    press(&s, 'K');
    assert_int_equal(s.state.overlay, OVERLAY_SIGNAL); /* root may signal anyone */
}

static void the_page_of_a_gpu_walks_the_catalogue(void **state) {
    AUTO(scene_done) struct scene s;
    scene_init(&s, 2, -1);
    struct view_device *d = &s.data.view.of[0];
    for (int m = 0; m < METRIC_COUNT; m++) put(&s.data.view, d, m, 1);
    press(&s, 'g');
    frame(&s, 300, 100);
    assert_int_equal(s.state.metric_rows, METRIC_COUNT);
    assert_non_null(strstr(s.text.s, metrics[0].name));
    press(&s, TOP_KEY_END);
    assert_non_null(strstr(frame(&s, 80, 24), metrics[METRIC_COUNT - 1].name)); /* it scrolls */
    press(&s, TOP_KEY_RIGHT);
    assert_non_null(strstr(frame(&s, 80, 24), "GPU 1 "));
    press(&s, 27);
    assert_int_equal(s.state.page, PAGE_ALL);
}

/* ---- what a server says ---- */

static int note_message(void *ctx, const char *event, const char *data, size_t len) {
    buf_printf(ctx, "[%s|%.*s]", event, (int)len, data);
    return 0;
}

static void a_stream_is_the_same_in_any_pieces(void **state) {
    static const char text[] =
        ": hello\n\nretry: 9\nevent: delta\ndata: one\n\nevent: y\r\ndata: two\r\ndata: lines\r\n\r\n"
        "event:x\rdata:3\r\rdata: lost";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        AUTO(top_stream_done) struct top_stream s = {0};
        AUTO(buf_done) struct buf got = {0};
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t n = sizeof text - 1 - at < piece ? sizeof text - 1 - at : piece;
            assert_int_equal(top_stream_feed(&s, text + at, n, note_message, &got), 0);
        }
        assert_string_equal(got.s, "[delta|one][y|two\nlines][x|3]");
    }
}

static void a_stream_without_end_is_refused(void **state) {
    AUTO(top_stream_done) struct top_stream s = {0};
    char block[4096];
    int r = 0;
    memset(block, 'x', sizeof block);
    for (size_t n = 0; r == 0 && n < 2 * TOP_STREAM_MAX; n += sizeof block)
        r = top_stream_feed(&s, block, sizeof block, note_message, NULL);
    assert_int_equal(r, -EMSGSIZE);
}

static void say(struct top_mirror *m, void (*take)(struct top_mirror *, const struct json_tree *, int64_t, int64_t),
                int64_t at_s, const char *text) {
    struct json_tree *j = NULL;
    struct error e;
    assert_int_equal(json_tree_parse(text, strlen(text), &j, &e), 0);
    take(m, j, at_s * NS_PER_S, (1700000000 + at_s) * NS_PER_S);
    json_tree_free(j);
}

static void a_mirror_keeps_what_did_not_change(void **state) {
    AUTO(top_mirror_done) struct top_mirror m = {0};
    say(&m, top_mirror_snapshot, 100,
        "{\"gpus\":[{\"index\":3,\"uuid\":\"GPU-a\",\"state\":\"ok\",\"metrics\":{\"gpu_power_watts\":5,\"gpu_"
        "temperature_celsius\":50},"
        "\"processes\":[{\"pid\":7,\"user\":\"eve\"}]}]}");
    say(&m, top_mirror_delta, 130, "{\"gpus\":{\"GPU-a\":{\"metrics\":{\"gpu_temperature_celsius\":60}}}}");
    const struct view_device *d = &m.view.of[0];
    assert_true(d->latest.of[METRIC_TEMP_CORE].value == 60 && latest_has(&d->latest, METRIC_POWER, m.view.boot_ns));
    assert_true(d->latest.of[METRIC_POWER].value == 5 && m.processes.count == 1 && m.processes.of[0].gpu == 3);
    say(&m, top_mirror_delta, 131, "{\"gpus\":{\"GPU-a\":{\"metrics\":{\"gpu_power_watts\":null},\"processes\":[]}}}");
    assert_false(latest_has(&d->latest, METRIC_POWER, m.view.boot_ns));
    assert_int_equal(m.processes.count, 0);
    say(&m, top_mirror_delta, 132,
        "{\"gpus\":{\"GPU-a\":{\"state\":\"lost\",\"state_since\":\"2023-11-14T22:15:20.000Z\"}}}");
    assert_int_equal(d->state.state, DEVICE_LOST);
    assert_true(d->state.since_real_ns == (1700000000 + 120) * NS_PER_S);
}

static void cards_of_several_machines_are_told_apart(void **state) {
    AUTO(top_mirror_done) struct top_mirror m = {0};
    say(&m, top_mirror_snapshot, 100,
        "{\"gpus\":[{\"index\":3,\"uuid\":\"GPU-a\",\"node\":\"n1\",\"model\":\"NVIDIA H200\",\"state\":\"ok\"},"
        "{\"index\":3,\"uuid\":\"GPU-b\",\"node\":\"n2\",\"model\":\"NVIDIA "
        "H200\",\"state\":\"ok\",\"processes\":[{\"pid\":7}]}],"
        "\"nodes\":[{\"name\":\"n1\"},{\"name\":\"n2\"}]}");
    assert_string_equal(m.host, "2 nodes");
    assert_string_equal(m.view.of[1].inventory.name, "n2:3 H200");
    assert_int_equal(m.view.of[1].inventory.index, 1);
    assert_int_equal(m.processes.of[0].gpu, 1);
}

int main(void) {
    setlocale(LC_CTYPE, "C.UTF-8"); /* the widths of characters are the locale's */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_decides),
        cmocka_unit_test(parts_lie_below_each_other_at_any_size),
        cmocka_unit_test(lists_scroll_with_their_selection),
        cmocka_unit_test(processes_are_sorted),
        cmocka_unit_test(processes_are_filtered),
        cmocka_unit_test(times_are_short),
        cmocka_unit_test(text_fits_its_cells),
        cmocka_unit_test(meters_say_how_much),
        cmocka_unit_test(charts_show_gaps_and_limits),
        cmocka_unit_test(history_holds_and_forgets),
        cmocka_unit_test(the_note_says_what_matters_most),
        cmocka_unit_test(figures_have_words),
        cmocka_unit_test(a_lost_card_is_seen_at_any_size),
        cmocka_unit_test(any_size_can_be_drawn),
        cmocka_unit_test(old_data_are_called_stale),
        cmocka_unit_test(keys_sort_and_filter),
        cmocka_unit_test(the_selection_follows_its_process),
        cmocka_unit_test(signals_need_leave_ownership_and_a_yes),
        cmocka_unit_test(the_page_of_a_gpu_walks_the_catalogue),
        cmocka_unit_test(a_stream_is_the_same_in_any_pieces),
        cmocka_unit_test(a_stream_without_end_is_refused),
        cmocka_unit_test(a_mirror_keeps_what_did_not_change),
        cmocka_unit_test(cards_of_several_machines_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
