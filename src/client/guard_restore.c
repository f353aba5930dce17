/* `gpumgr guard restore`: the way back after everything was killed. Where a supervisor holds the directory its sampler is
 * asked; else this puts every card that a guard has left a record of (DIR/guard/UUID) back to its baseline and removes the
 * record. A card without a record is never touched, nor one that another guard of this machine holds.
 *
 * Each card is set by a child of its own: a driver call may never come back. In observe mode no such child is begun, so
 * nothing can be set. */
#include "client/guard_restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/instance.h"
#include "base/lock.h"
#include "client/gpu_pick.h"
#include "client/guard_ask.h"
#include "gpu/control.h"
#include "model/baseline.h"

enum { PATIENCE_MS = 5000, RECORDS_MAX = 4 * GPU_MAX };

struct restoring {
    const struct command *self;
    const struct settings *settings;
    struct source *source;
    struct view *view; /* the driver's, once it was needed */
    const char *gpu;
    char dir[PATH_MAX];
    unsigned seen, failed;
    struct buf out;
};

struct record {
    struct baseline baseline;
    char path[PATH_MAX];
};

void guard_restore_lever(struct gpu *g, char *name, size_t name_room, char *why, size_t why_room) {
    struct gpu_lever l;
    gpu_lever_find(g, &l);
    snprintf(name, name_room, "%s", gpu_lever_name(l.kind));
    snprintf(why, why_room, "%s", l.why);
}

/* ---- in the child: one card ---- */

/* The lock goes with the process. A guard of the same directory that has it is a dead one: this holds the directory. */
static int lock_card(const struct restoring *c, const char *uuid, struct error *e) {
    char path[PATH_MAX], owner[PATH_MAX], who[100];
    snprintf(path, sizeof path, "%s/gpumgr-guard-%s", c->settings->lock_dir, uuid);
    snprintf(owner, sizeof owner, "%.*s", (int)(strlen(c->dir) - strlen("/guard")), c->dir);
    int fd = lock_take(path, owner, who, sizeof who, e);
    if (fd == -EBUSY) return fail(e, -EBUSY, "another guard on this machine has it%s%s", *who ? ": " : "", who);
    return fd < 0 ? fd : 0;
}

static int check_lever(const struct gpu_lever *l, const struct baseline *b, struct error *e) {
    if ((uint32_t)l->kind != b->lever)
        return fail(e, -EINVAL, "its record is of its %s, and its lever is %s now",
                    gpu_lever_name((enum gpu_lever_kind)b->lever), gpu_lever_name(l->kind));
    if (b->value < l->floor - 0.5 || b->value > l->top + 0.5)
        return fail(e, -EINVAL, "its record says %g %s, which is not from %g to %g", b->value, gpu_lever_unit(l->kind),
                    l->floor, l->top);
    return 0;
}

/* A limit may take a moment to read as it was set. A lock of clocks cannot be read at all. */
static int read_back(struct gpu *g, const struct gpu_lever *l, double want, struct error *e) {
    double now = want;
    for (int64_t until_ns = clock_boot_ns() + NS_PER_S; clock_boot_ns() < until_ns;) {
        if (gpu_lever_get(g, l, &now) < 0 || fabs(now - want) <= 0.5) return 0;
        clock_sleep_until(clock_boot_ns() + 20 * NS_PER_MS);
    }
    return fail(e, -EIO, "set to %g %s, but it reads %g", want, gpu_lever_unit(l->kind), now);
}

static int put_back(struct gpu *g, struct gpu_lever *l, const struct baseline *b, struct error *e) {
    if (l->kind == LEVER_APP_CLOCKS && b->memory_mhz > 0) l->memory_mhz = b->memory_mhz;
    int r = l->kind == LEVER_CLOCKS ? gpu_lever_reset(g, l) : gpu_lever_set(g, l, b->value);
    if (r == -EACCES) return fail(e, r, "the driver does not let this user (uid %u) set it", (unsigned)geteuid());
    if (r < 0) return fail_errno(e, -r, "the driver refuses");
    return read_back(g, l, gpu_lever_fit(l, b->value), e);
}

