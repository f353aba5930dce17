#include "node/runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"

#define KEPT "kept"

/* ---- names ---- */

void run_name(const struct wire_run_key *k, char ret[OWNERS_NAME]) {
    snprintf(ret, OWNERS_NAME, "%" PRId64 ".%u.%u", k->job, k->element, k->attempt);
}

bool run_parse_name(const char *name, struct wire_run_key *ret) {
    struct wire_run_key k;
    char again[OWNERS_NAME];
    if (sscanf(name, "%" SCNd64 ".%u.%u", &k.job, &k.element, &k.attempt) != 3) return false;
    run_name(&k, again);
    if (strcmp(again, name) != 0) return false;
    *ret = k;
    return true;
}

void run_path(const struct runs *r, const char *name, const char *file, char *ret, size_t room) {
    struct stat st;
    snprintf(ret, room, "%s/%s", r->dir, name);
    const char *kept = stat(ret, &st) < 0 ? KEPT "/" : "";
    snprintf(ret, room, "%s/%s%s%s%s", r->dir, kept, name, *file ? "/" : "", file);
}

/* ---- in memory ---- */

static struct run **place(const struct runs *r, const struct wire_run_key *k) {
    uint64_t h = ((uint64_t)k->job * 31 + k->element) * 31 + k->attempt;
    struct run **at = (struct run **)(uintptr_t)&r->bucket[h % RUNS_BUCKETS];
    while (*at && memcmp(&(*at)->key, k, sizeof *k) != 0) at = &(*at)->next;
    return at;
}

struct run *runs_find(const struct runs *r, const struct wire_run_key *k) {
    return *place(r, k);
}

struct run *runs_newest(const struct runs *r, int64_t job, uint32_t element) {
    struct run *newest = NULL;
    for (unsigned b = 0; b < RUNS_BUCKETS; b++)
        for (struct run *run = r->bucket[b]; run; run = run->next)
            if (run->key.job == job && run->key.element == element &&
                (!newest || run->key.attempt > newest->key.attempt))
                newest = run;
    return newest;
}

static struct run *take_in(struct runs *r, const struct wire_run_key *k) {
    struct run *run = calloc(1, sizeof *run);
    if (!run) abort();
    run->key = run->said.key = *k;
    run->pidfd = run->watch = -1;
    run->uid = UINT32_MAX;
    run_name(k, run->name);
    struct run **at = place(r, k);
    run->next = *at;
    *at = run;
    r->count++;
    return run;
}

void runs_drop(struct runs *r, struct run *run) {
    struct run **at = place(r, &run->key);
    if (*at == run) *at = run->next;
    r->count--;
    fd_done(&run->pidfd);
    free(run->uuid);
    free(run);
}

/* ---- on the disk ---- */

static int sync_path(const char *path, int flags, struct error *e) {
    AUTO(fd_done) int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0) return fail_errno(e, errno, "%s", path);
    return 0;
}

int runs_open(struct runs *r, const struct instance *where, struct error *e) {
    char path[300];
    AUTO(buf_done) struct buf boot = {0};
    r->where = *where;
    snprintf(r->dir, sizeof r->dir, "%s/jobs", where->dir);
    snprintf(path, sizeof path, "%s/" KEPT, r->dir);
    int got = dir_make(r->dir, 0711, e);
    if (got >= 0) got = dir_make(path, 0711, e);
    if (got < 0) return got;
    if (file_read("/proc/sys/kernel/random/boot_id", 64, &boot, e) >= 0)
        snprintf(r->boot_id, sizeof r->boot_id, "%.*s", (int)strcspn(boot.s, "\n"), boot.s);
    return 0;
}

/* With all that is in it: whoever was killed while he wrote left half a file of another name. */
static void remove_run(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) (void)unlinkat(dirfd(d), entry->d_name, 0);
    if (d) closedir(d);
    rmdir(dir);
}

