/* What the parts of `gpumgr sim` share: which simulator is meant, and asking it something. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "client/command.h"
#include "client/flags.h"
#include "client/view.h"

struct sim_place {
    char dir[4096];
    bool of_instance; /* a running gpumgr's own: it ends with that */
};

/* One word after `gpumgr sim`. argv[0] is that word; the rest is its own. */
struct sim_verb {
    const char *name, *args, *summary, *help; /* help: may be NULL; then name, args and summary say it all */
    int (*run)(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
};

int sim_start(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
int sim_stop(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
int sim_list(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
int sim_fault(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
int sim_heal(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
int sim_load(const struct command *self, const struct sim_verb *verb, int argc, char **argv);
int sim_exec(const struct command *self, const struct sim_verb *verb, int argc, char **argv);

int sim_help(const struct sim_verb *verb);

#define SIM_GOES_ON (-1)

/* For words whose only flags say which simulator: parses them and finds it running. SIM_GOES_ON, or the exit code to end
 * with. mode: FLAGS_OWN takes no words, FLAGS_STOP_AT_WORD needs some, or says `needs`. */
int sim_begin(const struct command *self, const struct sim_verb *verb, int argc, char **argv, enum flags_mode mode,
              const char *needs, struct flags *flags, struct sim_place *ret) MUST_CHECK;

/* --sim-dir (NULL: not given), else GPUSIM_DIR, else that of the instance at `dir` ("": at GPUMGR_DIR, or the default
 * one), else the simulator's own default. */
void sim_find(const char *sim_dir, const char *dir, struct sim_place *ret);

/* The same, and it must be running. */
int sim_find_running(const char *sim_dir, const char *dir, struct sim_place *ret, struct error *e) MUST_CHECK;

bool sim_is_running(const char *dir);

/* Sends one line ("fault 0 xid 79") and appends what it says. */
int sim_ask(const char *dir, const char *line, struct buf *ret, struct error *e) MUST_CHECK;

/* A list of models as the setting sim_model has it: refuses a model that does not exist and names those that do. */
int sim_check_models(const char *list, struct error *e) MUST_CHECK;

/* The GPUs that such a list and count will make, as far as it is known before they exist: no UUIDs. */
void sim_view(const char *list, int count, struct view *ret);
