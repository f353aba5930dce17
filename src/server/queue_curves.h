/* What runs use over their time: CPU, memory and disk, in one curve a run (model/curve). A curve lies in memory while its run goes
 * on, is written every few seconds, and in the commit that holds the run's end: whoever is killed, it goes on from sums. */
#pragma once

#include "server/queue.h"
#include "server/queue_trail.h"

struct queue_run;

void queue_curve_take(struct queue_run *r, const struct wire_figures *v);
/* Its last point: the run is over as w says. */
void queue_curve_end(struct queue_run *r, const struct wire_run *w);
void queue_curves_tick(struct queue *q);
int queue_curves_load(struct queue *q, struct sql *db, struct error *e) MUST_CHECK;

/* Of a run that goes on. number: of its element, as people see it; below 0: of a job that is none of several; attempt 0: any.
 * False: it is not in memory. */
bool queue_curve_of(const struct queue *q, int64_t job, int64_t number, uint32_t attempt, struct trail_curve *ret);
/* An object. Times are Unix seconds; rates are means of the time before each. */
void queue_curve_json(struct buf *b, const struct trail_curve *t);
