/* gpumgr-server: takes frames from nodes, keeps what they tell, answers people and programs. Started by the supervisor
 * (`serve DIR SETTINGS_FILE HEART_FD`); `routes` prints the reference page of the API. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/heart.h"
#include "base/log.h"
#include "base/number.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "server/routes.h"
#include "server/secrets.h"
#include "server/server.h"
#include "server/signin.h"

#define SETTINGS_MAX 65536
#define ALONE_NS (15 * NS_PER_S) /* thrice what an end takes; then it is tried again after a pause */
#define STOP_NS (5 * NS_PER_S)   /* requests that are not over by then are cut off */

static struct server self;
static struct heart *heart;
static int64_t stopping_ns;

/* ---- start ---- */

static int settings_read(struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(self.settings_path, SETTINGS_MAX, &text, e);
    if (r >= 0) r = settings_decode(&self.settings, text.s, e);
    return r < 0 ? fail_in(e, r, "%s", self.settings_path) : 0;
}

/* "/gpus", "gpus/" and "/gpus/" are the same base path. */
static void base_path_set(const char *text) {
    snprintf(self.base_path, sizeof self.base_path, "/%s", text + (*text == '/'));
    size_t n = strlen(self.base_path);
    if (self.base_path[n - 1] != '/' && n + 1 < sizeof self.base_path) memcpy(self.base_path + n, "/", 2);
}

/* Finds the instance and becomes who the server is to be; nothing that came from elsewhere was read before. */
static int places_make(const char *dir, struct error *e) {
    int r = instance_find(dir, &self.instance, e);
    if (r >= 0) r = privilege_prepare(&self.instance, self.settings.server_user, &self.privilege, e);
    if (r >= 0) r = privilege_drop(&self.privilege, e);
    if (r < 0) return r;
    dir_sweep(self.privilege.state_dir, NULL); /* links to sign in with are among it */
    dir_sweep(self.privilege.socket_dir, NULL);
    return 0;
}

/* One at a time. The one before may still be at its end when its supervisor was killed and is started again: what it writes
 * last is to be read, and it is no reason to give up. */
static int wait_alone(struct error *e) {
    static int fd;
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    int64_t until_ns = clock_boot_ns() + ALONE_NS;
    char path[300];
    snprintf(path, sizeof path, "%s/lock", self.privilege.state_dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600); /* as long as this process lives */
    if (fd < 0) return fail_errno(e, errno, "%s", path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK) return fail_errno(e, errno, "%s", path);
        if (clock_boot_ns() > until_ns)
            return fail(e, -EAGAIN, "%s: the server before still has it", self.privilege.state_dir);
        if (heart) heart->beat_ns = clock_boot_ns();
        nanosleep(&pause, NULL);
    }
    return 0;
}

static void post(void *loop, void (*fn)(void *arg), void *arg) { loop_post(loop, fn, arg); }

static int state_make(struct error *e) {
    char path[300];
    snprintf(path, sizeof path, "%s/state.db", self.privilege.state_dir);
    int r = secrets_start(e);
    if (r >= 0) r = state_open(path, &self.state, e);
    if (r < 0) return r;
    struct auth_setup setup = {.state = self.state,
                               .owner = self.privilege.owner,
                               .base_path = self.base_path,
                               .public_url = self.settings.public_url};
    r = auth_new(&setup, &self.auth, e);
    if (r >= 0) r = groups_load(&self.groups, self.state, e);
    return r;
}

/* Where a message's reader can look: as people reach this server, if that is known. */
static int tell_make(struct error *e) {
    AUTO(buf_done) struct buf url = {0};
    if (*self.settings.public_url)
        buf_puts(&url, self.settings.public_url);
    else
        http_addresses(self.http, &url);
    size_t n = url.s ? strcspn(url.s, "\n") : 0;
    while (n && url.s[n - 1] == '/') n--;
    if (url.s) url.s[n] = 0;
    if (url.s && n) queue_set_link(self.queue, url.s);
    int r = http_client_start(e);
    return r < 0 ? r : tell_new(self.loop, self.state, &self.settings, url.s ? url.s : "", &self.tell, e);
}

