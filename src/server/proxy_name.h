/* Where UIs are: what the settings ui.ports and ui.url say. Pure. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* "7100-7199": which ports. */
int proxy_ports(const char *text, unsigned *ret_first, unsigned *ret_last, struct error *e) MUST_CHECK;
/* What a pattern makes of a UI's name: "https://{ui}.example.org/". -EINVAL: it is no pattern. */
int proxy_pattern(const char *pattern, const char *name, struct buf *origin, struct error *e) MUST_CHECK;
