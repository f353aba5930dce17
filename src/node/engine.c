/* The cache of what engines say, its news, and the thread that keeps it. Talking is engine_talk.c's. */
#include "node/engine.h"

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "node/announce.h"
#include "node/births.h"
#include "node/engine_talk.h"
#include "node/inside.h"
#include "node/openers.h"

#define BUCKETS 1024u
#define TALKS_MAX 16
#define ENTRIES_EACH_MAX 2048 /* of one engine: a lying one takes no room from the others */
#define NEWS_MAX 512
#define WANTED_MAX 64
#define ASKED_MAX 256
#define ASK_AGAIN_NS (5 * NS_PER_S)
#define GONE_NS (60 * NS_PER_S)
#define TIDY_NS (5 * NS_PER_S)
#define EXPECT_MS 3000 /* how long a container may take to come to its GPU */
#define EXPECT_AGAIN_NS (20 * NS_PER_MS)
#define BASE_MS 40                   /* looks while containers may start unseen */
#define BASE_AGAIN_NS (2 * NS_PER_S) /* a sampler that was restarted does not know */
#define STACK_BYTES (256 * 1024)
#define OWN_FDS 3
#define SAID_MAX 32
#define SAID_AGAIN_NS NS_PER_S

struct entry {
    struct entry *next;
    struct engine_facts facts;
    unsigned owner; /* which engine said so */
    unsigned list;  /* of that engine, in which it was seen */
    int64_t event_ns, gone_ns;
    bool is_described; /* since it last started */
    char *labels;      /* NULL: none */
};

struct news {
    uint8_t what;
    char id[ENGINE_ID_HEX + 1];
};

struct place {
    struct talk talk;
    unsigned list, entries;
    bool is_used, is_full_said, is_found; /* found: by a pattern, and given back when its socket goes */
};

struct engine {
    pthread_mutex_t lock; /* held for moments only: never across a call that could wait */
    pthread_t thread;
    int news_fd, wake_fd;
    _Atomic bool is_over;

    /* Under the lock. */
    struct entry *bucket[BUCKETS];
    struct news news[NEWS_MAX];
    unsigned news_at, news_count;
    bool has_many;
    char wanted[WANTED_MAX][ENGINE_ID_HEX + 1];
    unsigned wanted_count;
    struct {
        char id[ENGINE_ID_HEX + 1];
        int64_t at_ns;
    } asked[ASKED_MAX];
    struct openers openers; /* of files inside of containers */

    /* The thread's own; entries of a place under the lock. */
    struct place place[TALKS_MAX];
    struct talk_ears ears;
    struct births births;
    struct inside inside;
    struct {
        int64_t tag, at_ns;
        int32_t pid;
    } said[SAID_MAX]; /* who was announced lately */
    unsigned said_count;
    struct instance where;
    unsigned workers;
    char patterns[2][512];
    _Atomic int64_t announced_ns;
    int64_t base_told_ns, base_told_ms, tidied_ns;
};

/* ---- the cache; all under the lock ---- */

/* Ids are random digits already. */
static unsigned hash_of(const char *id) {
    unsigned h = 0;
    for (int i = 0; i < 8 && id[i]; i++) h = h * 31 + (unsigned char)id[i];
    return h;
}

static struct entry **find(struct engine *g, const char *id) {
    struct entry **at = &g->bucket[hash_of(id) % BUCKETS];
    while (*at && strcmp((*at)->facts.id, id) != 0) at = &(*at)->next;
    return at;
}

static void drop(struct engine *g, struct entry **at) {
    struct entry *e = *at;
    *at = e->next;
    g->place[e->owner].entries--;
    free(e->labels);
    free(e);
}

static bool is_running(const struct engine_facts *f) {
    return f->state == ENGINE_RUNNING || f->state == ENGINE_PAUSED || f->state == ENGINE_RESTARTING;
}

static void tell(struct engine *g, enum engine_news what, const char *id) {
    if (g->news_count == NEWS_MAX) {
        g->has_many = true;
    } else {
        struct news *n = &g->news[(g->news_at + g->news_count++) % NEWS_MAX];
        n->what = (uint8_t)what;
        memcpy(n->id, id, sizeof n->id);
    }
    (void)!write(g->news_fd, &(uint64_t){1}, sizeof(uint64_t));
}