/* ---- what nodes say ---- */

static const struct inventory *gpu_of(const struct live_node *n, const struct event *ev) {
    return ev->device >= 0 && ev->device < n->devices && n->device[ev->device].is_known ? &n->device[ev->device].is
                                                                                        : NULL;
}

static void stream_name(const struct live_node *n, uint16_t source, char *ret, size_t room) {
    snprintf(ret, room, "%s/%s/%u", n->name, n->boot_id, source);
}

/* What nobody was told of yet comes again, though it is in the history. */
static int64_t event_mark(void *ctx, const struct live_node *n, uint16_t source, int64_t mark) {
    char stream[160];
    stream_name(n, source, stream, sizeof stream);
    int64_t told = (int64_t)tell_mark(self.tell, stream);
    return told < mark ? told : mark;
}

static void on_event(void *ctx, struct live_node *n, uint16_t source, int64_t mark, const struct event *ev,
                     bool is_new) {
    char stream[160];
    stream_name(n, source, stream, sizeof stream);
    struct tell_about about = {
        .stream = stream, .mark = (uint64_t)mark, .node = n->name, .gpu = gpu_of(n, ev), .event = ev};
    tell_event(self.tell, &about);
    if (!is_new) return;
    int64_t id = recorder_event(self.recorder, n->name, gpu_of(n, ev), ev);
    streams_event(self.streams, ev, id, n->name, gpu_of(n, ev));
}

static void server_tell(struct server *s, const char *node, const struct event *ev) {
    static const char stream[] = "server";
    static int64_t last;
    /* Marks grow, whatever the clock does. */
    int64_t stored = (int64_t)tell_mark(s->tell, stream);
    last = last > stored ? last : stored;
    last = ev->real_ns > last ? ev->real_ns : last + 1;
    tell_event(s->tell, &(struct tell_about){.stream = stream, .mark = (uint64_t)last, .node = node, .event = ev});
    int64_t id = recorder_event(s->recorder, node, NULL, ev);
    streams_event(s->streams, ev, id, node, NULL);
}

void server_event(struct server *s, const char *node, const char *kind, enum event_severity severity,
                  const char *text) {
    struct event ev = {
        .boot_ns = clock_boot_ns(), .real_ns = clock_real_ns(), .severity = (int32_t)severity, .device = -1};
    snprintf(ev.kind, sizeof ev.kind, "%s", kind);
    snprintf(ev.text, sizeof ev.text, "%s", text);
    server_tell(s, node, &ev);
    recorder_soon(s->recorder);
}

static void on_gone(void *ctx, struct live_node *n) {
    char text[160], age[32], at[32];
    int64_t now_ns = clock_real_ns();
    number_age(now_ns > n->seen_real_ns ? now_ns - n->seen_real_ns : 0, age, sizeof age);
    number_time_here(n->seen_real_ns, now_ns, at, sizeof at);
    if (n->is_gone)
        snprintf(text, sizeof text, "nothing was heard of this machine for %s, since %s", age, at);
    else
        snprintf(text, sizeof text, "the machine sends readings again, after %s", age);
    log_line(n->is_gone ? LOG_WARN : LOG_INFO, n->is_gone ? "node_gone" : "node_back", -1, "node %s: %s", n->name,
             text);
    server_event(&self, n->name, n->is_gone ? "node_gone" : "node_back", n->is_gone ? EVENT_CRITICAL : EVENT_INFO,
                 text);
}

/* A full disk is worth a word before memory is full, too. */
static void on_health(void *ctx, const char *trouble) {
    static uint64_t lost_before;
    struct history_stats stats;
    char text[160];
    recorder_stats(self.recorder, &stats);
    if (trouble)
        snprintf(text, sizeof text, "%s", trouble);
    else
        snprintf(text, sizeof text, "readings are stored again; %llu were lost",
                 (unsigned long long)(stats.dropped - lost_before));
    lost_before = stats.dropped;
    server_event(&self, self.host, trouble ? "store_failed" : "store_back", trouble ? EVENT_CRITICAL : EVENT_INFO,
                 text);
}

