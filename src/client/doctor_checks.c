/* The machine around the GPUs: driver, rights, the running instance, the kernel log. One function a topic. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number.h"
#include "client/doctor.h"
#include "client/surroundings.h"

enum { PATIENCE_MS = 5000 };

static void check_settings(struct doctor *d) {
    if (*d->loaded.warning)
        report_add(&d->report, FINDING_ATTENTION, "settings", "`gpumgr config` shows what is in force and where from",
                   "%s", d->loaded.warning);
    else
        report_add(&d->report, FINDING_GOOD, "settings", NULL, "file: %s",
                   *d->loaded.file ? d->loaded.file : "none, defaults");
}

static void check_driver(struct doctor *d) {
    struct error e;
    int r = direct_open(&d->direct, d->source.library, PATIENCE_MS, &e);
    if (r == 0) r = direct_look(&d->direct, DIRECT_READ, &e);
    if (r < 0) {
        report_add(&d->report, FINDING_ATTENTION, "driver",
                   "install or load the NVIDIA driver, name its library with --gpu-library, or try simulated GPUs: "
                   "`gpumgr up --sim 8`",
                   "%s", e.text);
        return;
    }
    d->has_driver = true;
    direct_fill(&d->direct, &d->view);
    report_add(&d->report, FINDING_GOOD, "driver", NULL, "%s answers: %d GPU%s, by %s", d->direct.shared->version,
               (int)d->direct.shared->gpu_count, d->direct.shared->gpu_count == 1 ? "" : "s",
               d->direct.shared->library);
    if (d->direct.shared->gpu_count == 0)
        report_add(&d->report, FINDING_ATTENTION, "driver", "`lspci` and the kernel log say whether a card is seen",
                   "it knows of no GPU");
}

static void check_devices(struct doctor *d) {
    glob_t g = {0};
    unsigned good = 0;
    if (glob("/dev/nvidia[0-9]*", 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++) {
            if (access(g.gl_pathv[i], R_OK | W_OK) == 0)
                good++;
            else
                report_add(&d->report, FINDING_ATTENTION, "permissions",
                           "have an administrator give this user access (often a group such as video)", "%s: %s",
                           g.gl_pathv[i], strerror(errno));
        }
        report_add(&d->report, FINDING_GOOD, "permissions", NULL, "%u of %zu device files may be used", good,
                   g.gl_pathc);
    }
    globfree(&g);
}

static void check_permissions(struct doctor *d) {
    if (geteuid() == 0)
        report_add(&d->report, FINDING_GOOD, "permissions", NULL, "root: may read everything and set limits");
    else
        report_add(&d->report, FINDING_NOTE, "permissions", "run `gpumgr up` as root to let its guard act on cards",
                   "uid %u: may read, but the driver lets only root set power limits and clocks", (unsigned)geteuid());
    check_devices(d);
}

static void check_worker(struct doctor *d, unsigned i) {
    const struct ring *ring = &d->source.rings.of[i].ring;
    int64_t silent_ns = clock_boot_ns() - ring_beat_ns(ring);
    char age[32];
    number_age(silent_ns, age, sizeof age);
    if (silent_ns > RINGS_SILENT_NS)
        report_add(&d->report, FINDING_ATTENTION, "instance",
                   "the supervisor restarts a dead sampler within seconds; if it does not, see its log",
                   "sampler %u (pid %u) has said nothing for %s", i, ring_writer(ring), age);
    else
        report_add(&d->report, FINDING_GOOD, "instance", NULL, "sampler %u: pid %u, %u device%s, alive %s ago", i,
                   ring_writer(ring), ring_devices(ring), ring_devices(ring) == 1 ? "" : "s", age);
}

static void check_samples(struct doctor *d) {
    int64_t newest_ns = rings_newest_ns(&d->source.rings), age_ns = clock_boot_ns() - newest_ns;
    char age[32];
    number_age(age_ns, age, sizeof age);
    if (!newest_ns)
        report_add(&d->report, FINDING_ATTENTION, "instance",
                   "if no GPU is known, see what is said of the driver above", "no sample has been written yet");
    else if (age_ns > RINGS_SILENT_NS + 3 * d->loaded.values.wait_ms * NS_PER_MS)
        report_add(&d->report, FINDING_ATTENTION, "instance", "see the log of `gpumgr up`",
                   "the newest sample is %s old", age);
    else
        report_add(&d->report, FINDING_GOOD, "instance", NULL, "the newest sample is %s old", age);
}

static void check_instance(struct doctor *d) {
    struct source *s = &d->source;
    if (!s->has_instance || !s->holder) {
        report_add(&d->report, FINDING_NOTE, "instance", "`gpumgr up` starts one", "no gpumgr runs here%s%s",
                   s->has_instance ? "; its directory would be " : "", s->has_instance ? s->instance.dir : "");
        if (!s->has_instance) return;
    } else {
        report_add(&d->report, FINDING_GOOD, "instance", NULL, "supervisor: pid %d, in %s", (int)s->holder,
                   s->instance.dir);
    }
    if (!s->instance.run_is_tmpfs)
        report_add(&d->report, FINDING_ATTENTION, "instance",
                   "give --dir on a tmpfs, or make /run or /dev/shm one: a disk can stall the sampler",
                   "%s is not on tmpfs", s->instance.run);
    if (!s->holder) return;
    rings_open(&s->rings, &s->instance);
    if (*s->rings.problem)
        report_add(&d->report, FINDING_ATTENTION, "instance", "restart it with this version", "%s", s->rings.problem);
    for (unsigned i = 0; i < RINGS_MAX; i++)
        if (s->rings.of[i].is_open) check_worker(d, i);
    check_samples(d);
    rings_fill(&s->rings, &d->daemon);
}

static void check_kernel_log(struct doctor *d) {
    const char *path = d->loaded.values.kmsg;
    if (!*path) {
        report_add(&d->report, FINDING_NOTE, "kernel log", "set sampler.kmsg to /dev/kmsg to see XIDs in it",
                   "not read (sampler.kmsg is empty)");
        return;
    }
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char byte[8192];
    bool can = fd >= 0 && (read(fd, byte, sizeof byte) >= 0 || errno == EAGAIN || errno == EPIPE);
    if (can)
        report_add(&d->report, FINDING_GOOD, "kernel log", NULL, "%s can be read", path);
    else
        report_add(&d->report, FINDING_NOTE, "kernel log",
                   "XIDs still come as driver events; as root, or with kernel.dmesg_restrict=0, from the log, too",
                   "%s: %s", path, strerror(errno));
}

/* The sampler notices a process that opens a GPU by watching its device file. */
static void check_inotify(struct doctor *d) {
    AUTO(fd_done) int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0)
        report_add(&d->report, FINDING_GOOD, "inotify", NULL, "available: new GPU processes are noticed at once");
    else
        report_add(&d->report, FINDING_NOTE, "inotify", "raise fs.inotify.max_user_instances",
                   "%s: new GPU processes are noticed at the next reading", strerror(errno));
}

static void check_container(struct doctor *d) {
    struct surroundings s = surroundings_look();
    const char *lacks[SURROUNDINGS_LACKS_MAX];
    size_t n = surroundings_lacks(&s, lacks);
    if (!s.is_container) return;
    for (size_t i = 0; i < n; i++)
        report_add(&d->report, FINDING_NOTE, "container", "start the container with that option", "%s", lacks[i]);
    if (!n) report_add(&d->report, FINDING_GOOD, "container", NULL, "has the rights and the sight that gpumgr needs");
}

void doctor_examine(struct doctor *d) {
    static void (*const checks[])(struct doctor *) = {check_settings,    check_driver,        check_permissions,
                                                      check_container,   check_instance,      check_kernel_log,
                                                      check_inotify,     doctor_check_server, doctor_check_engines,
                                                      doctor_check_gpus, doctor_check_guard};
    source_find(&d->source, &d->loaded.values);
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) checks[i](d);
}

void doctor_done(struct doctor *d) {
    if (d->direct.shared) direct_close(&d->direct);
    source_close(&d->source);
    view_done(&d->view);
    view_done(&d->daemon);
    report_done(&d->report);
}
