/* `gpumgr top`: the GPUs and what runs on them, live. Reads the ring of a running gpumgr, which costs the driver nothing;
 * without one it asks the driver itself; with --server it looks at another machine. Only looks, unless it is told
 * --signals. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/command.h"
#include "client/output.h"
#include "client/settings_load.h"
#include "client/source.h"
#include "client/top_draw.h"
#include "client/top_feed.h"
#include "client/top_keys.h"
#include "client/top_remote.h"
#include "client/top_signal.h"
#include "client/top_term.h"

#define ONCE_NS (10 * NS_PER_S)

struct wish {
    bool once, ascii, signals, no_daemon;
    double every_s;
    const char *sort, *filter, *server, *token_file, *ca_file;
};

/* ---- signals of the system ---- */

static volatile sig_atomic_t is_over, is_resized, is_stopped;

static void on_signal(int number) {
    if (number == SIGWINCH)
        is_resized = 1;
    else if (number == SIGTSTP)
        is_stopped = 1;
    else
        is_over = 1;
}

/* They come only while we wait: `waiting` is the mask for that. */
static void catch_signals(sigset_t *waiting) {
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
        sigaction(caught[i], &act, NULL);
        sigaddset(&set, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &set, waiting);
    for (size_t i = 0; i < ARRAY_LEN(caught); i++) sigdelset(waiting, caught[i]);
}

/* ---- the loop ---- */

struct top {
    struct top_feed *feed;
    struct top_data data;
    struct top_state state;
    struct canvas canvas;
    int64_t every_ns, next_ns;
};

static void top_done(struct top *t) {
    top_feed_close(t->feed);
    top_data_done(&t->data);
    top_state_done(&t->state);
    canvas_done(&t->canvas);
}

static void draw(struct top *t) {
    t->state.now_ns = clock_boot_ns();
    t->state.now_real_ns = clock_real_ns();
    top_settle(&t->state, &t->data);
    top_draw(&t->canvas, &t->data, &t->state);
}

static void send_signal(struct top *t) {
    struct error e;
    const struct top_process *p = &t->state.target;
    if (top_signal_send(p, top_signals[t->state.signal].number, &e) < 0)
        top_say(&t->state, "%s", e.text);
    else
        top_say(&t->state, "%s was sent to process %u.", top_signals[t->state.signal].name, p->pid);
}

static void take_keys(struct top *t) {
    for (int key; !is_over && (key = top_term_key()) >= 0;) {
        top_settle(&t->state, &t->data); /* the key means what was on the screen */
        switch (top_key(&t->state, &t->data, key)) {
        case ACT_QUIT: is_over = 1; break;
        case ACT_SIGNAL: send_signal(t); break;
        case ACT_REDRAW: is_resized = 1; break;
        case ACT_NONE: break;
        }
    }
}

static void resize(struct top *t) {
    int width, height;
    top_term_again();
    top_term_size(&width, &height);
    canvas_resize(&t->canvas, width, height);
}

static void tick(struct top *t) {
    int64_t now = clock_boot_ns();
    if (now < t->next_ns) return;
    t->feed->kind->ask(t->feed);
    if (t->feed->fd < 0) t->feed->kind->take(t->feed, &t->data, t->state.is_paused);
    t->next_ns += t->every_ns;
    if (t->next_ns < now) t->next_ns = now + t->every_ns; /* after a long stop no frames are made up */
}

static void wait_for_news(struct top *t, const sigset_t *waiting) {
    struct pollfd fds[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = t->feed->fd,  .events = POLLIN},
    };
    int64_t left = t->next_ns - clock_boot_ns();
    if (left < 0) left = 0;
    struct timespec timeout = {.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    if (ppoll(fds, 2, &timeout, waiting) <= 0) return;
    if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) is_over = 1; /* the terminal is gone */
    if (fds[1].revents) t->feed->kind->take(t->feed, &t->data, t->state.is_paused);
}

