#include "model/fault.h"

#include <stdio.h>

#include "base/auto.h"
#include "model/xid.h"

static const struct {
    unsigned mark;
    const char *words;
} standing[] = {
    {FAULT_ROWS_FAILED,   "has memory rows that could not be remapped: replace the card"},
    {FAULT_ROWS_PENDING,  "has memory rows that wait to be remapped: reset it"          },
    {FAULT_PAGES_PENDING, "has memory pages that wait to be retired: reset it"          },
};

static const char *const asked[] = {
    [1] = "reset the GPU", [2] = "reboot", [3] = "drain its peers", [4] = "drain the GPU and reset it",
    [5] = "recover IMEX",
};

unsigned fault_marks(const struct fault_facts *f) {
    return (f->recovery ? FAULT_RECOVERY : 0) | (f->has_rows_failed ? FAULT_ROWS_FAILED : 0) |
           (f->has_rows_pending ? FAULT_ROWS_PENDING : 0) | (f->has_pages_pending ? FAULT_PAGES_PENDING : 0);
}

/* The one that happened last: what came before led to it. */
static const struct fault_xid *worst_xid(const struct fault_facts *f) {
    const struct fault_xid *last = NULL;
    for (size_t i = 0; i < f->count; i++) {
        const struct fault_xid *x = &f->xids[i];
        if (!xid_find(x->code)->is_fault || x->last_ns <= f->sound_ns) continue;
        if (!last || x->last_ns > last->last_ns) last = x;
    }
    return last;
}

bool fault_find(const struct fault_facts *f, char *ret, size_t room) {
    const struct fault_xid *x = worst_xid(f);
    unsigned marks = fault_marks(f) & ~f->excused;
    if (x) {
        const struct xid *what = xid_find(x->code);
        snprintf(ret, room, "has a fault, XID %llu (%s): %s", (unsigned long long)x->code, what->what, what->advice);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(standing); i++)
        if (marks & standing[i].mark) {
            snprintf(ret, room, "%s", standing[i].words);
            return true;
        }
    if (!(marks & FAULT_RECOVERY)) return false;
    snprintf(ret, room, "has a fault, and its driver asks for this: %s",
             f->recovery < ARRAY_LEN(asked) ? asked[f->recovery] : "a recovery action");
    return true;
}
