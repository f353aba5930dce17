/* What is done with a container that is there: start, stop, restart, remove. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "model/gpu_part.h"
#include "model/occupancy.h"
#include "node/control_own.h"
#include "node/frees.h"
#include "node/mounts.h"

#define ACT_S 60
#define TIDY_AGE_S 180

int control_post(const struct control *c, const char *id, const char *verb, int timeout_s, struct error *e) {
    AUTO(buf_done) struct buf answer = {0}, target = {0};
    buf_printf(&target, "/containers/%s/%s", id, verb);
    return control_do(c, "POST", target.s, NULL, timeout_s, &answer, e);
}

/* ---- GPUs ---- */

static const struct frees_gpu *find(const struct frees_gpu *gpu, unsigned n, const char *word) {
    for (unsigned i = 0; i < n; i++)
        if (strcmp(gpu[i].uuid, word) == 0 || strcmp(gpu[i].name, word) == 0) return &gpu[i];
    return NULL;
}

static bool is_usable(const struct frees_gpu *g) {
    return g->verdict != OCCUPANCY_LOST && g->verdict != OCCUPANCY_UNHEALTHY && g->verdict != OCCUPANCY_CORDONED;
}

/* own: the container that asks has it already. */
static bool is_taken(const struct frees_gpu *g, const char *own) {
    char mine[160];
    snprintf(mine, sizeof mine, "container %s", own);
    if (*own && !g->is_granted && strcmp(g->holder, mine) == 0) return false;
    return g->is_granted || *g->holder || g->verdict == OCCUPANCY_MEMORY || g->verdict == OCCUPANCY_BUSY;
}

static int take(const struct frees_gpu *g, bool is_shared, const char *own, char *ret, size_t room, struct error *e) {
    size_t used = strlen(ret);
    if (!is_usable(g)) return fail(e, -EBUSY, "gpus: GPU %s %s", g->name, occupancy_text((enum occupancy)g->verdict));
    if (!is_shared && is_taken(g, own))
        return fail(e, -EBUSY, "gpus: GPU %s %s%s; say that it is to be shared, or hand in a job, which waits its turn",
                    g->name, *g->holder ? "belongs to " : "", *g->holder ? g->holder : "has memory in use");
    if (used + strlen(g->uuid) + 2 > room) return fail(e, -E2BIG, "gpus: too many");
    snprintf(ret + used, room - used, "%s%s", used ? "," : "", g->uuid);
    return 0;
}

int control_gpus(int count, const struct job_words *scope, bool is_shared, const char *own, char *ret, size_t room,
                 struct error *e) {
    struct frees_gpu gpu[FREES_MOST];
    unsigned n = frees_all(gpu, FREES_MOST), found = 0;
    int r = 0;
    ret[0] = 0;
    for (const char *at = NULL; r >= 0 && (at = job_word_next(scope, at));) {
        const struct frees_gpu *g = find(gpu, n, at);
        r = g ? take(g, is_shared, own, ret, room, e)
              : fail(e, -EINVAL, "gpus: there is no GPU %s on this machine, which has %u", at, n);
    }
    if (scope->count || count == 0) return r;
    bool has_cards = false;
    for (unsigned i = 0; i < n; i++) has_cards |= gpu[i].instance < 0;
    for (unsigned i = 0; r >= 0 && i < n; i++) {
        if (count > 0 && gpu[i].instance >= 0 && !plan_part_does(count, 0, false, has_cards)) continue;
        bool is_wanted =
            count < 0 || (found < (unsigned)count && is_usable(&gpu[i]) && (!is_taken(&gpu[i], own) || is_shared));
        if (is_wanted) r = take(&gpu[i], is_shared, own, ret, room, e), found++;
    }
    if (r >= 0 && count > (int)n) return fail(e, -EINVAL, "gpus: %d are asked for, this machine has %u", count, n);
    if (r >= 0 && (int)found < count)
        return fail(e, -EBUSY, "gpus: of %d that are asked for %u %s free; hand in a job, which waits its turn", count,
                    found, found == 1 ? "is" : "are");
    return r;
}

/* ---- what it mounts ---- */

void control_pin_dir(const struct control *c, const char *pin, char *ret, size_t room) {
    snprintf(ret, room, "%s/containers/%s", c->where->dir, pin);
}

/* A file system in memory, of our own: after a start of the machine nothing of it is there, so that an engine that begins before us
 * finds no empty directory in the place of somebody's data. Not in the run directory, which others may tidy away with all that is
 * bound there. */
