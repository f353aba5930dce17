#include "server/tell.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/message.h"
#include "server/tell_store.h"
#include "server/tell_way.h"

#define TICK_MS 1000
#define POSTS_MAX 1000 /* that wait for one way; then the oldest is dropped */
#define MARKS_MAX 256
#define END_PATIENCE_NS (500 * NS_PER_MS)
#define MARK_SAVE_TICKS 5

/* A message that waits. */
struct post {
    struct post *next;
    int64_t id, made, tries, due_ns; /* made: unix seconds; due: boot clock */
    char *body;
};

struct way {
    struct tell *tell;
    const struct tell_way *is;
    bool is_set;
    struct post *first;
    unsigned count, sent, failed, dropped;
    int64_t sent_ns, failed_ns; /* real time */
    char trouble[248];
    /* shared with the thread, under the lock */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct post *under_way;
    struct settings settings;
    bool has_thread, is_ending, is_tried; /* is_tried: the loop has yet to hear how the one under way went */
    struct error error;
    int result;
};

struct mark {
    char stream[TELL_STREAM_MAX];
    int64_t taken, saved; /* seen by notice_take; in the state file */
    bool is_saving;
};

struct tell {
    struct loop *loop;
    struct state *state;
    struct settings settings;
    char link[256];
    struct notice_book book;
    struct way ways[TELL_WAYS];
    struct mark marks[MARKS_MAX];
    unsigned mark_count, ticks;
    bool is_closed, is_left; /* is_left: a thread could not be waited for */
    bool is_ill;             /* the last message could not be stored, which was said */
};

static struct notice_policy policy_of(const struct tell *t) {
    return (struct notice_policy){.least = (enum event_severity)t->settings.tell_severity,
                                  .again_ns = t->settings.tell_again_s * NS_PER_S};
}

/* ---- what waits ---- */

static void post_free(struct post *p) {
    if (p) free(p->body);
    free(p);
}

/* Its body is the way's from now on. */
static void way_add(struct way *w, const struct post *post) {
    struct post *p = calloc(1, sizeof *p), **at = &w->first;
    if (!p) abort();
    *p = *post;
    while (*at) at = &(*at)->next;
    *at = p;
    w->count++;
}

static struct way *way_find(struct tell *t, const char *name) {
    for (size_t i = 0; i < TELL_WAYS; i++)
        if (strcmp(t->ways[i].is->name, name) == 0) return &t->ways[i];
    return NULL;
}

/* ---- rows of the state file, asked for from the loop ---- */

struct change {
    struct tell *tell;
    struct tell_write write;
    int64_t drop, tried, tries; /* ids; 0: none */
};

static int change_work(struct sql *db, void *ctx, struct error *e) {
    struct change *c = ctx;
    int r = tell_store_write(db, &c->write, e);
    if (r == 0 && c->drop) r = tell_store_drop(db, c->drop, e);
    if (r == 0 && c->tried) r = tell_store_tried(db, c->tried, c->tries, e);
    return r;
}

static void way_kick(struct way *w);

static struct mark *mark_find(struct tell *t, const char *stream) {
    for (unsigned i = 0; i < t->mark_count; i++)
        if (strcmp(t->marks[i].stream, stream) == 0) return &t->marks[i];
    return NULL;
}

static void change_done(void *ctx, int result, const struct error *e) {
    struct change *c = ctx;
    struct tell *t = c->tell;
    struct mark *m = mark_find(t, c->write.stream);
    if (m) m->is_saving = false;
    if (m && result >= 0 && m->saved < c->write.mark) m->saved = c->write.mark;
    if (result < 0 && !t->is_closed && !t->is_ill)
        log_line(LOG_ERROR, "tell_store", -1, "messages cannot be stored, and are lost if this server ends: %s",
                 e->text);
    if (result >= 0 && t->is_ill) log_line(LOG_INFO, "tell_store", -1, "messages are stored again");
    t->is_ill = result < 0;
    for (size_t i = 0; i < ARRAY_LEN(c->write.post); i++) {
        struct tell_post *p = &c->write.post[i];
        struct way *w = p->way ? way_find(t, p->way) : NULL;
        if (!w || t->is_closed) { /* what is stored goes out after the next start */
            free(p->body);
            continue;
        }
        /* What could not be stored is sent all the same: a full disk is worth a message. */
        way_add(w, &(struct post){.id = p->id, .made = c->write.made, .body = p->body});
        way_kick(w);
    }
    free(c);
}

