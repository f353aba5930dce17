#include "client/top_state.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MESSAGE_NS (6 * NS_PER_S)

const struct top_signal top_signals[] = {
    {SIGTERM, "SIGTERM"},
    {SIGINT,  "SIGINT" },
    {SIGKILL, "SIGKILL"},
    {SIGHUP,  "SIGHUP" },
    {SIGSTOP, "SIGSTOP"},
    {SIGCONT, "SIGCONT"},
    {SIGUSR1, "SIGUSR1"},
};
const int top_signal_count = ARRAY_LEN(top_signals);

void top_data_done(struct top_data *d) {
    view_done(&d->view);
    history_done(&d->history);
    top_processes_done(&d->processes);
}

void top_state_done(struct top_state *s) { top_processes_done(&s->shown); }

int top_gpus(const struct view *v) {
    int n = 0;
    for (size_t i = 0; i < v->count; i++) n += !view_is_instance(&v->of[i]);
    return n;
}

const struct view_device *top_gpu(const struct view *v, int place) {
    for (size_t i = 0; i < v->count; i++)
        if (!view_is_instance(&v->of[i]) && place-- == 0) return &v->of[i];
    return NULL;
}

static void keep_within(int *value, int count) {
    if (*value >= count) *value = count - 1;
    if (*value < 0) *value = 0;
}

/* The selected process keeps its selection wherever the order takes it. */
static void follow_selection(struct top_state *s) {
    for (int i = 0; s->pid && i < s->shown.count; i++) {
        if (s->shown.of[i].pid != s->pid || s->shown.of[i].gpu != s->pid_gpu) continue;
        s->process = i;
        return;
    }
    keep_within(&s->process, s->shown.count);
}

void top_settle(struct top_state *s, const struct top_data *d) {
    const struct view_device *gpu = s->page == PAGE_GPU ? top_gpu(&d->view, s->gpu) : NULL;
    top_processes_clear(&s->shown);
    for (int i = 0; i < d->processes.count; i++)
        if (!gpu || d->processes.of[i].gpu == gpu->inventory.index) *top_processes_add(&s->shown) = d->processes.of[i];
    top_processes_filter(&s->shown, s->filter);
    top_processes_sort(&s->shown, s->sort, s->reverse);
    keep_within(&s->gpu, top_gpus(&d->view));
    follow_selection(s);
    if (s->message[0] && s->now_ns > s->message_until_ns) s->message[0] = 0;
}

void top_say(struct top_state *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->message, sizeof s->message, fmt, ap);
    va_end(ap);
    s->message_until_ns = s->now_ns + MESSAGE_NS;
}

int top_step_s(const struct top_state *s, int width) {
    static const int steps[] = {1, 2, 5, 10};
    enum { SPAN_S = 120 }; /* what a chart should show when nobody says */
    if (s->zoom > 0 && s->zoom <= (int)ARRAY_LEN(steps)) return steps[s->zoom - 1];
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (steps[i] * width >= SPAN_S) return steps[i];
    return steps[ARRAY_LEN(steps) - 1];
}
