#include "client/begin.h"

int command_begin(const struct command *self, int argc, char **argv, const struct flag *own, size_t own_count,
                  enum load_mode mode, struct loaded *ret) {
    struct flags flags;
    struct error e;
    int r = flags_parse(argc, argv, own, own_count, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    if (r == 0) r = flags_no_words(&flags, &e);
    if (r == 0) r = settings_load(&flags, mode, ret, &e);
    return r < 0 ? command_fail(self, &e, EXIT_INPUT) : COMMAND_GOES_ON;
}