static void live(struct top *t) {
    sigset_t waiting;
    catch_signals(&waiting);
    resize(t);
    t->canvas.has_track = top_term_has_track();
    t->next_ns = clock_boot_ns();
    while (!is_over) {
        tick(t);
        draw(t);
        top_term_show(&t->canvas);
        wait_for_news(t, &waiting);
        take_keys(t);
        if (is_stopped) {
            is_stopped = 0;
            top_term_suspend();
            is_resized = 1;
        }
        if (is_resized) {
            is_resized = 0;
            resize(t);
        }
    }
}

/* ---- one frame ---- */

static int height_for(const struct top *t) {
    const char *lines = getenv("LINES");
    if (lines && atoi(lines) > 0) return atoi(lines);
    return 2 + (int)t->data.view.count + 1 + 2 + t->data.processes.count + 5 + 4;
}

static int print_once(const struct command *self, struct top *t) {
    AUTO(buf_done) struct buf out = {0};
    struct error e;
    if (top_feed_once(t->feed, &t->data, ONCE_NS, &e) < 0) return command_fail(self, &e, EXIT_FAILED);
    canvas_resize(&t->canvas, screen_look().width, height_for(t));
    t->state.is_once = true;
    draw(t);
    canvas_print(&t->canvas, &out);
    while (out.len > 1 && out.s[out.len - 2] == '\n') out.s[--out.len] = 0;
    return output_exit(&out);
}

/* ---- the command ---- */

static int choose_sort(const char *word, struct top_state *s, struct error *e) {
    AUTO(buf_done) struct buf all = {0};
    if (!word) return 0;
    for (int i = 0; i < SORTS; i++) {
        char key[24];
        snprintf(key, sizeof key, "%s", top_sort_key((enum top_sort)i));
        buf_printf(&all, "%s%s", i ? ", " : "", key);
        if (strcmp(word, key) != 0) continue;
        s->sort = (enum top_sort)i;
        return 0;
    }
    return fail(e, -EINVAL, "--sort: \"%.40s\" is none of %s", word, all.s);
}

/* Terminals that have none of the characters that meters and charts are made of, whatever the locale says. */
static bool terminal_is_plain(void) {
    static const char *const plain[] = {"linux", "dumb", "ansi", "vt52", "vt100", "vt102", "vt220", "vt320"};
    const char *name = getenv("TERM");
    for (size_t i = 0; name && i < ARRAY_LEN(plain); i++)
        if (strcmp(name, plain[i]) == 0) return true;
    return false;
}

static int show(const struct command *self, const struct wish *w, struct top *t) {
    struct error e;
    gethostname(t->data.host, sizeof t->data.host - 1);
    canvas_init(&t->canvas, 80, 24, screen_look().has_utf8 && !w->ascii && (w->once || !terminal_is_plain()));
    if (w->once) return print_once(self, t);
    if (top_term_open(&e) < 0) return command_fail(self, &e, EXIT_FAILED);
    live(t);
    top_term_close();
    return EXIT_DONE;
}

