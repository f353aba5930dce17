#include "model/energy.h"

static double show(struct energy *en) {
    double now = en->counter + en->carried;
    if (now > en->joules) en->joules = now;
    return en->joules;
}

double energy_step(struct energy *en, double power_w, int64_t now_ns, int64_t max_gap_ns) {
    int64_t gap_ns = now_ns - en->last_ns;
    if (en->last_ns && gap_ns > 0 && gap_ns <= max_gap_ns)
        en->carried += (en->last_w + power_w) / 2 * (double)gap_ns * 1e-9;
    en->last_w = power_w;
    en->last_ns = now_ns;
    return show(en);
}

double energy_correct(struct energy *en, double counter_j) {
    bool went_back = en->has_counter && counter_j < en->counter; /* the driver was loaded anew */
    if (!en->has_counter || went_back) en->joules = 0;
    en->has_counter = true;
    en->counter = counter_j;
    en->carried = 0;
    return show(en);
}
