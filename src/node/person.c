#include "node/person.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define COMMAND_MAX 511
#define USER_MAX 63

void person_done(struct person *p) {
    free(p->user);
    free(p->command);
    *p = (struct person){.uid = UINT32_MAX};
}

/* pid (comm) S ppid ... the 22nd field is the start time. A comm may hold anything, ')' too: the last one ends it. */
void person_parse_stat(struct person *p, const char *text, long ticks_per_s) {
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || ticks_per_s <= 0) return;
    size_t n = (size_t)(close - open - 1);
    if (n >= sizeof p->comm) n = sizeof p->comm - 1;
    memcpy(p->comm, open + 1, n);
    p->comm[n] = 0;
    const char *at = close + 1;
    for (int field = 2; field < 21 && at; field++) { /* to the blank before field 22 */
        at = strchr(at, ' ');
        if (at) at++;
    }
    if (!at) return;
    at = strchr(at, ' ');
    if (!at) return;
    unsigned long long ticks = strtoull(at, NULL, 10);
    p->start_boot_ns = (int64_t)(ticks / (unsigned long long)ticks_per_s) * NS_PER_S +
                       (int64_t)(ticks % (unsigned long long)ticks_per_s) * (NS_PER_S / ticks_per_s);
}

/* The real uid: whose process it is, whatever it may do. */
void person_parse_status(struct person *p, const char *text) {
    const char *line = strstr(text, "\nUid:");
    if (!line) return;
    char *end;
    unsigned long uid = strtoul(line + 5, &end, 10);
    if (end != line + 5 && uid < UINT32_MAX) p->uid = (uint32_t)uid;
}

void person_join(char *text, int64_t len, int64_t room) {
    if (len > room) {
        len = room; /* and back to the beginning of the character that was cut */
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) len--;
    }
    while (len > 0 && text[len - 1] == 0) len--;
    for (int64_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == 0)
            text[i] = ' ';
        else if (c < 0x20 || c == 0x7f)
            text[i] = '?';
    }
    text[len] = 0;
}

static ssize_t read_small(const char *proc, uint32_t pid, const char *name, char *to, size_t room) {
    char path[128];
    snprintf(path, sizeof path, "%s/%u/%s", proc, pid, name);
    AUTO(fd_done) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    size_t len = 0;
    while (len < room - 1) {
        ssize_t n = read(fd, to + len, room - 1 - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
    }
    to[len] = 0;
    return (ssize_t)len;
}

/* Most names stand in the file. What does not may need a server somewhere; the library knows how to ask it. */
char *person_user(uint32_t uid) {
    char text[4096];
    struct passwd pw, *found = NULL;
    FILE *f = fopen("/etc/passwd", "re");
    while (f && fgetpwent_r(f, &pw, text, sizeof text, &found) == 0)
        if (found->pw_uid == uid) break;
    bool is_there = f && found && found->pw_uid == uid;
    if (f) fclose(f);
    if (!is_there) is_there = getpwuid_r(uid, &pw, text, sizeof text, &found) == 0 && found;
    return is_there ? strndup(pw.pw_name, USER_MAX) : NULL;
}

void person_read(struct person *p, const char *proc, uint32_t pid) {
    char text[4096];
    *p = (struct person){.uid = UINT32_MAX};
    if (read_small(proc, pid, "stat", text, sizeof text) <= 0) return;
    person_parse_stat(p, text, sysconf(_SC_CLK_TCK));
    person_join(p->comm, (int64_t)strlen(p->comm), sizeof p->comm - 1);
    if (read_small(proc, pid, "status", text, sizeof text) > 0) person_parse_status(p, text);
    if (p->uid != UINT32_MAX) p->user = person_user(p->uid);
    ssize_t n = read_small(proc, pid, "cmdline", text, sizeof text);
    if (n <= 0) return;
    person_join(text, n, COMMAND_MAX);
    p->command = strdup(text);
}