/* The longest ended one of a full engine makes room. */
static bool make_room(struct engine *g, unsigned owner) {
    struct entry **oldest = NULL;
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct entry **at = &g->bucket[b]; *at; at = &(*at)->next)
            if ((*at)->owner == owner && !is_running(&(*at)->facts) &&
                (!oldest || (*at)->event_ns < (*oldest)->event_ns))
                oldest = at;
    if (oldest) drop(g, oldest);
    return oldest != NULL;
}

/* Root's engines and our own user's are believed; others only about what nobody else claims. */
static bool is_trusted(const struct engine *g, unsigned owner) {
    const struct place *p = &g->place[owner];
    return p->is_used && (p->talk.uid == 0 || p->talk.uid == geteuid());
}

static struct entry *entry_of(struct engine *g, unsigned owner, const char *id) {
    struct entry **at = find(g, id), *e = *at;
    struct place *p = &g->place[owner];
    if (e && e->owner != owner) {
        bool yields = !g->place[e->owner].is_used || (is_trusted(g, owner) && !is_trusted(g, e->owner));
        if (!yields) return NULL;
        drop(g, at);
        e = NULL;
    }
    if (e) return e;
    if (p->entries >= ENTRIES_EACH_MAX && !make_room(g, owner)) {
        if (!p->is_full_said)
            log_line(LOG_WARN, "engine", -1, "%s at %s names more than %d running containers: the rest have no names",
                     engine_kind_name(p->talk.kind), p->talk.path, ENTRIES_EACH_MAX);
        p->is_full_said = true;
        return NULL;
    }
    if (!(e = calloc(1, sizeof *e))) return NULL;
    memcpy(e->facts.id, id, ENGINE_ID_HEX + 1);
    e->facts.priority = ENGINE_NO_PRIORITY;
    e->facts.engine = (uint8_t)p->talk.kind;
    e->facts.uid = p->talk.uid;
    e->owner = owner;
    e->next = g->bucket[hash_of(id) % BUCKETS];
    g->bucket[hash_of(id) % BUCKETS] = e;
    p->entries++;
    return e;
}

/* ---- what the talks hear; in the thread ---- */

static void announce(struct engine *g, int64_t now_ns) {
    if (!g->workers || now_ns - g->announced_ns < EXPECT_AGAIN_NS) return;
    g->announced_ns = now_ns;
    announce_hunt(&g->where, g->workers, &(struct announcement){.for_ms = EXPECT_MS, .base_ms = -1, .minor = -1});
}

/* Somebody opened a device node of a container's own. He opens several, one after the other: the first is enough to say. */
static void on_opened(void *ctx, int64_t tag, int32_t pid) {
    struct engine *g = ctx;
    int64_t now_ns = clock_boot_ns();
    bool is_said = false;
    for (unsigned i = 0; i < SAID_MAX; i++)
        is_said |= g->said[i].pid == pid && g->said[i].tag == tag && now_ns - g->said[i].at_ns < SAID_AGAIN_NS;
    pthread_mutex_lock(&g->lock);
    openers_keep(&g->openers, tag, pid, now_ns);
    pthread_mutex_unlock(&g->lock);
    if (!pid) announce(g, now_ns);
    if (!pid || is_said || !g->workers) return;
    unsigned i = g->said_count++ % SAID_MAX;
    g->said[i].pid = pid;
    g->said[i].tag = tag;
    g->said[i].at_ns = now_ns;
    g->announced_ns = now_ns;
    const struct announcement it = {.for_ms = EXPECT_MS, .base_ms = -1, .minor = inside_minor(tag), .pid = pid};
    announce_hunt(&g->where, g->workers, &it);
}

