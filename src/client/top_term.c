#define NCURSES_WIDECHAR 1
#include "client/top_term.h"

#include <errno.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "client/top_keys.h"

struct look {
    short fg, bg; /* -1: the terminal's own */
    attr_t attributes;
};

/* For 256 colours, for 8, and for none; what matters is told in words too. */
static const struct look many[STYLE_COUNT] = {
    [STYLE_PLAIN] = {-1,  -1,  A_NORMAL},
      [STYLE_DIM] = {245, -1,  A_NORMAL},
      [STYLE_BOLD] = {-1,  -1,  A_BOLD  },
    [STYLE_TITLE] = {-1,  -1,  A_BOLD  },
      [STYLE_FRAME] = {240, -1,  A_NORMAL},
      [STYLE_HEAD] = {250, 237, A_NORMAL},
    [STYLE_KEY] = {117, -1,  A_BOLD  },
      [STYLE_TRACK] = {240, 236, A_NORMAL},
      [STYLE_GOOD] = {114, -1,  A_NORMAL},
    [STYLE_WARN] = {221, -1,  A_NORMAL},
      [STYLE_BAD] = {203, -1,  A_BOLD  },
      [STYLE_ALARM] = {231, 160, A_BOLD  },
    [STYLE_UTIL] = {80,  -1,  A_NORMAL},
      [STYLE_MEMORY] = {111, -1,  A_NORMAL},
      [STYLE_TEMP] = {114, -1,  A_NORMAL},
    [STYLE_POWER] = {176, -1,  A_NORMAL},
};
static const struct look eight[STYLE_COUNT] = {
    [STYLE_PLAIN] = {-1,            -1,        A_NORMAL            },
    [STYLE_DIM] = {-1,            -1,        A_DIM               },
    [STYLE_BOLD] = {-1,            -1,        A_BOLD              },
    [STYLE_TITLE] = {-1,            -1,        A_BOLD              },
    [STYLE_FRAME] = {-1,            -1,        A_DIM               },
    [STYLE_HEAD] = {-1,            -1,        A_BOLD | A_UNDERLINE},
    [STYLE_KEY] = {COLOR_CYAN,    -1,        A_BOLD              },
    [STYLE_TRACK] = {-1,            -1,        A_DIM               },
    [STYLE_GOOD] = {COLOR_GREEN,   -1,        A_NORMAL            },
    [STYLE_WARN] = {COLOR_YELLOW,  -1,        A_NORMAL            },
    [STYLE_BAD] = {COLOR_RED,     -1,        A_BOLD              },
    [STYLE_ALARM] = {COLOR_WHITE,   COLOR_RED, A_BOLD              },
    [STYLE_UTIL] = {COLOR_CYAN,    -1,        A_NORMAL            },
    [STYLE_MEMORY] = {COLOR_BLUE,    -1,        A_NORMAL            },
    [STYLE_TEMP] = {COLOR_GREEN,   -1,        A_NORMAL            },
    [STYLE_POWER] = {COLOR_MAGENTA, -1,        A_NORMAL            },
};
static const struct look none[STYLE_COUNT] = {
    [STYLE_DIM] = {-1, -1, A_DIM             },
      [STYLE_BOLD] = {-1, -1, A_BOLD            },
    [STYLE_TITLE] = {-1, -1, A_BOLD            },
      [STYLE_FRAME] = {-1, -1, A_DIM             },
    [STYLE_HEAD] = {-1, -1, A_REVERSE         },
      [STYLE_KEY] = {-1, -1, A_BOLD            },
    [STYLE_TRACK] = {-1, -1, A_DIM             },
      [STYLE_WARN] = {-1, -1, A_BOLD            },
    [STYLE_BAD] = {-1, -1, A_BOLD            },
      [STYLE_ALARM] = {-1, -1, A_REVERSE | A_BOLD},
};

static struct {
    SCREEN *screen;
    const struct look *looks;
    bool has_colour, has_track;
    struct canvas shown;
    struct termios before;
    char leave[128]; /* what the terminal must be told when there is no time for curses */
} term;

/* ---- colours ---- */

static void begin_colours(void) {
    const char *no_colour = getenv("NO_COLOR");
    term.looks = none;
    if ((no_colour && *no_colour) || !has_colors() || start_color() == ERR || use_default_colors() == ERR) return;
    if (COLOR_PAIRS < 2 * STYLE_COUNT + 1) return;
    term.has_colour = true;
    term.has_track = COLORS >= 256;
    term.looks = COLORS >= 256 ? many : eight;
    for (int i = 0; i < STYLE_COUNT; i++) {
        init_pair((short)(i + 1), term.looks[i].fg, term.looks[i].bg);
        init_pair((short)(i + 1 + STYLE_COUNT), term.looks[i].fg, term.looks[STYLE_TRACK].bg);
    }
}

/* ---- begin and end ---- */

