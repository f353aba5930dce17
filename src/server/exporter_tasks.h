/* GPU tasks and containers as Prometheus text. Series are by machine and container; those of a container end a minute
 * after it did, so that a scrape a minute sees its last values. Tasks in no container have container="". */
#pragma once

#include "base/buf.h"
#include "server/live.h"

void exporter_tasks(struct buf *out, const struct live *l, int64_t now_ns);
