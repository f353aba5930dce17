/* gpusim-task: a process that uses simulated GPUs. It registers with the simulator, holds the device files open and waits
 * until its work is done; how long that takes is the simulator's business. Killing it ends the task.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "sim/amount.h"
#include "sim/client.h"
#include "sim/load.h"

struct job {
    char dir[4096];
    struct wire_task ask;
    const char *moments; /* file; NULL: none */
    bool quiet;
};

static const struct {
    const char *name, *arg, *help;
} rows[] = {
    {"gpu",     "I",       "use that GPU of the machine; give it again for more (all of $CUDA_VISIBLE_DEVICES, else 0)"},
    {"memory",  "SIZE",    "take that much on each: 4G, 512M (512M)"                                                   },
    {"demand",  "SHARE",   "of a GPU: 14%, 100% (100%)"                                                                },
    {"work",    "SECONDS", "as long as that alone at full speed (10)"                                                  },
    {"forever", NULL,      "work until killed"                                                                         },
    {"kind",    "KIND",    "matmul, copy, small, graphics, infer, video, hpc, idle (matmul)"                           },
    {"mig",     "I",       "use that MIG instance of the GPU (the first)"                                              },
    {"mps",     NULL,      "be a client of an MPS server, which is a task of its own: --kind idle"                     },
    {"name",    "NAME",    "be called that in lists and in the kernel log (gpusim-task)"                               },
    {"dir",     "DIR",     "the simulator's: $GPUSIM_DIR, else /dev/shm/gpusim-UID"                                    },
    {"moments", "FILE",    "append name, when it opened the devices, registered and ended, by the boot clock, ns"      },
    {"quiet",   NULL,      "print nothing when all goes well"                                                          },
    {"help",    NULL,      "this"                                                                                      },
};

