#include "client/top_remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/top_figures.h"
#include "client/top_mirror.h"
#include "client/top_stream.h"
#include "net/http_client.h"

enum {
    TOKEN_MAX = 512,
    ANSWER_MS = 5000,
    PAUSE_MS = 500,
    PAUSE_MAX_MS = 8000,
    PAST_MS = 2000,
    PAST_LOCAL_MS = 500,
    PAST_GPUS = 16
};

/* A stream that says nothing for so long is broken: the server speaks once a second. */
#define SILENT_NS (5 * NS_PER_S)

struct place {
    char url[512]; /* without a slash at its end */
    char authorization[TOKEN_MAX + 32];
    char ca_file[512];
    const char *unix_path;
};

struct feed_server {
    struct top_feed feed;
    struct place place;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    struct top_mirror mirror;
    struct history past;
    bool is_new, has_past;
    char problem[248];
    /* The thread's own. */
    struct top_stream stream;
    int64_t heard_ns;
    atomic_bool is_over;
};

/* ---- asking ---- */

static struct http_ask request(const struct place *p, const char *url, const char *accept) {
    struct http_ask ask = {.url = url, .unix_path = p->unix_path, .total_ms = ANSWER_MS};
    ask.headers[0] = accept;
    if (*p->authorization) ask.headers[1] = p->authorization;
    if (*p->ca_file) ask.ca_file = p->ca_file;
    return ask;
}

static int refuse(int status, struct error *e) {
    if (status == 401)
        return fail(e, -EACCES, "the server wants a token: --token-file FILE (`gpumgr token` makes one there)");
    if (status == 403) return fail(e, -EACCES, "the server does not let this token look");
    if (status == 404) return fail(e, -EPROTO, "no gpumgr server answers at this URL (404)");
    return fail(e, -EPROTO, "the server answers with status %d", status);
}

static int ask_json(const struct place *p, const char *path, int total_ms, struct json_tree **ret, struct error *e) {
    AUTO(http_answer_done) struct http_answer answer = {0};
    AUTO(buf_done) struct buf url = {0};
    buf_printf(&url, "%s%s", p->url, path);
    struct http_ask ask = request(p, url.s, "Accept: application/json");
    ask.total_ms = total_ms;
    int r = http_ask(&ask, &answer, e);
    if (r < 0) return r;
    if (answer.status != 200) return refuse(answer.status, e);
    r = json_tree_parse(answer.body.s, answer.body.len, ret, e);
    return r < 0 ? fail_in(e, r, "the server's answer is not JSON") : 0;
}

static void tree_done(struct json_tree **j) { json_tree_free(*j); }

/* ---- the past ---- */

static void add_metric(struct buf *b, int id) {
    if (id >= 0) buf_printf(b, "%s%s", b->s[b->len - 1] == '=' ? "" : ",", metrics[id].name);
}

/* The GPUs from `first` on, as many as one question may name; where the next question goes on, in *next. */
static int fetch_some(const struct place *p, const struct view *v, size_t first, size_t *next, int total_ms,
                      struct history *h, struct error *e) {
    AUTO(buf_done) struct buf path = {0};
    AUTO(tree_done) struct json_tree *j = NULL;
    int gpus = 0;
    buf_puts(&path, "/api/v1/history?of=");
    for (*next = first; *next < v->count && gpus < PAST_GPUS; ++*next)
        if (!view_is_instance(&v->of[*next]) && *v->of[*next].inventory.uuid)
            buf_printf(&path, "%sgpu:%s", gpus++ ? "," : "", v->of[*next].inventory.uuid);
    if (!gpus) return 0;
    buf_puts(&path, "&metric=");
    for (int g = 0; g < GAUGES; g++) {
        add_metric(&path, top_gauge_metric((enum top_gauge)g));
        add_metric(&path, top_gauge_line((enum top_gauge)g));
    }
    buf_printf(&path, "&from=-%d&width=%d", HISTORY_ROWS, HISTORY_ROWS);
    int r = ask_json(p, path.s, total_ms, &j, e);
    if (r == 0) top_mirror_past(j, clock_boot_ns(), clock_real_ns(), h);
    return r;
}

static int fetch_past(const struct place *p, const struct view *v, int total_ms, struct history *h, struct error *e) {
    int r = 0;
    for (size_t next, first = 0; r == 0 && first < v->count; first = next)
        r = fetch_some(p, v, first, &next, total_ms, h, e);
    return r;
}

void top_past_local(const char *api_socket, const struct view *v, struct history *h) {
    struct place p = {.url = "http://localhost", .unix_path = api_socket};
    struct stat st;
    struct error e;
    if (stat(api_socket, &st) < 0 || !S_ISSOCK(st.st_mode) || http_client_start(&e) < 0) return;
    if (fetch_past(&p, v, PAST_LOCAL_MS, h, &e) < 0) return; /* charts begin with what the ring has */
}