/* What an event makes of a container. */
static const struct {
    enum engine_state state; /* ENGINE_UNKNOWN: as it was */
    enum engine_news news;
    bool announces, asks;
} effects[] = {
    [CONTAINER_OTHER] = {ENGINE_UNKNOWN, ENGINE_FACTS,   false, false},
    [CONTAINER_CREATED] = {ENGINE_CREATED, ENGINE_FACTS,   true,  false},
    [CONTAINER_STARTED] = {ENGINE_RUNNING, ENGINE_STARTED, true,  true },
    [CONTAINER_PAUSED] = {ENGINE_PAUSED,  ENGINE_FACTS,   false, false},
    [CONTAINER_UNPAUSED] = {ENGINE_RUNNING, ENGINE_FACTS,   true,  false},
    [CONTAINER_ENDED] = {ENGINE_EXITED,  ENGINE_ENDED,   false, false},
    [CONTAINER_REMOVED] = {ENGINE_REMOVED, ENGINE_GONE,    false, false},
    [CONTAINER_RENAMED] = {ENGINE_UNKNOWN, ENGINE_FACTS,   false, true },
};

static void on_event(void *ctx, unsigned number, enum container_action action, const struct container_said *said) {
    struct engine *g = ctx;
    int64_t now_ns = clock_boot_ns();
    if (effects[action].announces) announce(g, now_ns);
    pthread_mutex_lock(&g->lock);
    struct entry *e = entry_of(g, number, said->facts.id);
    if (e) {
        container_merge(&e->facts, said);
        e->event_ns = now_ns;
        if (effects[action].state) e->facts.state = (uint8_t)effects[action].state;
        if (action == CONTAINER_STARTED) e->facts.started_boot_ns = now_ns, e->is_described = false;
        if (!is_running(&e->facts)) e->facts.pid = 0;
        e->gone_ns = action == CONTAINER_REMOVED ? now_ns : 0;
        tell(g, effects[action].news, e->facts.id);
    }
    pthread_mutex_unlock(&g->lock);
    if (e && effects[action].asks) talk_ask(&g->place[number].talk, said->facts.id);
}

/* True: they are others than before. */
static bool take_labels(struct entry *e, const char *labels) {
    if (strcmp(e->labels ? e->labels : "", labels) == 0) return false;
    free(e->labels);
    e->labels = *labels ? strdup(labels) : NULL;
    return true;
}

/* What an answer says about its state is older than an event that came while we waited for it. And Docker's list lags behind
 * its events: what it calls running although its end was told is described on its own, which waits for the end. */
static void answer(struct engine *g, unsigned number, const struct container_said *said, int64_t asked_ns,
                   unsigned list) {
    bool is_doubted = false;
    pthread_mutex_lock(&g->lock);
    struct entry *e = entry_of(g, number, said->facts.id);
    if (e) {
        bool is_new = !e->facts.state;
        const struct engine_facts was = e->facts;
        container_merge(&e->facts, said);
        is_doubted = list && was.state == ENGINE_EXITED && is_running(&e->facts);
        if (e->event_ns >= asked_ns || is_doubted) e->facts.state = was.state;
        if (!is_running(&e->facts)) e->facts.pid = 0;
        if (list)
            e->list = list;
        else
            e->is_described = true;
        bool has_labels = said->has_labels && take_labels(e, said->labels);
        if (is_new || has_labels || !container_is_same(&was, &e->facts)) tell(g, ENGINE_FACTS, e->facts.id);
    }
    pthread_mutex_unlock(&g->lock);
    if (is_doubted) talk_ask(&g->place[number].talk, said->facts.id);
}

static void on_listed(void *ctx, unsigned number, const struct container_said *said, int64_t asked_ns) {
    struct engine *g = ctx;
    answer(g, number, said, asked_ns, g->place[number].list + 1);
}

static void on_described(void *ctx, unsigned number, const struct container_said *said, int64_t asked_ns) {
    struct engine *g = ctx;
    answer(g, number, said, asked_ns, 0);
    if (g->workers && is_trusted(g, number)) inside_add(&g->inside, said);
}

static void on_list_over(void *ctx, unsigned number, int64_t asked_ns) {
    struct engine *g = ctx;
    pthread_mutex_lock(&g->lock);
    unsigned list = ++g->place[number].list;
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct entry *e = g->bucket[b]; e; e = e->next) {
            if (e->owner != number) continue;
            bool is_over = is_running(&e->facts) && e->list != list && e->event_ns < asked_ns;
            if (is_over) {
                e->facts.state = ENGINE_EXITED;
                e->facts.pid = 0;
                tell(g, ENGINE_ENDED, e->facts.id);
            } else if (is_running(&e->facts) && !e->is_described) {
                talk_ask(&g->place[number].talk, e->facts.id);
            }
        }
    pthread_mutex_unlock(&g->lock);
}

