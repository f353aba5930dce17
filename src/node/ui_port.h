/* The port of a run's own UI: given, or picked for it when it starts. It lies as a number in the run's directory, where whoever opens the
 * UI finds it. */
#pragma once

#include "model/job.h"

/* Before the run starts. *ret is 0 where the job declares no UI. -EADDRINUSE: somebody has that port already. */
int ui_port_begin(const char *dir, const struct job_spec *s, unsigned *ret, struct error *e) MUST_CHECK;

/* 0: none. */
unsigned ui_port_of(const char *dir);
