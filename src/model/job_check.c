/* What makes a job's wishes sound, as far as no machine must be known for it. Each sentence begins with the key, as it is
 * in a job file and as a flag. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "model/duration.h"
#include "model/job.h"
#include "model/job_after.h"
#include "model/job_rules.h"
#include "model/repeat.h"
#include "model/service_spec.h"
#include "model/ui.h"

#define LISTS_MOST (JOB_RECORD_MAX - (80u << 10)) /* scope, after, paths and the fixed part fit into the rest */
#define MEMORY_MOST (1ull << 50)                  /* a petabyte: no card has it, and sums of such amounts fit */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Something that can stand in a table, in a log and on anybody's terminal. */
static bool is_plain(const char *text) {
    for (size_t n; *text; text += n)
        if (!(n = json_shown_len(text))) return false;
    return true;
}

static size_t name_len(const char *text) {
    size_t n = 0;
    while (is_letter(text[n]) || text[n] == '_' || (n && is_digit(text[n]))) n++;
    return n;
}

static bool is_set_by_us(const char *word) {
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                        "GPUMGR_JOB_ID", UI_PORT_VARIABLE};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(word, names[i], n) == 0 && word[n] == '=') return true;
    }
    return false;
}

bool job_word_is_image(const char *image) {
    return *image && strlen(image) <= 255 && is_plain(image) && !strpbrk(image, " \\\"'") && image[0] != '-';
}

static int check_names(const struct job_spec *s, struct error *e) {
    if (!s->name[0]) return fail(e, -EINVAL, "name: it is empty");
    if (strlen(s->name) >= JOB_NAME_MAX) return fail(e, -EINVAL, "name: longer than %d bytes", JOB_NAME_MAX - 1);
    if (!is_plain(s->name)) return fail(e, -EINVAL, "name: it has characters that cannot be shown");
    const char *program = job_word_next(&s->command, NULL);
    if (!s->image[0] && (!program || !program[0]))
        return fail(e, -EINVAL, "command: there is none; a job needs a command or an image");
    if (s->image[0] && !job_word_is_image(s->image))
        return fail(e, -EINVAL, "image: \"%.80s\" is no name of an image, as in repository/name:tag", s->image);
    if (s->cwd[0] && s->cwd[0] != '/')
        return fail(e, -EINVAL, "cwd: \"%.80s\" is not a full path; it begins with /", s->cwd);
    if (strlen(s->cwd) > 4095) return fail(e, -EINVAL, "cwd: longer than 4095 bytes");
    return 0;
}

static bool is_mount(const char *m) {
    const char *target = strchr(m, ':');
    if (m[0] != '/' || !target || target[1] != '/') return false;
    const char *mode = strchr(target + 1, ':');
    return !mode || strcmp(mode, ":ro") == 0 || strcmp(mode, ":rw") == 0;
}

bool job_mount_is_root(const char *mount) {
    const char *target = strchr(mount, ':') + 1;
    return target[strspn(target, "/.")] == ':' || !target[strspn(target, "/.")];
}

static int check_surroundings(const struct job_spec *s, struct error *e) {
    if (s->mounts.count && !s->image[0]) return fail(e, -EINVAL, "mounts: only a container has them; give an image");
    if (s->mounts.count > JOB_MOUNTS_MAX) return fail(e, -EINVAL, "mounts: more than %u", JOB_MOUNTS_MAX);
    for (const char *m = NULL; (m = job_word_next(&s->mounts, m));) {
        if (!is_mount(m))
            return fail(e, -EINVAL, "mounts: \"%.80s\" is not SOURCE:TARGET or SOURCE:TARGET:ro with full paths", m);
        if (job_mount_is_root(m)) return fail(e, -EINVAL, "mounts: / is the container's own");
    }
    for (const char *v = NULL; (v = job_word_next(&s->env, v));) {
        size_t n = name_len(v);
        if (n == 0 || v[n] != '=') return fail(e, -EINVAL, "env: \"%.40s\" is not NAME=VALUE", v);
        if (is_set_by_us(v)) return fail(e, -EINVAL, "env: %.*s is set by the queue for each run", (int)n, v);
    }
    for (const char *l = NULL; (l = job_word_next(&s->labels, l));) {
        const char *is = strchr(l, '=');
        if (!is || is == l || !is_plain(l)) return fail(e, -EINVAL, "labels: \"%.40s\" is not KEY=VALUE", l);
    }
    return 0;
}

