/* Follows the process lists of one ring as any reader would and prints a line for every process that comes or goes:
 * "come|gone DEVICE PID SECONDS" by the boot clock, when the reader saw it. For tests: process_follow RING SECONDS. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/shm.h"
#include "model/ring.h"

static struct ring_processes known[DEVICE_MAX];

static bool has(const struct ring_processes *p, uint32_t pid) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->of[i].pid == pid) return true;
    return false;
}

static void look(const struct ring *r, uint32_t d) {
    struct ring_processes now;
    double at = (double)clock_boot_ns() * 1e-9;
    if (!ring_processes(r, d, &now)) return;
    for (uint32_t i = 0; i < now.count; i++)
        if (!has(&known[d], now.of[i].pid)) printf("come %u %u %.6f\n", d, now.of[i].pid, at);
    for (uint32_t i = 0; i < known[d].count; i++)
        if (!has(&now, known[d].of[i].pid)) printf("gone %u %u %.6f\n", d, known[d].of[i].pid, at);
    known[d] = now;
}

int main(int argc, char **argv) {
    struct shm shm = {0};
    struct ring ring;
    struct error e;
    if (argc != 3) {
        fputs("usage: process_follow RING SECONDS\n", stderr);
        return 2;
    }
    if (shm_open_file(argv[1], false, 1, &shm, &e) < 0 || ring_attach(&ring, shm.mem, shm.size, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    int64_t until = clock_boot_ns() + (int64_t)(atof(argv[2]) * 1e9);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (clock_boot_ns() < until) {
        uint32_t seen = atomic_load(ring_bell(&ring));
        for (uint32_t d = 0; d < ring_devices(&ring) && d < DEVICE_MAX; d++) look(&ring, d);
        shm_wait(ring_bell(&ring), seen, NS_PER_S / 10);
    }
    shm_done(&shm);
    return 0;
}
