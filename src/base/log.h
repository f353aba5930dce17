/* What the daemons say: lines for people on a terminal, one JSON object a line otherwise. Only programs log;
 * library code returns errors. A line is one write(2), so lines of several processes do not mix. */
#pragma once

#include "base/auto.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* who: the process ("supervisor", "sampler"). The format is chosen once, by what standard error is. */
void log_open(const char *who, enum log_level least);
void log_set_level(enum log_level least);

/* event: a stable snake_case word for programs. gpu: its index, or -1. */
void log_line(enum log_level level, const char *event, int gpu, const char *fmt, ...) PRINTF(4, 5);
