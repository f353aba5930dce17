/* Whether a GPU has a fault that must be cured before anybody is given it: an XID after which it needs a reset, memory that waits
 * for one or is beyond repair, a recovery action that the driver asks for. Pure.
 *
 * An XID is over once the card was reset (its driver was loaded anew, or no longer asks for a reset) or an operator says so; what
 * stands (a remap that is pending) is over when it is gone, and excused when an operator says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_mark {
    FAULT_RECOVERY = 1,
    FAULT_ROWS_FAILED = 2,
    FAULT_ROWS_PENDING = 4,
    FAULT_PAGES_PENDING = 8,
};

struct fault_xid {
    uint64_t code;
    int64_t last_ns; /* wall clock */
};

struct fault_facts {
    unsigned recovery; /* as the metric has it; 0: nothing is asked for, or that is not known */
    bool has_rows_failed, has_rows_pending, has_pages_pending;
    const struct fault_xid *xids;
    size_t count;
    int64_t sound_ns; /* wall clock: what happened before is cured; 0: nothing is known to be */
    unsigned excused; /* enum fault_mark */
};

/* What stands now. */
unsigned fault_marks(const struct fault_facts *f);

/* False: it has none. Else what people read after "GPU 3". */
bool fault_find(const struct fault_facts *f, char *ret, size_t room);
