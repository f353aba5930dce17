#include "model/recur.h"

#include <errno.h>

int recur_parse(const char *cron, const char *interval, struct recur *ret, struct error *e) {
    struct recur out = {.is_cron = cron && *cron};
    bool has_interval = interval && *interval;
    if (out.is_cron && has_interval) return fail(e, -EINVAL, "cron: of cron and interval only one makes sense");
    if (!out.is_cron && !has_interval) return fail(e, -EINVAL, "cron: there is neither cron nor interval");
    int r = out.is_cron ? cron_parse(cron, &out.cron, e) : interval_parse(interval, &out.interval, e);
    if (r < 0) return fail_in(e, r, "%s", out.is_cron ? "cron" : "interval");
    *ret = out;
    return 0;
}

int64_t recur_next(const struct recur *r, const struct zone *z, int64_t after_s) {
    static const struct zone utc;
    return r->is_cron ? cron_next(&r->cron, z ? z : &utc, after_s) : interval_next(&r->interval, z, after_s);
}
