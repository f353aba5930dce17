#include "server/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "server/state_sql.h"

enum { GATE_A_SECOND = 5, GATE_AT_ONCE = 100 };

bool audit_gate(struct audit_gate *g, int64_t now_s, int64_t *ret_left_out) {
    int64_t passed_s = now_s - g->at_s;
    if (passed_s < 0 || passed_s > GATE_AT_ONCE) passed_s = GATE_AT_ONCE; /* the first, or the clock was set */
    g->at_s = now_s;
    g->room += (int)passed_s * GATE_A_SECOND;
    if (g->room > GATE_AT_ONCE) g->room = GATE_AT_ONCE;
    if (g->room == 0) {
        g->left_out++;
        return false;
    }
    g->room--;
    *ret_left_out = g->left_out;
    g->left_out = 0;
    return true;
}

struct line {
    int64_t time, status;
    char user[64], means[16], address[64], method[8], path[256];
};

static int line_write(struct sql *db, const struct line *l, int64_t status, struct error *e) {
    int r = sql_do(db, e, "INSERT INTO audit(time,user,means,address,method,path,status) VALUES(?,?,?,?,?,?,?)",
                   "isssssi", l->time, l->user, l->means, l->address, l->method, l->path, status);
    return r < 0 ? r : 0;
}

static int write_line(struct sql *db, void *ctx, struct error *e) {
    const struct line *l = ctx;
    return line_write(db, l, l->status, e);
}

static void written(void *ctx, int result, const struct error *e) { free(ctx); }

static void line_copy(struct line *l, const struct audit_line *line) {
    l->time = line->time;
    l->status = line->status;
    snprintf(l->user, sizeof l->user, "%s", line->user);
    snprintf(l->means, sizeof l->means, "%s", line->means);
    snprintf(l->address, sizeof l->address, "%s", line->address);
    snprintf(l->method, sizeof l->method, "%s", line->method);
    snprintf(l->path, sizeof l->path, "%s", line->path);
}

void audit_add(struct state *s, const struct audit_line *line) {
    struct line *l = calloc(1, sizeof *l);
    struct error ignored;
    if (!l) abort();
    line_copy(l, line);
    /* When the queue is full the call itself could not be carried out either: it was refused as unavailable. */
    if (state_submit(s, write_line, written, l, &ignored) < 0) free(l);
}

/* The store thread's between its two jobs, which it does in their order; status is the second's alone. */
struct audit_open {
    struct line line;
    int64_t id, status;
};

static int begin_work(struct sql *db, void *ctx, struct error *e) {
    struct audit_open *o = ctx;
    int r = line_write(db, &o->line, 0, e);
    if (r >= 0) o->id = sql_last_id(db);
    return r;
}

/* A row that was not committed is written whole. */
static int end_work(struct sql *db, void *ctx, struct error *e) {
    const struct audit_open *o = ctx;
    int r = sql_do(db, e, "UPDATE audit SET status=? WHERE id=? AND status=0", "ii", o->status, o->id);
    return r == 0 ? line_write(db, &o->line, o->status, e) : r;
}

struct audit_open *audit_begin(struct state *s, const struct audit_line *line) {
    struct audit_open *o = calloc(1, sizeof *o);
    struct error ignored;
    if (!o) abort();
    line_copy(&o->line, line);
    if (state_submit(s, begin_work, NULL, o, &ignored) >= 0) return o;
    free(o);
    return NULL;
}

void audit_end(struct state *s, struct audit_open *open, int status) {
    struct error ignored;
    open->status = status;
    /* Where there is no room for the second job the first may still wait: its memory stays. */
    (void)!state_submit(s, end_work, written, open, &ignored);
}

int audit_trim(struct sql *db, int keep, int keep_nobody, struct error *e) {
    int r = sql_do(db, e,
                   "DELETE FROM audit WHERE user<>'' AND id<="
                   "(SELECT id FROM audit WHERE user<>'' ORDER BY id DESC LIMIT 1 OFFSET ?)",
                   "i", (int64_t)keep);
    if (r >= 0)
        r = sql_do(db, e,
                   "DELETE FROM audit WHERE user='' AND id<="
                   "(SELECT id FROM audit WHERE user='' ORDER BY id DESC LIMIT 1 OFFSET ?)",
                   "i", (int64_t)keep_nobody);
    return r < 0 ? r : 0;
}

struct page {
    struct buf *out;
    int limit, count;
    int64_t last;
};

static int print_row(const struct sql_row *row, void *ctx, struct error *e) {
    struct page *p = ctx;
    if (p->count++ >= p->limit) return 0; /* one more than asked for tells that there are more */
    p->last = sql_row_int(row, 0);
    json_open(p->out, '{');
    json_pair_int(p->out, "id", p->last);
    json_pair_int(p->out, "time", sql_row_int(row, 1));
    json_pair_str(p->out, "user", sql_row_text(row, 2));
    json_pair_str(p->out, "means", sql_row_text(row, 3));
    json_pair_str(p->out, "address", sql_row_text(row, 4));
    json_pair_str(p->out, "method", sql_row_text(row, 5));
    json_pair_str(p->out, "path", sql_row_text(row, 6));
    json_pair_int(p->out, "status", sql_row_int(row, 7));
    json_close(p->out, '}');
    return 0;
}

int audit_read(struct sql *db, int64_t before, int limit, struct buf *ret, int64_t *ret_next, struct error *e) {
    struct page p = {.out = ret, .limit = limit};
    json_open(ret, '[');
    int r = sql_each(db, print_row, &p, e,
                     "SELECT id,time,user,means,address,method,path,status FROM audit WHERE ?=0 OR id<?"
                     " ORDER BY id DESC LIMIT ?",
                     "iii", before, before, (int64_t)limit + 1);
    json_close(ret, ']');
    *ret_next = p.count > limit ? p.last : 0;
    return r < 0 ? r : 0;
}
