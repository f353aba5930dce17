#include "client/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "client/config.h"
#include "client/inventory.h"
#include "client/redact.h"
#include "client/status_json.h"
#include "client/ustar.h"
#include "client/version.h"

int bundle_check(const char *path, struct error *e) {
    struct stat st;
    char dir[4096];
    if (lstat(path, &st) == 0)
        return fail(e, -EEXIST, "--bundle: %.120s exists already; give the name of a new file", path);
    snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash == dir) slash[1] = 0;
    if (slash && slash != dir) *slash = 0;
    if (access(slash ? dir : ".", W_OK) < 0) return fail_errno(e, errno, "--bundle: %.120s", path);
    return 0;
}

/* ---- what goes in ---- */

static void put_status(const struct doctor *d, struct buf *b) {
    status_json(d->daemon.count ? &d->daemon : &d->view, false, b);
}

static void put_report(const struct doctor *d, struct buf *b) {
    report_print(&d->report, false, b);
    doctor_print_gpus(d, 160, b);
}

static void put_config(const struct doctor *d, struct buf *b) { config_json(&d->loaded, CONFIG_HIDE_SECRETS, b); }

static void put_inventory(const struct doctor *d, struct buf *b) {
    const struct view *v = d->view.count ? &d->view : &d->daemon;
    json_open(b, '[');
    for (size_t n = 0; n < v->count; n++) {
        const struct inventory *i = &v->of[n].inventory;
        json_open(b, '{');
        json_pair_int(b, "index", i->index);
        json_pair_str(b, "uuid", i->uuid);
        json_pair_str(b, "model", i->name);
        inventory_pairs(v, n, b);
        json_close(b, '}');
    }
    json_close(b, ']');
    buf_putc(b, '\n');
}

static void put_versions(const struct doctor *d, struct buf *b) {
    struct utsname u;
    AUTO(buf_done) struct buf os = {0};
    struct error ignored;
    buf_printf(b, "gpumgr %s\n", gpumgr_version());
    if (uname(&u) == 0) buf_printf(b, "kernel %s %s %s\n", u.sysname, u.release, u.machine);
    if (d->has_driver) buf_printf(b, "driver %s\n", d->direct.shared->version);
    if (file_read("/etc/os-release", 65536, &os, &ignored) == 0) buf_puts(b, os.s);
}

static const struct {
    const char *name;
    void (*put)(const struct doctor *, struct buf *);
} files[] = {
    {"doctor.json",    doctor_json  },
    {"doctor.txt",     put_report   },
    {"status.json",    put_status   },
    {"inventory.json", put_inventory},
    {"config.json",    put_config   },
    {"versions.txt",   put_versions },
};

/* ---- what stays out ---- */

static void know_user(struct redact *r, uid_t uid) {
    const struct passwd *pw = getpwuid(uid);
    if (!pw || uid == 0) return; /* root names nobody */
    if (strlen(pw->pw_dir) > 1) redact_add(r, pw->pw_dir, "home path");
    redact_add(r, pw->pw_name, "user name");
}

static void know_view(struct redact *r, const struct view *v) {
    for (size_t i = 0; i < v->count; i++) redact_add(r, v->of[i].inventory.serial, "serial number");
}

static void know(struct redact *r, const struct doctor *d) {
    char host[256] = "";
    const char *home = getenv("HOME"), *sudo = getenv("SUDO_USER");
    if (gethostname(host, sizeof host - 1) == 0) redact_add(r, host, "host name");
    host[strcspn(host, ".")] = 0;
    if (strcmp(host, "localhost") != 0) redact_add(r, host, "host name");
    if (home && strcmp(home, "/root") != 0 && strlen(home) > 1) redact_add(r, home, "home path");
    know_user(r, getuid());
    if (d->source.has_instance) know_user(r, d->source.instance.owner);
    if (sudo) redact_add(r, sudo, "user name");
    know_view(r, &d->view);
    know_view(r, &d->daemon);
}

/* ---- writing ---- */

static int write_new(const char *path, const struct buf *b, struct error *e) {
    AUTO(fd_done) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fail_errno(e, errno, "%.120s", path);
    for (size_t done = 0; done < b->len;) {
        ssize_t n = write(fd, b->s + done, b->len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int errnum = errno;
            unlink(path);
            return fail_errno(e, errnum, "%.120s", path);
        }
        done += (size_t)n;
    }
    return 0;
}

int bundle_write(const char *path, const struct doctor *d, struct buf *said, struct error *e) {
    AUTO(buf_done) struct buf archive = {0}, summary = {0};
    struct redact redact = {0};
    int64_t now_s = clock_real_ns() / NS_PER_S;
    int r = 0;
    know(&redact, d);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++) {
        AUTO(buf_done) struct buf whole = {0}, safe = {0};
        char name[64];
        snprintf(name, sizeof name, "gpumgr-support/%s", files[i].name);
        files[i].put(d, &whole);
        redact_text(&redact, whole.s ? whole.s : "", &safe);
        r = ustar_add(&archive, name, safe.s, safe.len, now_s, e);
    }
    redact_summary(&redact, &summary);
    buf_putc(&summary, '\n');
    if (r == 0) r = ustar_add(&archive, "gpumgr-support/redacted.txt", summary.s, summary.len, now_s, e);
    if (r < 0) return r;
    ustar_end(&archive);
    r = write_new(path, &archive, e);
    if (r < 0) return r;
    summary.s[summary.len - 1] = 0;
    buf_printf(said, "Wrote %s (%zu files). Taken out of it: %s.", path, ARRAY_LEN(files) + 1, summary.s);
    return 0;
}
