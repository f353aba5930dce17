#include "client/output.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/command.h"
#include "client/text.h"

enum { WIDTH_UNKNOWN = 80, WIDTH_MIN = 40 };

struct screen screen_look(void) {
    struct screen s = {.width = WIDTH_UNKNOWN, .height = INT_MAX};
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM"), *columns = getenv("COLUMNS");
    struct winsize size;
    s.is_terminal = isatty(STDOUT_FILENO) == 1;
    s.has_utf8 = strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0;
    s.has_colour = s.is_terminal && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
    if (s.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) {
        s.width = size.ws_col;
        if (size.ws_row) s.height = size.ws_row;
    } else if (columns && atoi(columns) > 0) {
        s.width = atoi(columns);
    }
    if (s.width < WIDTH_MIN) s.width = WIDTH_MIN;
    return s;
}

int output_write(struct buf *b) {
    size_t done = 0;
    while (done < b->len) {
        ssize_t n = write(STDOUT_FILENO, b->s + done, b->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -errno;
        done += (size_t)n;
    }
    buf_clear(b);
    return 0;
}

int output_exit(struct buf *b) {
    int r = output_write(b);
    if (r == 0) return EXIT_DONE;
    if (r != -EPIPE) {
        char line[160];
        snprintf(line, sizeof line, "gpumgr: cannot write the output: %s", strerror(-r));
        output_note(line);
    }
    return EXIT_FAILED;
}

void output_note(const char *line) {
    AUTO(buf_done) struct buf b = {0};
    text_put(&b, line, strlen(line));
    buf_putc(&b, '\n');
    ssize_t ignored = write(STDERR_FILENO, b.s, b.len);
    (void)ignored;
}
