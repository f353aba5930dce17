/* gpumgr-core: the processes that must be small and must not die of someone else's library. Links libc and nothing
 * else; started by `gpumgr up`, `node` and `server`, not by hand. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "core/sampler.h"
#include "core/supervisor.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} programs[] = {
    {"supervise", supervisor_main},
    {"sample",    sampler_main   },
};

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* whoever reads the log may go: the GPUs are watched on */
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(programs); i++)
        if (strcmp(argv[1], programs[i].name) == 0) return programs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "gpumgr-core: started by gpumgr up; see gpumgr --help\n");
    return 2;
}