static void on_second(void *ctx) {
    int64_t now_ns = clock_boot_ns();
    if (self.is_stopping) return;
    live_tick(&self.live, now_ns);
    roster_tick(self.roster, now_ns);
}

static void on_sample(void *ctx, struct live_node *n, struct live_device *d, const struct sample *s) {
    recorder_sample(self.recorder, d, s);
}

static void on_host(void *ctx, struct live_node *n, const struct host_sample *s) { recorder_host(self.recorder, n, s); }

static void on_task(void *ctx, struct live_node *n, const struct wire_task *t) { recorder_task(self.recorder, n, t); }

static void on_container(void *ctx, struct live_node *n, const struct wire_container *c) {
    recorder_container(self.recorder, n, c);
}

static void on_boot(void *ctx, struct live_node *n) { recorder_boot(self.recorder, n); }

static void on_round(void *ctx, struct live_node *n) { streams_round(self.streams); }

static void on_job_event(void *ctx, const char *node, const struct event *ev) {
    const struct live_node *n = live_find_node(&self.live, node);
    if (!n || !self.recorder || self.is_stopping) return;
    server_tell(&self, n->name, ev);
    if (ev->severity >= EVENT_WARNING) recorder_soon(self.recorder);
}

static int queue_make(struct error *e) {
    struct queue_setup setup = {.loop = self.loop,
                                .state = self.state,
                                .live = &self.live,
                                .settings = &self.settings,
                                .on_event = on_job_event};
    struct services_setup services = {.loop = self.loop, .state = self.state, .on_event = on_job_event};
    int r = queue_new(&setup, &self.queue, e);
    if (r < 0) return r;
    const struct repeats_setup repeating = {
        .loop = self.loop, .state = self.state, .queue = self.queue, .on_event = on_job_event};
    r = repeats_new(&repeating, &self.repeats, e);
    services.queue = self.queue;
    if (r >= 0) r = services_new(&services, &self.services, e);
    return r < 0 ? r : watchmen_new(&self, &self.watchmen, e);
}

static void on_moved(void *ctx, struct live_node *n, const char *to) {
    char text[160];
    snprintf(text, sizeof text, "its GPUs are those of %s now, so it is that machine", to);
    log_line(LOG_INFO, "node_moved", -1, "node %s: %s", n->name, text);
    server_event(&self, n->name, "node_forgotten", EVENT_INFO, text);
}

/* The machines that an earlier server knew are expected; one that was told to be gone is so until it comes. */
static int roster_make(struct error *e) {
    char subject[96];
    self.live = (struct live){.marks = &self.marks,
                              .on_sample = on_sample,
                              .on_host = on_host,
                              .on_event = on_event,
                              .event_mark = event_mark,
                              .on_round = on_round,
                              .on_task = on_task,
                              .on_container = on_container,
                              .on_boot = on_boot,
                              .on_gone = on_gone,
                              .gone_after_ns = self.settings.gone_s * NS_PER_S};
    int r = roster_new(self.state, &self.live, on_moved, NULL, &self.roster, e);
    for (size_t i = 0; i < self.live.count && r >= 0; i++) {
        snprintf(subject, sizeof subject, "node:%.90s", self.live.node[i]->name);
        self.live.node[i]->is_gone |= tell_has_open(self.tell, subject, "node");
    }
    return r;
}