/* All names first, then the syncs: a file system with a journal has them in one go. The directory counts from when `run` in it is
 * whole: half of one is what nothing was ever started from, and is taken away (runs_load). */
static int make_dir(struct runs *r, const char *name, const void *grant, size_t n, struct record *end,
                    struct error *e) {
    char path[320], state[340], file[340];
    struct stat st;
    run_path(r, name, "", path, sizeof path);
    if (stat(path, &st) == 0) return fail(e, -EEXIST, "run %s is there", name);
    snprintf(path, sizeof path, "%s/%s", r->dir, name);
    snprintf(state, sizeof state, "%s/state", path);
    snprintf(file, sizeof file, "%s/run", path);
    CRASH_POINT();
    if (mkdir(path, 0711) < 0 || chmod(path, 0711) < 0) return fail_errno(e, errno, "%s", path);
    AUTO(fd_done) int fd = -1;
    CRASH_POINT();
    int got = record_make(state, &fd, e);
    if (got >= 0 && end) got = record_append(fd, end, false, e);
    if (got >= 0) got = file_write(file, 0600, grant, n, false, e);
    CRASH_POINT();
    if (got >= 0 && fsync(fd) < 0) got = fail_errno(e, errno, "%s", state);
    if (got >= 0) got = sync_path(file, O_RDONLY, e);
    if (got >= 0) got = sync_path(path, O_RDONLY | O_DIRECTORY, e);
    if (got >= 0) got = sync_path(r->dir, O_RDONLY | O_DIRECTORY, e);
    CRASH_POINT();
    if (got < 0) remove_run(path);
    return got;
}

static void read_spec(struct run *run, const struct wire_grant *g) {
    struct job_spec spec;
    run->uid = g->sealed.uid;
    run->gpus = g->gpus;
    free(run->uuid);
    run->uuid = malloc(g->gpus * sizeof *run->uuid + 1);
    if (!run->uuid) abort();
    memcpy(run->uuid, g->uuid, g->gpus * sizeof *run->uuid);
    if (job_decode(g->sealed.record, g->sealed.record_len, &spec, NULL) < 0) return; /* starting it says so */
    snprintf(run->title, sizeof run->title, "%s", spec.name);
    run->is_image = *spec.image;
    run->is_service = spec.service.count > 0;
    run->share_bytes = spec.share_bytes;
    run->share_over = (uint8_t)spec.share_over;
    run->idle_over = (uint8_t)spec.idle_over;
}

int runs_make(struct runs *r, const struct wire_grant *g, struct run **ret, struct error *e) {
    AUTO(buf_done) struct buf bytes = {0};
    char name[OWNERS_NAME];
    run_name(&g->key, name);
    wire_put_grant(&bytes, g);
    int got = make_dir(r, name, bytes.s, bytes.len, NULL, e);
    if (got < 0) return got;
    struct run *run = take_in(r, &g->key);
    read_spec(run, g);
    run->said.state = RUN_STARTING;
    *ret = run;
    return 0;
}

int runs_make_ended(struct runs *r, const struct wire_run_key *k, uint8_t reason, struct error *e) {
    struct record end = {.kind = RECORD_EXIT, .reason = reason};
    char name[OWNERS_NAME];
    run_name(k, name);
    snprintf(end.boot_id, sizeof end.boot_id, "%s", r->boot_id);
    return make_dir(r, name, "", 0, &end, e);
}

/* ---- what the records say ---- */

