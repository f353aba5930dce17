#include "node/host_parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"

#define SECTOR_BYTES 512 /* of diskstats, whatever the disk's are */

static const char *next_line(const char *line) {
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* Up to n numbers; how many there were. Stops at what is none. */
static unsigned numbers(const char *at, uint64_t *to, unsigned n) {
    unsigned got = 0;
    while (got < n) {
        while (*at == ' ' || *at == '\t') at++;
        if (*at < '0' || *at > '9') break;
        char *end;
        to[got++] = strtoull(at, &end, 10);
        at = end;
    }
    return got;
}

/* cpu user nice system idle iowait irq softirq steal guest guest_nice: guests are in user and nice already. */
bool host_parse_stat(const char *text, struct host_cpu *ret) {
    uint64_t t[8] = {0};
    if (strncmp(text, "cpu ", 4) != 0) return false;
    if (numbers(text + 4, t, ARRAY_LEN(t)) < 4) return false;
    ret->iowait = t[4];
    ret->busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    ret->all = ret->busy + t[3] + t[4];
    return true;
}

bool host_parse_loadavg(const char *text, double load[3], double *processes) {
    unsigned running, all;
    if (sscanf(text, "%lf %lf %lf %u/%u", &load[0], &load[1], &load[2], &running, &all) != 5) return false;
    *processes = all;
    return true;
}

void host_parse_meminfo(const char *text, struct host_memory *ret) {
    const struct {
        const char *name;
        uint64_t *into;
    } rows[] = {
        {"MemTotal:",     &ret->total     },
        {"MemAvailable:", &ret->available },
        {"SwapTotal:",    &ret->swap_total},
        {"SwapFree:",     &ret->swap_free }
    };
    memset(ret, 0xff, sizeof *ret);
    for (const char *line = text; *line; line = next_line(line))
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            if (strncmp(line, rows[i].name, strlen(rows[i].name)) == 0)
                numbers(line + strlen(rows[i].name), rows[i].into, 1);
}

bool host_parse_pressure(const char *text, double *ret) {
    double percent;
    if (sscanf(text, "some avg10=%lf", &percent) != 1 || !(percent >= 0 && percent <= 100)) return false;
    *ret = percent / 100;
    return true;
}

static uint32_t hash(const char *name) {
    uint32_t h = 2166136261u;
    while (*name) h = (h ^ (unsigned char)*name++) * 16777619u;
    return h;
}

/* major minor name reads merged sectors ms writes merged sectors ms in_flight busy_ms ... */
void host_parse_diskstats(const char *text, host_counts_fn counts, void *ctx, struct host_disks *ret) {
    memset(ret, 0, sizeof *ret);
    for (const char *line = text; *line; line = next_line(line)) {
        char name[64];
        int at = 0;
        uint64_t t[10];
        if (sscanf(line, " %*u %*u %63s%n", name, &at) != 1 || !at) continue;
        if (numbers(line + at, t, ARRAY_LEN(t)) < ARRAY_LEN(t) || !counts(name, ctx)) continue;
        ret->read_bytes += t[2] * SECTOR_BYTES;
        ret->written_bytes += t[6] * SECTOR_BYTES;
        if (ret->count < ARRAY_LEN(ret->of)) {
            ret->of[ret->count].id = hash(name);
            ret->of[ret->count].busy_ms = t[9];
        }
        ret->count++;
    }
    if (ret->count > ARRAY_LEN(ret->of)) ret->count = ARRAY_LEN(ret->of);
}

/* name: received_bytes packets errs drop fifo frame compressed multicast sent_bytes ... */
void host_parse_netdev(const char *text, host_counts_fn counts, void *ctx, struct host_network *ret) {
    *ret = (struct host_network){0};
    for (const char *line = text; *line; line = next_line(line)) {
        uint64_t t[9];
        char name[32];
        size_t blank = strspn(line, " "), n = strcspn(line + blank, ":\n");
        const char *colon = line + blank + n;
        if (*colon != ':' || n == 0 || n >= sizeof name) continue;
        memcpy(name, line + blank, n);
        name[n] = 0;
        if (numbers(colon + 1, t, ARRAY_LEN(t)) < ARRAY_LEN(t) || !counts(name, ctx)) continue;
        ret->received += t[0];
        ret->sent += t[8];
        ret->count++;
    }
}
