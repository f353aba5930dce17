#include "client/settings_load.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/instance.h"
#include "base/nearest.h"

#define VARIABLE_PREFIX "GPUMGR_"

extern char **environ;

static const char system_file[] = "/etc/gpumgr.json";

const char *origin_name(enum origin o) {
    static const char *const names[] = {"default", "file", "environment", "flag"};
    return names[o];
}

/* The end of a path says more than its beginning, and a sentence has only so much room. */
static const char *short_path(const char *path, char *ret, size_t room) {
    size_t n = strlen(path), keep = 80;
    if (n <= keep) return path;
    snprintf(ret, room, "...%s", path + n - keep);
    return ret;
}

static size_t place_of(const struct option *o) { return (size_t)(o - settings_table); }

static bool is_option(const struct option *o, const char *name) { return strcmp(o->name, name) == 0; }

/* A path with a slash that is not absolute is meant from where it was written; what runs later stands elsewhere. */
static int make_absolute(const struct option *o, const char *base, const char *text, char *ret, size_t room,
                         struct error *e) {
    bool bare = is_option(o, "gpu_library") && !strchr(text, '/');
    int n = o->type != OPT_PATH || !*text || *text == '/' || bare ? snprintf(ret, room, "%s", text)
                                                                  : snprintf(ret, room, "%s/%s", base, text);
    if (n < 0 || (size_t)n >= room) return fail(e, -EINVAL, "%s: longer than %zu bytes", o->name, o->size - 1);
    return 0;
}

static int take(struct loaded *l, const struct option *o, enum origin origin, const char *from, const char *base,
                const char *text, struct error *e) {
    char whole[2 * PATH_MAX];
    int r = make_absolute(o, base, text, whole, sizeof whole, e);
    if (r == 0) r = option_set(o, &l->values, whole, e);
    if (r < 0) return r;
    l->of[place_of(o)].origin = origin;
    snprintf(l->of[place_of(o)].from, sizeof l->of[0].from, "%s", from);
    return 0;
}

/* ---- the file ---- */

struct file_walk {
    struct loaded *into;
    const char *path;
    char base[PATH_MAX];
    bool found_by_dir;
};

static int unknown_key(const char *key, struct error *e) {
    struct nearest near = {.typed = key};
    for (size_t i = 0; i < settings_count; i++) nearest_offer(&near, settings_table[i].name);
    if (!near.best) return fail(e, -EINVAL, "no such key as \"%.60s\"; `gpumgr config` lists them", key);
    char range[128];
    option_range(option_find(settings_table, settings_count, near.best), range, sizeof range);
    return fail(e, -EINVAL, "no such key as \"%.60s\"; did you mean %s (%s)?", key, near.best, range);
}

/* "guard" is one, of guard.hot_c and its like. */
static bool is_group(const char *path) {
    size_t n = strlen(path);
    for (size_t i = 0; i < settings_count; i++)
        if (strncmp(settings_table[i].name, path, n) == 0 && settings_table[i].name[n] == '.') return true;
    return false;
}

static int take_leaf(void *ctx, const struct json_leaf *leaf, struct error *e) {
    static const char *const types[] = {
        [JSON_LEAF_STRING] = "a text",
        [JSON_LEAF_INT] = "a whole number",
        [JSON_LEAF_REAL] = "a number with a fraction",
        [JSON_LEAF_BOOL] = "true or false",
        [JSON_LEAF_NULL] = "null",
        [JSON_LEAF_LIST] = "a list",
        [JSON_LEAF_EMPTY] = "an empty group",
    };
    struct file_walk *w = ctx;
    const struct option *o = option_find(settings_table, settings_count, leaf->path);
    if (!o && leaf->type == JSON_LEAF_EMPTY && is_group(leaf->path)) return 0; /* nothing of it is set */
    if (!o) return unknown_key(leaf->path, e);
    if (!option_takes(o, leaf->type)) {
        char range[128];
        option_range(o, range, sizeof range);
        return fail(e, -EINVAL, "%s: is %s, not %s", o->name, types[leaf->type], range);
    }
    if (is_option(o, "config")) return fail(e, -EINVAL, "config: a file cannot name the file to read");
    if (is_option(o, "dir") && w->found_by_dir)
        return fail(e, -EINVAL, "dir: a file that was found in the directory cannot choose another");
    return take(w->into, o, ORIGIN_FILE, w->path, w->base, leaf->text, e);
}

static int read_file(struct loaded *l, const char *path, bool found_by_dir, struct error *e) {
    AUTO(buf_done) struct buf text = {0};
    char cut[96];
    int r = file_read(path, SETTINGS_FILE_MAX, &text, e);
    if (r < 0) return fail_in(e, -EINVAL, "config");
    struct file_walk walk = {.into = l, .path = path, .found_by_dir = found_by_dir};
    snprintf(walk.base, sizeof walk.base, "%s", path);
    char *slash = strrchr(walk.base, '/');
    if (slash) *slash = 0;
    r = json_walk(text.s, text.len, take_leaf, &walk, e);
    if (r < 0) return fail_in(e, r, "%s", short_path(path, cut, sizeof cut));
    snprintf(l->file, sizeof l->file, "%s", path);
    return 0;
}

