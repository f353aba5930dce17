/* Jobs on this machine: runs that the server grants are started, adopted after whoever died, ended and told about; callers of
 * this machine submit and follow theirs over run/jobs.sock. A thread of its own does all of it, since a disk that syncs may
 * make one wait; the main thread hands frames over and never waits.
 *
 * These functions are for the main thread. */
#pragma once

#include "base/instance.h"
#include "model/settings.h"
#include "node/uplink.h"

/* Takes up the runs that go on: from then on it is known whose their processes are. settings_path: of the file they are in. */
int jobs_open(const struct instance *where, const struct settings *s, const char *settings_path, struct error *e)
    MUST_CHECK;
/* After the tracker was started. */
int jobs_start(struct error *e) MUST_CHECK;
/* The node ends: what jobs do not need is put away. */
void jobs_close(void);
void jobs_reload(const struct settings *s);

/* Readable when there is something for jobs_put. */
int jobs_fd(void);

/* Makes it so, from any thread: there is something else to say at once. */
void jobs_nudge(void);

/* A frame of the server that is about jobs; false: it is not. */
bool jobs_take(const struct wire_frame *f);
/* The server knows us now: ends that it has not stored are told again. And: it is gone. */
void jobs_welcome(void);
void jobs_link_down(void);

/* Moves what there is to say to the link, until so many bytes wait there. */
void jobs_put(struct uplink *u, size_t most_bytes);
