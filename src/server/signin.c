#include "server/signin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "server/server.h"

#define LINK_FILE_MAX 4096

static void file_path(const struct server *s, char *ret, size_t room) {
    snprintf(ret, room, "%s/signin-link", s->privilege.state_dir);
}

/* ---- addresses ---- */

static void add_url(const struct server *s, const char *origin, size_t len, const char *secret, struct buf *ret) {
    buf_add(ret, origin, len);
    buf_printf(ret, "%ssignin#%s\n", s->base_path, secret);
}

/* "http://0.0.0.0:7000": the port, when it stands for all addresses of the machine; else NULL. */
static const char *port_of_any(const char *origin, size_t len) {
    static const char *const any[] = {"//0.0.0.0:", "//[::]:"};
    for (size_t i = 0; i < ARRAY_LEN(any); i++) {
        const char *at = memmem(origin, len, any[i], strlen(any[i]));
        if (at) return at + strlen(any[i]) - 1;
    }
    return NULL;
}

static void add_listener(const struct server *s, const char *origin, size_t len, const char *secret, struct buf *ret) {
    AUTO(buf_done) struct buf b = {0};
    const char *port = port_of_any(origin, len);
    const char *names[] = {"localhost", s->host};
    if (!port) {
        add_url(s, origin, len, secret, ret);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buf_clear(&b);
        buf_printf(&b, "%.*s//%s%.*s", (int)(strchr(origin, '/') - origin), origin, names[i],
                   (int)(len - (size_t)(port - origin)), port);
        if (!ret->s || !strstr(ret->s, b.s)) add_url(s, b.s, b.len, secret, ret); /* v4 and v6 are one */
    }
}

void signin_urls(const struct server *s, const char *secret, struct buf *ret) {
    AUTO(buf_done) struct buf listeners = {0};
    const char *url = s->settings.public_url;
    buf_puts(ret, "");
    if (*url) {
        size_t n = strlen(url);
        while (n && url[n - 1] == '/') n--;
        buf_printf(ret, "%.*s/signin#%s\n", (int)n, url, secret);
    }
    http_addresses(s->http, &listeners);
    for (const char *at = listeners.len ? listeners.s : ""; *at;) {
        size_t n = strcspn(at, "\n");
        add_listener(s, at, n, secret, ret);
        at += n + (at[n] == '\n');
    }
}

/* ---- the first start ---- */

struct first {
    char secret[SECRETS_TEXT];
    struct account admin;
    int64_t now_s;
    bool is_new, waits;
};

static int count_or_make(struct sql *db, void *ctx, struct error *e) {
    struct first *f = ctx;
    uint8_t hash[SECRETS_HASH];
    int64_t accounts;
    int r = sql_int(db, &accounts, e, "SELECT count(*) FROM users", "");
    if (r < 0) return r;
    if (accounts) {
        r = store_first_link_waits(db, f->now_s, e);
        f->waits = r > 0;
        return r;
    }
    f->is_new = true;
    f->admin = (struct account){.name = "admin", .role = ROLE_ADMIN, .uid = -1, .created = f->now_s};
    secrets_hash("link", f->secret, hash);
    r = store_add_account(db, &f->admin, e);
    if (r == 0) r = store_add_link(db, f->admin.id, hash, f->now_s, f->now_s + AUTH_FIRST_LINK_S, true, e);
    return r;
}

/* The secret of a link that an earlier start left. */
static bool read_link(const char *path, char ret[SECRETS_TEXT]) {
    AUTO(buf_done) struct buf text = {0};
    struct error ignored;
    if (file_read(path, LINK_FILE_MAX, &text, &ignored) < 0 || !text.len) return false;
    const char *at = strchr(text.s, '#');
    size_t n = at ? strcspn(++at, "\n") : 0;
    if (n != SECRETS_TEXT - 1) return false;
    snprintf(ret, SECRETS_TEXT, "%s", at);
    return rules_is_secret(ret);
}

static void show(const struct server *s, const char *path, const char *secret) {
    AUTO(buf_done) struct buf urls = {0};
    bool is_shown = isatty(STDERR_FILENO) == 1 || s->settings.print_link;
    if (!is_shown) {
        log_line(LOG_INFO, "first_sign_in", -1, "the first sign-in: the link in %s, or `gpumgr web`", path);
        return;
    }
    signin_urls(s, secret, &urls);
    fprintf(stderr, "\n  Sign in as administrator (once, within a day):\n\n");
    for (char *at = urls.s, *line; (line = strsep(&at, "\n")) && *line;) fprintf(stderr, "    %s\n", line);
    fprintf(stderr, "\n");
}

int signin_first(struct server *s, int64_t now_s, struct error *e) {
    struct first f = {.now_s = now_s};
    char path[300];
    AUTO(buf_done) struct buf urls = {0};
    file_path(s, path, sizeof path);
    bool had_one = read_link(path, f.secret);
    if (!had_one) secrets_make(f.secret);
    /* The file first: a link that nobody knows would be worse than a file whose link does not work yet. */
    signin_urls(s, f.secret, &urls);
    bool is_first_time = auth_is_empty(s->auth);
    int r = is_first_time ? file_write(path, 0600, urls.s, urls.len, true, e) : 0;
    if (r == 0) r = state_run(s->state, count_or_make, &f, e);
    if (r < 0) return r;
    if (f.is_new) auth_put_account(s->auth, &f.admin);
    if (f.is_new || (f.waits && had_one)) {
        if (!f.is_new && file_write(path, 0600, urls.s, urls.len, false, e) < 0)
            return e->code; /* the port may differ */
        show(s, path, f.secret);
    } else {
        unlink(path);
    }
    s->has_first_link = f.is_new || f.waits;
    secrets_forget(&f, sizeof f);
    return 0;
}

static int look_first(struct sql *db, void *ctx, struct error *e) { return store_first_link_waits(db, 0, e); }

static void first_looked(void *ctx, int result, const struct error *e) {
    struct server *s = ctx;
    char path[300];
    if (result != 0) return;
    file_path(s, path, sizeof path);
    s->has_first_link = false;
    unlink(path);
}

void signin_used(struct server *s) {
    struct error ignored;
    if (s->has_first_link && state_submit(s->state, look_first, first_looked, s, &ignored) < 0) return;
}