static bool is_index(const char *word, size_t n) {
    return n >= 1 && n <= 4 && strspn(word, "0123456789") >= n && (n == 1 || word[0] != '0');
}

/* An index, an instance of a card (0:2), or a UUID as the driver writes them: GPU-..., MIG-..., PCI-... where it gives none. */
static bool is_gpu(const char *word) {
    size_t n = strlen(word), digits = strspn(word, "0123456789");
    if (word[digits] == ':' && digits) return is_index(word, digits) && is_index(word + digits + 1, n - digits - 1);
    if (digits == n) return is_index(word, n);
    if (n >= 96 || strspn(word, "GPUMICN") != 3 || word[3] != '-') return false;
    for (size_t i = 4; i < n; i++)
        if (!is_letter(word[i]) && !is_digit(word[i]) && !strchr("-:./", word[i])) return false;
    return n > 4;
}

static int check_scope(const struct job_words *scope, int gpus, struct error *e) {
    if (scope->count > JOB_SCOPE_MAX) return fail(e, -EINVAL, "scope: more than %u GPUs", JOB_SCOPE_MAX);
    if (scope->count && scope->count < (unsigned)gpus)
        return fail(e, -EINVAL, "scope: names %u GPU%s, but gpus asks for %d", scope->count,
                    scope->count == 1 ? "" : "s", gpus);
    for (const char *g = NULL; (g = job_word_next(scope, g));) {
        if (!is_gpu(g)) return fail(e, -EINVAL, "scope: \"%.80s\" is neither an index nor a UUID of a GPU", g);
        for (const char *h = g; (h = job_word_next(scope, h));)
            if (strcmp(g, h) == 0) return fail(e, -EINVAL, "scope: GPU %.80s is there twice", g);
    }
    return 0;
}

static int check_gpus(const struct job_spec *s, struct error *e) {
    if (s->gpus < 1 || s->gpus > JOB_GPUS_MAX)
        return fail(e, -EINVAL, "gpus: %d is not from 1 to %d", s->gpus, JOB_GPUS_MAX);
    if (s->memory_bytes > MEMORY_MOST) return fail(e, -EINVAL, "memory: more than any GPU has");
    if (s->share_bytes > MEMORY_MOST) return fail(e, -EINVAL, "share: more than any GPU has");
    if (s->share_bytes && s->gpus != 1)
        return fail(e, -EINVAL, "share: a part of one GPU's memory; it does not go with gpus %d", s->gpus);
    return check_scope(&s->scope, s->gpus, e);
}

static int check_times(const struct job_spec *s, int64_t now_ns, struct error *e) {
    if (s->priority < -JOB_PRIORITY_MAX || s->priority > JOB_PRIORITY_MAX)
        return fail(e, -EINVAL, "priority: %d is not from %d to %d", s->priority, -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX);
    if (s->time_limit_ns < 0 || s->time_limit_ns > DURATION_MOST_NS)
        return fail(e, -EINVAL, "time_limit: not from 1ms to 366 days");
    if (s->retries < 0 || s->retries > JOB_RETRIES_MAX)
        return fail(e, -EINVAL, "retries: %d is not from 0 to %d", s->retries, JOB_RETRIES_MAX);
    if (s->finish_by_ns < 0) return fail(e, -EINVAL, "finish_by: a time before 1970");
    if (now_ns && s->finish_by_ns && s->finish_by_ns <= now_ns)
        return fail(e, -EINVAL, "finish_by: that time is over already");
    return 0;
}

static int check_after(const struct job_words *after, struct error *e) {
    if (after->count > JOB_AFTER_MAX) return fail(e, -EINVAL, "after: more than %u jobs", JOB_AFTER_MAX);
    for (const char *a = NULL; (a = job_word_next(after, a));) {
        struct job_after ignored;
        if (!job_after_read(a, &ignored))
            return fail(e, -EINVAL, "after: \"%.40s\" is not the number of a job, as in 17 or 17:any", a);
    }
    return 0;
}

