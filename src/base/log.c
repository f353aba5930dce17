#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

static struct {
    char who[24];
    _Atomic int least;
    _Atomic bool is_clogged;
    bool terminal, colour;
} self = {.who = "gpumgr", .least = LOG_INFO};

static const struct {
    const char *word, *colour;
} levels[] = {
    [LOG_DEBUG] = {"debug", "\033[2m" },
    [LOG_INFO] = {"info",  ""        },
    [LOG_WARN] = {"warn",  "\033[33m"},
    [LOG_ERROR] = {"error", "\033[31m"}
};

void log_open(const char *who, enum log_level least) {
    snprintf(self.who, sizeof self.who, "%s", who);
    self.least = (int)least;
    self.terminal = isatty(STDERR_FILENO) == 1;
    self.colour = self.terminal;
}

void log_set_level(enum log_level least) { self.least = (int)least; }

/* Escapes as JSON wants it; stops before the room is out rather than cutting an escape or a character in two. */
static size_t escape(char *to, size_t room, const char *from) {
    size_t n = 0;
    while (*from && n + 7 < room) {
        unsigned char c = (unsigned char)*from;
        size_t len = json_utf8_len(from);
        if (!len) {
            n += (size_t)snprintf(to + n, room - n, "\\ufffd");
        } else if (c < 0x20) {
            n += (size_t)snprintf(to + n, room - n, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') to[n++] = '\\';
            memcpy(to + n, from, len);
            n += len;
        }
        from += len ? len : 1;
    }
    to[n] = 0;
    return n;
}

/* Foreign text (a kernel line, a driver's sentence) must not steer the terminal. */
static void flatten(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f) *c = '?';
}

/* Whoever does not read his end of the pipe, or stopped his terminal, must not stop us: a line waits for a moment and
 * is then left out, and the next ones do not wait. A pipe that has room takes a line whole. */
static bool has_room(void) {
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    int wait_ms = self.is_clogged ? 0 : 100;
    self.is_clogged = poll(&fd, 1, wait_ms) == 0;
    return !self.is_clogged;
}

void log_line(enum log_level level, const char *event, int gpu, const char *fmt, ...) {
    if ((int)level < self.least) return;
    char text[512], line[1800];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);

    int64_t now_ns = clock_real_ns();
    time_t now_s = (time_t)(now_ns / NS_PER_S);
    int ms = (int)(now_ns / NS_PER_MS % 1000);
    struct tm tm;
    int n;
    if (self.terminal) {
        localtime_r(&now_s, &tm);
        flatten(text);
        char where[24] = "";
        if (gpu >= 0) snprintf(where, sizeof where, "gpu %d: ", gpu);
        n = snprintf(line, sizeof line, "%02d:%02d:%02d %s%-5s%s %-10s %s%s\n", tm.tm_hour, tm.tm_min, tm.tm_sec,
                     self.colour ? levels[level].colour : "", levels[level].word,
                     self.colour && *levels[level].colour ? "\033[0m" : "", self.who, where, text);
    } else {
        gmtime_r(&now_s, &tm);
        char safe[1100], where[24] = "";
        escape(safe, sizeof safe, text);
        if (gpu >= 0) snprintf(where, sizeof where, ",\"gpu\":%d", gpu);
        n = snprintf(line, sizeof line,
                     "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\",\"level\":\"%s\",\"process\":\"%s\","
                     "\"event\":\"%s\"%s,\"text\":\"%s\"}\n",
                     tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms,
                     levels[level].word, self.who, event, where, safe);
    }
    if (n <= 0) return;
    if ((size_t)n >= sizeof line) n = (int)sizeof line - 1;
    if (!has_room()) return;
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
    (void)ignored;
}
