#include "model/size.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"TiB", 1ull << 40      },
    {"GiB", 1ull << 30      },
    {"MiB", 1ull << 20      },
    {"KiB", 1ull << 10      },
    {"T",   1ull << 40      },
    {"G",   1ull << 30      },
    {"M",   1ull << 20      },
    {"K",   1ull << 10      },
    {"TB",  1000000000000ull},
    {"GB",  1000000000ull   },
    {"MB",  1000000ull      },
    {"KB",  1000ull         },
    {"B",   1               },
};

int size_parse(const char *text, uint64_t *ret_bytes, struct error *e) {
    static const char form[] = "as in 40GiB or 512MiB";
    size_t n = strspn(text, "0123456789.");
    char digits[24], *end = digits;
    if (n > 0 && n < sizeof digits) snprintf(digits, sizeof digits, "%.*s", (int)n, text);
    double v = n > 0 && n < sizeof digits ? strtod(digits, &end) : 0;
    if (end == digits || *end || digits[0] == '.')
        return fail(e, -EINVAL, "\"%.40s\" is not an amount of memory, %s", text, form);
    const char *unit = text + n + strspn(text + n, " ");
    if (!*unit) return fail(e, -EINVAL, "\"%.40s\" has no unit; write it %s", text, form);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcasecmp(unit, units[i].name) != 0) continue;
        double bytes = v * (double)units[i].bytes;
        if (bytes < 1 || bytes > (double)(1ull << 50))
            return fail(e, -ERANGE, "\"%.40s\" is not from 1 byte to 1 PiB", text);
        *ret_bytes = (uint64_t)bytes;
        return 0;
    }
    return fail(e, -EINVAL, "\"%.40s\" has a unit that is not B, KiB, MiB, GiB or TiB; write it %s", text, form);
}

void size_text(uint64_t bytes, char ret[SIZE_TEXT]) {
    for (size_t i = 0; i < 4; i++)
        if (bytes && bytes % units[i].bytes == 0) {
            snprintf(ret, SIZE_TEXT, "%llu%s", (unsigned long long)(bytes / units[i].bytes), units[i].name);
            return;
        }
    snprintf(ret, SIZE_TEXT, "%lluB", (unsigned long long)bytes);
}
