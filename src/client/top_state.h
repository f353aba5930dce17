/* What a person has chosen in `gpumgr top`, and what there is to show. Keys change the one (top_keys.h), a feed fills the
 * other (top_feed.h), drawing reads both (top_draw.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/top_history.h"
#include "client/top_layout.h"
#include "client/top_processes.h"
#include "client/view.h"

struct top_data {
    struct view view;
    struct history history;
    struct top_processes processes; /* all of them */
    char host[65];
    char source[80];   /* "ring", "driver", "gpu7:7000": where this comes from */
    char problem[248]; /* why nothing new comes, or empty */
    int64_t newest_ns; /* when the newest of it was read, by the boot clock; 0: nothing was */
    bool is_remote;
};

void top_data_done(struct top_data *d);

/* GPUs of the view by place; instances are not among them. */
int top_gpus(const struct view *v);
const struct view_device *top_gpu(const struct view *v, int place);

enum top_focus { FOCUS_GPUS, FOCUS_PROCESSES };
enum top_page { PAGE_ALL, PAGE_GPU };
enum top_overlay { OVERLAY_NONE, OVERLAY_HELP, OVERLAY_FILTER, OVERLAY_SIGNAL, OVERLAY_PROCESS };

struct top_state {
    enum top_page page;
    enum top_overlay overlay;
    enum top_focus focus;
    enum top_form form;

    int gpu;                 /* selected, by place */
    int gpu_scroll;          /* first line or row of panels that is shown */
    int metric, metric_rows; /* on the page of a GPU: the selected line, and how many there are */
    int metric_scroll;

    enum top_sort sort;
    bool reverse;
    char filter[96], filter_before[96];
    struct top_processes shown; /* what the filter left, sorted */
    int process, process_scroll, process_rows;
    uint32_t pid; /* the selected process: it stays selected when the order changes */
    int pid_gpu;

    struct top_process target; /* of a signal */
    int signal;                /* place in top_signals[] */

    bool is_paused, has_signals;
    bool is_once;       /* a frame on paper: no keys */
    bool has_selection; /* an arrow key was used: only then something is marked */
    uid_t uid;
    int zoom;     /* place in the table of seconds a column; 0: as the width allows */
    double hot_c; /* the threshold that was set, or NaN */
    char message[200];
    int64_t message_until_ns;
    int64_t now_ns, now_real_ns; /* of this frame */
};

void top_state_done(struct top_state *s);

/* Makes `shown` from the data and keeps the selections within it. */
void top_settle(struct top_state *s, const struct top_data *d);

void top_say(struct top_state *s, const char *fmt, ...) PRINTF(2, 3);

/* Seconds that a column of a chart of this width stands for. */
int top_step_s(const struct top_state *s, int width);

struct top_signal {
    int number;
    const char *name;
};
extern const struct top_signal top_signals[];
extern const int top_signal_count;
