#include "client/top_processes.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "model/ring.h"

void top_processes_done(struct top_processes *p) {
    free(p->of);
    *p = (struct top_processes){0};
}

void top_processes_clear(struct top_processes *p) { p->count = 0; }

struct top_process *top_processes_add(struct top_processes *p) {
    if (p->count == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 32;
        struct top_process *more = realloc(p->of, (size_t)capacity * sizeof *more);
        if (!more) abort();
        p->of = more;
        p->capacity = capacity;
    }
    struct top_process *one = &p->of[p->count++];
    *one = (struct top_process){
        .instance = -1, .memory_bytes = NAN, .sm = NAN, .cpu = NAN, .host_bytes = NAN, .running_s = NAN};
    return one;
}

/* ---- order ---- */

static int by_number(double a, double b) { /* the largest first, what is not known last */
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

static int by_gpu(const struct top_process *a, const struct top_process *b) {
    return (a->gpu > b->gpu) - (a->gpu < b->gpu);
}
static int by_pid(const struct top_process *a, const struct top_process *b) {
    return (a->pid > b->pid) - (a->pid < b->pid);
}
static int by_user(const struct top_process *a, const struct top_process *b) { return strcmp(a->user, b->user); }
static int by_memory(const struct top_process *a, const struct top_process *b) {
    return by_number(a->memory_bytes, b->memory_bytes);
}
static int by_sm(const struct top_process *a, const struct top_process *b) { return by_number(a->sm, b->sm); }
static int by_cpu(const struct top_process *a, const struct top_process *b) { return by_number(a->cpu, b->cpu); }
static int by_host(const struct top_process *a, const struct top_process *b) {
    return by_number(a->host_bytes, b->host_bytes);
}
static int by_time(const struct top_process *a, const struct top_process *b) {
    return by_number(a->running_s, b->running_s);
}
static int by_command(const struct top_process *a, const struct top_process *b) {
    return strcmp(top_command_short(a), top_command_short(b));
}

static const struct {
    const char *word, *key;
    int (*compare)(const struct top_process *, const struct top_process *);
} sorts[SORTS] = {
    [SORT_GPU] = {"GPU",        "gpu",     by_gpu    },
    [SORT_PID] = {"pid",        "pid",     by_pid    },
    [SORT_USER] = {"user",       "user",    by_user   },
    [SORT_MEMORY] = {"GPU memory", "memory",  by_memory },
    [SORT_SM] = {"SM share",   "sm",      by_sm     },
    [SORT_CPU] = {"CPU",        "cpu",     by_cpu    },
    [SORT_HOST_MEMORY] = {"RAM",        "ram",     by_host   },
    [SORT_TIME] = {"time",       "time",    by_time   },
    [SORT_COMMAND] = {"command",    "command", by_command},
};

const char *top_sort_word(enum top_sort s) { return sorts[s].word; }
const char *top_sort_key(enum top_sort s) { return sorts[s].key; }

struct order {
    enum top_sort by;
    bool reverse;
};

static int compare(const void *va, const void *vb, void *ctx) {
    const struct top_process *a = va, *b = vb;
    const struct order *o = ctx;
    int r = sorts[o->by].compare(a, b);
    if (r) return o->reverse ? -r : r;
    r = by_gpu(a, b);
    return r ? r : by_pid(a, b);
}

void top_processes_sort(struct top_processes *p, enum top_sort by, bool reverse) {
    struct order o = {by, reverse};
    if (p->count > 1) qsort_r(p->of, (size_t)p->count, sizeof *p->of, compare, &o);
}

/* ---- filter ---- */

static bool is_within(const char *text, const char *word) { return strcasestr(text, word) != NULL; }

static bool word_is_met(const char *word, const struct top_process *p) {
    char pid[16];
    snprintf(pid, sizeof pid, "%u", p->pid);
    if (strncasecmp(word, "gpu:", 4) == 0) {
        char *end;
        long gpu = strtol(word + 4, &end, 10);
        return !word[4] || (!*end && gpu == p->gpu);
    }
    if (strncasecmp(word, "user:", 5) == 0) return is_within(p->user, word + 5);
    if (strncasecmp(word, "cmd:", 4) == 0) return is_within(p->command, word + 4);
    if (strncasecmp(word, "pid:", 4) == 0) return strstr(pid, word + 4) == pid;
    return is_within(p->user, word) || is_within(p->command, word) || is_within(p->container, word) ||
           strcmp(pid, word) == 0;
}

bool top_filter_lets(const char *filter, const struct top_process *p) {
    char words[128], *rest = words, *word;
    snprintf(words, sizeof words, "%s", filter);
    while ((word = strsep(&rest, " "))) {
        bool wants_not = *word == '!';
        word += wants_not;
        if (*word && word_is_met(word, p) == wants_not) return false;
    }
    return true;
}

void top_processes_filter(struct top_processes *p, const char *filter) {
    int n = 0;
    if (!*filter) return;
    for (int i = 0; i < p->count; i++)
        if (top_filter_lets(filter, &p->of[i])) p->of[n++] = p->of[i];
    p->count = n;
}

/* ---- words ---- */

const char *top_kind_word(uint32_t kinds) {
    if (kinds & PROCESS_MPS) return "M";
    if ((kinds & PROCESS_COMPUTE) && (kinds & PROCESS_GRAPHICS)) return "C+G";
    return kinds & PROCESS_GRAPHICS ? "G" : kinds & PROCESS_COMPUTE ? "C" : "-";
}

void top_time_text(double seconds, char *ret, size_t room) {
    if (!(seconds >= 0 && seconds < 1e10)) {
        snprintf(ret, room, "-");
        return;
    }
    long s = (long)seconds, d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;
    if (d)
        snprintf(ret, room, "%ldd %02ld:%02ld", d, h, m);
    else if (h)
        snprintf(ret, room, "%ld:%02ld:%02ld", h, m, s % 60);
    else
        snprintf(ret, room, "%ld:%02ld", m, s % 60);
}

const char *top_command_short(const struct top_process *p) {
    const char *after = p->command;
    for (const char *c = p->command; *c && *c != ' '; c++)
        if (*c == '/' && c[1] && c[1] != ' ') after = c + 1;
    return after;
}
