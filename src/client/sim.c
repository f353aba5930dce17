/* `gpumgr sim`: a front for the simulated GPUs (sim/). */
#include "client/sim.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "client/output.h"
#include "sim/faults.h"

#define SIM_DIR_HELP                                                                                                   \
    "  --sim-dir DIR   the simulator meant (default: $GPUSIM_DIR, then that of a running gpumgr, then\n"               \
    "                  the one that `gpumgr sim start` starts)\n"

static const struct sim_verb verbs[] = {
    {"start", "[FLAGS]",                  "Start simulated GPUs of their own, without a gpumgr",
     "  --gpus N        how many (8)\n"
     "  --model LIST    which cards, as h200 or h200:4,a100:2; `gpumgr sim start --models` lists them\n"
     "  --day           play a lively day: tasks come and go, one card runs hot, one throws an XID\n"
     "  --costs         NVML calls take as long as on a real H200\n"
     "  --mig           cut the cards that can into MIG instances\n"
     "  --speed FACTOR  simulated seconds in a second (1)\n"
     "  --sim-dir DIR   where it lives\n"
     "  --foreground    stay in the foreground; Ctrl-C ends it\n"
     "\nexample: gpumgr sim start --model h200:3,rtx4090 --day\n",                                                                                   sim_start},
    {"list",  "[--json] [--sim-dir DIR]", "Show the simulated GPUs: readings, tasks, what is broken",
     SIM_DIR_HELP "\nexample: gpumgr sim list\n",                                                                                                    sim_list },
    {"load",  "GPU [FLAGS]",              "Run a task on a simulated GPU",
     "Stays in the foreground until its work is done; killing it ends the task.\n\n"
     "  --demand SHARE  of the GPU: 14%, 100% (100%)\n"
     "  --work S        as much as takes S seconds alone at full speed (default: until it is killed)\n"
     "  --for S         end after S seconds, however much was done\n"
     "  --memory SIZE   take that much of the GPU's memory: 4G (512M)\n"
     "  --kind KIND     matmul, copy, small, graphics, infer, video, idle (matmul)\n"
     "  --mig I         on that MIG instance\n"
     "  --name NAME     be called that in process lists\n"
     "  --detach        go to the background; prints the pid\n" SIM_DIR_HELP
     "\nexample: gpumgr sim load 0 --demand 100% --memory 40G --for 60\n",                                                                           sim_load },
    {"fault", "GPU NAME [ARGUMENTS]",     "Break something on a simulated GPU",                       NULL,                                          sim_fault},
    {"heal",  "[GPU|all]",                "Mend everything on a GPU, or everywhere",                  SIM_DIR_HELP "\nexample: gpumgr sim heal 3\n",
     sim_heal                                                                                                                                                 },
    {"exec",  "-- PROGRAM [ARGUMENTS]",   "Run any NVML program so that it sees the simulated GPUs",
     SIM_DIR_HELP "\nexample: gpumgr sim exec -- nvtop\n",                                                                                           sim_exec },
    {"stop",  "[--sim-dir DIR]",          "End what `gpumgr sim start` started",                      SIM_DIR_HELP "\nexample: gpumgr sim stop\n",
     sim_stop                                                                                                                                                 },
};

/* The faults are the simulator's own table. */
static void fault_help(struct buf *b) {
    for (size_t i = 0; i < fault_count; i++)
        buf_printf(b, "  %s%s%s\n                  %s\n", faults[i].name, *faults[i].args ? " " : "", faults[i].args,
                   faults[i].help);
    buf_puts(b, "\nGPU is an index, a UUID or all. Sensors that can be taken away:\n");
    int column = 100;
    for (int i = 0; i < ABILITY_COUNT; i++) {
        const char *name = ability_name((enum ability)i);
        if (column + (int)strlen(name) > 90) column = 0;
        buf_printf(b, "%s%s", column ? " " : i ? "\n  " : "  ", name);
        column += (int)strlen(name) + 1;
    }
    buf_puts(b, "\n\n" SIM_DIR_HELP "\nexample: gpumgr sim fault 3 xid 79\n");
}

int sim_help(const struct sim_verb *verb) {
    AUTO(buf_done) struct buf b = {0};
    buf_printf(&b, "usage: gpumgr sim %s %s\n\n%s.\n\n", verb->name, verb->args, verb->summary);
    if (verb->help)
        buf_puts(&b, verb->help);
    else
        fault_help(&b);
    return output_exit(&b);
}

static int unknown_verb(const char *word) {
    struct nearest near = {.typed = word};
    char line[200];
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) nearest_offer(&near, verbs[i].name);
    snprintf(line, sizeof line, "gpumgr sim: no such word as \"%.60s\"; %s%s%s", word, near.best ? "did you mean " : "",
             near.best ? near.best : "`gpumgr sim --help` lists them", near.best ? "?" : "");
    output_note(line);
    return EXIT_INPUT;
}

static int list_verbs(void) {
    AUTO(buf_done) struct buf b = {0};
    buf_puts(&b,
             "usage: gpumgr sim WORD ...\n\nSimulated GPUs: they heat, throttle, slow their tasks and fail on request, "
             "and any NVML program can use them.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        char usage[80];
        snprintf(usage, sizeof usage, "%s %s", verbs[i].name, verbs[i].args);
        buf_printf(&b, "  %-30s %s\n", usage, verbs[i].summary);
    }
    buf_puts(&b, "\n`gpumgr sim WORD --help` says more. `gpumgr up --sim 8` runs gpumgr on simulated GPUs of its own.\n"
                 "\nexample: gpumgr sim start --gpus 4 && gpumgr sim load 0 --for 30\n");
    return output_exit(&b);
}

static int run(const struct command *self, int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) return list_verbs();
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, word) == 0) return verbs[i].run(self, &verbs[i], argc - 1, argv + 1);
    return unknown_verb(word);
}

const struct command command_sim = {
    .name = "sim",
    .summary = "Use simulated GPUs: start, load, break, heal, and run other programs on them",
    .run = run,
    .words = "start list load fault heal exec stop",
    .help = "usage: gpumgr sim start|list|load|fault|heal|exec|stop ...\n"
            "\n"
            "`gpumgr sim --help` says what each does.\n"
            "\n"
            "example: gpumgr sim start --gpus 4\n",
};
