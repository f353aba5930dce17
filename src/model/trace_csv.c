/* A trace from CSV. Fields may be in quotes, with "" for a quote; lines end with LF or CR LF; empty lines are passed over. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/nearest.h"
#include "model/job.h"
#include "model/likes.h"
#include "model/trace.h"

#define FIELD_MAX 256
#define FIELDS_MAX 256
#define TIME_MAX_S 631152000.0 /* twenty years */

enum column { COL_USER, COL_GPUS, COL_SUBMIT, COL_DURATION, COL_DEADLINE, COL_LIMIT, COL_PRIORITY, COL_NAME, COLS };

static const struct {
    const char *name;
    bool is_time, is_needed;
    double min, max;
} columns[COLS] = {
    [COL_USER] = {"user",     false, true,  0,                 0               },
    [COL_GPUS] = {"gpus",     false, true,  1,                 JOB_GPUS_MAX    },
    [COL_SUBMIT] = {"submit",   true,  true,  0,                 TIME_MAX_S      },
    [COL_DURATION] = {"duration", true,  true,  0,                 TIME_MAX_S      },
    [COL_DEADLINE] = {"deadline", true,  false, 0,                 TIME_MAX_S      },
    [COL_LIMIT] = {"limit",    true,  false, 0,                 TIME_MAX_S      },
    [COL_PRIORITY] = {"priority", false, false, -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX},
    [COL_NAME] = {"name",     false, false, 0,                 0               },
};

struct reader {
    const char *at, *end;
    unsigned long line;
    char field[FIELD_MAX]; /* that was read last */
    size_t field_len;
    int of[FIELDS_MAX]; /* which column each field is; -1: one that is left alone */
    double unit_s[FIELDS_MAX];
    char title[FIELDS_MAX][32];
    size_t fields;
    bool has[COLS];
};

static int refuse(const struct reader *r, size_t field, const char *what, struct error *e) {
    return fail(e, -EINVAL, "line %lu, column %s: \"%.40s\" %s", r->line,
                field < r->fields ? r->title[field] : "beyond the last", r->field, what);
}

/* The next field of the line. 1: it was the last. */
static int field_next(struct reader *r, struct error *e) {
    bool is_quoted = r->at < r->end && *r->at == '"';
    r->field_len = 0;
    r->at += is_quoted;
    for (;; r->at++) {
        bool is_end = r->at >= r->end;
        if (is_quoted && is_end) return fail(e, -EINVAL, "line %lu: a quote that is never closed", r->line);
        if (is_quoted && *r->at == '"') {
            if (r->at + 1 < r->end && r->at[1] == '"') {
                r->at++;
            } else {
                is_quoted = false;
                continue;
            }
        } else if (!is_quoted && (is_end || *r->at == ',' || *r->at == '\n')) {
            break;
        } else if (!is_quoted && *r->at == '\r' && (r->at + 1 >= r->end || r->at[1] == '\n')) {
            continue;
        }
        if (*r->at == 0 || *r->at == '\n') return fail(e, -EINVAL, "line %lu: a byte that no text has", r->line);
        if (r->field_len + 1 >= FIELD_MAX)
            return fail(e, -EINVAL, "line %lu: a field of more than %d bytes", r->line, FIELD_MAX - 1);
        r->field[r->field_len++] = *r->at;
    }
    r->field[r->field_len] = 0;
    bool is_last = r->at >= r->end || *r->at == '\n';
    if (r->at < r->end) r->at++;
    return is_last;
}

/* Plain decimals: -12, 3.5. */
static bool number_of(const char *s, double *ret) {
    double v = 0, step = 1;
    bool is_less = *s == '-', has_digit = false;
    for (s += is_less; *s >= '0' && *s <= '9'; s++, has_digit = true) v = v * 10 + (*s - '0');
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, has_digit = true) v += (*s - '0') * (step /= 10);
    *ret = is_less ? -v : v;
    return has_digit && !*s;
}

/* ---- the first line ---- */

/* submit_min: the column, and what one of it is. */
static int column_of(const char *title, double *ret_s) {
    for (int c = 0; c < COLS; c++) {
        size_t n = strlen(columns[c].name);
        *ret_s = 1;
        if (strncmp(title, columns[c].name, n) != 0) continue;
        if (!columns[c].is_time && !title[n]) return c;
        if (columns[c].is_time && strcmp(title + n, "_s") == 0) return c;
        *ret_s = 60;
        if (columns[c].is_time && strcmp(title + n, "_min") == 0) return c;
    }
    return -1;
}

