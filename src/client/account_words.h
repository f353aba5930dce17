/* What `gpumgr token` and `gpumgr user` share: a word that says what to do, and lists of the server's as tables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "client/command.h"
#include "client/flags.h"
#include "client/settings_load.h"

struct account_flags {
    bool json, all, disable, enable;
    const char *role, *life, *uid;
};

struct account_verb {
    const char *name;
    const char *needs; /* what the word after it is: "NAME"; NULL: there is none */
    int (*run)(const struct command *self, const char *dir, const struct account_flags *f, const char *word);
    const char *flags; /* names of the flags that it takes, with blanks around each */
};

/* Parses, finds the verb (the first one when there is none) and runs it. */
int account_run(const struct command *self, const struct account_verb *verbs, size_t count, int argc, char **argv);

/* Prints a list of the API: columns by the names of its fields; or as JSON, as it came. */
struct account_column {
    const char *field, *title;
    char kind; /* s text, t time, b yes or empty */
};
int account_list(const struct command *self, const char *dir, const char *path, const char *key, bool json,
                 const struct account_column *columns, size_t count);

/* One call without a list: an exit code. What came back is in ret. */
int account_ask(const struct command *self, const char *dir, const char *method, const char *path,
                const struct buf *body, struct buf *ret);
