/* What a stranger may put into Cookie, Authorization, Origin and Host. The first byte picks which. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char got[64], name[RULES_NAME];
    if (size < 1) return 0;
    char *text = malloc(size);
    if (!text) abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    const struct rules_origin origin = {text, NULL, text, text, data[0] & 8};
    switch (data[0] & 3) {
    case 0:
        for (int n = 0; n < 4; n++)
            if (rules_cookie(text, "gpumgr_session", n, got, sizeof got) && strlen(got) >= sizeof got) abort();
        break;
    case 1:
        if (rules_bearer(text, got, sizeof got) && strpbrk(got, " \t\r\n=;,")) abort();
        break;
    case 2:
        (void)rules_is_same_origin(&origin);
        (void)rules_is_local_host(text);
        (void)rules_is_json(text);
        break;
    default:
        rules_unix_name(text, name);
        if (rules_check_name("user", name, NULL) != 0) abort(); /* what is made of a Unix name is always a name */
        (void)!rules_check_label("name", text, NULL);
    }
    free(text);
    return 0;
}
