/* A table of options: one row holds the key, its default, its meaning, its type and range, and where the value lies.
 * Defaults go through the same setter as user input; file, environment and flags differ only in origin. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json_read.h"

enum option_type {
    OPT_TEXT,    /* char[size] */
    OPT_PATH,    /* char[size]; no line breaks */
    OPT_INT,     /* int */
    OPT_REAL,    /* double */
    OPT_CELSIUS, /* double; "auto" is NaN: the card's own figure */
    OPT_BOOL,    /* bool */
    OPT_CHOICE,  /* int: the index in choices */
    OPT_ADDRESS, /* char[size]: HOST:PORT, [V6]:PORT */
    OPT_GPUS,    /* char[size]: "all", or indices and UUIDs with commas */
};

struct option {
    const char *name; /* dotted: also the flag --name and the variable GPUMGR_NAME */
    const char *preset, *help;
    enum option_type type;
    size_t offset, size;
    double min, max;
    const char *choices; /* "auto|observe|off" */
};

const struct option *option_find(const struct option *table, size_t n, const char *name);

/* Sets one value from text; the error names the allowed range. Writes nothing on failure. */
int option_set(const struct option *o, void *into, const char *text, struct error *e) MUST_CHECK;

/* Whether a JSON value of this type may stand for the option: "wait_ms": "1000" is refused. */
bool option_takes(const struct option *o, enum json_type type);

/* The current value as text, which option_set would take back. */
void option_text(const struct option *o, const void *from, char *ret, size_t room);

/* "a number from 10 to 60000", for messages and reference pages. */
void option_range(const struct option *o, char *ret, size_t room);

/* "guard.hot_c" -> "GPUMGR_GUARD_HOT_C" */
void option_variable(const struct option *o, char *ret, size_t room);