/* ---- the thread ---- */

static void tell(struct feed_server *f) {
    uint64_t one = 1;
    f->is_new = true;
    ssize_t ignored = write(f->feed.fd, &one, sizeof one);
    (void)ignored;
}

static void begin(struct feed_server *f, const struct json_tree *j) {
    pthread_mutex_lock(&f->lock);
    top_mirror_snapshot(&f->mirror, j, clock_boot_ns(), clock_real_ns());
    f->problem[0] = 0;
    tell(f);
    pthread_mutex_unlock(&f->lock);
}

static int take_message(void *ctx, const char *event, const char *data, size_t len) {
    struct feed_server *f = ctx;
    AUTO(tree_done) struct json_tree *j = NULL;
    struct error e;
    f->heard_ns = clock_boot_ns();
    if (json_tree_parse(data, len, &j, &e) < 0) /* without a change the rest would be wrong: begin again */
        return strcmp(event, "snapshot") == 0 || strcmp(event, "delta") == 0 ? -EPROTO : 0;
    if (strcmp(event, "snapshot") == 0) {
        begin(f, j);
        return 0;
    }
    pthread_mutex_lock(&f->lock);
    if (strcmp(event, "delta") == 0 && f->mirror.is_begun) {
        top_mirror_delta(&f->mirror, j, clock_boot_ns(), clock_real_ns());
        tell(f);
    } else if (strcmp(event, "event") == 0) {
        top_mirror_event(&f->mirror, j);
    }
    pthread_mutex_unlock(&f->lock);
    return 0;
}

static int take_piece(void *ctx, const char *bytes, size_t n) {
    struct feed_server *f = ctx;
    f->heard_ns = clock_boot_ns();
    return top_stream_feed(&f->stream, bytes, n, take_message, f);
}

static bool is_over(void *ctx) {
    const struct feed_server *f = ctx;
    return f->is_over || clock_boot_ns() - f->heard_ns > SILENT_NS;
}

static int listen_on(struct feed_server *f, struct error *e) {
    AUTO(http_answer_done) struct http_answer answer = {0};
    AUTO(buf_done) struct buf url = {0};
    buf_printf(&url, "%s/api/v1/events", f->place.url);
    struct http_ask ask = request(&f->place, url.s, "Accept: text/event-stream");
    ask.total_ms = -1;
    ask.piece = take_piece;
    ask.is_over = is_over;
    ask.ctx = f;
    top_stream_done(&f->stream);
    f->heard_ns = clock_boot_ns();
    int r = http_ask(&ask, &answer, e);
    if (r == -ECANCELED) return fail(e, -ETIMEDOUT, "the server has fallen silent; connecting again");
    if (r < 0) return r;
    if (answer.status != 200) return refuse(answer.status, e);
    return fail(e, -ECONNRESET, "the server ended the stream; connecting again");
}

/* What there was before the stream: recent events, and the past for the charts. Doing without is no failure. */
static void look_back(struct feed_server *f) {
    AUTO(history_done) struct history past = {0};
    AUTO(tree_done) struct json_tree *j = NULL;
    struct error e;
    bool has_past = fetch_past(&f->place, &f->mirror.view, PAST_MS, &past, &e) == 0;
    bool has_events = ask_json(&f->place, "/api/v1/events?severity=warning&limit=16", PAST_MS, &j, &e) == 0;
    const struct json_tree *events = has_events ? json_tree_get(j, "events") : NULL;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < json_tree_count(events); i++) top_mirror_event(&f->mirror, json_tree_at(events, i));
    if (has_past) {
        history_done(&f->past);
        f->past = TAKE_STRUCT(past);
        f->has_past = true;
    }
    tell(f);
    pthread_mutex_unlock(&f->lock);
}

static int follow(struct feed_server *f, struct error *e) {
    AUTO(tree_done) struct json_tree *j = NULL;
    int r = ask_json(&f->place, "/api/v1/gpus", ANSWER_MS, &j, e);
    if (r < 0) return r;
    bool is_first = !f->mirror.is_begun;
    begin(f, j);
    if (is_first) look_back(f);
    return f->is_over ? 0 : listen_on(f, e);
}

static void *server_thread(void *arg) {
    struct feed_server *f = arg;
    int pause_ms = PAUSE_MS;
    while (!f->is_over) {
        struct error e = {0};
        int64_t began_ns = clock_boot_ns();
        if (follow(f, &e) < 0 && !f->is_over) {
            pthread_mutex_lock(&f->lock);
            snprintf(f->problem, sizeof f->problem, "%s", e.text);
            tell(f);
            pthread_mutex_unlock(&f->lock);
        }
        if (clock_boot_ns() - began_ns > 10 * NS_PER_S) pause_ms = PAUSE_MS;
        for (int waited = 0; waited < pause_ms && !f->is_over; waited += 50) usleep(50000);
        pause_ms = pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms * 2;
    }
    return NULL;
}

