/* The classes of blocks, and the key of each: how history grows from small rows into large ones.
 *
 * A part holds some minutes of one subject, as they left memory. The parts of a window of two hours are merged when it is
 * over, those of a day or a month likewise. Every block lies within one window of its class, so what overlaps a range of
 * time is a range of keys. Late readings make one more part, which is merged into what is there. */
#pragma once

#include <stdint.h>

#include "model/series_roll.h"
#include "server/history.h"

enum history_class {
    CLASS_RAW_PART,
    CLASS_RAW,
    CLASS_MINUTE_PART,
    CLASS_MINUTE_HOURS,
    CLASS_MINUTE,
    CLASS_HOUR_PART,
    CLASS_HOUR_HOURS,
    CLASS_HOUR_DAY,
    CLASS_HOUR,
    CLASS_COUNT
};

struct history_class_row {
    enum history_tier tier;
    int64_t window_ms;
    int up; /* the class that it is merged into, -1: none */
    enum series_effort effort;
};
extern const struct history_class_row history_classes[CLASS_COUNT];
extern const int64_t history_tier_ms[3]; /* how long an interval is: 0 for readings */

enum { KEY_NUMBER_BITS = 12, KEY_WINDOW_BITS = 24, KEY_SUBJECT_BITS = 20 };
#define KEY_NUMBERS (1 << KEY_NUMBER_BITS)
#define HISTORY_SERIES_BASE (1ll << KEY_SUBJECT_BITS) /* ids of series begin here, those of subjects end */
#define HISTORY_TIME_MAX_MS 9782640000000ll           /* 2280: what a window's number has bits for, and events */

static inline int64_t class_window(enum history_class c, int64_t at_ms) { return at_ms / history_classes[c].window_ms; }

static inline int64_t class_key(enum history_class c, int64_t subject, int64_t window, int64_t number) {
    return (((int64_t)c << KEY_SUBJECT_BITS | subject) << KEY_WINDOW_BITS | window) << KEY_NUMBER_BITS | number;
}
static inline int64_t key_window(int64_t key) { return key >> KEY_NUMBER_BITS & ((1 << KEY_WINDOW_BITS) - 1); }
static inline int64_t key_number(int64_t key) { return key & (KEY_NUMBERS - 1); }
/* When the window of a key ends. */
static inline int64_t key_end_ms(enum history_class c, int64_t key) {
    return (key_window(key) + 1) * history_classes[c].window_ms;
}