static int make_root(const struct control *c, struct error *e) {
    char root[300];
    control_pin_dir(c, "", root, sizeof root);
    if (mkdir(root, 0700) < 0 && errno != EEXIST) return fail_errno(e, errno, "%s", root);
    if (geteuid() != 0 || mounts_is_root(root)) return 0;
    if (mount("gpumgr", root, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700,size=1m") < 0)
        return fail_errno(e, errno, "%s", root);
    return 0;
}

int control_bind(const struct control *c, const struct seal_context *who, const char *pin,
                 const struct job_words *words, struct buf *ret, struct error *e) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one makes the root */
    struct mounts *m = calloc(1, sizeof *m);
    if (!m) abort();
    *m = (struct mounts){.roots = c->settings.jobs_mount_roots, .who = who};
    control_pin_dir(c, pin, m->dir, sizeof m->dir);
    pthread_mutex_lock(&lock);
    int r = words->count ? make_root(c, e) : 0;
    pthread_mutex_unlock(&lock);
    if (r >= 0 && words->count && mkdir(m->dir, 0700) < 0 && errno != EEXIST) r = fail_errno(e, errno, "%s", m->dir);
    if (r >= 0) r = mounts_take_all(m, words, e);
    if (r >= 0) {
        json_open(ret, '{');
        mounts_put(m, ret);
        json_close(ret, '}');
    }
    free(m);
    return r;
}

/* What was bound for containers that somebody removed through the engine itself. One that is being made has its directory
 * before the engine knows of it, so only what is old goes. */
void control_tidy(const struct control *c) {
    AUTO(buf_done) struct buf list = {0};
    struct error ignored;
    struct stat st;
    char root[300], dir[600];
    control_pin_dir(c, "", root, sizeof root);
    DIR *all = opendir(root);
    for (const struct dirent *d; all && (d = readdir(all));) {
        snprintf(dir, sizeof dir, "%s%s", root, d->d_name);
        if (strspn(d->d_name, "0123456789abcdef") != strlen(d->d_name) || stat(dir, &st) < 0) continue;
        if (st.st_mtime + TIDY_AGE_S > clock_real_ns() / NS_PER_S) continue;
        const char *ours = "/containers/json?all=1&filters=%7B%22label%22%3A%5B%22gpumgr.pin%22%5D%7D";
        if (!list.len && control_get(c, ours, "", &list, &ignored) < 0) break;
        if (memmem(list.s, list.len, d->d_name, strlen(d->d_name))) continue;
        mounts_let_go(dir);
        (void)rmdir(dir);
    }
    if (all) closedir(all);
}

/* After the machine was started anew, what it mounts is not bound any more: as whoever it belongs to, again. */
static int bind_again(const struct control *c, const struct control_seen *s, const struct job_words *words,
                      struct error *e) {
    AUTO(buf_done) struct buf ignored = {0};
    struct control_who owner = {0};
    char dir[300];
    control_pin_dir(c, s->pin, dir, sizeof dir);
    if (!s->is_ours || !words->count || !s->pin[0] || geteuid() != 0 || mounts_are_bound(dir, words->count)) return 0;
    mounts_let_go(dir);
    control_login(s->uid, s->gid, &owner);
    int r = control_bind(c, &owner.login, s->pin, words, &ignored, e);
    control_who_done(&owner);
    return r;
}

int control_ready(struct control *c, const struct control_seen *s, bool is_shared, struct error *e) {
    AUTO(buf_done) struct buf keep = {0};
    struct container_spec spec;
    char gpus[4096];
    if (!s->is_ours) return 0; /* the engine gives it what it was asked for elsewhere */
    control_spec(s, &keep, &spec);
    int r = control_gpus(spec.gpus, &spec.scope, is_shared, s->name, gpus, sizeof gpus, e);
    return r < 0 ? r : bind_again(c, s, &spec.mounts, e);
}

/* One that the engine wanted to start with the machine, and could not, for what it mounts was not bound yet. */
bool control_was_kept(const struct control_seen *s) {
    struct json_slice policy = json_slice_get(json_slice_get(s->host, "RestartPolicy"), "Name");
    struct json_slice why = json_slice_get(s->state, "Error");
    bool is_kept = json_slice_is(policy, "\"always\"") || json_slice_is(policy, "\"unless-stopped\"");
    return s->is_ours && !s->is_running && is_kept && s->pin[0] && why.len &&
           memmem(why.s, why.len, s->pin, strlen(s->pin));
}

/* ---- the verbs ---- */

int control_remove(const struct control *c, const struct control_seen *s, bool forces, struct error *e) {
    AUTO(buf_done) struct buf answer = {0}, target = {0};
    char dir[300];
    buf_printf(&target, "/containers/%s?v=1%s", s->id, forces ? "&force=1" : "");
    int r = control_do(c, "DELETE", target.s, NULL, ACT_S, &answer, e);
    if (r < 0 || !s->pin[0]) return r;
    control_pin_dir(c, s->pin, dir, sizeof dir);
    mounts_let_go(dir);
    (void)rmdir(dir);
    return r;
}

int control_act(struct control *c, struct error *e) {
    static const struct {
        enum container_verb verb;
        const char *does, *done;
    } rows[] = {
        {CONTAINER_VERB_START,   "start",        "started"     },
        {CONTAINER_VERB_STOP,    "stop?t=10",    "stopped"     },
        {CONTAINER_VERB_RESTART, "restart?t=10", "started anew"},
        {CONTAINER_VERB_REMOVE,  "",             "removed"     },
    };
    AUTO(control_seen_done) struct control_seen s = {0};
    enum container_verb verb = (enum container_verb)c->call.verb;
    int r = control_see(c, c->call.of, &s, e);
    if (r >= 0) r = control_may(&c->who, &s, verb, e);
    bool starts = verb == CONTAINER_VERB_START || verb == CONTAINER_VERB_RESTART;
    if (r >= 0 && starts && !s.is_running) r = control_ready(c, &s, c->call.is_shared, e);
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(rows); i++) {
        if (rows[i].verb != verb) continue;
        r = *rows[i].does ? control_post(c, s.id, rows[i].does, ACT_S, e) : control_remove(c, &s, true, e);
        snprintf(c->event, sizeof c->event, "container %.100s was %s", s.name, rows[i].done);
    }
    if (r < 0) return r;
    json_open(&c->out, '{');
    json_pair_str(&c->out, "id", s.id);
    json_pair_str(&c->out, "name", s.name);
    json_close(&c->out, '}');
    return 0;
}
