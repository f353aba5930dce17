/* One failure, as a person will read it: a negative errno and a sentence, in the caller's storage.
 * Only a boundary (a request, a command, a tick) owns one and prints it; everything between adds facts. */
#pragma once

#include "base/auto.h"

struct error {
    int code;
    char text[248];
};

/* Where a failure arises: writes the sentence and returns code (negative). A NULL e is allowed. */
int fail(struct error *e, int code, const char *fmt, ...) PRINTF(3, 4);

/* Where a fact can be added: puts "fact: " before what e says already, and returns code. */
int fail_in(struct error *e, int code, const char *fmt, ...) PRINTF(3, 4);

/* fail() with the errno's own words after the sentence. */
int fail_errno(struct error *e, int errnum, const char *fmt, ...) PRINTF(3, 4);

/* What a command exits with: 2 for input that was wrong, 1 for the rest. */
int error_exit_code(int code);
