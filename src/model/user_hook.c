#include "model/user_hook.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Behind "http://" and "https://"; NULL: it is neither. */
static const char *host_of(const char *url) {
    if (strncasecmp(url, "http://", 7) == 0) return url + 7;
    return strncasecmp(url, "https://", 8) == 0 ? url + 8 : NULL;
}

int user_hook_check_setting(const char *setting, struct error *e) {
    if (strcmp(setting, "yes") == 0 || strcmp(setting, "no") == 0) return 0;
    for (const char *at = setting;;) {
        size_t n = strcspn(at, ",");
        const char *host = host_of(at);
        if (!host || host >= at + n || strcspn(host, "/?#, @\\") == 0)
            return fail(e, -EINVAL, "neither yes nor no, and \"%.*s\" is no URL that begins with http:// or https://",
                        (int)(n < 60 ? n : 60), at);
        if (!at[n]) return 0;
        at += n + 1;
    }
}

/* What two programs may read in two ways, or what leads out of where it seems to lead to. */
static bool is_plain(const char *url) {
    const char *host = host_of(url);
    if (!host || strpbrk(url, "\\ \t")) return false;
    if (memchr(host, '@', strcspn(host, "/?#"))) return false;
    for (const char *s = url; *s; s++)
        if (strncmp(s, "..", 2) == 0 || strncasecmp(s, "%2e", 3) == 0) return false;
    return true;
}

static bool begins(const char *url, const char *with, size_t n) {
    if (strncmp(url, with, n) != 0) return false;
    return with[n - 1] == '/' || !url[n] || strchr("/?#", url[n]);
}

int user_hook_check(const char *setting, const char *url, struct error *e) {
    if (strcmp(setting, "yes") == 0) return 0;
    if (strcmp(setting, "no") == 0)
        return fail(e, -EPERM, "this server sends no web hooks for users (tell.user_webhooks is no)");
    for (const char *at = setting; is_plain(url);) {
        size_t n = strcspn(at, ",");
        if (n && begins(url, at, n)) return 0;
        if (!at[n]) break;
        at += n + 1;
    }
    return fail(e, -EPERM, "this server sends no web hook there; tell.user_webhooks says where to");
}