static int restore_card(const struct restoring *c, int32_t index, const struct baseline *b, struct error *e) {
    struct gpu_driver *driver = NULL;
    struct gpu *g = NULL;
    struct gpu_lever lever;
    int r = lock_card(c, b->uuid, e);
    if (r == 0) r = gpu_driver_open(c->source->library, &driver, e);
    if (r == 0) r = gpu_open(driver, (unsigned)index, &g, e);
    if (r < 0) return r;
    if (strcmp(gpu_inventory(g)->uuid, b->uuid) != 0) return fail(e, -EAGAIN, "it is another card now; try again");
    gpu_lever_find(g, &lever);
    r = check_lever(&lever, b, e);
    return r < 0 ? r : put_back(g, &lever, b, e);
}

/* ---- the child, seen from outside ---- */

static int hear(int fd, struct error *e) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct error said;
    int r;
    do r = poll(&p, 1, PATIENCE_MS);
    while (r < 0 && errno == EINTR);
    if (r <= 0) return fail(e, -ETIMEDOUT, "the driver did not answer within %d s", PATIENCE_MS / 1000);
    if (read(fd, &said, sizeof said) != (ssize_t)sizeof said)
        return fail(e, -EIO, "the driver's library ended the process");
    *e = said;
    return said.code;
}

static int restore_in_child(const struct restoring *c, int32_t index, const struct baseline *b, struct error *e) {
    int said[2];
    pid_t parent = getpid();
    if (pipe2(said, O_CLOEXEC) < 0) return fail_errno(e, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct error result = {0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        result.code = restore_card(c, index, b, &result);
        (void)!write(said[1], &result, sizeof result);
        _exit(0);
    }
    AUTO(fd_done) int fd = said[0];
    close(said[1]);
    if (pid < 0) return fail_errno(e, errno, "fork");
    int r = hear(fd, e);
    if (r == -ETIMEDOUT) kill(pid, SIGKILL);
    for (int i = 0; i < 250 && waitpid(pid, NULL, WNOHANG) == 0; i++)
        usleep(4000); /* one that is stuck is left behind */
    return r;
}

/* ---- records ---- */

static int record_read(const struct restoring *c, const char *name, struct record *ret, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    if (snprintf(ret->path, sizeof ret->path, "%s/%s", c->dir, name) >= (int)sizeof ret->path)
        return fail(e, -ENAMETOOLONG, "%.100s: the path is too long", name);
    int r = file_read(ret->path, BASELINE_MAX, &text, e);
    if (r == 0) r = baseline_decode(&ret->baseline, text.s, e);
    if (r == 0 && strcmp(ret->baseline.uuid, name) != 0) r = fail(e, -EINVAL, "a record of another card");
    return r < 0 ? fail_in(e, r, "%.100s", name) : 0;
}

static int look_for_cards(struct restoring *c, struct error *e) {
    if (c->source->is_direct_open) return 0;
    int r = direct_open(&c->source->direct, c->source->library, PATIENCE_MS, e);
    if (r < 0) return r;
    c->source->is_direct_open = true;
    r = direct_look(&c->source->direct, DIRECT_INVENTORY, e);
    if (r == 0) direct_fill(&c->source->direct, c->view);
    return r < 0 ? fail_in(e, r, "no GPU driver answers") : 0;
}

static const struct view_device *card_of(const struct restoring *c, const char *uuid) {
    for (size_t i = 0; i < c->view->count; i++)
        if (strcmp(c->view->of[i].inventory.uuid, uuid) == 0) return &c->view->of[i];
    return NULL;
}

static bool is_meant(const struct restoring *c, const struct view_device *d) {
    struct gpu_picked picked;
    struct error e;
    if (strcmp(c->gpu, "all") == 0) return true;
    return d && gpu_pick(c->view, c->gpu, &picked, &e) == 0 && &c->view->of[picked.of[0]] == d;
}

static void say_done(struct restoring *c, const struct view_device *d, const struct baseline *b) {
    bool acts = c->settings->guard_mode != GUARD_OBSERVE;
    enum gpu_lever_kind kind = (enum gpu_lever_kind)b->lever;
    int index = d->inventory.index;
    if (kind == LEVER_CLOCKS)
        buf_printf(&c->out, "GPU %d: %s its clocks%s.\n", index, acts ? "unlocked" : "would unlock",
                   acts ? "" : " (guard.mode is observe)");
    else
        buf_printf(&c->out, "GPU %d: %s its %s to %g %s%s.\n", index, acts ? "set" : "would set", gpu_lever_name(kind),
                   b->value, gpu_lever_unit(kind), acts ? "" : " (guard.mode is observe)");
}

static int restore_record(struct restoring *c, const struct record *rec, struct error *e) {
    const struct baseline *b = &rec->baseline;
    const struct view_device *d = card_of(c, b->uuid);
    if (!is_meant(c, d)) return 0;
    c->seen++;
    if (!d)
        return fail(e, -ENODEV, "%.60s: not to be found in this machine; its record stays (%.140s)", b->uuid,
                    rec->path);
    if (c->settings->guard_mode != GUARD_OBSERVE) {
        int r = restore_in_child(c, d->inventory.index, b, e);
        if (r < 0) return fail_in(e, r, "GPU %d", (int)d->inventory.index);
        if (unlink(rec->path) < 0 && errno != ENOENT) return fail_errno(e, errno, "%s", rec->path);
    }
    say_done(c, d, b);
    return 0;
}

static void restore_name(struct restoring *c, const char *name) {
    struct record rec;
    struct error e;
    int r = record_read(c, name, &rec, &e);
    if (r == 0) r = look_for_cards(c, &e);
    if (r == 0) r = restore_record(c, &rec, &e);
    if (r == 0) return;
    c->failed++;
    command_fail(c->self, &e, EXIT_FAILED);
}

static int restore_all(struct restoring *c, struct error *e) {
    struct dirent **names = NULL;
    int n = scandir(c->dir, &names, NULL, alphasort);
    if (n < 0 && errno != ENOENT) return fail_errno(e, errno, "%s", c->dir);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        bool is_half = strstr(name, ".new.") != NULL; /* what a writer that died was about to rename */
        if (name[0] != '.' && !is_half && i < RECORDS_MAX) restore_name(c, name);
        free(names[i]);
    }
    free(names);
    return 0;
}

