#include "client/top_keys.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ESCAPE = 27, ENTER = '\n', TAB = '\t', PAGE = 10, ZOOMS = 4 };

/* clang-format off */
const char *const top_key_help[] = {
    "Up Down  j k", "move in the list that has the focus; also PgUp PgDn Home End",
    "Tab",          "from the GPUs to the processes and back",
    "g  Enter",     "on a GPU: everything that is known of it; Esc leads back",
    "i  Enter",     "on a process: its whole command line",
    "s  F6",        "sort processes by the next column; S the one before; r turns",
    "/  F4",        "filter processes: words in user, command, container or pid;",
    "",             "gpu:0  user:alice  cmd:train  pid:12  !word for what is not",
    "Esc",          "clears the filter",
    "v",            "a line a GPU, panels, or what the room allows",
    "+ -",          "longer or shorter time in the charts",
    "p  Space",     "pause",
    "K  F9",        "signal to a process of your own (root: any); needs --signals",
    "q  F10",       "quit",
    NULL,
};
/* clang-format on */

/* ---- signals ---- */

static bool is_mine(const struct top_state *s, const struct top_process *p) { return s->uid == 0 || s->uid == p->uid; }

static void ask_for_signal(struct top_state *s, const struct top_data *d) {
    if (d->is_remote) {
        top_say(s, "Signals go to processes of this machine only.");
        return;
    }
    if (!s->has_signals) {
        top_say(s, "Read-only: start `gpumgr top --signals` to send signals to your own processes.");
        return;
    }
    if (!s->has_selection || s->focus != FOCUS_PROCESSES || s->process >= s->shown.count) {
        top_say(s, "Select a process first (Tab, then the arrow keys).");
        return;
    }
    const struct top_process *p = &s->shown.of[s->process];
    if (!p->is_here)
        top_say(s, "Process %u is not to be seen from here: it has ended, or lives in another container.", p->pid);
    else if (!is_mine(s, p))
        top_say(s, "Process %u belongs to %s, not to you: only its owner or root may signal it.", p->pid, p->user);
    else {
        s->target = *p;
        s->signal = 0;
        s->overlay = OVERLAY_SIGNAL;
    }
}

static enum top_action key_in_signal(struct top_state *s, int key) {
    if (key == TAB || key == TOP_KEY_RIGHT || key == TOP_KEY_DOWN) {
        s->signal = (s->signal + 1) % top_signal_count;
    } else if (key == TOP_KEY_LEFT || key == TOP_KEY_UP) {
        s->signal = (s->signal + top_signal_count - 1) % top_signal_count;
    } else if (key == 'y' || key == 'Y') {
        s->overlay = OVERLAY_NONE;
        return ACT_SIGNAL;
    } else {
        s->overlay = OVERLAY_NONE;
        top_say(s, "Nothing was sent.");
    }
    return ACT_NONE;
}

/* ---- the filter ---- */

static void key_in_filter(struct top_state *s, int key) {
    size_t n = strlen(s->filter);
    if (key == ENTER || key == TOP_KEY_DOWN || key == TAB) {
        s->overlay = OVERLAY_NONE;
        if (key != ENTER) s->focus = FOCUS_PROCESSES;
    } else if (key == ESCAPE) {
        memcpy(s->filter, s->filter_before, sizeof s->filter);
        s->overlay = OVERLAY_NONE;
    } else if (key == TOP_KEY_BACKSPACE || key == 127 || key == 8) {
        while (n > 0 && (s->filter[n - 1] & 0xc0) == 0x80) n--;
        if (n > 0) s->filter[n - 1] = 0;
    } else if (key == 21) { /* Ctrl-U */
        s->filter[0] = 0;
    } else if (key >= ' ' && key < 0x7f && n + 1 < sizeof s->filter) {
        s->filter[n] = (char)key;
        s->filter[n + 1] = 0;
    }
}

static void open_filter(struct top_state *s) {
    memcpy(s->filter_before, s->filter, sizeof s->filter);
    s->overlay = OVERLAY_FILTER;
}

/* ---- moving ---- */

static void move(struct top_state *s, const struct top_data *d, int by) {
    int *at = s->page == PAGE_GPU ? &s->metric : s->focus == FOCUS_GPUS ? &s->gpu : &s->process;
    int count = s->page == PAGE_GPU ? s->metric_rows : s->focus == FOCUS_GPUS ? top_gpus(&d->view) : s->shown.count;
    bool is_first = !s->has_selection && s->page == PAGE_ALL && (by == 1 || by == -1);
    s->has_selection = true;
    if (!is_first) *at += by;
    if (*at >= count) *at = count - 1;
    if (*at < 0) *at = 0;
    if (s->page == PAGE_GPU || s->focus != FOCUS_PROCESSES || !s->shown.count) return;
    s->pid = s->shown.of[s->process].pid;
    s->pid_gpu = s->shown.of[s->process].gpu;
}

