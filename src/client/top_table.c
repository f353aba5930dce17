/* The table of processes. Columns give way to the command where the screen is narrow. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "client/text.h"
#include "client/top_draw.h"

enum column {
    COL_PID,
    COL_USER,
    COL_GPU,
    COL_KIND,
    COL_MEMORY,
    COL_SM,
    COL_CPU,
    COL_RAM,
    COL_TIME,
    COL_CONTAINER,
    COL_COMMAND,
    COLUMNS
};

static const struct {
    const char *title;
    int width;
    bool to_the_right;
    int least;          /* width of the screen from which it is there */
    enum top_sort sort; /* SORTS: none */
} columns[COLUMNS] = {
    [COL_PID] = {"PID",       7,  true,  0,   SORT_PID        },
    [COL_USER] = {"USER",      9,  false, 0,   SORT_USER       },
    [COL_GPU] = {"GPU",       4,  true,  0,   SORT_GPU        },
    [COL_KIND] = {"TYPE",      4,  true,  76,  SORTS           },
    [COL_MEMORY] = {"GPU MEM",   8,  true,  0,   SORT_MEMORY     },
    [COL_SM] = {"SM",        5,  true,  0,   SORT_SM         },
    [COL_CPU] = {"CPU",       5,  true,  60,  SORT_CPU        },
    [COL_RAM] = {"RAM",       8,  true,  86,  SORT_HOST_MEMORY},
    [COL_TIME] = {"TIME",      9,  true,  70,  SORT_TIME       },
    [COL_CONTAINER] = {"CONTAINER", 12, false, 100, SORTS           },
    [COL_COMMAND] = {"COMMAND",   0,  false, 0,   SORT_COMMAND    },
};

struct places {
    int x[COLUMNS], width[COLUMNS]; /* width 0: not there */
};

static bool any_container(const struct top_processes *p) {
    for (int i = 0; i < p->count; i++)
        if (*p->of[i].container) return true;
    return false;
}

/* A server may not tell what only /proc knows; here it will be known in the next frame. */
static bool any_known(const struct top_processes *p, int column) {
    for (int i = 0; i < p->count; i++)
        if (!isnan(column == COL_CPU ? p->of[i].cpu : column == COL_RAM ? p->of[i].host_bytes : p->of[i].running_s))
            return true;
    return false;
}

static bool is_there(int column, int width, const struct top_processes *p, bool is_remote) {
    if (width < columns[column].least) return false;
    if (column == COL_CONTAINER) return any_container(p);
    return !is_remote || (column != COL_CPU && column != COL_RAM && column != COL_TIME) || any_known(p, column);
}

static struct places place(int width, const struct top_processes *p, bool is_remote) {
    struct places at = {0};
    int x = 1, user = 4, container = columns[COL_CONTAINER].width;
    for (int i = 0; i < p->count; i++) {
        if (text_width(p->of[i].user) > user) user = text_width(p->of[i].user);
        if (text_width(p->of[i].container) > container) container = text_width(p->of[i].container);
    }
    for (int i = 0; i < COLUMNS; i++) {
        if (!is_there(i, width, p, is_remote)) continue;
        at.x[i] = x;
        at.width[i] = i == COL_COMMAND                ? width - x
                      : i == COL_USER && width >= 100 ? (user > 20 ? 20 : user)
                      : i == COL_USER                 ? (user > columns[i].width ? columns[i].width : user)
                      : i == COL_CONTAINER            ? (container > 24 ? 24 : container)
                                                      : columns[i].width;
        x += at.width[i] + 1;
    }
    if (at.width[COL_COMMAND] < 0) at.width[COL_COMMAND] = 0;
    return at;
}

static void percent(double ratio, char *ret, size_t room) {
    if (isnan(ratio))
        snprintf(ret, room, "-");
    else
        snprintf(ret, room, "%.0f%%", ratio * 100);
}

static void bytes(double n, char *ret, size_t room) {
    if (isnan(n))
        snprintf(ret, room, "-");
    else if (n >= 1024.0 * 1024 * 1024)
        snprintf(ret, room, "%.1fG", n / (1024.0 * 1024 * 1024));
    else
        snprintf(ret, room, "%.0fM", n / (1024.0 * 1024));
}

