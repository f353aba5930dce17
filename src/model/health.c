#include "model/health.h"

enum device_state health_state(const struct health *h, int64_t now_ns, int64_t answer_ns, int64_t lost_ns) {
    if (h->is_fenced) return DEVICE_FENCED;
    if (h->is_forbidden) return DEVICE_FORBIDDEN;
    if (h->says_lost) return DEVICE_LOST;
    int64_t silent_ns = now_ns - (h->good_ns ? h->good_ns : h->first_ns);
    bool is_waiting = h->asked_ns && now_ns - h->asked_ns > answer_ns; /* one call has been out for too long */
    bool is_failing = (h->has_failed || !h->good_ns) && silent_ns > answer_ns;
    if (is_waiting || is_failing) return silent_ns > lost_ns ? DEVICE_LOST : DEVICE_NOT_ANSWERING;
    return h->good_ns ? DEVICE_OK : DEVICE_STARTING;
}