static bool key_moves(struct top_state *s, const struct top_data *d, int key) {
    static const struct {
        int key, by;
    } moves[] = {
        {TOP_KEY_UP,        -1      },
        {TOP_KEY_DOWN,      1       },
        {'k',               -1      },
        {'j',               1       },
        {TOP_KEY_PAGE_UP,   -PAGE   },
        {TOP_KEY_PAGE_DOWN, PAGE    },
        {TOP_KEY_HOME,      -1000000},
        {TOP_KEY_END,       1000000 },
    };
    for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
        if (moves[i].key != key) continue;
        move(s, d, moves[i].by);
        return true;
    }
    if (s->page == PAGE_GPU && (key == TOP_KEY_LEFT || key == TOP_KEY_RIGHT)) {
        int gpu = s->gpu + (key == TOP_KEY_RIGHT ? 1 : -1), count = top_gpus(&d->view);
        if (gpu >= 0 && gpu < count) s->gpu = gpu;
        return true;
    }
    return false;
}

static void change_focus(struct top_state *s) {
    s->focus = s->focus == FOCUS_GPUS ? FOCUS_PROCESSES : FOCUS_GPUS;
    s->has_selection = true;
    if (s->focus != FOCUS_PROCESSES || !s->shown.count) return;
    s->pid = s->shown.of[s->process].pid;
    s->pid_gpu = s->shown.of[s->process].gpu;
}

static void step_back(struct top_state *s) {
    if (s->page == PAGE_GPU)
        s->page = PAGE_ALL;
    else if (*s->filter)
        s->filter[0] = 0;
    else
        s->has_selection = false;
}

static void go_in(struct top_state *s, int key) {
    bool is_process = key == 'i' || (key == ENTER && s->focus == FOCUS_PROCESSES && s->has_selection);
    if (s->page == PAGE_GPU) {
        s->page = PAGE_ALL;
    } else if (!is_process) {
        s->page = PAGE_GPU;
        s->metric = s->metric_scroll = 0;
    } else if (s->shown.count) {
        s->overlay = OVERLAY_PROCESS;
    }
}

static void sort_by(struct top_state *s, int step) {
    s->sort = (enum top_sort)(((int)s->sort + step + SORTS) % SORTS);
    s->reverse = false;
    s->process_scroll = 0;
}

static void zoom(struct top_state *s, int by) {
    s->zoom += by;
    if (s->zoom < 0) s->zoom = 0;
    if (s->zoom > ZOOMS) s->zoom = ZOOMS;
}

enum top_action top_key(struct top_state *s, const struct top_data *d, int key) {
    if (key == '\r') key = ENTER;
    if (key == TOP_KEY_REDRAW || key == 12) return ACT_REDRAW;
    if (s->overlay == OVERLAY_SIGNAL) return key_in_signal(s, key);
    if (s->overlay == OVERLAY_FILTER) {
        key_in_filter(s, key);
        return ACT_NONE;
    }
    if (s->overlay != OVERLAY_NONE) { /* help and the like: any key closes it */
        s->overlay = OVERLAY_NONE;
        return ACT_NONE;
    }
    if (key_moves(s, d, key)) return ACT_NONE;
    switch (key) {
    case 'q':
    case 'Q':
    case TOP_KEY_QUIT: return ACT_QUIT;
    case TAB: change_focus(s); break;
    case 's':
    case TOP_KEY_SORT: sort_by(s, 1); break;
    case 'S': sort_by(s, -1); break;
    case 'r': s->reverse = !s->reverse; break;
    case '/':
    case TOP_KEY_FILTER: open_filter(s); break;
    case 'h':
    case '?':
    case TOP_KEY_HELP: s->overlay = OVERLAY_HELP; break;
    case 'p':
    case ' ': s->is_paused = !s->is_paused; break;
    case 'g':
    case 'i':
    case ENTER: go_in(s, key); break;
    case 'v': s->form = (enum top_form)((s->form + 1) % 3); break;
    case '+': zoom(s, 1); break;
    case '-': zoom(s, -1); break;
    case 'K':
    case TOP_KEY_SIGNAL: ask_for_signal(s, d); break;
    case ESCAPE: step_back(s); break;
    default: break;
    }
    return ACT_NONE;
}
