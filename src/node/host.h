/* The machine itself, once a second: /proc files that stay open and are read again from their start. What a kernel does
 * not have is absent. Rates need two readings. */
#pragma once

#include "model/host_metrics.h"

struct host;

struct host *host_new(void);
void host_free(struct host *h);
void host_read(struct host *h, struct host_sample *ret);
