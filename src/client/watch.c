#include "client/watch.h"

#include <signal.h>
#include <time.h>

#include "client/command.h"
#include "client/output.h"

static volatile sig_atomic_t is_over;
static void on_end(int signal_number) { is_over = 1; }

static void nap(double s) {
    struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    if (!is_over) nanosleep(&t, NULL); /* a signal may cut it short: that is its purpose */
}

int watch_show(double every_s, bool is_json, int (*show)(void *ctx, struct buf *out, struct error *e), void *ctx) {
    struct sigaction end = {.sa_handler = on_end};
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    bool in_place = !is_json && screen_look().is_terminal;
    AUTO(buf_done) struct buf out = {0};
    while (!is_over) {
        struct error e;
        if (in_place) buf_puts(&out, "\033[H\033[J");
        if (show(ctx, &out, &e) < 0) buf_printf(&out, "%s\n", e.text);
        int code = output_exit(&out);
        if (code != EXIT_DONE) return code;
        nap(every_s > 0 ? every_s : 1);
    }
    return EXIT_DONE;
}
