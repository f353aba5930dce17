/* Where things go on a screen of some size: panels with charts where there is room for them, a line a GPU where there is
 * not. A function from sizes to places; draws nothing. */
#pragma once

#include <stdbool.h>

enum top_form { FORM_AUTO, FORM_LINES, FORM_PANELS };

struct top_shape {
    int width, height;
    int gpus, instances; /* instances: the most that one GPU has */
    int lines;           /* GPUs and instances together */
    int processes, events;
    enum top_form wish;
};

struct top_layout {
    enum top_form form; /* FORM_LINES or FORM_PANELS */
    int header_h;       /* lines of the header, from the top */
    int gpu_y, gpu_h;   /* the GPUs; in lines the first of them is the table's head */
    int columns, rows;  /* of panels that are shown */
    int panel_w, panel_h;
    int band_h; /* lines of one gauge in a panel */
    int event_y, event_h;
    int process_y, process_h; /* head included; 0: no room */
    int footer_y;
};

struct top_layout top_layout(const struct top_shape *s);
