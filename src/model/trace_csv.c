/* A trace from CSV. Fields may be in quotes, with "" for a quote; lines end with LF or CR LF; empty lines are passed over. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/nearest.h"
#include "model/job.h"
#include "model/likes.h"
#include "model/trace.h"

#define FIELD_MAX 256
#define FIELDS_MAX 256
#define TIME_MAX_S 631152000.0 /* twenty years */
#define GIB_MAX 1048576.0
#define GIB 1073741824.0

enum column {
    COL_USER,
    COL_GPUS,
    COL_SUBMIT,
    COL_DURATION,
    COL_DEADLINE,
    COL_LIMIT,
    COL_SHARE,
    COL_MEMORY,
    COL_PRIORITY,
    COL_NAME,
    COL_JOB,
    COL_AFTER,
    COLS
};
enum unit { UNIT_TEXT, UNIT_NUMBER, UNIT_TIME, UNIT_GIB };

/* clang-format off */
static const struct {
    const char *name;
    enum unit unit;
    bool is_needed;
    double min, max;
} columns[COLS] = {
    [COL_USER]     = {"user",     UNIT_TEXT,   true,  0,                 0               },
    [COL_GPUS]     = {"gpus",     UNIT_NUMBER, true,  1,                 JOB_GPUS_MAX    },
    [COL_SUBMIT]   = {"submit",   UNIT_TIME,   true,  0,                 TIME_MAX_S      },
    [COL_DURATION] = {"duration", UNIT_TIME,   true,  0,                 TIME_MAX_S      },
    [COL_DEADLINE] = {"deadline", UNIT_TIME,   false, 0,                 TIME_MAX_S      },
    [COL_LIMIT]    = {"limit",    UNIT_TIME,   false, 0,                 TIME_MAX_S      },
    [COL_SHARE]    = {"share",    UNIT_GIB,    false, 0,                 GIB_MAX         },
    [COL_MEMORY]   = {"memory",   UNIT_GIB,    false, 0,                 GIB_MAX         },
    [COL_PRIORITY] = {"priority", UNIT_NUMBER, false, -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX},
    [COL_NAME]     = {"name",     UNIT_TEXT,   false, 0,                 0               },
    [COL_JOB]      = {"job",      UNIT_TEXT,   false, 0,                 0               },
    [COL_AFTER]    = {"after",    UNIT_TEXT,   false, 0,                 0               },
};
/* clang-format on */

/* A job that is to follow another one: which may stand anywhere in the file. */
struct follow {
    uint32_t job, name; /* its number; which of reader.names it follows */
    unsigned long line;
};

