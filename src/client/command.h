/* A command of `gpumgr`: one const struct, in one small file of its own; main.c lists them. Exit codes are the same
 * everywhere: 0 done, 1 failed, 2 the input was wrong and nothing was done. */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_INPUT = 2 };

struct command {
    const char *name, *summary;
    const char *help; /* the usage line, what it does, its flags, and an example */
    const char
        *words; /* what may stand behind it, with blanks: "cordon uncordon"; JOB is any job, GPU any GPU. Or NULL */
    int (*run)(const struct command *self, int argc, char **argv); /* argv[0] is the command's name; an exit code */
};

extern const struct command command_up, command_node, command_server, command_status, command_ps, command_top,
    command_guard, command_config, command_doctor, command_sim, command_web, command_open, command_token, command_user,
    command_docker, command_podman, command_run, command_submit, command_queue, command_jobs, command_logs,
    command_attach, command_cancel, command_service, command_hold, command_release, command_wait, command_repeat,
    command_report, command_reserve, command_simulate, command_completion, command_containers;

/* All of them, in the order in which they are listed. */
extern const struct command *const commands[];
extern const size_t commands_count;
const struct command *command_find(const char *name); /* or NULL */

/* Prints "gpumgr NAME: sentence" as one line on standard error and returns `exit_code`. */
int command_fail(const struct command *c, const struct error *e, int exit_code);

int command_help(const struct command *c);

/* For commands with verbs: flags may stand before the verb, too; behind the verb and its name they mean the same. Returns the new
 * argv, whose first word is the verb, "list" where there is none; the caller frees it. */
char **command_verb_first(int argc, char **argv, int *ret_argc);