static void change_submit(struct change *c) {
    struct error e;
    if (c->tell->is_closed) {
        fail(&e, -ESHUTDOWN, "the server ends");
        change_done(c, e.code, &e);
        return;
    }
    int r = state_submit(c->tell->state, change_work, change_done, c, &e);
    if (r < 0) change_done(c, r, &e);
}

static struct change *change_new(struct tell *t) {
    struct change *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->tell = t;
    c->write.made = clock_real_ns() / NS_PER_S;
    return c;
}

/* ---- a way's thread ---- */

static void way_taken(void *ctx);

static void *way_main(void *ctx) {
    struct way *w = ctx;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while ((!w->under_way || w->is_tried) && !w->is_ending) pthread_cond_wait(&w->news, &w->lock);
        if (w->is_ending) break;
        struct settings settings = w->settings;
        const char *body = w->under_way->body;
        pthread_mutex_unlock(&w->lock);
        struct error e = {0};
        int r = w->is->send(&settings, body, strlen(body), &e);
        pthread_mutex_lock(&w->lock);
        w->result = r;
        w->error = e;
        w->is_tried = true;
        if (!w->is_ending) loop_post(w->tell->loop, way_taken, w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void way_begin_thread(struct way *w) {
    struct error e;
    if (!w->has_thread) w->has_thread = thread_join_later(&w->thread, way_main, w, 0, "messages", &e) >= 0;
}

/* Hands the first message over when it is due and none is under way. */
static void way_kick(struct way *w) {
    int64_t now = clock_boot_ns();
    if (w->tell->is_closed) return;
    while (w->first && w->count > POSTS_MAX && w->first != w->under_way) {
        struct post *old = w->first;
        struct change *c = change_new(w->tell);
        w->first = old->next;
        w->count--;
        w->dropped++;
        c->drop = old->id;
        change_submit(c);
        post_free(old);
    }
    if (!w->is_set || !w->first || w->under_way || now < w->first->due_ns) return;
    way_begin_thread(w);
    pthread_mutex_lock(&w->lock);
    w->under_way = w->first;
    w->settings = w->tell->settings;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
}

static void way_note(struct way *w, const struct post *p, int result, const struct error *e) {
    int64_t now_ns = clock_real_ns();
    if (result >= 0) {
        w->sent++;
        w->sent_ns = now_ns;
        return;
    }
    w->failed++;
    w->failed_ns = now_ns;
    snprintf(w->trouble, sizeof w->trouble, "%s", e->text);
    if (p->tries == 0)
        log_line(LOG_WARN, "tell_failed", -1, "%s: a message was not taken, and is tried again: %s", w->is->name,
                 e->text);
}

/* On the loop: the thread is through with the message under way. */
static void way_taken(void *ctx) {
    struct way *w = ctx;
    struct post *p = w->first;
    struct change *c = change_new(w->tell);
    bool is_old = c->write.made - p->made > TELL_GIVE_UP_S;
    way_note(w, p, w->result, &w->error);
    if (w->result >= 0 || is_old) {
        c->drop = p->id;
        w->first = p->next;
        w->count--;
        if (w->result < 0) w->dropped++;
    } else {
        p->due_ns = clock_boot_ns() + tell_pause_ns(p->tries);
        c->tried = p->id;
        c->tries = ++p->tries;
    }
    pthread_mutex_lock(&w->lock);
    w->under_way = NULL;
    w->is_tried = false;
    pthread_mutex_unlock(&w->lock);
    if (c->drop) post_free(p);
    change_submit(c);
    way_kick(w);
}

/* ---- events ---- */

static void message_fill(const struct tell *t, const struct tell_about *a, struct message *m) {
    snprintf(m->host, sizeof m->host, "%s", a->node);
    m->gpu_index = a->gpu ? a->gpu->index : -1;
    if (a->gpu) snprintf(m->gpu_model, sizeof m->gpu_model, "%s", a->gpu->name);
    if (!*t->link) return;
    if (a->gpu)
        snprintf(m->link, sizeof m->link, "%.120s/gpus/%.96s", t->link, a->gpu->uuid);
    else
        snprintf(m->link, sizeof m->link, "%.120s/events", t->link);
}

static void posts_write(struct tell *t, struct change *c, const struct message *m) {
    for (size_t i = 0; i < TELL_WAYS; i++) {
        struct buf body = {0};
        if (!t->ways[i].is_set) continue;
        t->ways[i].is->write(&body, m, &t->settings);
        c->write.post[i] = (struct tell_post){.way = t->ways[i].is->name, .body = body.s};
    }
}

static void say(struct tell *t, struct change *c, enum notice_word word, const struct notice *n,
                const struct tell_about *a) {
    struct message m = {.about = *n, .real_ns = clock_real_ns(), .is_over = word == NOTICE_TELL_OVER, .gpu_index = -1};
    c->write.notice = *n;
    if (word == NOTICE_NOTHING) return;
    message_fill(t, a, &m);
    snprintf(m.id, sizeof m.id, "%.20s-%llx", m.host, (unsigned long long)m.real_ns);
    posts_write(t, c, &m);
}

static struct mark *mark_make(struct tell *t, const char *stream) {
    struct mark *m = mark_find(t, stream);
    if (m) return m;
    if (t->mark_count == MARKS_MAX) memmove(t->marks, t->marks + 1, (size_t)--t->mark_count * sizeof *t->marks);
    m = &t->marks[t->mark_count++];
    *m = (struct mark){0};
    snprintf(m->stream, sizeof m->stream, "%s", stream);
    return m;
}

static void mark_put(struct change *c, struct mark *m) {
    snprintf(c->write.stream, sizeof c->write.stream, "%s", m->stream);
    c->write.mark = m->taken;
    m->is_saving = true;
}

static void subject_of(const struct tell_about *a, char ret[96]) {
    if (a->gpu)
        snprintf(ret, 96, "gpu:%.90s", a->gpu->uuid);
    else
        snprintf(ret, 96, "node:%.90s", a->node);
}

void tell_event(struct tell *t, const struct tell_about *a) {
    struct mark *m = mark_make(t, a->stream);
    struct notice_policy p = policy_of(t);
    char subject[96];
    int at;
    if ((int64_t)a->mark <= m->taken) return;
    m->taken = (int64_t)a->mark;
    subject_of(a, subject);
    enum notice_word word = notice_take(&t->book, &p, subject, a->event, clock_real_ns(), &at);
    if (at < 0) return; /* its mark is saved with the next tick's */
    struct change *c = change_new(t);
    mark_put(c, m);
    say(t, c, word, &t->book.of[at], a);
    change_submit(c);
}

uint64_t tell_mark(const struct tell *t, const char *stream) {
    for (unsigned i = 0; i < t->mark_count; i++)
        if (strcmp(t->marks[i].stream, stream) == 0) return (uint64_t)t->marks[i].saved;
    return 0;
}

bool tell_has_open(const struct tell *t, const char *subject, const char *topic) {
    for (uint32_t i = 0; i < t->book.count; i++) {
        const struct notice *n = &t->book.of[i];
        if (n->is_open && strcmp(n->subject, subject) == 0 && strcmp(n->topic, topic) == 0) return true;
    }
    return false;
}

void tell_forget(struct tell *t, const char *subject) {
    for (uint32_t i = 0; i < t->book.count; i++) {
        struct notice *n = &t->book.of[i];
        if (!n->is_open || strcmp(n->subject, subject) != 0) continue;
        n->is_open = n->is_owed = n->is_told = 0;
        struct change *c = change_new(t);
        c->write.notice = *n;
        change_submit(c);
    }
}

/* A notice that was held back has no event any more: its subject tells what it is about. */
static void tick_notices(struct tell *t) {
    struct notice_policy p = policy_of(t);
    enum notice_word word;
    int at;
    while ((word = notice_tick(&t->book, &p, clock_real_ns(), &at)) != NOTICE_NOTHING) {
        const struct notice *n = &t->book.of[at];
        const char *name = strchr(n->subject, ':');
        struct tell_about about = {.node = name ? name + 1 : n->subject};
        struct change *c = change_new(t);
        say(t, c, word, n, &about);
        change_submit(c);
    }
}

static void tick(void *ctx) {
    struct tell *t = ctx;
    if (t->is_closed) return;
    tick_notices(t);
    for (size_t i = 0; i < TELL_WAYS; i++) way_kick(&t->ways[i]);
    if (++t->ticks % MARK_SAVE_TICKS) return;
    for (unsigned i = 0; i < t->mark_count; i++) {
        struct mark *m = &t->marks[i];
        if (m->saved == m->taken || m->is_saving) continue;
        struct change *c = change_new(t);
        mark_put(c, m);
        change_submit(c);
    }
}

int tell_test(struct tell *t, const char *node, struct error *e) {
    struct message m = {.is_test = true, .gpu_index = -1, .real_ns = clock_real_ns()};
    struct change *c = change_new(t);
    bool is_any = false;
    for (size_t i = 0; i < TELL_WAYS; i++) is_any |= t->ways[i].is_set;
    if (!is_any) {
        free(c);
        return fail(e, -ENOENT, "nobody to tell: set tell.webhook, tell.slack, tell.smtp_url or tell.command");
    }
    m.about = (struct notice){
        .topic = "test", .title = "A message to try the way", .severity = EVENT_INFO, .opened_ns = m.real_ns};
    snprintf(m.about.subject, sizeof m.about.subject, "node:%.80s", node);
    snprintf(m.about.text, sizeof m.about.text, "Somebody asked for it. Nothing has happened.");
    snprintf(m.host, sizeof m.host, "%s", node);
    snprintf(m.id, sizeof m.id, "%.20s-%llx", node, (unsigned long long)m.real_ns);
    posts_write(t, c, &m);
    change_submit(c);
    return 0;
}

/* ---- beginning and end ---- */

static void take_notice(void *ctx, const struct notice *n) {
    struct tell *t = ctx;
    if (t->book.count < NOTICE_BOOK_MAX) t->book.of[t->book.count++] = *n;
}

static void take_post(void *ctx, int64_t id, const char *way, int64_t made, int64_t tries, const char *body) {
    struct way *w = way_find(ctx, way);
    char *copy = strdup(body);
    if (!copy) abort();
    if (w)
        way_add(w, &(struct post){.id = id, .made = made, .tries = tries, .body = copy});
    else
        free(copy);
}

static void take_mark(void *ctx, const char *stream, int64_t mark) {
    struct mark *m = mark_make(ctx, stream);
    m->taken = m->saved = mark;
}

static int read_work(struct sql *db, void *ctx, struct error *e) {
    const struct tell_reader r = {.ctx = ctx, .notice = take_notice, .post = take_post, .mark = take_mark};
    return tell_store_read(db, &r, e);
}

void tell_reload(struct tell *t, const struct settings *settings) {
    t->settings = *settings;
    for (size_t i = 0; i < TELL_WAYS; i++) t->ways[i].is_set = tell_ways[i].is_set(settings);
}

int tell_new(struct loop *l, struct state *s, const struct settings *settings, const char *link, struct tell **ret,
             struct error *e) {
    struct tell *t = calloc(1, sizeof *t);
    if (!t) abort();
    t->loop = l;
    t->state = s;
    snprintf(t->link, sizeof t->link, "%s", link);
    for (size_t i = 0; i < TELL_WAYS; i++) {
        t->ways[i].tell = t;
        t->ways[i].is = &tell_ways[i];
        pthread_mutex_init(&t->ways[i].lock, NULL);
        pthread_cond_init(&t->ways[i].news, NULL);
    }
    tell_reload(t, settings);
    int r = state_run(s, read_work, t, e);
    if (r < 0) {
        tell_free(t);
        return r;
    }
    loop_every(l, TICK_MS, tick, t);
    *ret = t;
    return 0;
}

/* A thread that is sending ends when its receiver does, or runs into its own time limit: the process does not wait for that,
 * but for one that is nearly through. */
static bool way_end(struct way *w) {
    struct timespec until;
    if (!w->has_thread) return true;
    pthread_mutex_lock(&w->lock);
    w->is_ending = true;
    pthread_cond_signal(&w->news);
    pthread_mutex_unlock(&w->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += END_PATIENCE_NS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    if (pthread_timedjoin_np(w->thread, NULL, &until) == 0) return true;
    pthread_detach(w->thread);
    return false;
}

void tell_stop(struct tell *t) {
    if (!t || t->is_closed) return;
    t->is_closed = true;
    for (size_t i = 0; i < TELL_WAYS; i++) t->is_left |= !way_end(&t->ways[i]);
}

void tell_free(struct tell *t) {
    tell_stop(t);
    if (!t || t->is_left) return; /* a detached thread still reads its message; the process is about to end */
    for (size_t i = 0; i < TELL_WAYS; i++)
        while (t->ways[i].first) {
            struct post *p = t->ways[i].first;
            t->ways[i].first = p->next;
            post_free(p);
        }
    free(t);
}

/* ---- for the page ---- */

static void way_json(struct buf *out, const struct way *w) {
    json_open(out, '{');
    json_pair_str(out, "name", w->is->name);
    json_pair_bool(out, "is_configured", w->is_set);
    json_pair_int(out, "waiting", w->count);
    json_pair_int(out, "sent", w->sent);
    json_pair_int(out, "failed", w->failed);
    json_pair_int(out, "dropped", w->dropped);
    json_key(out, "last_sent");
    if (w->sent_ns)
        json_num(out, (double)(w->sent_ns / NS_PER_MS) / 1e3);
    else
        json_nil(out);
    json_key(out, "last_failed");
    if (w->failed_ns)
        json_num(out, (double)(w->failed_ns / NS_PER_MS) / 1e3);
    else
        json_nil(out);
    json_pair_str(out, "trouble", w->trouble);
    json_close(out, '}');
}

void tell_json(const struct tell *t, struct buf *out) {
    json_key(out, "channels");
    json_open(out, '[');
    for (size_t i = 0; i < TELL_WAYS; i++) way_json(out, &t->ways[i]);
    json_close(out, ']');
    json_key(out, "open");
    json_open(out, '[');
    for (uint32_t i = 0; i < t->book.count; i++) {
        const struct notice *n = &t->book.of[i];
        if (!n->is_open) continue;
        json_open(out, '{');
        json_pair_str(out, "subject", n->subject);
        json_pair_str(out, "title", n->title);
        json_pair_str(out, "text", n->text);
        json_pair_str(out, "severity", event_severity_name((enum event_severity)n->severity));
        json_pair_num(out, "since", (double)(n->opened_ns / NS_PER_MS) / 1e3);
        json_pair_bool(out, "is_told", n->is_told);
        json_close(out, '}');
    }
    json_close(out, ']');
}
