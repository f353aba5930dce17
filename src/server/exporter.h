/* /metrics: what is known now, in Prometheus' text. Written anew only when something changed since it was last asked for. */
#pragma once

#include "net/http_server.h"
#include "server/live.h"

struct exporter {
    uint64_t version; /* of the live state that the text is of */
    int64_t at_ns;
    bool has_dcgm;
    struct http_shared *text, *packed; /* packed: NULL until somebody asks for it */
};

/* The text, which the exporter keeps hold of. now: the boot clock. */
struct http_shared *exporter_text(struct exporter *x, const struct live *l, bool has_dcgm, int64_t now_ns);
/* That text as gzip; NULL: it is too short to be worth it. */
struct http_shared *exporter_packed(struct exporter *x);
void exporter_done(struct exporter *x);
