#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(struct error *e, int code, const char *fmt, ...) {
    if (!e) return code;
    e->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
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
    if (n >= 0 && (size_t)n < sizeof e->text) snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s", inner);
    return code;
}

int fail_errno(struct error *e, int errnum, const char *fmt, ...) {
    if (!e) return -errnum;
    e->code = -errnum;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->text)
        snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s", strerror(errnum));
    return -errnum;
}

int error_exit_code(int code) {
    static const int input[] = {EINVAL, ENOENT, ERANGE, EEXIST, EPERM, EACCES, ENOTDIR, EISDIR, EBUSY, ENAMETOOLONG};
    for (size_t i = 0; i < ARRAY_LEN(input); i++)
        if (code == -input[i]) return 2;
    return 1;
}