struct reader {
    const char *at, *end;
    unsigned long line;
    char field[FIELD_MAX]; /* that was read last */
    size_t field_len;
    int of[FIELDS_MAX]; /* which column each field is; -1: one that is left alone */
    double unit[FIELDS_MAX];
    char title[FIELDS_MAX][32];
    size_t fields;
    bool has[COLS];
    struct names names; /* of jobs, where some follow others */
    uint32_t *job_of;   /* by name: the number of the job; TRACE_NONE: none so far */
    struct follow *follow;
    size_t follows, follow_cap, job_of_cap;
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
static int column_of(const char *title, double *ret_unit) {
    for (int c = 0; c < COLS; c++) {
        size_t n = strlen(columns[c].name);
        bool is_time = columns[c].unit == UNIT_TIME, is_gib = columns[c].unit == UNIT_GIB;
        *ret_unit = 1;
        if (strncmp(title, columns[c].name, n) != 0) continue;
        if (!is_time && !is_gib && !title[n]) return c;
        if (is_time && strcmp(title + n, "_s") == 0) return c;
        if (is_gib && strcmp(title + n, "_gib") == 0) return c;
        *ret_unit = 60;
        if (is_time && strcmp(title + n, "_min") == 0) return c;
    }
    return -1;
}

static int missing(const struct reader *r, int c, struct error *e) {
    char wanted[48];
    bool is_time = columns[c].unit == UNIT_TIME;
    snprintf(wanted, sizeof wanted, "%s%s", columns[c].name, is_time ? "_min" : "");
    struct nearest n = {.typed = wanted};
    for (size_t i = 0; i < r->fields; i++)
        if (r->of[i] < 0) nearest_offer(&n, r->title[i]);
    return fail(e, -EINVAL, "line 1: there is no column %s%s%s%s%s", wanted, is_time ? " (or _s)" : "",
                n.best ? "; is it \"" : "", n.best ? n.best : "", n.best ? "\"?" : "");
}

/* What is left alone is said: it may be a name that was mistyped. */
static void note_unused(const struct reader *r, struct trace *t) {
    for (size_t i = 0; i < r->fields; i++)
        if (r->of[i] < 0)
            buf_printf(&t->unused, "%s%s", t->unused.len ? ", " : "", *r->title[i] ? r->title[i] : "\"\"");
}

static int titles(struct reader *r, struct trace *t, struct error *e) {
    if (r->end - r->at >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0) r->at += 3; /* as some spreadsheets begin */
    for (int last = 0; !last;) {
        last = field_next(r, e);
        if (last < 0) return last;
        if (r->fields >= FIELDS_MAX) return fail(e, -EINVAL, "line 1: there are more than %d columns", FIELDS_MAX);
        size_t i = r->fields++;
        snprintf(r->title[i], sizeof r->title[i], "%.31s", r->field);
        r->of[i] = column_of(r->field, &r->unit[i]);
        if (r->of[i] < 0) continue;
        if (r->has[r->of[i]]) return refuse(r, i, "is there twice", e);
        r->has[r->of[i]] = true;
    }
    for (int c = 0; c < COLS; c++)
        if ((columns[c].is_needed || (c == COL_JOB && r->has[COL_AFTER])) && !r->has[c]) return missing(r, c, e);
    note_unused(r, t);
    return 0;
}

/* ---- a job ---- */

struct row {
    double value[COLS];
    char text[COLS][FIELD_MAX];
};

static int value_of(const struct reader *r, size_t field, struct row *ret, struct error *e) {
    int c = r->of[field];
    double v;
    if (columns[c].unit == UNIT_TEXT) {
        if (c == COL_USER && !r->field_len) return refuse(r, field, "is no user", e);
        memcpy(ret->text[c], r->field, r->field_len + 1);
        return 0;
    }
    if (!r->field_len && !columns[c].is_needed) return 0;
    if (!number_of(r->field, &v)) return refuse(r, field, "is no number", e);
    if (columns[c].unit == UNIT_NUMBER && v != floor(v)) return refuse(r, field, "is no whole number", e);
    v *= r->unit[field];
    if (v < columns[c].min) return refuse(r, field, "is too small", e);
    if (v > columns[c].max)
        return refuse(r, field, c == COL_GPUS ? "is more than a job may ask for" : "is too much", e);
    ret->value[c] = v;
    return 0;
}

static int64_t ns_of(double s) { return llround(s * 1e9); }

/* ---- who follows whom ---- */

static uint32_t name_number(struct reader *r, const char *name, size_t len) {
    uint32_t number = names_put(&r->names, name, len, NAMES_FULL);
    size_t was = r->job_of_cap;
    if (number >= was) {
        r->job_of_cap = was ? 2 * was : 1024;
        r->job_of = realloc(r->job_of, r->job_of_cap * sizeof *r->job_of);
        if (!r->job_of) abort();
        for (size_t i = was; i < r->job_of_cap; i++) r->job_of[i] = TRACE_NONE;
    }
    return number;
}

static int note_follows(struct reader *r, const struct trace *t, const struct row *row, struct error *e) {
    const char *job = row->text[COL_JOB];
    uint32_t own = name_number(r, job, strlen(job));
    if (r->job_of[own] != TRACE_NONE)
        return fail(e, -EINVAL, "line %lu, column job: \"%.40s\" is there twice", r->line, job);
    r->job_of[own] = t->jobs;
    for (const char *at = row->text[COL_AFTER]; *at;) {
        size_t n = strcspn(at, "; ");
        if (n) {
            if (r->follows == r->follow_cap) {
                r->follow_cap = r->follow_cap ? 2 * r->follow_cap : 256;
                r->follow = realloc(r->follow, r->follow_cap * sizeof *r->follow);
                if (!r->follow) abort();
            }
            r->follow[r->follows++] = (struct follow){t->jobs, name_number(r, at, n), r->line};
        }
        at += n + (at[n] != 0);
    }
    return 0;
}

/* Now that all are known. They lie in the order of the jobs. */
static int follows_find(struct reader *r, struct trace *t, struct error *e) {
    for (size_t i = 0; i < r->follows; i++) {
        const struct follow *f = &r->follow[i];
        struct trace_job *j = &t->job[f->job];
        if (r->job_of[f->name] == TRACE_NONE)
            return fail(e, -EINVAL, "line %lu, column after: there is no job \"%.40s\"", f->line, r->names.of[f->name]);
        if (!j->after_len++) {
            j->after_at = t->list_len;
            t->afters++;
        }
        trace_list_add(t, r->job_of[f->name]);
    }
    return 0;
}

static int job_of(struct trace *t, struct reader *r, const struct row *row, struct error *e) {
    const double *v = row->value;
    const char *user = row->text[COL_USER];
    char detail[FIELD_MAX];
    struct trace_job j = {.submit_ns = ns_of(v[COL_SUBMIT]),
                          .run_ns = ns_of(v[COL_DURATION]),
                          .limit_ns = ns_of(v[COL_LIMIT]),
                          .start_ns = -1,
                          .memory_bytes = (uint64_t)llround(v[COL_MEMORY] * GIB),
                          .share_bytes = (uint64_t)llround(v[COL_SHARE] * GIB),
                          .node = TRACE_NONE,
                          .array = TRACE_NONE,
                          .gpu = TRACE_NONE,
                          .gpus = (int)v[COL_GPUS],
                          .priority = (int)v[COL_PRIORITY]};
    if (j.share_bytes && j.gpus != 1)
        return fail(e, -EINVAL, "line %lu, column share_gib: is a part of one GPU, and gpus is %d", r->line, j.gpus);
    if (v[COL_DEADLINE] > 0) j.finish_by_ns = j.submit_ns + ns_of(v[COL_DEADLINE]);
    snprintf(detail, sizeof detail, "%d", j.gpus);
    j.like = likes_key(user, r->has[COL_NAME] ? row->text[COL_NAME] : detail);
    int bad = r->has[COL_AFTER] ? note_follows(r, t, row, e) : 0;
    if (bad >= 0) bad = trace_user(t, user, strlen(user), &j.user, e);
    return bad < 0 ? bad : trace_add(t, &j, e);
}

static int line_next(struct trace *t, struct reader *r, struct error *e) {
    struct row row;
    size_t field = 0;
    memset(row.value, 0, sizeof row.value);
    for (int c = 0; c < COLS; c++) row.text[c][0] = 0; /* a few KiB are not cleared for each line */
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

static int read_all(struct reader *r, struct trace *t, struct error *e) {
    int bad = titles(r, t, e);
    for (r->line = 2; bad >= 0 && r->at < r->end; r->line++) {
        bad = line_next(t, r, e);
        if (bad == -E2BIG) return fail_in(e, bad, "line %lu", r->line);
    }
    if (bad < 0) return bad;
    if (!t->jobs) return fail(e, -EINVAL, "line 2: there are no jobs");
    return follows_find(r, t, e);
}

int trace_read_csv(struct trace *t, const char *bytes, size_t len, struct error *e) {
    struct reader r = {.at = bytes, .end = bytes + len, .line = 1};
    if (!len) return fail(e, -EINVAL, "line 1: it is empty; it must begin with the names of its columns");
    int bad = read_all(&r, t, e);
    names_done(&r.names);
    free(r.job_of);
    free(r.follow);
    if (bad >= 0) trace_order(t);
    return bad;
}
