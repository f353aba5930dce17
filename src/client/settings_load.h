/* Where the four origins of a setting meet: defaults < file < environment < flags. Nothing is printed and nothing is
 * started here; a value that is wrong anywhere is one sentence that names where it stands, the key and its range. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "client/flags.h"
#include "model/settings.h"

enum { SETTINGS_MAX = 128, SETTINGS_FILE_MAX = 1 << 20 };

enum origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

struct loaded {
    struct settings values;
    struct {
        enum origin origin;
        char from[272]; /* the file, the variable or the flag; empty for a default */
    } of[SETTINGS_MAX]; /* by place in settings_table */
    char file[272];     /* the file that was read, or empty */
    char warning[200];  /* worth a line on standard error, or empty */
};

enum load_mode {
    LOAD_STRICT, /* for what will run with them */
    LOAD_LOOSE,  /* for looking at something: a broken file becomes a warning */
};

int settings_load(const struct flags *flags, enum load_mode mode, struct loaded *ret, struct error *e) MUST_CHECK;

const char *origin_name(enum origin o);