static void cell_text(const struct top_process *p, enum column col, char *ret, size_t room) {
    switch (col) {
    case COL_PID: snprintf(ret, room, "%u", p->pid); break;
    case COL_USER: snprintf(ret, room, "%s", *p->user ? p->user : "-"); break;
    case COL_GPU:
        if (p->instance >= 0)
            snprintf(ret, room, "%d:%d", p->gpu, p->instance);
        else
            snprintf(ret, room, "%d", p->gpu);
        break;
    case COL_KIND: snprintf(ret, room, "%s", top_kind_word(p->kinds)); break;
    case COL_MEMORY: bytes(p->memory_bytes, ret, room); break;
    case COL_SM: percent(p->sm, ret, room); break;
    case COL_CPU: percent(p->cpu, ret, room); break;
    case COL_RAM: bytes(p->host_bytes, ret, room); break;
    case COL_TIME: top_time_text(p->running_s, ret, room); break;
    case COL_CONTAINER: snprintf(ret, room, "%s", *p->container ? p->container : "-"); break;
    case COL_COMMAND: snprintf(ret, room, "%s", top_command_short(p)); break;
    case COLUMNS: break;
    }
}

static void draw_row(struct canvas *c, const struct places *at, const struct top_state *s, const struct top_process *p,
                     int y) {
    for (int i = 0; i < COLUMNS; i++) {
        char text[TOP_COMMAND_MAX];
        if (!at->width[i]) continue;
        cell_text(p, (enum column)i, text, sizeof text);
        bool is_empty = strcmp(text, "-") == 0, is_own = i == COL_USER && p->is_here && p->uid == s->uid;
        uint32_t style = is_empty || !p->is_here ? STYLE_DIM : is_own ? STYLE_BOLD : STYLE_PLAIN;
        if (i == COL_SM && p->sm >= 0.005) style = STYLE_UTIL;
        if (columns[i].to_the_right)
            canvas_right(c, at->x[i], y, at->width[i], text, style);
        else
            canvas_text(c, at->x[i], y, at->width[i], text, style);
    }
}

static void draw_head(struct canvas *c, const struct places *at, const struct top_state *s, int y) {
    canvas_fill(c, 0, y, c->width, ' ', STYLE_HEAD);
    for (int i = 0; i < COLUMNS; i++) {
        if (!at->width[i]) continue;
        bool is_sorted = columns[i].sort == s->sort;
        char title[32];
        const char *mark = !is_sorted ? "" : s->reverse ? (c->has_utf8 ? "▲" : "^") : c->has_utf8 ? "▼" : "v";
        snprintf(title, sizeof title, "%s%s", columns[i].title, mark);
        uint32_t style = is_sorted ? STYLE_HEAD | STYLE_SELECTED : STYLE_HEAD;
        if (columns[i].to_the_right)
            canvas_right(c, at->x[i] - 1, y, at->width[i] + 1, title, style);
        else
            canvas_text(c, at->x[i], y, at->width[i], title, style);
    }
}

static void draw_title(struct canvas *c, const struct top_data *d, const struct top_state *s, int y) {
    bool has_focus = s->has_selection && s->focus == FOCUS_PROCESSES;
    char text[200];
    canvas_fill(c, 0, y, c->width, c->has_utf8 ? 0x2500 : '-', STYLE_FRAME);
    if (*s->filter)
        snprintf(text, sizeof text, " %d of %d processes: %s ", s->shown.count, d->processes.count, s->filter);
    else
        snprintf(text, sizeof text, " %d process%s ", s->shown.count, s->shown.count == 1 ? "" : "es");
    canvas_text(c, 2, y, c->width - 4, text, has_focus ? STYLE_KEY : STYLE_TITLE);
}

void top_draw_processes(struct canvas *c, const struct top_data *d, struct top_state *s, int y, int height) {
    struct places at = place(c->width, &s->shown, d->is_remote);
    int room = height - 2;
    draw_title(c, d, s, y);
    draw_head(c, &at, s, y + 1);
    s->process_rows = room;
    bool has_focus = s->has_selection && s->focus == FOCUS_PROCESSES && s->page == PAGE_ALL;
    s->process_scroll = top_scroll(s->process_scroll, has_focus ? s->process : s->process_scroll, s->shown.count, room);
    for (int i = 0; i < room && s->process_scroll + i < s->shown.count; i++) {
        int row = y + 2 + i, n = s->process_scroll + i;
        draw_row(c, &at, s, &s->shown.of[n], row);
        if (!has_focus || n != s->process) continue;
        canvas_put(c, 0, row, c->has_utf8 ? 0x25b6 : '>', STYLE_KEY);
        canvas_mark(c, 0, row, c->width, STYLE_SELECTED);
    }
    if (!s->shown.count && room > 0)
        canvas_text(c, 2, y + 2, c->width - 4,
                    *s->filter ? "No process meets the filter (Esc clears it)." : "No process uses a GPU.", STYLE_DIM);
    if (s->shown.count <= room) return;
    char text[48];
    snprintf(text, sizeof text, " %d to %d of %d ", s->process_scroll + 1, s->process_scroll + room, s->shown.count);
    canvas_right(c, 0, y, c->width - 2, text, STYLE_TITLE);
}