static int check_notify(const struct job_words *notify, struct error *e) {
    for (const char *n = NULL; (n = job_word_next(notify, n));) {
        const char *at = strncmp(n, "mail:", 5) == 0 ? strchr(n + 5, '@') : NULL;
        for (const char *s = at ? n : ""; *s; s++)
            if ((unsigned char)*s >= 0x80) at = NULL; /* no mail server is sure to take one */
        bool is_good = strcmp(n, "terminal") == 0 || (at && at > n + 5 && at[1] && !strpbrk(n, " \r\n,<>")) ||
                       strncmp(n, "webhook:http://", 15) == 0 || strncmp(n, "webhook:https://", 16) == 0 ||
                       (strncmp(n, "command:", 8) == 0 && n[8]);
        if (!is_good || !is_plain(n))
            return fail(e, -EINVAL,
                        "notify: \"%.60s\" is not terminal, mail:ADDRESS, webhook:URL (http or https) or command:TEXT",
                        n);
    }
    return 0;
}

/* Written in the one way there is: what was decoded is what would be encoded. */
static int check_ui(const char *text, struct error *e) {
    AUTO(buf_done) struct buf again = {0};
    struct ui u;
    if (!text || !*text) return 0;
    int r = ui_parse(text, &u, e);
    if (r < 0) return fail_in(e, r, "ui");
    ui_text(&u, &again);
    return strcmp(again.s, text) == 0 ? 0 : fail(e, -EINVAL, "ui: \"%.60s\" is written in a way of its own", text);
}

static int check_sizes(const struct job_spec *s, struct error *e) {
    const struct {
        const char *key;
        const struct job_words *w;
    } lists[] = {
        {"command", &s->command},
        {"mounts",  &s->mounts },
        {"env",     &s->env    },
        {"labels",  &s->labels },
        {"notify",  &s->notify },
        {"sweep",   &s->sweep  },
        {"repeat",  &s->repeat },
        {"service", &s->service},
    };
    size_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (lists[i].w->count > JOB_WORDS_MAX)
            return fail(e, -EINVAL, "%s: more than %u of them", lists[i].key, JOB_WORDS_MAX);
        sum += lists[i].w->len;
        if (sum > LISTS_MOST)
            return fail(e, -E2BIG, "%s: the job is larger than %u KiB with it", lists[i].key, JOB_RECORD_MAX >> 10);
    }
    return 0;
}

int job_check(const struct job_spec *s, int64_t now_ns, struct error *e) {
    unsigned elements, at_once;
    int r = check_sizes(s, e);
    if (r >= 0) r = check_names(s, e);
    if (r >= 0) r = check_surroundings(s, e);
    if (r >= 0) r = check_gpus(s, e);
    if (r >= 0) r = check_times(s, now_ns, e);
    if (r >= 0) r = check_after(&s->after, e);
    if (r >= 0) r = check_notify(&s->notify, e);
    if (r >= 0) r = job_elements(s, &elements, &at_once, e);
    if (r >= 0) r = check_ui(s->ui, e);
    if (r >= 0) r = repeat_spec_check_job(s, e);
    if (r >= 0) r = service_spec_check_job(s, e);
    if (r < 0) return r;
    if (s->is_pty && s->image[0]) return fail(e, -EINVAL, "pty: a container has no terminal here");
    if (s->is_pty && (s->array[0] || s->sweep.count))
        return fail(e, -EINVAL, "pty: the elements of an array cannot share a terminal");
    return 0;
}

/* ---- the same words elsewhere ---- */

bool job_text_is_plain(const char *text) { return is_plain(text); }
bool job_word_is_mount(const char *mount) { return is_mount(mount); }
bool job_word_is_gpu(const char *gpu) { return is_gpu(gpu); }
bool job_variable_is_ours(const char *variable) { return is_set_by_us(variable); }
size_t job_variable_len(const char *variable) {
    size_t n = name_len(variable);
    return variable[n] == '=' ? n : 0;
}
