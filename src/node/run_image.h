/* A job in a container: a process of its own below the job's shim, so that it may wait for the engine as long as it likes.
 *
 *   gpumgr-node container RUN_DIRECTORY SETTINGS_FILE       creates it, starts it, copies what it says, ends as it ends
 *   gpumgr-node container-end RUN_DIRECTORY SETTINGS_FILE   removes whatever is left of it, whoever was killed
 *
 * The container runs as the job's user, with just its GPUs, never privileged, in namespaces of its own, and mounts only what
 * lies below jobs.mount_roots and what that user himself may reach: he opens it, and what he opened is what is mounted. */
#pragma once

/* What main returns. */
int run_image(const char *dir, const char *settings_path);
int run_image_end(const char *dir, const char *settings_path);
