#include "base/crash_point.h"

#ifdef GPUMGR_CRASH_POINTS
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SITES_MAX = 512, ORDER_MAX = 200 };

extern const struct crash_site __start_crash_sites[], __stop_crash_sites[]; /* the linker's names for the section */

static struct {
    pthread_mutex_t lock;
    const char *who;
    unsigned passed, passed_site[SITES_MAX];
    char wanted[ORDER_MAX]; /* what was asked for when counting began */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .who = ""};

static _Thread_local bool has_calls, is_inside;

static void list(void) {
    for (const struct crash_site *s = __start_crash_sites; s < __stop_crash_sites; s++)
        printf("%d %s:%d %s\n", (int)(s - __start_crash_sites) + 1, s->file, s->line, s->what ? s->what : "");
    fflush(stdout);
    _exit(0);
}

void crash_point_as(const char *process) {
    const char *variable = getenv("GPUMGR_CRASH");
    self.who = process;
    self.passed = 0;
    memset(self.passed_site, 0, sizeof self.passed_site);
    if (variable && strcmp(variable, "list") == 0) list();
}

void crash_point_calls(bool is_on) { has_calls = is_on; }
bool crash_point_has_calls(void) { return has_calls && !is_inside; }

/* What is asked for now: "" nothing. */
static const char *wanted(const char *variable, char *text, size_t room) {
    if (!variable) return "";
    if (*variable != '@') return variable;
    FILE *f = fopen(variable + 1, "re");
    text[0] = 0;
    if (f && !fgets(text, (int)room, f)) text[0] = 0;
    if (f) fclose(f);
    return text;
}

/* list: "12,13/2" */
static bool is_named(const char *list, unsigned site) {
    for (const char *at = list; *at; at += *at == ',') {
        char *rest;
        unsigned long number = strtoul(at, &rest, 10), passes = 1;
        if (*rest == '/') passes = strtoul(rest + 1, &rest, 10);
        if (number == site && passes == self.passed_site[site]) return true;
        at = rest + strcspn(rest, ",");
    }
    return false;
}

static bool is_here(const char *text, unsigned site) {
    size_t n = strlen(self.who);
    if (strcmp(text, self.wanted) != 0) {
        snprintf(self.wanted, sizeof self.wanted, "%s", text);
        self.passed = 0;
        memset(self.passed_site, 0, sizeof self.passed_site);
    }
    self.passed++;
    self.passed_site[site]++;
    if (!n || strncmp(text, self.who, n) != 0) return false;
    if (text[n] == ':') return strtoul(text + n + 1, NULL, 10) == self.passed;
    return text[n] == '=' && is_named(text + n + 1, site);
}

static void leave_word(const char *order, unsigned site) {
    char path[ORDER_MAX];
    snprintf(path, sizeof path, "%s.died", order);
    FILE *f = fopen(path, "we");
    if (f) fprintf(f, "%u\n", site);
    if (f) fclose(f);
    unlink(order);
}

void crash_point(const struct crash_site *site) {
    const char *variable = getenv("GPUMGR_CRASH");
    unsigned number = (unsigned)(site - __start_crash_sites) + 1;
    char text[ORDER_MAX];
    if (!variable || number >= SITES_MAX) return;
    is_inside = true;
    pthread_mutex_lock(&self.lock);
    bool is_now = is_here(wanted(variable, text, sizeof text), number);
    if (is_now && *variable == '@') leave_word(variable + 1, number);
    if (is_now) kill(getpid(), SIGKILL); /* with the lock: nobody else leaves another word */
    pthread_mutex_unlock(&self.lock);
    is_inside = false;
}
#else
typedef int crash_points_are_off; /* a file of its own must hold something */
#endif