/* A crash or a file cut short under us: no curses here, only what may be called in a signal's handler. */
static void on_crash(int number) {
    ssize_t ignored = write(STDOUT_FILENO, term.leave, strlen(term.leave));
    (void)ignored;
    tcsetattr(STDIN_FILENO, TCSANOW, &term.before);
    signal(number, SIG_DFL);
    raise(number);
}

static void remember_the_way_back(void) {
    static const char *const names[] = {"rmkx", "sgr0", "cnorm", "rmcup"};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    term.leave[0] = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *text = tigetstr(names[i]);
        size_t n = strlen(term.leave);
        if (text && text != (char *)-1 && n + strlen(text) < sizeof term.leave)
            snprintf(term.leave + n, sizeof term.leave - n, "%s", text);
    }
    struct sigaction act = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND};
    for (size_t i = 0; i < ARRAY_LEN(crashes); i++) sigaction(crashes[i], &act, NULL);
}

int top_term_open(struct error *e) {
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
        return fail(e, -ENOTTY, "needs a terminal; `gpumgr top --once` prints one frame anywhere");
    tcgetattr(STDIN_FILENO, &term.before);
    term.screen = newterm(NULL, stdout, stdin);
    if (!term.screen) {
        const char *name = getenv("TERM");
        return fail(e, -ENOTTY, "cannot use this terminal (TERM is \"%.40s\"); `gpumgr top --once` prints one frame",
                    name ? name : "");
    }
    set_term(term.screen);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    begin_colours();
    remember_the_way_back();
    return 0;
}

void top_term_close(void) {
    if (!term.screen) return;
    endwin();
    delscreen(term.screen);
    term.screen = NULL;
    canvas_done(&term.shown);
}

void top_term_size(int *width, int *height) {
    struct winsize size;
    *width = COLS;
    *height = LINES;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row) return;
    *width = size.ws_col;
    *height = size.ws_row;
}

bool top_term_has_track(void) { return term.has_track; }

void top_term_again(void) {
    int width, height;
    top_term_size(&width, &height);
    if (width != COLS || height != LINES) resizeterm(height, width);
    canvas_done(&term.shown);
    clearok(stdscr, TRUE);
    erase();
}

void top_term_suspend(void) {
    struct sigaction stop = {.sa_handler = SIG_DFL}, before;
    sigset_t set, mask;
    endwin();
    sigaction(SIGTSTP, &stop, &before);
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, &mask); /* here it stops, and here it goes on */
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGTSTP, &before, NULL);
    refresh();
    top_term_again();
}

/* ---- showing ---- */

static void put_cell(int x, int y, const struct top_cell *cell) {
    uint32_t style = cell->style & 0x3f;
    if (style >= STYLE_COUNT) style = STYLE_PLAIN;
    attr_t attributes = term.looks[style].attributes;
    if (cell->style & STYLE_SELECTED) attributes |= A_REVERSE;
    short pair = 0;
    if (term.has_colour) pair = (short)(style + 1 + (cell->style & STYLE_ON_TRACK && term.has_track ? STYLE_COUNT : 0));
    wchar_t text[2] = {(wchar_t)cell->glyph, 0};
    cchar_t out;
    setcchar(&out, text, attributes, pair, NULL);
    mvadd_wch(y, x, &out);
}

void top_term_show(const struct canvas *c) {
    bool is_new = !term.shown.cells || term.shown.width != c->width || term.shown.height != c->height;
    if (is_new) {
        canvas_done(&term.shown);
        canvas_init(&term.shown, c->width, c->height, c->has_utf8);
    }
    for (int i = 0; i < c->width * c->height; i++) {
        if (!is_new && memcmp(&c->cells[i], &term.shown.cells[i], sizeof c->cells[i]) == 0) continue;
        put_cell(i % c->width, i / c->width, &c->cells[i]);
        term.shown.cells[i] = c->cells[i];
    }
    refresh();
}

/* ---- keys ---- */

int top_term_key(void) {
    static const struct {
        int from, to;
    } keys[] = {
        {KEY_UP,        TOP_KEY_UP       },
        {KEY_DOWN,      TOP_KEY_DOWN     },
        {KEY_LEFT,      TOP_KEY_LEFT     },
        {KEY_RIGHT,     TOP_KEY_RIGHT    },
        {KEY_PPAGE,     TOP_KEY_PAGE_UP  },
        {KEY_NPAGE,     TOP_KEY_PAGE_DOWN},
        {KEY_HOME,      TOP_KEY_HOME     },
        {KEY_END,       TOP_KEY_END      },
        {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
        {KEY_ENTER,     '\n'             },
        {KEY_F(1),      TOP_KEY_HELP     },
        {KEY_F(4),      TOP_KEY_FILTER   },
        {KEY_F(6),      TOP_KEY_SORT     },
        {KEY_F(9),      TOP_KEY_SIGNAL   },
        {KEY_F(10),     TOP_KEY_QUIT     },
        {KEY_RESIZE,    TOP_KEY_REDRAW   },
    };
    int key = getch();
    if (key == ERR) return -1;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i].from == key) return keys[i].to;
    return key < 0x100 ? key : 0;
}
