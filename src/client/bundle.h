/* The support archive of `gpumgr doctor --bundle`: what someone else needs to understand a problem, and nothing that
 * names people, machines or cards. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "client/doctor.h"

/* Before the work: refuses a file that exists or cannot be made. */
int bundle_check(const char *path, struct error *e) MUST_CHECK;

/* `said` gets one sentence for the person: where it is, what was taken out. */
int bundle_write(const char *path, const struct doctor *d, struct buf *said, struct error *e) MUST_CHECK;