static void say_records(const struct record_state *s, struct wire_run *ret) {
    const struct record *started = &s->of[RECORD_STARTED], *end = &s->of[RECORD_EXIT], *done = &s->of[RECORD_DONE];
    const struct record *figures = &s->of[RECORD_FIGURES];
    ret->state = s->has[RECORD_EXIT]       ? RUN_ENDED
                 : s->has[RECORD_STOPPING] ? RUN_ENDING
                 : s->has[RECORD_STARTED]  ? RUN_RUNNING
                                           : RUN_STARTING;
    ret->gpu_ratio = ret->cpu_ratio = __builtin_nan("");
    if (s->has[RECORD_STARTED]) {
        ret->pid = started->pid;
        ret->start_ns = started->real_ns;
    }
    if (s->has[RECORD_STOPPING]) ret->reason = s->of[RECORD_STOPPING].reason;
    if (s->has[RECORD_EXIT]) {
        const struct record *use = s->has[RECORD_DONE] ? done : end;
        ret->reason = end->reason;
        ret->end_ns = end->real_ns;
        ret->has_exit = end->has_exit;
        ret->code = end->code;
        ret->signal = end->signal;
        ret->cpu_seconds = (double)(use->user_us + use->system_us) * 1e-6;
        ret->host_peak_bytes = use->host_peak_bytes;
        ret->log_bytes = use->log_bytes;
        snprintf(ret->text, sizeof ret->text, "%s", *end->text ? end->text : s->has[RECORD_DONE] ? done->text : "");
        double run_s = (double)(end->boot_ns - started->boot_ns) * 1e-9;
        if (s->has[RECORD_STARTED] && end->has_exit && run_s > 0) ret->cpu_ratio = ret->cpu_seconds / run_s;
    }
    if (!s->has[RECORD_FIGURES]) return;
    ret->gpu_seconds = figures->gpu_seconds;
    ret->energy_joules = figures->energy_joules;
    ret->gpu_ratio = figures->gpu_ratio;
    ret->memory_peak_bytes = figures->memory_peak_bytes;
    ret->memory_total_bytes = figures->memory_total_bytes;
}

static int read_state(const struct runs *r, const char *name, struct record_state *ret, struct error *e) {
    char path[340];
    run_path(r, name, "state", path, sizeof path);
    AUTO(fd_done) int fd = record_open(path, e);
    return fd < 0 ? fd : record_read(fd, ret, e);
}

static void add_log_size(const struct runs *r, const char *name, struct wire_run *ret) {
    char path[340];
    struct stat st;
    run_path(r, name, "log", path, sizeof path);
    if (!ret->log_bytes && stat(path, &st) == 0) ret->log_bytes = (uint64_t)st.st_size;
}

/* A container that never came to be has an exit code of ours and a reason: it is told like that of any job. */
static void add_refusal(const struct runs *r, const char *name, struct wire_run *ret) {
    AUTO(buf_done) struct buf text = {0};
    char path[340];
    struct error ignored;
    if (!ret->has_exit || ret->signal || ret->code != RUNS_EXIT_OURS || *ret->text) return;
    run_path(r, name, RUNS_REFUSED, path, sizeof path);
    if (file_read(path, sizeof ret->text - 1, &text, &ignored) >= 0)
        snprintf(ret->text, sizeof ret->text, "%s", text.s);
}

int runs_look(const struct runs *r, const struct wire_run_key *k, struct wire_run *ret, struct error *e) {
    char name[OWNERS_NAME];
    struct record_state s;
    run_name(k, name);
    int got = read_state(r, name, &s, e);
    if (got < 0) return got;
    *ret = (struct wire_run){.key = *k};
    say_records(&s, ret);
    add_log_size(r, name, ret);
    add_refusal(r, name, ret);
    return 0;
}

int run_refresh(const struct runs *r, struct run *run, struct record_state *ret, struct error *e) {
    struct wire_run fresh = {.key = run->key};
    int got = read_state(r, run->name, ret, e);
    if (got < 0) return got;
    say_records(ret, &fresh);
    add_log_size(r, run->name, &fresh);
    add_refusal(r, run->name, &fresh);
    if (run->shim && fresh.state == RUN_ENDED) { /* what it left behind is being ended */
        fresh.state = RUN_ENDING;
        fresh.has_exit = false;
        fresh.end_ns = 0;
    }
    if (fresh.memory_peak_bytes < run->said.memory_peak_bytes) fresh.memory_peak_bytes = run->said.memory_peak_bytes;
    run->said = fresh;
    run->has_figures = ret->has[RECORD_FIGURES];
    run->start_boot_ns = ret->has[RECORD_STARTED] ? ret->of[RECORD_STARTED].boot_ns : 0;
    return 0;
}

