/* A GPU with a fault is not given away before it is cured. */
#include "tests/test.h"

#include <string.h>

#include "base/auto.h"
#include "model/fault.h"
#include "model/xid.h"

#define XID(of, at) .xids = &(const struct fault_xid){of, at}, .count = 1

static void found(void **state) {
    static const struct fault_xid several[] = {
        {13, 90},
        {48, 50},
        {79, 60},
        {31, 95},
    };
    const struct {
        const char *name;
        struct fault_facts f;
        const char *want; /* NULL: sound */
    } rows[] = {
        {"nothing",                  {0},                                                       NULL                                                          },
        {"off the bus",              {XID(79, 10)},                                             "has a fault, XID 79 (GPU has fallen off the bus): reboot"    },
        {"uncorrectable",            {XID(48, 10)},                                             "has a fault, XID 48 (double bit memory error): drain the GPU"},
        {"a program's fault",        {XID(31, 10)},                                             NULL                                                          },
        {"a row was remapped",       {XID(63, 10)},                                             NULL                                                          },
        {"cured since",              {XID(79, 10), .sound_ns = 11},                             NULL                                                          },
        {"cured, and again",         {XID(79, 12), .sound_ns = 11},                             "has a fault, XID 79"                                         },
        {"the last serious one",     {.xids = several, .count = 4},                             "has a fault, XID 79"                                         },
        {"the driver asks",          {.recovery = 2},                                           "has a fault, and its driver asks for this: reboot"           },
        {"the driver asks, newer",   {.recovery = 77},                                          "has a fault, and its driver asks for this: a recovery action"},
        {"remap failed",             {.has_rows_failed = true},                                 "has memory rows that could not be remapped: replace the card"},
        {"remap pending",            {.has_rows_pending = true},                                "has memory rows that wait to be remapped: reset it"          },
        {"pages pending",            {.has_pages_pending = true},                               "has memory pages that wait to be retired: reset it"          },
        {"pending, excused",         {.has_rows_pending = true, .excused = FAULT_ROWS_PENDING}, NULL                                                          },
        {"another than was excused",
         {.has_rows_failed = true, .excused = FAULT_ROWS_PENDING},
         "has memory rows that could not be remapped"                                                                                                         },
        {"excused, and then an XID",
         {XID(95, 20), .recovery = 1, .excused = FAULT_RECOVERY, .sound_ns = 10},
         "has a fault, XID 95"                                                                                                                                },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char got[160] = "";
        bool has = fault_find(&rows[i].f, got, sizeof got);
        if (has != (rows[i].want != NULL)) fail_msg("%s: %s", rows[i].name, has ? got : "sound");
        if (has && strncmp(got, rows[i].want, strlen(rows[i].want)) != 0) fail_msg("%s: %s", rows[i].name, got);
    }
}

/* Whoever may be told to reset or replace a card must not be given it meanwhile; a program's fault is none of the card's. */
static void advice(void **state) {
    for (uint64_t code = 1; code < 200; code++) {
        const struct xid *x = xid_find(code);
        bool is_drastic = x->severity == EVENT_CRITICAL || strstr(x->advice, "drain the GPU");
        if (x->code && x->is_fault != is_drastic) fail_msg("XID %u: %s", x->code, x->advice);
        char room[160];
        struct fault_facts f = {XID(code, 1)};
        if (fault_find(&f, room, sizeof room) && strlen(room) >= sizeof room - 1) fail_msg("XID %u: too long", x->code);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(found), cmocka_unit_test(advice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
