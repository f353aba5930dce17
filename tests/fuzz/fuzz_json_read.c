/* The configuration file: whatever the bytes, the walk ends, each leaf has a path and a text, a refusal has a
 * sentence, and what the table of settings takes it can also write down. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json_read.h"
#include "model/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int set_leaf(void *ctx, const struct json_leaf *leaf, struct error *e) {
    if (!leaf->path || !leaf->text) abort();
    const struct option *o = option_find(settings_table, settings_count, leaf->path);
    if (!o || !option_takes(o, leaf->type)) return 0;
    int r = option_set(o, ctx, leaf->text, e);
    if (r < 0) return r;
    char text[1100];
    option_text(o, ctx, text, sizeof text);
    if (option_set(o, ctx, text, e) < 0) abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    struct settings s;
    struct error e = {0};
    settings_init(&s);
    if (json_walk((const char *)bytes, len, set_leaf, &s, &e) < 0 && !e.text[0]) abort();
    return 0;
}
