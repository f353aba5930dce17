/* What a server sends to `gpumgr top`: the stream in pieces of a size that the first byte says, and in it messages of
 * every kind. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "client/top_mirror.h"
#include "client/top_stream.h"

static const int64_t now_ns = 1000ll * 1000000000, now_real_ns = 1700000000ll * 1000000000;

struct target {
    struct top_mirror mirror;
    struct history history;
};

static int take(void *ctx, const char *event, const char *data, size_t len) {
    struct target *t = ctx;
    struct json_tree *j = NULL;
    struct error e;
    if (json_tree_parse(data, len, &j, &e) < 0) return 0;
    if (strcmp(event, "delta") == 0)
        top_mirror_delta(&t->mirror, j, now_ns, now_real_ns);
    else if (strcmp(event, "event") == 0)
        top_mirror_event(&t->mirror, j);
    else if (strcmp(event, "past") == 0)
        top_mirror_past(j, now_ns, now_real_ns, &t->history);
    else
        top_mirror_snapshot(&t->mirror, j, now_ns, now_real_ns);
    json_tree_free(j);
    view_make_safe(&t->mirror.view);
    view_order(&t->mirror.view);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct target t = {0};
    struct top_stream stream = {0};
    size_t piece = n ? bytes[0] + 1u : 1;
    for (size_t at = 1; at < n; at += piece)
        if (top_stream_feed(&stream, (const char *)bytes + at, n - at < piece ? n - at : piece, take, &t) < 0) break;
    top_stream_done(&stream);
    top_mirror_done(&t.mirror);
    history_done(&t.history);
    return 0;
}
