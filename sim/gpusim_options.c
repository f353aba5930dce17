/* One row an option; the same table prints the help. */
#include "sim/gpusim_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/amount.h"
#include "sim/shm.h"

static const struct {
    const char *name, *arg, *help;
} rows[] = {
    {"dir",        "DIR",     "where it lives: $GPUSIM_DIR, else /dev/shm/gpusim-UID"                     },
    {"gpus",       "N",       "that many GPUs, the list of --model over and over (as many as it lists)"   },
    {"model",      "LIST",    "models, as in h200:8 or h200,a100:2,rtx4090 (h200)"                        },
    {"mig",        NULL,      "cut cards that can into MIG instances"                                     },
    {"seed",       "N",       "identities, noise and the day follow from it (1)"                          },
    {"costs",      NULL,      "NVML calls take as long as on an H200"                                     },
    {"day",        NULL,      "play a lively day: tasks come and go, one card is hot, one throws XIDs"    },
    {"speed",      "FACTOR",  "simulated seconds in a second (1)"                                         },
    {"ambient",    "C",       "temperature of the air that comes in (27)"                                 },
    {"shared-air", "K/W",     "each card warms the others' air by so much a watt (0)"                     },
    {"tied",       NULL,      "end when the process that started this one ends"                           },
    {"tell",       "COMMAND", "pass a command on to the simulator that runs there; --tell help lists them"},
    {"models",     NULL,      "list the models"                                                           },
    {"help",       NULL,      "this"                                                                      },
};

static void print_help(void) {
    printf("Usage: gpusim [OPTION]...\nSimulated NVIDIA GPUs: keeps them, publishes their readings, takes tasks and "
           "settings.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        printf("  --%-12s %-7s %s\n", rows[i].name, rows[i].arg ? rows[i].arg : "", rows[i].help);
    printf("\nExample: gpusim --dir /dev/shm/s --model h200:8 --day &\n"
           "         GPUSIM_DIR=/dev/shm/s gpusim-task --gpu 0 --work 10\n");
}

static void print_models(void) {
    for (size_t i = 0; i < model_count; i++)
        printf("  %-8s  %-24s  %s\n", models[i].key, models[i].name, models[i].help);
}

/* One item of --model: NAME or NAME:COUNT. */
static int add_models(struct gpusim_options *o, char *item, struct error *e) {
    char *colon = strchr(item, ':');
    uint32_t count = 1;
    if (colon) *colon = '\0';
    if (colon && !amount_count(colon + 1, 1, SHM_GPUS_MAX, &count))
        return fail(e, -EINVAL, "--model %s: a count of 1 to %d is needed, not '%s'", item, SHM_GPUS_MAX, colon + 1);
    const struct model *m = model_by_key(item);
    if (!m) return fail(e, -EINVAL, "--model '%s': no such model; --models lists them", item);
    if (o->gpu_count + count > SHM_GPUS_MAX) return fail(e, -EINVAL, "--model: at most %d GPUs", SHM_GPUS_MAX);
    while (count--) o->model[o->gpu_count++] = m;
    return 0;
}

static int parse_models(struct gpusim_options *o, const char *list, struct error *e) {
    char text[512];
    if ((size_t)snprintf(text, sizeof text, "%s", list) >= sizeof text) return fail(e, -EINVAL, "--model: too long");
    char *rest = text;
    for (char *item; (item = strsep(&rest, ","));) {
        int r = add_models(o, item, e);
        if (r < 0) return r;
    }
    return 0;
}

static int bad(struct error *e, const char *name, const char *want) {
    return fail(e, -EINVAL, "--%s: %s, not '%s'", name, want, optarg);
}

static int take(struct gpusim_options *o, const char *name, uint32_t *gpus, struct error *e) {
    double number;
    if (strcmp(name, "dir") == 0) {
        if (!*optarg || (size_t)snprintf(o->dir, sizeof o->dir, "%s", optarg) >= sizeof o->dir)
            return bad(e, name, "a directory is needed");
    } else if (strcmp(name, "gpus") == 0) {
        if (!amount_count(optarg, 1, SHM_GPUS_MAX, gpus)) return bad(e, name, "a count of 1 to 64");
    } else if (strcmp(name, "model") == 0) {
        return parse_models(o, optarg, e);
    } else if (strcmp(name, "seed") == 0) {
        if (!amount_number(optarg, 0, 9e15, &number)) return bad(e, name, "a whole number of 0 or more");
        o->seed = (uint64_t)number;
    } else if (strcmp(name, "speed") == 0) {
        if (!amount_number(optarg, 0.01, 1000, &o->speed)) return bad(e, name, "a factor of 0.01 to 1000");
    } else if (strcmp(name, "ambient") == 0) {
        if (!amount_number(optarg, -20, 60, &o->air_c)) return bad(e, name, "a temperature of -20 to 60");
    } else if (strcmp(name, "shared-air") == 0) {
        if (!amount_number(optarg, 0, 0.1, &o->shared_air_k)) return bad(e, name, "0 to 0.1 kelvins a watt");
    }
    if (strcmp(name, "tell") == 0) o->tell = optarg;
    o->mig |= strcmp(name, "mig") == 0;
    o->costs |= strcmp(name, "costs") == 0;
    o->day |= strcmp(name, "day") == 0;
    o->tied |= strcmp(name, "tied") == 0;
    return 0;
}

int gpusim_options_parse(struct gpusim_options *o, int argc, char **argv, struct error *e) {
    struct option table[ARRAY_LEN(rows) + 1] = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        table[i] = (struct option){.name = rows[i].name, .has_arg = rows[i].arg ? required_argument : no_argument};

    *o = (struct gpusim_options){.seed = 1, .speed = 1, .air_c = 27};
    shm_default_dir(o->dir, sizeof o->dir);
    uint32_t gpus = 0;
    opterr = 0;
    for (int c, i; (c = getopt_long(argc, argv, ":", table, &i)) != -1;) {
        if (c == ':') return fail(e, -EINVAL, "%s needs a value", argv[optind - 1]);
        if (c != 0) return fail(e, -EINVAL, "%s: no such option; --help lists them", argv[optind - 1]);
        if (strcmp(table[i].name, "help") == 0) return print_help(), 1;
        if (strcmp(table[i].name, "models") == 0) return print_models(), 1;
        int r = take(o, table[i].name, &gpus, e);
        if (r < 0) return r;
    }
    if (optind < argc) return fail(e, -EINVAL, "'%s': gpusim takes options only", argv[optind]);
    if (o->gpu_count == 0) o->model[o->gpu_count++] = &models[0];
    uint32_t listed = o->gpu_count;
    for (uint32_t i = listed; i < gpus; i++) o->model[i] = o->model[i - listed];
    if (gpus) o->gpu_count = gpus;
    return 0;
}
