#include "node/host.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "node/host_parse.h"

enum source { STAT, LOADAVG, MEMINFO, DISKSTATS, NETDEV, PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, SOURCES };

static const char *const paths[SOURCES] = {
    [STAT] = "/proc/stat",
    [LOADAVG] = "/proc/loadavg",
    [MEMINFO] = "/proc/meminfo",
    [DISKSTATS] = "/proc/diskstats",
    [NETDEV] = "/proc/net/dev",
    [PRESSURE_CPU] = "/proc/pressure/cpu",
    [PRESSURE_MEMORY] = "/proc/pressure/memory",
    [PRESSURE_IO] = "/proc/pressure/io",
};

#define TEXT_MAX 32768
#define SPARSE_NS (60 * NS_PER_S) /* how often to look at what hardly changes */
#define DEVICES_MAX 64

/* Whether a disk or an interface has hardware of its own: what it forwards to another one would count twice. */
struct device_list {
    const char *class;
    unsigned count;
    bool has_real; /* some have hardware; where none has (a container), all count */
    struct {
        char name[32];
        bool is_real;
    } of[DEVICES_MAX];
};

struct host {
    int fd[SOURCES];
    int64_t before_ns, sparse_ns;
    struct host_cpu cpu;
    struct host_disks disks;
    struct host_network network;
    struct device_list disk_list, network_list;
    bool has_cpu, has_disks, has_network;
    double cpus;
    char text[TEXT_MAX];
};

