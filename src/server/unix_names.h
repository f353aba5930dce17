/* Names of Unix users, remembered for a minute: asking may mean asking a directory server, and the loop waits for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/auth_rules.h"

enum { UNIX_NAMES = 64 };

struct unix_names {
    struct {
        uid_t uid;
        int64_t until_s;
        bool is_named;
        char name[RULES_NAME];
    } known[UNIX_NAMES];
};

/* As an account's name; false, and "uid-1234", for a number that nobody has. */
bool unix_name(struct unix_names *n, uid_t uid, int64_t now_s, char ret[RULES_NAME]);
