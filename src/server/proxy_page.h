/* The few pages that are shown in a UI's place. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* is_again: it is tried again by itself. */
void proxy_page(const char *title, const char *sentence, bool is_again, struct buf *fields, struct buf *body);
