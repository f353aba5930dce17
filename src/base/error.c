#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentence is one line, whatever bytes of a file or of a driver went into it. */
static void flatten(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f) *c = '?';
}

/* ": more" after the first n bytes, as far as there is room. */
static void append(struct error *e, int n, const char *more) {
    if (n < 0 || (size_t)n >= sizeof e->text) return;
    size_t room = sizeof e->text - (size_t)n;
    snprintf(e->text + n, room, ": %.*s", (int)room, more);
}

int fail(struct error *e, int code, const char *fmt, ...) {
    if (!e) return code;
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    flatten(e->text);
    return code;
}

int fail_in(struct error *e, int code, const char *fmt, ...) {
    if (!e) return code;
    char inner[sizeof e->text];
    memcpy(inner, e->text, sizeof inner);
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    append(e, n, inner);
    flatten(e->text);
    return code;
}

int fail_errno(struct error *e, int errnum, const char *fmt, ...) {
    if (!e) return -errnum;
    e->code = -errnum;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    append(e, n, strerror(errnum));
    flatten(e->text);
    return -errnum;
}

int error_exit_code(int code) {
    static const int input[] = {EINVAL, ENOENT, ERANGE,       EEXIST, EPERM,  EACCES, ENOTDIR,
                                EISDIR, EBUSY,  ENAMETOOLONG, EROFS,  ENOSPC, EDQUOT, ELOOP};
    for (size_t i = 0; i < ARRAY_LEN(input); i++)
        if (code == -input[i]) return 2;
    return 1;
}