__attribute__((noreturn)) PRINTF(2, 3) static void leave(int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("gpusim-task: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(code);
}

static void print_help(void) {
    printf("Usage: gpusim-task [OPTION]...\nUses simulated GPUs for an amount of work, and says how long it took.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        printf("  --%-8s %-8s %s\n", rows[i].name, rows[i].arg ? rows[i].arg : "", rows[i].help);
    printf("\nExample: gpusim-task --gpu 0 --memory 4G --demand 14%% --work 10\n");
}

static void take_gpus(struct job *j, const char *list) {
    char text[256];
    snprintf(text, sizeof text, "%s", list);
    char *rest = text;
    for (char *item; (item = strsep(&rest, ","));) {
        uint32_t i;
        if (!amount_count(item, 0, SHM_GPUS_MAX - 1, &i)) leave(2, "--gpu: an index of 0 to 63, not '%s'", item);
        j->ask.gpus |= UINT64_C(1) << i;
    }
}

static void take(struct job *j, const char *name) {
    if (strcmp(name, "gpu") == 0) {
        take_gpus(j, optarg);
    } else if (strcmp(name, "memory") == 0) {
        if (!amount_bytes(optarg, &j->ask.memory_bytes)) leave(2, "--memory: a size such as 4G, not '%s'", optarg);
    } else if (strcmp(name, "demand") == 0) {
        if (!amount_share(optarg, &j->ask.demand)) leave(2, "--demand: 0%% to 100%%, not '%s'", optarg);
    } else if (strcmp(name, "work") == 0) {
        if (!amount_seconds(optarg, &j->ask.work_s)) leave(2, "--work: seconds of 0 or more, not '%s'", optarg);
    } else if (strcmp(name, "forever") == 0) {
        j->ask.work_s = INFINITY;
    } else if (strcmp(name, "kind") == 0) {
        int k = kind_by_name(optarg);
        if (k < 0) leave(2, "--kind '%s': no such kind of task; --help lists them", optarg);
        j->ask.kind = (uint32_t)k;
    } else if (strcmp(name, "mig") == 0) {
        if (!amount_count(optarg, 0, SHM_MIG_MAX - 1, &j->ask.mig)) leave(2, "--mig: 0 to 6, not '%s'", optarg);
    } else if (strcmp(name, "mps") == 0) {
        j->ask.is_mps = 1;
    } else if (strcmp(name, "name") == 0) {
        snprintf(j->ask.name, sizeof j->ask.name, "%s", optarg);
    } else if (strcmp(name, "dir") == 0) {
        snprintf(j->dir, sizeof j->dir, "%s", optarg);
    } else if (strcmp(name, "moments") == 0) {
        j->moments = optarg;
    } else if (strcmp(name, "quiet") == 0) {
        j->quiet = true;
    } else if (strcmp(name, "help") == 0) {
        print_help();
        exit(0);
    }
}

static void parse(struct job *j, int argc, char **argv) {
    struct option table[ARRAY_LEN(rows) + 1] = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        table[i] = (struct option){.name = rows[i].name, .has_arg = rows[i].arg ? required_argument : no_argument};
    opterr = 0;
    for (int c, i; (c = getopt_long(argc, argv, ":", table, &i)) != -1;) {
        if (c == ':') leave(2, "%s needs a value", argv[optind - 1]);
        if (c != 0) leave(2, "%s: no such option; --help lists them", argv[optind - 1]);
        take(j, table[i].name);
    }
    if (optind < argc) leave(2, "'%s': options only", argv[optind]);
}

/* ---- which GPUs ---- */

/* An index of the machine, or a UUID of a card or of an instance; how much of it is enough to tell which is CUDA's business. */
static bool see(struct job *j, const struct shm_root *root, const char *word) {
    uint32_t index;
    if (amount_count(word, 0, root->gpu_count ? root->gpu_count - 1 : 0, &index)) {
        j->ask.gpus |= UINT64_C(1) << index;
        return true;
    }
    for (uint32_t i = 0; i < root->gpu_count; i++) {
        const struct shm_card *c = &shm_gpu(root, i)->card;
        bool is_it = strcmp(c->uuid, word) == 0;
        for (uint32_t k = 0; k < c->mig_count && !is_it; k++) {
            is_it = strcmp(c->mig[k].uuid, word) == 0;
            if (is_it) j->ask.mig = k;
        }
        if (is_it) j->ask.gpus |= UINT64_C(1) << i;
        if (is_it) return true;
    }
    return false;
}

/* What it was not told, its surroundings say, as to a CUDA process. */
static void see_all(struct job *j, const struct shm_root *root) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char text[8192];
    if (j->ask.gpus) return;
    snprintf(text, sizeof text, "%s", visible ? visible : "0");
    char *rest = text;
    for (char *item; (item = strsep(&rest, ","));)
        if (!see(j, root, item)) break; /* as CUDA does: what stands behind one that is not there is not seen either */
    if (!j->ask.gpus) leave(1, "no GPU is visible: CUDA_VISIBLE_DEVICES is \"%s\"", visible ? visible : "");
}

static void open_device(const struct job *j, const char *name) {
    /* Below the directory that was given and not as published: in a container it has another name. */
    char path[sizeof j->dir + 64];
    snprintf(path, sizeof path, "%s/" SHM_DEV "/%s", j->dir, name);
    if (open(path, O_RDWR | O_CLOEXEC) < 0 && errno != ENOENT) leave(1, "open %s: %s", path, strerror(errno));
}

/* As a CUDA process does: the control device, the memory device, then each GPU's. They stay open until the end. */
static void open_devices(const struct job *j, const struct shm_root *root) {
    open_device(j, "nvidiactl");
    open_device(j, "nvidia-uvm");
    for (uint32_t i = 0; i < root->gpu_count; i++) {
        char name[32];
        if (!(j->ask.gpus >> i & 1)) continue;
        snprintf(name, sizeof name, "nvidia%u", shm_gpu(root, i)->card.minor_number);
        open_device(j, name);
    }
}

static void print_moment(const char *what) {
    struct timespec now;
    struct tm local;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(text, sizeof text, "%F %T", &local);
    printf("%-8s %s.%03ld\n", what, text, now.tv_nsec / 1000000);
    fflush(stdout);
}

static int connect_to(struct job *j) {
    const struct shm_root *root;
    int r = shm_open_dir(j->dir, &root);
    if (r == -EPROTO) leave(1, "%s: the simulator there is of another version", j->dir);
    if (r < 0) leave(1, "no simulator in %s (start one with gpusim --dir %s)", j->dir, j->dir);
    see_all(j, root);
    open_devices(j, root);
    shm_close_dir(root);
    int fd = client_open(j->dir);
    if (fd < 0) leave(1, "no simulator answers in %s: %s", j->dir, strerror(-fd));
    return fd;
}

/* One line in one write, so that several may share a file. */
static void append_moments(const struct job *j, int64_t opened_ns, int64_t registered_ns) {
    char line[160];
    int fd = open(j->moments, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) leave(1, "%s: %s", j->moments, strerror(errno));
    int n = snprintf(line, sizeof line, "%s %lld %lld %lld\n", j->ask.name, (long long)opened_ns,
                     (long long)registered_ns, (long long)clock_boot_ns());
    if (write(fd, line, (size_t)n) != n) leave(1, "%s: could not be written", j->moments);
}

int main(int argc, char **argv) {
    struct job j = {
        .ask = {.demand = 1, .work_s = 10, .memory_bytes = 512u << 20, .mig = UINT32_MAX}
    };
    shm_default_dir(j.dir, sizeof j.dir);
    snprintf(j.ask.name, sizeof j.ask.name, "gpusim-task");
    parse(&j, argc, argv);
    prctl(PR_SET_NAME, j.ask.name);

    int64_t opened_ns = clock_boot_ns();
    int fd = connect_to(&j);
    struct wire_request q = {.verb = VERB_TASK, .task = j.ask};
    static struct wire_reply r;
    int bad = client_ask(fd, &q, &r, 10000);
    if (bad < 0) leave(1, "the simulator did not answer: %s", strerror(-bad));
    if (r.code) leave(1, "%s", r.text);
    int64_t registered_ns = r.started.boot_ns;
    if (!j.quiet) print_moment("start");

    do bad = client_receive(fd, &r, -1);
    while (bad >= 0 && r.verb != VERB_TASK_DONE);
    if (bad < 0) leave(1, "the simulator went away before the work was done");
    if (r.code) leave(1, "%s", r.text);
    if (!j.quiet) {
        print_moment("end");
        printf("%-8s %.3f s\n", "elapsed", r.done.elapsed_s);
    }
    if (j.moments) append_moments(&j, opened_ns, registered_ns);
    return 0;
}