static int missing(const struct reader *r, int c, struct error *e) {
    char wanted[48];
    snprintf(wanted, sizeof wanted, "%s%s", columns[c].name, columns[c].is_time ? "_min" : "");
    struct nearest n = {.typed = wanted};
    for (size_t i = 0; i < r->fields; i++)
        if (r->of[i] < 0) nearest_offer(&n, r->title[i]);
    return fail(e, -EINVAL, "line 1: there is no column %s%s%s%s%s", wanted, columns[c].is_time ? " (or _s)" : "",
                n.best ? "; is it \"" : "", n.best ? n.best : "", n.best ? "\"?" : "");
}

static int titles(struct reader *r, struct error *e) {
    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0) r->at += 3; /* as some spreadsheets begin */
    for (int last = 0; !last;) {
        last = field_next(r, e);
        if (last < 0) return last;
        if (r->fields >= FIELDS_MAX) return fail(e, -EINVAL, "line 1: there are more than %d columns", FIELDS_MAX);
        size_t i = r->fields++;
        snprintf(r->title[i], sizeof r->title[i], "%.31s", r->field);
        r->of[i] = column_of(r->field, &r->unit_s[i]);
        if (r->of[i] < 0) continue;
        if (r->has[r->of[i]]) return refuse(r, i, "is there twice", e);
        r->has[r->of[i]] = true;
    }
    for (int c = 0; c < COLS; c++)
        if (columns[c].is_needed && !r->has[c]) return missing(r, c, e);
    return 0;
}

/* ---- a job ---- */

struct row {
    double value[COLS];
    char user[FIELD_MAX], name[FIELD_MAX];
};

static int value_of(const struct reader *r, size_t field, struct row *ret, struct error *e) {
    int c = r->of[field];
    double v;
    if (c == COL_USER || c == COL_NAME) {
        if (c == COL_USER && !r->field_len) return refuse(r, field, "is no user", e);
        memcpy(c == COL_USER ? ret->user : ret->name, r->field, r->field_len + 1);
        return 0;
    }
    if (!r->field_len && !columns[c].is_needed) return 0;
    if (!number_of(r->field, &v)) return refuse(r, field, "is no number", e);
    if (!columns[c].is_time && v != floor(v)) return refuse(r, field, "is no whole number", e);
    v *= r->unit_s[field];
    if (v < columns[c].min) return refuse(r, field, "is too small", e);
    if (v > columns[c].max)
        return refuse(r, field, c == COL_GPUS ? "is more than a job may ask for" : "is too much", e);
    ret->value[c] = v;
    return 0;
}

static int64_t ns_of(double s) { return llround(s * 1e9); }

static int job_of(struct trace *t, const struct reader *r, const struct row *row, struct error *e) {
    const double *v = row->value;
    char detail[FIELD_MAX];
    struct trace_job j = {.submit_ns = ns_of(v[COL_SUBMIT]),
                          .run_ns = ns_of(v[COL_DURATION]),
                          .limit_ns = ns_of(v[COL_LIMIT]),
                          .gpus = (int)v[COL_GPUS],
                          .priority = (int)v[COL_PRIORITY]};
    if (v[COL_DEADLINE] > 0) j.finish_by_ns = j.submit_ns + ns_of(v[COL_DEADLINE]);
    snprintf(detail, sizeof detail, "%d", j.gpus);
    j.like = likes_key(row->user, r->has[COL_NAME] ? row->name : detail);
    int made = trace_user(t, row->user, strlen(row->user), &j.user, e);
    return made < 0 ? made : trace_add(t, &j, e);
}

static int line_next(struct trace *t, struct reader *r, struct error *e) {
    struct row row = {0};
    size_t field = 0;
    for (int last = 0; !last; field++) {
        last = field_next(r, e);
        if (last < 0) return last;
        if (last && field == 0 && !r->field_len) return 0; /* an empty line */
        if (field >= r->fields) return refuse(r, field, "is one field too many", e);
        int bad = r->of[field] < 0 ? 0 : value_of(r, field, &row, e);
        if (bad < 0) return bad;
    }
    if (field < r->fields) {
        r->field[0] = 0;
        return fail(e, -EINVAL, "line %lu, column %s: the line ends before it", r->line, r->title[field]);
    }
    return job_of(t, r, &row, e);
}

int trace_read_csv(struct trace *t, const char *bytes, size_t len, struct error *e) {
    struct reader r = {.at = bytes, .end = bytes + len, .line = 1};
    if (!len) return fail(e, -EINVAL, "line 1: it is empty; it must begin with the names of its columns");
    int bad = titles(&r, e);
    for (r.line = 2; bad >= 0 && r.at < r.end; r.line++) {
        bad = line_next(t, &r, e);
        if (bad == -E2BIG) return fail_in(e, bad, "line %lu", r.line);
    }
    if (bad < 0) return bad;
    if (!t->jobs) return fail(e, -EINVAL, "line 2: there are no jobs");
    trace_order(t);
    return 0;
}