int run_grant(const struct runs *r, const struct run *run, struct buf *bytes, struct wire_grant *ret, struct error *e) {
    char path[340];
    struct wire_frame f;
    run_path(r, run->name, "run", path, sizeof path);
    int got = file_read(path, RUNS_FILE_MAX, bytes, e);
    if (got < 0) return got;
    got = wire_frame(bytes->s, bytes->len, &f, e);
    if (got == 0) return fail(e, -EPROTO, "%s: is not whole", path);
    return got < 0 ? got : wire_get_grant(&f, ret, e);
}

int runs_load(struct runs *r, const struct wire_run_key *k, struct run **ret, struct error *e) {
    static struct wire_grant g; /* large; one thread */
    AUTO(buf_done) struct buf bytes = {0};
    struct record_state s;
    struct run *run = take_in(r, k);
    int got = run_refresh(r, run, &s, e);
    if (got < 0) { /* without a state nothing was started either */
        char path[320];
        snprintf(path, sizeof path, "%s/%s", r->dir, run->name);
        remove_run(path);
        runs_drop(r, run);
        return got;
    }
    got = run_grant(r, run, &bytes, &g, e);
    if (got >= 0) read_spec(run, &g);
    if (got < 0 && !s.has[RECORD_EXIT]) { /* half made: nothing was started from it */
        char path[320];
        snprintf(path, sizeof path, "%s/%s", r->dir, run->name);
        remove_run(path);
        runs_drop(r, run);
        return got;
    }
    *ret = run;
    return 0;
}

void runs_each_on_disk(const struct runs *r, runs_fn each, void *ctx) {
    struct wire_run_key k;
    DIR *d = opendir(r->dir);
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (run_parse_name(entry->d_name, &k)) each(ctx, &k);
    if (d) closedir(d);
}

int run_note(const struct runs *r, const char *name, struct record *record, bool sync, struct error *e) {
    char path[340];
    run_path(r, name, "state", path, sizeof path);
    AUTO(fd_done) int fd = record_open(path, e);
    if (fd < 0) return fd;
    int got = record_lock(fd);
    if (got < 0) return fail_errno(e, -got, "%s", path);
    snprintf(record->boot_id, sizeof record->boot_id, "%s", r->boot_id);
    return record_append(fd, record, sync, e);
}

void run_keep(struct runs *r, struct run *run) {
    struct record stored = {.kind = RECORD_STORED};
    struct error e;
    char from[320], to[320];
    (void)!run_note(r, run->name, &stored, false, &e); /* lost, it is told once more */
    snprintf(from, sizeof from, "%s/%s", r->dir, run->name);
    snprintf(to, sizeof to, "%s/" KEPT "/%s", r->dir, run->name);
    CRASH_POINT();
    (void)rename(from, to);
    runs_drop(r, run);
}

/* ---- tidying ---- */

void runs_tidy(const struct runs *r, int keep_days, unsigned at_most) {
    char path[640];
    struct wire_run_key k;
    struct stat st;
    int64_t oldest_s = clock_real_ns() / NS_PER_S - (int64_t)keep_days * 86400;
    snprintf(path, sizeof path, "%s/" KEPT, r->dir);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && at_most && (entry = readdir(d));) {
        if (!run_parse_name(entry->d_name, &k)) continue;
        snprintf(path, sizeof path, "%s/" KEPT "/%s/state", r->dir, entry->d_name);
        if (stat(path, &st) < 0 || st.st_mtime >= oldest_s) continue;
        *strrchr(path, '/') = 0;
        remove_run(path);
        at_most--;
    }
    if (d) closedir(d);
}