static int show_local(const struct command *self, const struct loaded *l, const struct wish *w, struct top *t) {
    AUTO(source_close) struct source s;
    struct error e;
    int r = source_open(&s, &l->values, w->no_daemon ? SOURCE_DRIVER : SOURCE_ANY, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    t->feed = s.is_direct ? top_feed_driver(&s) : top_feed_rings(&s);
    snprintf(t->data.source, sizeof t->data.source, "%s", s.is_direct ? "driver" : "ring");
    r = show(self, w, t);
    top_feed_close(t->feed);
    t->feed = NULL;
    return r;
}

static int show_remote(const struct command *self, const struct wish *w, struct top *t) {
    const struct top_server where = {.url = w->server, .token_file = w->token_file, .ca_file = w->ca_file};
    struct error e;
    int r = top_feed_server(&where, &t->feed, t->data.source, sizeof t->data.source, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    t->data.is_remote = true;
    return show(self, w, t);
}

static int run(const struct command *self, int argc, char **argv) {
    struct wish w = {.every_s = 1};
    AUTO(top_done) struct top t = {0};
    const struct flag own[] = {
        {.name = "interval",     .kind = FLAG_NUMBER, .into = &w.every_s,       .min = 0.1, .max = 3600},
        {.name = "once",           .kind = FLAG_YES,                              .into = &w.once                                        },
        {.name = "ascii",       .kind = FLAG_YES,.into = &w.ascii},
        {.name = "signals",      .kind = FLAG_YES,                             .into = &w.signals                                                                      },
        {.name = "no-daemon",    .kind = FLAG_YES,.into = &w.no_daemon},
        {.name = "sort",  .kind = FLAG_TEXT,                           .into = &w.sort                                                                                                           },
        {.name = "server",       .kind = FLAG_TEXT,.into = &w.server},
        {.name = "token-file",     .kind = FLAG_TEXT,                         .into = &w.token_file                                                                                                                                },
        {.name = "ca-file", .kind = FLAG_TEXT,.into = &w.ca_file},
        {.name = "filter",    .kind = FLAG_TEXT,                            .into = &w.filter                                                                                                                                                                 },
    };
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r == 0) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r == 0) r = choose_sort(w.sort, &t.state, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (*loaded.warning) output_note(loaded.warning);
    if (w.filter) snprintf(t.state.filter, sizeof t.state.filter, "%s", w.filter);
    t.state.hot_c = loaded.values.hot_c;
    t.state.has_signals = w.signals;
    t.state.uid = geteuid();
    t.every_ns = (int64_t)(w.every_s * 1e9);
    return w.server ? show_remote(self, &w, &t) : show_local(self, &loaded, &w, &t);
}

const struct command command_top = {
    .name = "top",
    .summary = "Watch the GPUs and what runs on them, live",
    .run = run,
    .help = "usage: gpumgr top [--interval SECONDS] [--sort COLUMN] [--filter WORDS] [--signals] [--once] [--ascii]\n"
            "                  [--no-daemon] [--dir DIR] [--gpu-library PATH]\n"
            "       gpumgr top --server URL [--token-file FILE] [--ca-file FILE] ...\n"
            "\n"
            "Meters and charts of every GPU: utilisation, memory, temperature against the guard's target, power\n"
            "against its limit, why a card is slow or held; and the processes on them with user, GPU memory, share\n"
            "of the SMs, CPU, running time, container and command. Panels where there is room, a line a GPU where\n"
            "there is not. Reads what a running gpumgr publishes, which costs the driver nothing; where none runs it\n"
            "asks the driver itself. Keys: ? lists them, q ends it.\n"
            "\n"
            "  --interval SECONDS  time between two frames (1)\n"
            "  --sort COLUMN       gpu, pid, user, memory, sm, cpu, ram, time or command\n"
            "  --filter WORDS      only processes that meet them: alice, gpu:0, user:alice, cmd:train, !word\n"
            "  --signals           K or F9 sends a signal to a process of your own (root: any), after a question\n"
            "  --once              print one frame and end; its size by COLUMNS and LINES\n"
            "  --ascii             plain characters, whatever the terminal can show; NO_COLOR=1 does without colours\n"
            "  --server URL        the GPUs of another machine, through its server: https://gpu7:7000\n"
            "  --token-file FILE   the token to show there, alone in a file\n"
            "  --ca-file FILE      certificates to trust instead of the system's\n"
            "  --no-daemon         ask the driver itself even where a gpumgr runs\n"
            "  --dir DIR           the instance to look at\n"
            "  --gpu-library PATH  the driver's library to open when no gpumgr runs\n"
            "\n"
            "example: gpumgr top --filter user:$USER --sort memory\n",
};
