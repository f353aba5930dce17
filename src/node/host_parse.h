/* What the kernel's text files say, in numbers: pure, so that odd machines can be tested. A line that does not look as it
 * should is left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct host_cpu {
    uint64_t busy, iowait, all; /* ticks since boot, all processors together */
};
bool host_parse_stat(const char *text, struct host_cpu *ret);

/* load[3], and how many processes and threads there are. */
bool host_parse_loadavg(const char *text, double load[3], double *processes);

/* kB; UINT64_MAX: not said. */
struct host_memory {
    uint64_t total, available, swap_total, swap_free;
};
void host_parse_meminfo(const char *text, struct host_memory *ret);

/* "some avg10=1.23 ...": a ratio. */
bool host_parse_pressure(const char *text, double *ret);

/* Sums over the rows that count. counts(name, ctx) decides about each; may be asked for the same name every time. */
typedef bool (*host_counts_fn)(const char *name, void *ctx);

struct host_disks {
    unsigned count;
    uint64_t read_bytes, written_bytes;
    struct {
        uint32_t id;
        uint64_t busy_ms;
    } of[64]; /* the first ones; id: a hash of the name */
};
void host_parse_diskstats(const char *text, host_counts_fn counts, void *ctx, struct host_disks *ret);

struct host_network {
    unsigned count;
    uint64_t received, sent;
};
void host_parse_netdev(const char *text, host_counts_fn counts, void *ctx, struct host_network *ret);
