/* The table of commands: what `gpumgr help` lists, what main picks from, what completion knows. */
#include <string.h>

#include "client/command.h"

const struct command *const commands[] = {
    &command_up,         &command_node,       &command_server,   &command_status, &command_ps,      &command_top,
    &command_run,        &command_submit,     &command_queue,    &command_jobs,   &command_logs,    &command_attach,
    &command_wait,       &command_cancel,     &command_service,  &command_hold,   &command_release, &command_repeat,
    &command_report,     &command_reserve,    &command_simulate, &command_guard,  &command_web,     &command_token,
    &command_user,       &command_config,     &command_doctor,   &command_sim,    &command_docker,  &command_podman,
    &command_containers, &command_completion, &command_open,
};
const size_t commands_count = ARRAY_LEN(commands);

const struct command *command_find(const char *name) {
    for (size_t i = 0; i < commands_count; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}
