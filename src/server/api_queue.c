/* The queue as a whole, and GPUs that are taken out of service. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "model/gpu_json.h"
#include "model/job_match.h"
#include "server/api_listing.h"
#include "server/server.h"

enum { WAITING_USUAL = 200, WAITING_MAX = 10000, REASON_MAX = 200 };

const struct route_field api_queue_query[] = {
    {"limit",     FIELD_NUMBER, false, "How many that wait are shown: 200 where it is not given, 10000"},
    {"name",      FIELD_TEXT, false, "Of those that wait: " API_NAME_HELP},
    {"label",           FIELD_TEXT, false, "Of those that wait: " API_LABEL_HELP},
    {0}
};
const struct route_field api_cordon_body[] = {
    {"reason", FIELD_TEXT, false, "Why, for those who wonder"},
    {0  }
};

int api_queue(struct call *c, struct error *e) {
    AUTO(buf_done) struct buf name = {0}, labels = {0};
    struct job_match match;
    double limit;
    int r = call_query_number(c, "limit", 0, WAITING_MAX, WAITING_USUAL, &limit, e);
    if (r >= 0) r = api_match(c, &name, &labels, &match, e);
    if (r < 0) return r;
    json_open(&c->out, '{');
    gpu_json_number(&c->out, "time", (double)clock_real_ns() / NS_PER_S, 0.001);
    queue_json(c->server->queue, &c->out, &match, (size_t)limit);
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    return 0;
}

/* ---- cordons ---- */

static void cordoned(void *ctx, int result, const struct error *e) { call_end(ctx, result < 0 ? result : 0, e); }

int api_cordon(struct call *c, struct error *e) {
    const char *reason = call_field(c, "reason");
    if (reason && strlen(reason) > REASON_MAX) return fail(e, -EINVAL, "reason: longer than %d bytes", REASON_MAX);
    int r = queue_cordon(c->server->queue, c->param[0], reason ? reason : "", c->who.name, cordoned, c, e);
    return r < 0 ? r : CALL_LATER;
}

int api_uncordon(struct call *c, struct error *e) {
    int r = queue_cordon(c->server->queue, c->param[0], NULL, c->who.name, cordoned, c, e);
    return r < 0 ? r : CALL_LATER;
}
