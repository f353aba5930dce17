#include "client/job_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "client/output.h"
#include "client/text.h"
#include "client/when.h"

/* ---- words ---- */

static void put_start(const struct job_news *n, int64_t now_ns, struct buf *b) {
    char when[WHEN_TEXT], in[32];
    if (!n->starts_ns) return;
    if (n->starts_ns <= now_ns + 2 * NS_PER_S) {
        buf_puts(b, ", starts any moment");
        return;
    }
    when_text(n->starts_ns, now_ns, when);
    number_age(n->starts_ns - now_ns, in, sizeof in);
    buf_printf(b, ", starts about %s (in %s)", when, in);
}

void job_line_waiting(const struct job_id *id, const struct job_news *n, int64_t now_ns, struct buf *ret) {
    char name[JOB_ID_TEXT];
    if (n->is_over || n->is_running) return;
    job_id_text(id, name);
    buf_printf(ret, "job %s %s", name, strcmp(n->state, "held") == 0 ? "is held" : "waits");
    if (n->place > 0) buf_printf(ret, ", place %d", n->place);
    put_start(n, now_ns, ret); /* before the reason: on a narrow terminal the end of the line is cut */
    size_t len = strlen(n->why);
    if (len) buf_printf(ret, ": %.*s", (int)(n->why[len - 1] == '.' ? len - 1 : len), n->why);
    if (*n->sooner) buf_printf(ret, "; sooner: %s", n->sooner);
}

static void put_how(const struct job_news *n, struct buf *b) {
    if (n->signal > 0)
        buf_printf(b, " (signal %d, %s)", n->signal, strsignal(n->signal));
    else if (n->has_exit && n->code)
        buf_printf(b, " (exit code %d)", n->code);
}

void job_line_ended(const struct job_id *id, const struct job_news *n, struct buf *ret) {
    char name[JOB_ID_TEXT], took[32];
    job_id_text(id, name);
    buf_printf(ret, "job %s: %s", name, n->state);
    if (n->elements > 1) buf_printf(ret, ", %u of %u ended well", n->done, n->elements);
    put_how(n, ret);
    if (n->started_ns && n->ended_ns >= n->started_ns && n->elements <= 1) {
        number_age(n->ended_ns - n->started_ns, took, sizeof took);
        buf_printf(ret, " after %s", n->ended_ns - n->started_ns < NS_PER_S ? "less than a second" : took);
        if (*n->gpus) buf_printf(ret, " on GPU %s", n->gpus);
    }
    if (*n->text)
        buf_printf(ret, ": %s", n->text);
    else if (*n->insight)
        buf_printf(ret, ": %s", n->insight);
    else if (*n->reason && strcmp(n->state, "done") != 0 && !n->has_exit)
        buf_printf(ret, ": it %s", n->reason);
}

/* ---- the line ---- */

void job_line_init(struct job_line *l) { *l = (struct job_line){.is_terminal = isatty(STDERR_FILENO) == 1}; }

void job_line_done(struct job_line *l) {
    job_line_clear(l);
    buf_done(&l->key);
}

static void put(const char *bytes, size_t n) {
    ssize_t ignored = write(STDERR_FILENO, bytes, n);
    (void)ignored;
}

static int width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

/* A line that is longer than the terminal would not go away again: on a terminal it is cut. */
void job_line_put(struct job_line *l, const char *text, const char *key) {
    bool is_same = l->key.len && strcmp(l->key.s, key) == 0;
    if (is_same && (!l->is_terminal || !l->is_shown)) return;
    buf_clear(&l->key);
    buf_puts(&l->key, key);
    if (!l->is_terminal) {
        output_note(text);
        return;
    }
    AUTO(buf_done) struct buf b = {0};
    buf_puts(&b, "\r");
    text_cut(&b, text, width());
    buf_puts(&b, "\033[K");
    put(b.s, b.len);
    l->is_shown = true;
}

void job_line_clear(struct job_line *l) {
    if (l->is_shown) put("\r\033[K", 4);
    l->is_shown = false;
}

void job_line_note(struct job_line *l, const char *text) {
    job_line_clear(l);
    buf_clear(&l->key);
    output_note(text);
}
