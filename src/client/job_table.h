/* Jobs as the API has them (JSON), as rows of a table: each view picks its columns from one list of cells. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/json_tree.h"
#include "client/output.h"
#include "client/table.h"

#define JOB_RED "\033[31m"
#define JOB_YELLOW "\033[33m"
#define JOB_GREEN "\033[32m"
#define JOB_DIM "\033[2m"

struct job_cell {
    struct table_column column;
    void (*put)(const struct json_tree *j, int64_t now_ns, struct table_cell *c);
};

extern const struct job_cell job_cell_id, job_cell_state, job_cell_user, job_cell_name, job_cell_gpus, job_cell_wants,
    job_cell_age, job_cell_took, job_cell_left, job_cell_exit, job_cell_place, job_cell_starts, job_cell_command,
    job_cell_priority, job_cell_peak, job_cell_busy, job_cell_values;

/* below: what stands in a line of its own under a row, or NULL. order: a key to sort by, those without it last, or NULL: as
 * they came. At most TABLE_ROWS_MAX rows; how many more there are is said. */
void job_table(const struct json_tree *list, const char *order, const struct job_cell *const *cells, size_t count,
               void (*below)(const struct json_tree *j, int64_t now_ns, char *ret, size_t room),
               const struct screen *screen, struct buf *out);

/* "why; sooner: ..." of a waiting job, and the sentence of one that failed. */
void job_below(const struct json_tree *j, int64_t now_ns, char *ret, size_t room);

/* What a job asks for, in words: "2 GPUs", "GPU 0,3", "2 of 0,1,3", "2 x 40GiB", "10GiB of one". */
void job_wants(const struct json_tree *j, char *ret, size_t room);

/* Members, with an answer for what is not there. */
double job_number(const struct json_tree *j, const char *key); /* NaN */
const char *job_text(const struct json_tree *j, const char *key);
/* "2h10m", "12.3s", "-" for NaN. */
void job_span(double s, char *ret, size_t room);
/* The words of a list or of one text, with blanks, control characters made visible. */
void job_command(const struct json_tree *command, char *ret, size_t room);
/* "lr=1e-3 bs=8,16" of an object of texts, numbers and lists of them. */
void job_pairs(const struct json_tree *object, struct buf *ret);
/* "0,1" of a list of numbers or texts. */
void job_list(const struct json_tree *list, char *ret, size_t room);
