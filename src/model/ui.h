/* Where a job's or a container's own UI is: a port it listens at, and the path that is opened first. As a text "8888", "8888/lab" or
 * "auto/": auto is a port that the node picks and tells the job in GPUMGR_UI_PORT. Pure. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define UI_PATH_MAX 256
#define UI_PORT_VARIABLE "GPUMGR_UI_PORT"
#define UI_PORT_INSIDE 8888 /* what auto is in a container, whose ports are all its own */
#define UI_LABEL "gpumgr.ui"

struct ui {
    unsigned port;          /* 0: auto */
    char path[UI_PATH_MAX]; /* begins with '/' */
};

/* One sentence without a key before it when it will not do. */
int ui_parse(const char *text, struct ui *ret, struct error *e) MUST_CHECK;
/* The one way to write it: "8888", "auto", "8888/lab". */
void ui_text(const struct ui *u, struct buf *b);
/* A path that may stand in a request as it is. */
int ui_check_path(const char *path, struct error *e) MUST_CHECK;

/* ---- where the server offers them: what the settings ui.ports and ui.url say ---- */

/* "7100-7199": which ports. */
int ui_ports(const char *text, unsigned *ret_first, unsigned *ret_last, struct error *e) MUST_CHECK;
/* What a pattern makes of a UI's name: "https://{ui}.example.org/". -EINVAL: it is no pattern. */
int ui_origin(const char *pattern, const char *name, struct buf *origin, struct error *e) MUST_CHECK;