/* ---- which file ---- */

static const char *flag_text(const struct flags *flags, const char *name) {
    const char *text = NULL;
    for (size_t i = 0; i < flags->setting_count; i++)
        if (is_option(flags->settings[i].option, name)) text = flags->settings[i].text;
    return text;
}

/* Flag or variable, before anything else is known; "" when neither says so. */
static const char *early(const struct flags *flags, const char *name, const char *variable) {
    const char *text = flag_text(flags, name);
    if (!text) text = getenv(variable);
    return text ? text : "";
}

static int absolute(const char *cwd, const char *path, char *ret, size_t room, struct error *e) {
    int n = snprintf(ret, room, "%s%s%s", *path == '/' ? "" : cwd, *path == '/' ? "" : "/", path);
    return n < 0 || (size_t)n >= room ? fail(e, -EINVAL, "config: the path is too long") : 0;
}

static int load_file(struct loaded *l, const struct flags *flags, const char *cwd, struct error *e) {
    char path[PATH_MAX], dir[PATH_MAX] = "";
    const char *named = early(flags, "config", VARIABLE_PREFIX "CONFIG");
    if (*named) {
        int r = absolute(cwd, named, path, sizeof path, e);
        return r < 0 ? r : read_file(l, path, false, e);
    }
    const char *in = early(flags, "dir", VARIABLE_PREFIX "DIR");
    if (*in ? absolute(cwd, in, dir, sizeof dir, e) < 0 : instance_default_dir(dir, sizeof dir, e) < 0) *dir = 0;
    snprintf(path, sizeof path, "%.4000s/gpumgr.json", dir);
    if (*dir && access(path, F_OK) == 0) return read_file(l, path, true, e);
    if (access(system_file, F_OK) == 0) return read_file(l, system_file, false, e);
    return 0;
}

/* ---- environment and flags ---- */

static int load_environment(struct loaded *l, const char *cwd, struct error *e) {
    for (size_t i = 0; i < settings_count; i++) {
        char variable[96];
        option_variable(&settings_table[i], variable, sizeof variable);
        const char *text = getenv(variable);
        if (!text) continue;
        int r = take(l, &settings_table[i], ORIGIN_ENVIRONMENT, variable, cwd, text, e);
        if (r < 0) return fail_in(e, r, "variable %s", variable);
    }
    return 0;
}

/* Scripts keep variables of their own under our prefix, so an unknown one is no error; a slip of a known one is worth
 * a word. */
static void look_for_slips(struct loaded *l) {
    for (char **v = environ; *v; v++) {
        char name[64], known[SETTINGS_MAX][96];
        size_t n = strcspn(*v, "=");
        if (strncmp(*v, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) != 0 || n >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)n, *v);
        struct nearest near = {.typed = name};
        for (size_t i = 0; i < settings_count; i++) {
            option_variable(&settings_table[i], known[i], sizeof known[i]);
            nearest_offer(&near, known[i]);
        }
        if (near.best && near.distance > 0 && near.distance <= 2)
            snprintf(l->warning, sizeof l->warning, "the variable %s is not one of ours; did you mean %s?", name,
                     near.best);
    }
}

static int load_flags(struct loaded *l, const struct flags *flags, const char *cwd, struct error *e) {
    for (size_t i = 0; i < flags->setting_count; i++) {
        char flag[96];
        const struct option *o = flags->settings[i].option;
        snprintf(flag, sizeof flag, "--%s", o->name);
        int r = take(l, o, ORIGIN_FLAG, flag, cwd, flags->settings[i].text, e);
        if (r < 0) return fail_in(e, r, "flag --%s", o->name);
    }
    return 0;
}

/* ---- all of it ---- */

static int check_together(const struct loaded *l, struct error *e) {
    const struct option *o = settings_clash(&l->values, e);
    if (!o) return 0;
    const char *from = l->of[place_of(o)].from;
    char cut[96];
    return *from ? fail_in(e, -EINVAL, "%s", short_path(from, cut, sizeof cut)) : -EINVAL;
}

int settings_load(const struct flags *flags, enum load_mode mode, struct loaded *ret, struct error *e) {
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd)) snprintf(cwd, sizeof cwd, "/");
    if (settings_count > SETTINGS_MAX) return fail(e, -EINVAL, "more settings than SETTINGS_MAX");
    memset(ret, 0, sizeof *ret);
    settings_init(&ret->values);
    int r = load_file(ret, flags, cwd, e);
    if (r < 0 && mode == LOAD_STRICT) return r;
    if (r < 0) {
        memset(ret, 0, sizeof *ret);
        settings_init(&ret->values);
        snprintf(ret->warning, sizeof ret->warning, "%.*s", (int)sizeof ret->warning - 1, e->text);
    }
    r = load_environment(ret, cwd, e);
    if (r == 0) r = load_flags(ret, flags, cwd, e);
    if (r == 0 && mode == LOAD_STRICT) r = check_together(ret, e);
    if (r == 0 && mode == LOAD_STRICT) look_for_slips(ret);
    return r;
}