static int live_make(struct error *e) {
    char path[300];
    snprintf(path, sizeof path, "%s/history.db", self.privilege.state_dir);
    int r = recorder_new(self.loop, path, &self.settings, &self.marks, on_health, NULL, &self.recorder, e);
    if (r < 0) return r;
    self.streams = streams_new(self.loop, &self.live, routes_may_read, &self);
    snprintf(path, sizeof path, "%s/link.sock", self.privilege.socket_dir);
    r = links_new(self.loop, &self.live, path, self.privilege.owner, &self.links, e);
    if (r < 0) return r;
    self.containers = containers_new(self.loop, self.links);
    queue_start(self.queue, self.links);
    repeats_start(self.repeats);
    services_start(self.services);
    streams_add_queue(self.streams, self.queue);
    r = proxy_new(&self, &self.proxy, e);
    return r < 0 ? r : watchmen_listen(self.watchmen, e);
}

/* The first sign-in's link names the addresses that are listened on; no request is read before the loop runs. */
static int accounts_start(struct error *e) {
    int r = signin_first(&self, clock_real_ns() / NS_PER_S, e);
    if (r >= 0) r = tell_make(e);
    if (r >= 0) r = roster_make(e);
    if (r >= 0) r = state_start(self.state, post, self.loop, e);
    if (r >= 0) r = auth_start(self.auth, post, self.loop, e);
    return r;
}

