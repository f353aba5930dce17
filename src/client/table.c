#include "client/table.h"

#include <stdio.h>

#include "client/text.h"

struct fit {
    int width[TABLE_COLUMNS_MAX]; /* -1: dropped */
};

static int total(const struct table *t, const struct fit *f) {
    int sum = -1;
    for (int c = 0; c < t->column_count; c++)
        if (f->width[c] >= 0) sum += f->width[c] + 1;
    return sum;
}

static bool drop_one(const struct table *t, struct fit *f, int least) {
    int worst = -1;
    for (int c = 0; c < t->column_count; c++)
        if (f->width[c] >= 0 && t->columns[c].drop >= least &&
            (worst < 0 || t->columns[c].drop > t->columns[worst].drop))
            worst = c;
    if (worst >= 0) f->width[worst] = -1;
    return worst >= 0;
}

static void shrink(const struct table *t, struct fit *f, int excess) {
    for (int c = t->column_count - 1; c >= 0 && excess > 0; c--) {
        int least = t->columns[c].shrink;
        if (!least || f->width[c] <= least) continue;
        int cut = f->width[c] - least < excess ? f->width[c] - least : excess;
        f->width[c] -= cut;
        excess -= cut;
    }
}

/* Shrinking a little is better than losing a column; a column goes when shrinking alone does not do. */
static struct fit fit_to(const struct table *t, int width) {
    struct fit f;
    for (int c = 0; c < t->column_count; c++) {
        f.width[c] = 0;
        for (int r = 0; r < t->row_count; r++)
            if (text_width(t->cell[r][c].text) > f.width[c]) f.width[c] = text_width(t->cell[r][c].text);
        if (f.width[c] == 0 && t->columns[c].drop)
            f.width[c] = -1; /* nobody has anything to say here */
        else if (text_width(t->columns[c].title) > f.width[c])
            f.width[c] = text_width(t->columns[c].title);
    }
    while (total(t, &f) > width && drop_one(t, &f, TABLE_EXTRA)) continue;
    for (;;) {
        struct fit small = f;
        shrink(t, &small, total(t, &small) - width);
        if (total(t, &small) <= width || !drop_one(t, &f, 1)) return small;
    }
}

static void print_cell(const struct table_cell *cell, const struct table_column *column, int width, bool is_last,
                       bool with_colour, struct buf *b) {
    int used = text_width(cell->text) < width ? text_width(cell->text) : width;
    const char *colour = with_colour && *cell->text ? cell->colour : NULL;
    for (int i = used; column->to_the_right && i < width; i++) buf_putc(b, ' ');
    if (colour) buf_puts(b, colour);
    text_cut(b, cell->text, width);
    if (colour) buf_puts(b, "\033[0m");
    for (int i = used; !column->to_the_right && !is_last && i < width; i++) buf_putc(b, ' ');
}

static void print_row(const struct table *t, const struct table_cell *cells, const struct fit *f, bool with_colour,
                      struct buf *b) {
    int last = -1;
    for (int c = 0; c < t->column_count; c++)
        if (f->width[c] >= 0 && (*cells[c].text || t->columns[c].to_the_right)) last = c;
    for (int c = 0, first = 1; c <= last; c++) {
        if (f->width[c] < 0) continue;
        if (!first) buf_putc(b, ' ');
        first = 0;
        print_cell(&cells[c], &t->columns[c], f->width[c], c == last, with_colour, b);
    }
    while (b->len && b->s[b->len - 1] == ' ') b->s[--b->len] = 0;
    buf_putc(b, '\n');
}

void table_print(const struct table *t, int width, bool with_colour, struct buf *b) {
    struct fit f = fit_to(t, width);
    struct table_cell titles[TABLE_COLUMNS_MAX] = {0};
    for (int c = 0; c < t->column_count; c++) {
        snprintf(titles[c].text, sizeof titles[c].text, "%s", t->columns[c].title);
        titles[c].colour = "\033[2m";
    }
    print_row(t, titles, &f, with_colour, b);
    for (int r = 0; r < t->row_count; r++) {
        print_row(t, t->cell[r], &f, with_colour, b);
        if (!*t->below[r]) continue;
        buf_puts(b, "    ");
        text_wrap(b, t->below[r], width - 4, 4);
    }
}