/* Removed while we asked, or of another engine: the question is not put again for a while (see engine_facts). */
static void on_unknown(void *ctx, unsigned number, const char *id) {
    struct engine *g = ctx;
    pthread_mutex_lock(&g->lock);
    struct entry *e = *find(g, id);
    if (e && e->owner == number && !e->gone_ns) {
        e->facts.state = ENGINE_REMOVED;
        e->gone_ns = clock_boot_ns();
        tell(g, ENGINE_GONE, id);
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- the thread ---- */

static void place_begin(struct engine *g, enum engine_kind kind, const char *path, bool is_found) {
    struct place *free_one = NULL;
    if (strlen(path) >= sizeof g->place[0].talk.path) return;
    for (unsigned i = 0; i < TALKS_MAX; i++) {
        struct place *p = &g->place[i];
        if (p->is_used && strcmp(p->talk.path, path) == 0) return;
        if (!p->is_used && !p->entries && !free_one) free_one = p;
    }
    if (!free_one) return;
    pthread_mutex_lock(&g->lock);
    free_one->is_used = true;
    free_one->is_found = is_found;
    free_one->list = 0;
    talk_init(&free_one->talk, (unsigned)(free_one - g->place), kind, path, &g->ears);
    pthread_mutex_unlock(&g->lock);
}

static void look_for_sockets(struct engine *g) {
    for (int kind = ENGINE_DOCKER; kind <= ENGINE_PODMAN; kind++) {
        char list[sizeof g->patterns[0]], *rest = list, *one;
        snprintf(list, sizeof list, "%s", g->patterns[kind]);
        while ((one = strsep(&rest, ","))) {
            one += strspn(one, " ");
            glob_t found;
            if (!strpbrk(one, "*?[")) {
                if (*one) place_begin(g, (enum engine_kind)kind, one, false);
                continue;
            }
            if (glob(one, GLOB_NOSORT, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++)
                    place_begin(g, (enum engine_kind)kind, found.gl_pathv[i], true);
            globfree(&found);
        }
    }
}

static void tidy(struct engine *g, int64_t now_ns) {
    if (now_ns - g->tidied_ns < TIDY_NS && g->tidied_ns) return;
    g->tidied_ns = now_ns;
    look_for_sockets(g);
    for (unsigned i = 0; i < TALKS_MAX; i++) {
        struct place *p = &g->place[i];
        if (!p->is_used || !p->is_found || p->talk.stream.fd >= 0 || access(p->talk.path, F_OK) == 0) continue;
        talk_done(&p->talk);
        on_list_over(g, i, INT64_MAX);
        pthread_mutex_lock(&g->lock);
        p->is_used = false;
        pthread_mutex_unlock(&g->lock);
    }
    pthread_mutex_lock(&g->lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct entry **at = &g->bucket[b]; *at;) {
            struct entry *e = *at;
            bool is_orphan = !g->place[e->owner].is_used;
            if (is_orphan || (e->gone_ns && now_ns - e->gone_ns > GONE_NS))
                drop(g, at);
            else
                at = &e->next;
        }
    pthread_mutex_unlock(&g->lock);
}

static void pass_on_wanted(struct engine *g) {
    char wanted[WANTED_MAX][ENGINE_ID_HEX + 1];
    pthread_mutex_lock(&g->lock);
    unsigned n = g->wanted_count;
    memcpy(wanted, g->wanted, n * sizeof wanted[0]);
    g->wanted_count = 0;
    pthread_mutex_unlock(&g->lock);
    for (unsigned i = 0; i < TALKS_MAX; i++)
        for (unsigned k = 0; g->place[i].is_used && k < n; k++) talk_ask(&g->place[i].talk, wanted[k]);
}

/* While an engine that should be there does not talk, the samplers look by themselves. */
static void mind_base(struct engine *g, int64_t now_ns) {
    bool is_missed = false;
    for (unsigned i = 0; i < TALKS_MAX; i++)
        is_missed |= g->place[i].is_used && talk_is_missed(&g->place[i].talk, now_ns);
    int64_t ms = is_missed ? BASE_MS : 0;
    bool is_due = ms != g->base_told_ms || (ms && now_ns - g->base_told_ns > BASE_AGAIN_NS);
    if (!g->workers || !is_due) return;
    g->base_told_ms = ms;
    g->base_told_ns = now_ns;
    announce_hunt(&g->where, g->workers, &(struct announcement){.base_ms = ms, .minor = -1});
}

static int64_t tick(struct engine *g, int64_t now_ns) {
    tidy(g, now_ns);
    pass_on_wanted(g);
    int64_t next_ns = g->tidied_ns + TIDY_NS;
    for (unsigned i = 0; i < TALKS_MAX; i++) {
        if (!g->place[i].is_used) continue;
        talk_tick(&g->place[i].talk, now_ns);
        int64_t at_ns = talk_next_ns(&g->place[i].talk, now_ns);
        if (at_ns < next_ns) next_ns = at_ns;
    }
    mind_base(g, now_ns);
    if (g->base_told_ms > 0 && g->base_told_ns + BASE_AGAIN_NS < next_ns) next_ns = g->base_told_ns + BASE_AGAIN_NS;
    return next_ns;
}

static void wait_until(struct engine *g, int64_t at_ns, int64_t now_ns) {
    struct pollfd fds[OWN_FDS + TALKS_MAX * TALK_FDS];
    uint64_t count;
    int64_t left_ns = at_ns > now_ns ? at_ns - now_ns : 0;
    struct timespec left = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
    fds[0] = (struct pollfd){.fd = g->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = g->births.fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = g->inside.files.fd, .events = POLLIN};
    for (unsigned i = 0; i < TALKS_MAX; i++) {
        struct pollfd *mine = fds + OWN_FDS + i * TALK_FDS;
        if (g->place[i].is_used)
            talk_poll(&g->place[i].talk, mine, now_ns);
        else
            mine[0] = mine[1] = (struct pollfd){.fd = -1};
    }
    if (ppoll(fds, ARRAY_LEN(fds), &left, NULL) <= 0) return;
    now_ns = clock_boot_ns();
    if (fds[0].revents) (void)!read(g->wake_fd, &count, sizeof count);
    if (fds[1].revents && births_read(&g->births)) announce(g, now_ns);
    if (fds[2].revents) inside_read(&g->inside, on_opened, g);
    for (unsigned i = 0; i < TALKS_MAX; i++)
        if (g->place[i].is_used) talk_ready(&g->place[i].talk, fds + OWN_FDS + i * TALK_FDS, now_ns);
}

static void *run(void *arg) {
    struct engine *g = arg;
    while (!g->is_over) {
        int64_t next_ns = tick(g, clock_boot_ns());
        wait_until(g, next_ns, clock_boot_ns());
    }
    return NULL;
}

/* ---- for the others ---- */

int engine_new(const struct engine_setup *setup, struct engine **ret, struct error *e) {
    struct engine *g = calloc(1, sizeof *g);
    if (!g) return fail(e, -ENOMEM, "engines: no memory");
    pthread_mutex_init(&g->lock, NULL);
    g->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(g->patterns[ENGINE_DOCKER], sizeof g->patterns[0], "%s", setup->docker);
    snprintf(g->patterns[ENGINE_PODMAN], sizeof g->patterns[0], "%s", setup->podman);
    g->births.fd = g->inside.files.fd = -1;
    if (setup->where) {
        g->where = *setup->where;
        g->workers = setup->workers;
        births_open(&g->births, "/sys/fs/cgroup");
        inside_open(&g->inside);
    }
    g->base_told_ms = -1; /* what was told before us does not count */
    g->ears = (struct talk_ears){.ctx = g,
                                 .event = on_event,
                                 .listed = on_listed,
                                 .list_over = on_list_over,
                                 .described = on_described,
                                 .unknown = on_unknown};
    int r = g->news_fd < 0 || g->wake_fd < 0 ? fail_errno(e, errno, "engines")
                                             : thread_join_later(&g->thread, run, g, STACK_BYTES, "engines", e);
    if (r < 0) {
        close(g->news_fd);
        close(g->wake_fd);
        births_close(&g->births);
        inside_close(&g->inside);
        free(g);
        return r;
    }
    *ret = g;
    return 0;
}

void engine_free(struct engine *g) {
    if (!g) return;
    g->is_over = true;
    (void)!write(g->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    pthread_join(g->thread, NULL);
    for (unsigned i = 0; i < TALKS_MAX; i++)
        if (g->place[i].is_used) talk_done(&g->place[i].talk);
    for (unsigned b = 0; b < BUCKETS; b++)
        while (g->bucket[b]) drop(g, &g->bucket[b]);
    births_close(&g->births);
    inside_close(&g->inside);
    close(g->news_fd);
    close(g->wake_fd);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* Under the lock. */
static void want(struct engine *g, const char *id) {
    int64_t now_ns = clock_boot_ns();
    unsigned slot = hash_of(id) % ASKED_MAX;
    if (strcmp(g->asked[slot].id, id) == 0 && now_ns - g->asked[slot].at_ns < ASK_AGAIN_NS) return;
    if (g->wanted_count == WANTED_MAX) return; /* asked again at the next look */
    memcpy(g->asked[slot].id, id, sizeof g->asked[slot].id);
    g->asked[slot].at_ns = now_ns;
    memcpy(g->wanted[g->wanted_count++], id, sizeof g->wanted[0]);
    (void)!write(g->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
}

bool engine_facts(struct engine *g, const char *id, struct engine_facts *ret) {
    if (!container_is_id(id)) return false;
    pthread_mutex_lock(&g->lock);
    const struct entry *e = *find(g, id);
    if (e)
        *ret = e->facts;
    else
        want(g, id);
    pthread_mutex_unlock(&g->lock);
    return e != NULL;
}

void engine_labels(struct engine *g, const char *id, char ret[ENGINE_LABELS_MAX]) {
    pthread_mutex_lock(&g->lock);
    const struct entry *e = *find(g, id);
    snprintf(ret, ENGINE_LABELS_MAX, "%s", e && e->labels ? e->labels : "");
    pthread_mutex_unlock(&g->lock);
}

int engine_fd(const struct engine *g) { return g->news_fd; }

bool engine_next(struct engine *g, enum engine_news *ret_news, char ret_id[ENGINE_ID_HEX + 1]) {
    uint64_t count;
    bool has_one = true;
    pthread_mutex_lock(&g->lock);
    if (g->news_count) {
        *ret_news = (enum engine_news)g->news[g->news_at].what;
        memcpy(ret_id, g->news[g->news_at].id, ENGINE_ID_HEX + 1);
        g->news_at = (g->news_at + 1) % NEWS_MAX;
        g->news_count--;
    } else if (g->has_many) {
        g->has_many = false;
        *ret_news = ENGINE_MANY;
        ret_id[0] = 0;
    } else {
        has_one = false;
        (void)!read(g->news_fd, &count, sizeof count);
    }
    pthread_mutex_unlock(&g->lock);
    return has_one;
}

int64_t engine_announced_ns(const struct engine *g) { return g->announced_ns; }

int64_t engine_opened_ns(struct engine *g, const struct opener *who, const char *id, int minor) {
    struct opener one = *who;
    one.tag = inside_tag(id, minor);
    pthread_mutex_lock(&g->lock);
    int64_t at_ns = openers_find(&g->openers, &one);
    pthread_mutex_unlock(&g->lock);
    return at_ns;
}

unsigned engine_all(struct engine *g, struct engine_facts *ret, unsigned room) {
    unsigned n = 0;
    pthread_mutex_lock(&g->lock);
    for (unsigned b = 0; b < BUCKETS && n < room; b++)
        for (const struct entry *e = g->bucket[b]; e && n < room; e = e->next) ret[n++] = e->facts;
    pthread_mutex_unlock(&g->lock);
    return n;
}

void engine_each_with(struct engine *g, const char *label, engine_holder_fn each, void *ctx) {
    pthread_mutex_lock(&g->lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (const struct entry *e = g->bucket[b]; e; e = e->next)
            if (e->labels && is_trusted(g, e->owner) && is_running(&e->facts) && strstr(e->labels, label))
                each(ctx, &e->facts, e->labels);
    pthread_mutex_unlock(&g->lock);
}
