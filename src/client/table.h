/* A table of text cells that fits a width: columns are as wide as their widest cell; when that is too much, extra
 * columns go, then those that may shrink do, then columns with a drop rank go, the highest first. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum { TABLE_COLUMNS_MAX = 16, TABLE_ROWS_MAX = 256, TABLE_EXTRA = 6 };

struct table_column {
    const char *title;
    bool to_the_right;
    int drop;   /* 0: never dropped; from TABLE_EXTRA on only there when nothing else has to give way */
    int shrink; /* least width it may be cut to; 0: never cut */
};

struct table_cell {
    char text[96];
    const char *colour; /* an escape, or NULL */
};

struct table {
    const struct table_column *columns;
    int column_count, row_count;
    struct table_cell cell[TABLE_ROWS_MAX][TABLE_COLUMNS_MAX];
    char below[TABLE_ROWS_MAX][400]; /* under a row, in as many lines as it takes, or empty */
};

void table_print(const struct table *t, int width, bool with_colour, struct buf *b);