/* ---- where ---- */

/* After a power loss the run directory is gone with its tmpfs; what was recorded lies in the directory itself. */
static int find_dir(const struct settings *s, struct instance *ret, struct error *e) {
    char dir[PATH_MAX], real[PATH_MAX];
    struct stat st;
    snprintf(dir, sizeof dir, "%s", s->dir);
    if (!*dir && instance_default_dir(dir, sizeof dir, e) < 0) return e->code;
    if (!realpath(dir, real) || stat(real, &st) < 0) return fail_errno(e, errno, "dir: %.160s", dir);
    if (strlen(real) >= sizeof ret->dir) return fail(e, -ENAMETOOLONG, "dir: the path is too long");
    *ret = (struct instance){.owner = st.st_uid};
    memcpy(ret->dir, real, strlen(real) + 1);
    return 0;
}

static int nothing_to_do(const char *why) {
    AUTO(buf_done) struct buf b = {0};
    buf_printf(&b, "Nothing to restore: %s.\n", why);
    return output_exit(&b);
}

/* Holds the directory meanwhile, so that no guard begins in the middle. */
static int restore_here(struct restoring *c, const struct instance *i) {
    AUTO(fd_done) int lock = -1;
    struct error e;
    snprintf(c->dir, sizeof c->dir, "%s/guard", i->dir);
    if (access(c->dir, F_OK) < 0 && errno == ENOENT) return nothing_to_do("no guard has left a record");
    int r = instance_lock(i, &lock, &e);
    if (r == 0) r = restore_all(c, &e);
    if (r < 0) return command_fail(c->self, &e, EXIT_FAILED);
    if (!c->seen && !c->failed) return nothing_to_do("no guard has left a record");
    int shown = output_exit(&c->out);
    return c->failed ? EXIT_FAILED : shown;
}

int guard_restore(const struct command *self, const struct loaded *l, const char *gpu) {
    AUTO(view_done) struct view view = {0};
    AUTO(source_close) struct source source;
    struct instance i;
    struct error e;
    source_find(&source, &l->values);
    if (source.holder) return guard_ask_restore(self, l, gpu);
    int r = find_dir(&l->values, &i, &e);
    if (r == -ENOENT) return nothing_to_do("no gpumgr has run here");
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    struct restoring c = {.self = self, .settings = &l->values, .source = &source, .view = &view, .gpu = gpu};
    int code = restore_here(&c, &i);
    buf_done(&c.out);
    return code;
}