/* Every connection is a descriptor, and so is every database: as many as we may have. */
static void descriptors_raise(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < 4096) {
        l.rlim_cur = l.rlim_max < 4096 ? l.rlim_max : 4096;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int listen_all(struct error *e) {
    char path[300];
    struct http_service service;
    routes_service(&self, &service);
    int r = http_server_new(self.loop, &service, &self.http, e);
    snprintf(path, sizeof path, "%s/api.sock", self.privilege.socket_dir);
    if (r >= 0) r = http_listen_unix(self.http, path, 0666, e);
    if (r >= 0) r = http_listen_tcp(self.http, self.settings.listen, self.tls, e);
    if (r < 0) return r;
    if (http_is_exposed(self.http) && !self.settings.listen_plain)
        return fail(e, -EINVAL,
                    "listen: %s is not the loopback address: give tls.cert and tls.key, or set listen_plain",
                    self.settings.listen);
    AUTO(buf_done) struct buf urls = {0};
    http_addresses(self.http, &urls);
    snprintf(path, sizeof path, "%s/listen", self.privilege.socket_dir);
    return file_write(path, 0644, urls.s, urls.len, false, e);
}

/* ---- while it runs ---- */

static void on_beat(void *ctx) {
    if (heart) heart->beat_ns = clock_boot_ns();
}

static void on_drain(void *ctx) {
    if (http_is_drained(self.http) || clock_boot_ns() - stopping_ns > STOP_NS) loop_stop(self.loop);
}

static void on_minute(void *ctx) { auth_tick(self.auth, clock_real_ns() / NS_PER_S); }

static void on_stop(void *ctx) {
    if (self.is_stopping) return;
    roster_stop(self.roster);
    log_line(LOG_INFO, "stopping", -1, "stopping");
    self.is_stopping = true;
    stopping_ns = clock_boot_ns();
    proxy_drain(self.proxy);
    queue_drain(self.queue);
    links_close(self.links);
    http_drain(self.http);
    watchmen_drain(self.watchmen);
    loop_every(self.loop, 20, on_drain, NULL);
}

static void on_reload(void *ctx) {
    struct error e;
    if (settings_read(&e) < 0) {
        log_line(LOG_ERROR, "reload", -1, "%s; the old settings stay in force", e.text);
        return;
    }
    log_set_level((enum log_level)self.settings.log_level);
    if (proxies_parse(self.settings.trusted_proxies, &self.proxies, &e) < 0)
        log_line(LOG_ERROR, "reload", -1, "%s", e.text);
    tell_reload(self.tell, &self.settings);
    self.live.gone_after_ns = self.settings.gone_s * NS_PER_S;
    if (self.tls && tls_reload(self.tls, &e) < 0)
        log_line(LOG_ERROR, "reload", -1, "%s; the old certificate stays", e.text);
}

static int start(char **argv, struct error *e) {
    self.settings_path = argv[2];
    int r = settings_read(e);
    if (r >= 0) r = proxies_parse(self.settings.trusted_proxies, &self.proxies, e);
    /* a key is root's to read; a new one that the server's user may not read takes a restart */
    if (r >= 0 && *self.settings.tls_cert) r = tls_new(self.settings.tls_cert, self.settings.tls_key, &self.tls, e);
    if (r >= 0) r = places_make(argv[1], e);
    if (r < 0) return r;
    int fd = atoi(argv[3]);
    if (fd > 0) r = heart_join(fd, &heart, e);
    if (r >= 0) r = wait_alone(e);
    if (r < 0) return r;
    log_set_level((enum log_level)self.settings.log_level);
    gethostname(self.host, sizeof self.host - 1);
    base_path_set(self.settings.base_path);
    descriptors_raise();
    r = loop_new(&self.loop, e);
    if (r >= 0) r = state_make(e);
    if (r >= 0) r = listen_all(e);
    if (r >= 0) r = queue_make(e);
    if (r >= 0) r = accounts_start(e);
    if (r >= 0) r = live_make(e);
    if (r < 0) return r;
    loop_signal(self.loop, SIGTERM, on_stop, NULL);
    loop_signal(self.loop, SIGINT, on_stop, NULL);
    loop_signal(self.loop, SIGHUP, on_reload, NULL);
    loop_every(self.loop, 1000, on_beat, NULL);
    loop_every(self.loop, 1000, on_second, NULL);
    loop_every(self.loop, 60000, on_minute, NULL);
    return 0;
}

static int serve_main(int argc, char **argv) {
    struct error e;
    log_open("server", LOG_INFO);
    CRASH_POINT_AS("server");
    CRASH_POINT_CALLS(true);
    if (argc != 4) {
        log_line(LOG_ERROR, "usage", -1, "serve DIR SETTINGS_FILE HEART_FD: started by gpumgr up and gpumgr server");
        return 2;
    }
    int r = start(argv, &e);
    if (r < 0) {
        log_line(LOG_ERROR, "start", -1, "%s", e.text);
    } else {
        if (heart) heart->beat_ns = heart->ready_ns = clock_boot_ns();
        AUTO(buf_done) struct buf urls = {0};
        http_addresses(self.http, &urls);
        if (urls.len) urls.s[urls.len - 1] = 0;
        log_line(LOG_INFO, "ready", -1, "serving at %s", urls.len ? urls.s : "the Unix socket only");
        loop_run(self.loop);
        log_line(LOG_INFO, "stopped", -1, "stopped");
    }
    http_server_free(self.http);
    watchmen_free(self.watchmen);
    proxy_free(self.proxy);
    containers_free(self.containers);
    links_free(self.links);
    recorder_free(self.recorder);
    streams_free(self.streams);
    live_done(&self.live);
    marks_list_done(&self.marks);
    groups_done(&self.groups);
    exporter_done(&self.exporter);
    if (r >= 0) auth_flush(self.auth, clock_real_ns() / NS_PER_S);
    tell_stop(self.tell);
    state_close(self.state);
    roster_free(self.roster);
    tell_free(self.tell);
    repeats_free(self.repeats);
    services_free(self.services);
    queue_free(self.queue);
    auth_free(self.auth);
    tls_free(self.tls);
    loop_free(self.loop);
    return r < 0 ? error_exit_code(r) : 0;
}

static int routes_main(int argc, char **argv) {
    AUTO(buf_done) struct buf page = {0};
    routes_page(&page);
    fwrite(page.s, 1, page.len, stdout);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} programs[] = {
    {"serve",  serve_main },
    {"routes", routes_main},
};

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(programs); i++)
        if (strcmp(argv[1], programs[i].name) == 0) return programs[i].run(argc - 1, argv + 1);
    fputs("gpumgr-server is started by `gpumgr up` and `gpumgr server`; `gpumgr-server routes` prints the API's "
          "reference.\n",
          stderr);
    return 2;
}