struct host *host_new(void) {
    struct host *h = calloc(1, sizeof *h);
    if (!h) abort();
    for (int i = 0; i < SOURCES; i++) h->fd[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
    h->disk_list.class = "block";
    h->network_list.class = "class/net";
    return h;
}

void host_free(struct host *h) {
    if (!h) return;
    for (int i = 0; i < SOURCES; i++)
        if (h->fd[i] >= 0) close(h->fd[i]);
    free(h);
}

/* The text, or NULL. Cut where it is longer: the first lines are what counts, and a cut line is no line. */
static const char *text_of(struct host *h, enum source s, size_t room) {
    ssize_t n;
    if (room > TEXT_MAX) room = TEXT_MAX;
    if (h->fd[s] < 0) return NULL;
    do n = pread(h->fd[s], h->text, room - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return NULL;
    h->text[n] = 0;
    if ((size_t)n == room - 1) {
        char *last = strrchr(h->text, '\n');
        if (last) last[1] = 0;
    }
    return h->text;
}

/* Rounded to the catalogue's step: what cannot be told from noise only swells the history. */
static void put(struct host_sample *s, int id, double value) {
    double step = host_metrics[id].scale;
    if (step >= 1)
        value = round(value / step) * step;
    else if (step > 0)
        value = round(value * round(1 / step)) / round(1 / step);
    host_put(s, id, value);
}

static bool is_real(const char *class, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "/sys/%s/%s/device", class, name);
    return access(path, F_OK) == 0;
}

/* Remembered by name: asking the file system every second would cost more than all the rest. */
static bool counts(const char *name, void *ctx) {
    struct device_list *l = ctx;
    unsigned i = 0;
    while (i < l->count && strncmp(l->of[i].name, name, sizeof l->of[i].name - 1) != 0) i++;
    if (i == DEVICES_MAX) return false;
    if (i == l->count) {
        snprintf(l->of[i].name, sizeof l->of[i].name, "%.31s", name);
        l->of[i].is_real = is_real(l->class, name);
        l->has_real |= l->of[i].is_real;
        l->count++;
    }
    return l->of[i].is_real;
}

static bool counts_interface(const char *name, void *ctx) {
    struct device_list *l = ctx;
    if (strcmp(name, "lo") == 0) return false;
    bool is = counts(name, ctx);
    return l->has_real ? is : true;
}

static void read_cpu(struct host *h, struct host_sample *s) {
    struct host_cpu now;
    const char *text = text_of(h, STAT, 512);
    if (!text || !host_parse_stat(text, &now)) return;
    uint64_t all = now.all - h->cpu.all;
    if (h->has_cpu && now.all > h->cpu.all && now.busy >= h->cpu.busy) {
        put(s, METRIC_HOST_CPU, (double)(now.busy - h->cpu.busy) / (double)all);
        /* the kernel lets this one fall now and then */
        if (now.iowait >= h->cpu.iowait) put(s, METRIC_HOST_IOWAIT, (double)(now.iowait - h->cpu.iowait) / (double)all);
    }
    h->cpu = now;
    h->has_cpu = true;
}

static void read_load(struct host *h, struct host_sample *s) {
    double load[3], processes;
    const char *text = text_of(h, LOADAVG, 256);
    if (!text || !host_parse_loadavg(text, load, &processes)) return;
    put(s, METRIC_HOST_LOAD1, load[0]);
    put(s, METRIC_HOST_LOAD5, load[1]);
    put(s, METRIC_HOST_LOAD15, load[2]);
    put(s, METRIC_HOST_PROCESSES, processes);
}

static void read_memory(struct host *h, struct host_sample *s) {
    struct host_memory m;
    const char *text = text_of(h, MEMINFO, 4096);
    if (!text) return;
    host_parse_meminfo(text, &m);
    if (m.total != UINT64_MAX) put(s, METRIC_HOST_MEMORY_TOTAL, (double)m.total * 1024);
    if (m.available != UINT64_MAX) put(s, METRIC_HOST_MEMORY_AVAILABLE, (double)m.available * 1024);
    if (m.total != UINT64_MAX && m.available <= m.total)
        put(s, METRIC_HOST_MEMORY_USED, (double)(m.total - m.available) * 1024);
    if (m.swap_total != UINT64_MAX && m.swap_free <= m.swap_total)
        put(s, METRIC_HOST_SWAP_USED, (double)(m.swap_total - m.swap_free) * 1024);
}

/* Of the busiest disk: an average over many would hide it. */
static double busiest(const struct host_disks *now, const struct host_disks *before, double dt_s) {
    double most = 0;
    for (unsigned i = 0; i < now->count; i++)
        for (unsigned k = 0; k < before->count; k++) {
            if (now->of[i].id != before->of[k].id || now->of[i].busy_ms < before->of[k].busy_ms) continue;
            double busy = (double)(now->of[i].busy_ms - before->of[k].busy_ms) / (dt_s * 1e3);
            if (busy > most) most = busy;
        }
    return most < 1 ? most : 1;
}

static void read_disks(struct host *h, struct host_sample *s, double dt_s) {
    static struct host_disks now;
    const char *text = text_of(h, DISKSTATS, TEXT_MAX);
    if (!text) return;
    host_parse_diskstats(text, counts, &h->disk_list, &now);
    bool is_same = h->has_disks && now.count == h->disks.count && now.count > 0 && dt_s > 0;
    if (is_same && now.read_bytes >= h->disks.read_bytes && now.written_bytes >= h->disks.written_bytes) {
        put(s, METRIC_HOST_DISK_READ, (double)(now.read_bytes - h->disks.read_bytes) / dt_s);
        put(s, METRIC_HOST_DISK_WRITTEN, (double)(now.written_bytes - h->disks.written_bytes) / dt_s);
        put(s, METRIC_HOST_DISK_BUSY, busiest(&now, &h->disks, dt_s));
    }
    h->disks = now;
    h->has_disks = true;
}

static void read_network(struct host *h, struct host_sample *s, double dt_s) {
    struct host_network now;
    const char *text = text_of(h, NETDEV, TEXT_MAX);
    if (!text) return;
    host_parse_netdev(text, counts_interface, &h->network_list, &now);
    bool is_same = h->has_network && now.count == h->network.count && now.count > 0 && dt_s > 0;
    if (is_same && now.received >= h->network.received && now.sent >= h->network.sent) {
        put(s, METRIC_HOST_NETWORK_RECEIVED, (double)(now.received - h->network.received) / dt_s);
        put(s, METRIC_HOST_NETWORK_SENT, (double)(now.sent - h->network.sent) / dt_s);
    }
    h->network = now;
    h->has_network = true;
}

static void read_pressure(struct host *h, struct host_sample *s) {
    static const struct {
        enum source source;
        int id;
    } rows[] = {
        {PRESSURE_CPU,    METRIC_HOST_PRESSURE_CPU   },
        {PRESSURE_MEMORY, METRIC_HOST_PRESSURE_MEMORY},
        {PRESSURE_IO,     METRIC_HOST_PRESSURE_IO    }
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double ratio;
        const char *text = text_of(h, rows[i].source, 256);
        if (text && host_parse_pressure(text, &ratio)) put(s, rows[i].id, ratio);
    }
}

static void read_space(struct host_sample *s) {
    struct statvfs fs;
    if (statvfs("/", &fs) < 0 || !fs.f_blocks) return;
    put(s, METRIC_HOST_DISK_TOTAL, (double)fs.f_blocks * (double)fs.f_frsize);
    put(s, METRIC_HOST_DISK_USED, (double)(fs.f_blocks - fs.f_bfree) * (double)fs.f_frsize);
}

void host_read(struct host *h, struct host_sample *s) {
    memset(s, 0, sizeof *s);
    s->boot_ns = clock_boot_ns();
    s->real_ns = clock_real_ns();
    double dt_s = h->before_ns ? (double)(s->boot_ns - h->before_ns) * 1e-9 : 0;
    h->before_ns = s->boot_ns;
    if (s->boot_ns >= h->sparse_ns) { /* names come and go, and so do processors */
        h->sparse_ns = s->boot_ns + SPARSE_NS;
        h->disk_list.count = h->network_list.count = 0;
        h->cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
    }
    read_cpu(h, s);
    read_load(h, s);
    read_memory(h, s);
    read_disks(h, s, dt_s);
    read_network(h, s, dt_s);
    read_pressure(h, s);
    read_space(s);
    if (h->cpus > 0) put(s, METRIC_HOST_CPUS, h->cpus);
    put(s, METRIC_HOST_UPTIME, floor((double)s->boot_ns * 1e-9));
    put(s, METRIC_HOST_NODE_CPU, (double)clock_process_cpu_ns() * 1e-9);
}
