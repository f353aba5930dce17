#include "client/frames.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/command.h"
#include "client/output.h"

/* No eye needs more frames than this; the bell may ring a hundred times a second. */
#define FRAME_NS (NS_PER_S / 2)

static volatile sig_atomic_t is_over;

static void on_end(int signal_number) { is_over = 1; }
static void on_resize(int signal_number) {} /* only to cut a wait short */

static void catch_signals(void) {
    struct sigaction end = {.sa_handler = on_end}, resize = {.sa_handler = on_resize};
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGWINCH, &resize, NULL);
}

/* Each line clears what it does not cover and the last clears the rest, so that nothing flickers. */
static void put_in_place(const struct buf *frame, int height, struct buf *out) {
    buf_puts(out, "\033[H");
    int lines = 0;
    for (const char *line = frame->s; line && *line && lines < height - 1; lines++) {
        size_t n = strcspn(line, "\n");
        buf_add(out, line, n);
        buf_puts(out, "\033[K\n");
        line += n + (line[n] == '\n');
    }
    buf_puts(out, "\033[J");
}

static void put_frame(const struct view *v, const struct frames *f, struct buf *out) {
    struct screen screen = screen_look();
    AUTO(buf_done) struct buf frame = {0};
    if (!f->in_place || !screen.is_terminal) {
        f->print(v, f->ctx, out);
        return;
    }
    f->print(v, f->ctx, &frame);
    put_in_place(&frame, screen.height, out);
}

static void sleep_until(int64_t at_ns) {
    int64_t left = at_ns - clock_boot_ns();
    struct timespec t = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    if (left > 0) nanosleep(&t, NULL); /* a signal may cut it short: that is its purpose */
}

static void wait_for_news(struct source *s, double every_s, const struct rings_bells *bells, int64_t shown_ns) {
    int64_t every_ns = (int64_t)(every_s * 1e9);
    if (every_ns > 0 || s->is_direct) {
        sleep_until(shown_ns + (every_ns > 0 ? every_ns : NS_PER_S));
        return;
    }
    sleep_until(shown_ns + FRAME_NS);
    if (!is_over) rings_wait(&s->rings, bells, NS_PER_S);
}

/* A driver that is being reloaded comes back: whoever watches is told, and goes on watching. */
static void view_nothing(struct view *v, const struct error *why) {
    view_clear(v);
    v->source = VIEW_DRIVER;
    v->boot_ns = clock_boot_ns();
    v->real_ns = clock_real_ns();
    v->driver = (struct ring_driver){.state = DRIVER_ABSENT, .since_real_ns = v->real_ns};
    snprintf(v->driver.text, sizeof v->driver.text, "%.*s", (int)sizeof v->driver.text - 1, why->text);
}

int frames_show(struct source *s, const struct frames *f) {
    AUTO(view_done) struct view view = {0};
    AUTO(buf_done) struct buf out = {0};
    catch_signals();
    bool in_place = f->in_place && screen_look().is_terminal;
    if (in_place) buf_puts(&out, "\033[2J");
    while (!is_over) {
        struct error e;
        int64_t now_ns = clock_boot_ns();
        struct rings_bells bells = rings_listen(&s->rings);
        if (source_view(s, &view, &e) < 0) view_nothing(&view, &e);
        put_frame(&view, f, &out);
        int code = output_exit(&out);
        if (code != EXIT_DONE) return code;
        wait_for_news(s, f->every_s, &bells, now_ns);
    }
    if (in_place) buf_puts(&out, "\n"); /* the terminal has echoed ^C */
    return output_exit(&out);
}

int frames_show_once(struct source *s, const struct frames *f, struct error *e) {
    AUTO(view_done) struct view view = {0};
    AUTO(buf_done) struct buf out = {0};
    int r = source_view(s, &view, e);
    if (r < 0) return r;
    f->print(&view, f->ctx, &out);
    return output_exit(&out);
}
