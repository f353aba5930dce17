#include "client/top_layout.h"

#include "client/top_figures.h"

enum {
    PANEL_WIDTH_MIN = 52,
    PANEL_WIDTH_MAX = 150, /* a meter that is wider says no more */
    BAND_MAX = 6,
    BAND_WORTH = 4, /* beyond this a taller chart is no reason for another arrangement */
    PROCESS_MIN = 3,
    PROCESS_FEW = 6, /* enough to see that there are more */
    EVENTS_MAX = 5,
};

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* Lines of a panel besides its gauges: two edges, a line of words, its MIG instances. */
static int panel_rest(const struct top_shape *s) { return 3 + s->instances; }

static int band_for(const struct top_shape *s, int rows, int height) {
    return least((height / rows - panel_rest(s)) / GAUGES, BAND_MAX);
}

/* The arrangement with the tallest charts and the fewest holes; false when no panel fits. */
static bool arrange(const struct top_shape *s, int height, struct top_layout *l) {
    int best = 0;
    for (int columns = 1; columns <= s->gpus && s->width / columns >= PANEL_WIDTH_MIN; columns++) {
        int rows = (s->gpus + columns - 1) / columns, band = band_for(s, rows, height);
        int holes = rows * columns - s->gpus, width = s->width / columns;
        if (band < 1) continue;
        int score = 1000 + least(band, BAND_WORTH) * 10 - holes * 4 - (width > PANEL_WIDTH_MAX ? 15 : 0);
        if (score <= best) continue;
        best = score;
        l->columns = columns;
        l->rows = rows;
        l->panel_w = width;
        l->band_h = band;
        l->panel_h = band * GAUGES + panel_rest(s);
    }
    return best > 0;
}

/* As many panels as fit, for those who want panels whatever the size. */
static void arrange_some(const struct top_shape *s, int height, struct top_layout *l) {
    l->columns = most(1, least(s->gpus, s->width / PANEL_WIDTH_MIN));
    l->band_h = 1;
    l->panel_h = GAUGES + panel_rest(s);
    l->rows = most(1, least(height / l->panel_h, (s->gpus + l->columns - 1) / l->columns));
    l->panel_w = s->width / l->columns;
}

struct top_layout top_layout(const struct top_shape *s) {
    struct top_layout l = {.header_h = s->height >= 18 ? 2 : 1, .footer_y = s->height - 1};
    int room = most(0, l.footer_y - l.header_h);
    int wanted = most(PROCESS_MIN + 1, least(s->processes + 2, room / 3));
    if (room < 10) wanted = 0;
    int events =
        s->height >= 30 ? least(s->events, s->height >= 50 ? EVENTS_MAX : 3) : least(s->events, s->height >= 20);
    int least_wanted = least(wanted, s->processes > 0 ? PROCESS_FEW : PROCESS_MIN),
        height = most(0, room - wanted - events);
    bool fits = s->gpus > 0 && s->wish != FORM_LINES &&
                (arrange(s, height, &l) || arrange(s, most(0, room - least_wanted - events), &l));
    l.form = fits || (s->wish == FORM_PANELS && s->gpus > 0) ? FORM_PANELS : FORM_LINES;
    if (l.form == FORM_PANELS && !fits) arrange_some(s, height, &l);
    l.gpu_y = l.header_h;
    if (l.form == FORM_PANELS)
        l.gpu_h = least(l.panel_h * l.rows, room);
    else
        l.gpu_h = least(s->lines + 1, most(least(height, room), 2));
    l.process_y = l.gpu_y + l.gpu_h;
    l.event_h = events;
    l.event_y = l.footer_y - events;
    l.process_h = most(0, l.event_y - l.process_y);
    if (l.process_h < PROCESS_MIN) l.process_h = 0;
    return l;
}
