/* The sampler: the only long-running process that opens the driver. Its main thread never calls the driver: it beats,
 * judges, listens for signals and control messages, and ends the process whatever its other threads are stuck in. */
#pragma once

/* Exit code of a sampler that wants to be started anew (the driver was reloaded, a GPU came or went). */
#define SAMPLER_AGAIN 75

/* gpumgr-core sample WORKER RUN_DIR HEART_FD; settings are read from RUN_DIR/settings. */
int sampler_main(int argc, char **argv);