/* ---- the feed ---- */

static void server_ask(struct top_feed *f) {}

static void copy_view(struct view *to, const struct view *from) {
    view_clear(to);
    for (size_t i = 0; i < from->count; i++) *view_add(to) = from->of[i];
    struct view_device *of = to->of;
    size_t capacity = to->capacity;
    *to = *from;
    to->of = of;
    to->capacity = capacity;
    view_make_safe(to);
    view_order(to);
}

static void keep_past(struct feed_server *f, struct history *h) {
    for (int i = 0; f->has_past && i < f->past.count; i++) {
        struct history_device *to = history_of(h, f->past.of[i].uuid);
        for (int row = 0; row < HISTORY_ROWS; row++)
            for (int m = 0; m < METRIC_COUNT && f->past.of[i].rows[row].second; m++)
                if (bits_test(f->past.of[i].rows[row].has, m))
                    history_put(to, m, f->past.of[i].rows[row].second, f->past.of[i].rows[row].value[m]);
    }
    f->has_past = false;
    history_done(&f->past);
}

static bool server_take(struct top_feed *feed, struct top_data *d, bool is_paused) {
    struct feed_server *f = (struct feed_server *)feed;
    uint64_t count;
    ssize_t ignored = read(f->feed.fd, &count, sizeof count);
    (void)ignored;
    pthread_mutex_lock(&f->lock);
    bool is_new = f->is_new;
    f->is_new = false;
    keep_past(f, &d->history);
    if (is_new) top_remember(&d->history, &f->mirror.view);
    if (is_new && !is_paused) {
        copy_view(&d->view, &f->mirror.view);
        top_processes_clear(&d->processes);
        for (int i = 0; i < f->mirror.processes.count; i++)
            *top_processes_add(&d->processes) = f->mirror.processes.of[i];
        if (*f->mirror.host) snprintf(d->host, sizeof d->host, "%s", f->mirror.host);
        snprintf(d->problem, sizeof d->problem, "%s", f->problem);
        if (f->mirror.is_begun) d->newest_ns = f->mirror.view.boot_ns;
    }
    pthread_mutex_unlock(&f->lock);
    return is_new;
}

static void server_close(struct top_feed *feed) {
    struct feed_server *f = (struct feed_server *)feed;
    f->is_over = true;
    pthread_join(f->thread, NULL);
    top_mirror_done(&f->mirror);
    history_done(&f->past);
    top_stream_done(&f->stream);
    close(f->feed.fd);
    free(f);
}

static int read_token(const char *path, struct place *p, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(path, TOKEN_MAX, &text, e);
    if (r < 0) return r;
    size_t n = strcspn(text.s, " \t\r\n");
    if (!n || strspn(text.s + n, " \t\r\n") != text.len - n) return fail(e, -EINVAL, "%s: holds no token", path);
    snprintf(p->authorization, sizeof p->authorization, "Authorization: Bearer %.*s", (int)n, text.s);
    return 0;
}

int top_feed_server(const struct top_server *where, struct top_feed **ret, char *name, size_t name_room,
                    struct error *e) {
    static const struct top_feed_kind kind = {server_ask, server_take, server_close};
    struct place place = {0};
    size_t n = strlen(where->url);
    bool is_tls = strncmp(where->url, "https://", 8) == 0;
    if (!is_tls && strncmp(where->url, "http://", 7) != 0)
        return fail(e, -EINVAL, "--server: \"%.80s\" is not http://HOST:PORT or https://HOST:PORT", where->url);
    const char *host = where->url + (is_tls ? 8 : 7);
    while (n && where->url[n - 1] == '/') n--;
    if (n >= sizeof place.url || !*host || *host == '/')
        return fail(e, -EINVAL, "--server: \"%.80s\" names no host", where->url);
    snprintf(place.url, sizeof place.url, "%.*s", (int)n, where->url);
    if (where->ca_file) snprintf(place.ca_file, sizeof place.ca_file, "%s", where->ca_file);
    int r = where->token_file ? read_token(where->token_file, &place, e) : 0;
    if (r == 0) r = http_client_start(e);
    if (r < 0) return r;
    snprintf(name, name_room, "%.*s", (int)strcspn(host, "/"), host);
    struct feed_server *f = calloc(1, sizeof *f);
    if (!f) abort();
    f->feed = (struct top_feed){.kind = &kind, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    f->place = place;
    pthread_mutex_init(&f->lock, NULL);
    if (f->feed.fd < 0 || pthread_create(&f->thread, NULL, server_thread, f) != 0) abort();
    *ret = &f->feed;
    return 0;
}
