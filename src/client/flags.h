/* The words after a command's name: its own flags from a table, any key of the settings table as a flag (where the
 * command takes settings), and what is left. '-', '_' and '.' are equal in a flag's name; --name=VALUE and
 * --name VALUE are the same; `--` ends the flags. Values of settings are checked later, where all origins meet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"

enum flag_kind {
    FLAG_YES,    /* bool: no value */
    FLAG_TEXT,   /* const char *: needs a value */
    FLAG_NUMBER, /* double: needs a number from min to max */
    FLAG_MAYBE,  /* double: the number may be left out; then it stays what it was. Sets *given, too */
    FLAG_LIST,   /* struct flag_list: needs a value, and may be given again */
};

enum { FLAG_LIST_MAX = 64 };
struct flag_list {
    const char *of[FLAG_LIST_MAX];
    size_t count;
};

struct flag {
    const char *name;
    enum flag_kind kind;
    void *into;
    double min, max;
    bool *given; /* may be NULL */
};

enum { FLAGS_SETTINGS_MAX = 96, FLAGS_WORDS_MAX = 256 };

struct flags {
    struct flag_setting {
        const struct option *option;
        const char *text;
    } settings[FLAGS_SETTINGS_MAX];
    size_t setting_count;
    char *words[FLAGS_WORDS_MAX]; /* not flags */
    size_t word_count;
    char **command; /* FLAGS_COMMAND: what follows the flags, as it was typed; ends with argv */
    size_t command_count;
    bool wants_help;
};

enum flags_mode {
    FLAGS_OWN = 0,          /* only the command's own */
    FLAGS_SETTINGS = 1,     /* and every key of the settings */
    FLAGS_STOP_AT_WORD = 2, /* the first word that is no flag ends the flags: the rest is another program's */
    FLAGS_COMMAND = 4,      /* the same, and so does `--`: all that follows is in ret->command, however much it is */
};

int flags_parse(int argc, char **argv, const struct flag *own, size_t own_count, int mode, struct flags *ret,
                struct error *e) MUST_CHECK;

/* For commands that take no words. */
int flags_no_words(const struct flags *f, struct error *e) MUST_CHECK;
