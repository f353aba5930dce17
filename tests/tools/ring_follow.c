/* Follows one ring as any reader would, through restarts and replacements of its writer, and prints what it sees: a line
 * of JSON for every sample. For the system tests: ring_follow RING SECONDS. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/shm.h"
#include "model/ring.h"

static struct {
    struct shm shm;
    struct ring ring;
    uint64_t next[DEVICE_MAX];
    int file; /* which file of this name it is, counted */
} self;

static void print(uint32_t device, uint64_t number, const struct sample *s) {
    AUTO(buf_done) struct buf b = {0};
    json_open(&b, '{');
    json_pair_int(&b, "file", self.file);
    json_pair_int(&b, "writer", ring_writer(&self.ring));
    json_pair_int(&b, "gpu", ring_inventory(&self.ring, device)->index);
    json_pair_int(&b, "device", device);
    json_pair_int(&b, "number", (int64_t)number);
    json_pair_num(&b, "boot", (double)s->boot_ns * 1e-9);
    json_key(&b, "metrics");
    json_open(&b, '{');
    for (int i = 0; i < METRIC_COUNT; i++)
        if (sample_has(s, i)) json_pair_num(&b, metrics[i].name, s->value[i]);
    json_close(&b, '}');
    json_close(&b, '}');
    puts(b.s);
}

/* Everything new in the mapped file. A sample that is not whole is told as well: a test may want none. */
static void drain(void) {
    for (uint32_t d = 0; d < ring_devices(&self.ring); d++) {
        uint64_t head = ring_head(&self.ring, d);
        for (; self.next[d] <= head; self.next[d]++) {
            struct sample s;
            if (ring_sample(&self.ring, d, self.next[d], &s))
                print(d, self.next[d], &s);
            else
                printf("{\"file\":%d,\"device\":%u,\"number\":%llu,\"missed\":true}\n", self.file, d,
                       (unsigned long long)self.next[d]);
        }
    }
}

static int reopen(const char *path) {
    struct error e;
    struct shm shm = {0};
    struct ring ring;
    if (shm_open_file(path, false, 4096, &shm, &e) < 0) return -1;
    if (ring_attach(&ring, shm.mem, shm.size, &e) < 0) {
        shm_done(&shm);
        return -1;
    }
    shm_done(&self.shm);
    self.shm = shm;
    self.ring = ring;
    self.file++;
    for (uint32_t d = 0; d < ring_devices(&ring); d++) self.next[d] = self.file == 1 ? ring_head(&ring, d) + 1 : 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: ring_follow RING SECONDS\n");
        return 2;
    }
    int64_t until_ns = clock_boot_ns() + (int64_t)(atof(argv[2]) * 1e9);
    while (clock_boot_ns() < until_ns) {
        if (!self.shm.mem && reopen(argv[1]) < 0) {
            clock_sleep_until(clock_boot_ns() + 5 * NS_PER_MS);
            continue;
        }
        uint32_t bell = atomic_load(ring_bell(&self.ring));
        drain();
        if (shm_is_replaced(&self.shm, argv[1])) {
            drain();
            (void)reopen(argv[1]);
            continue;
        }
        shm_wait(ring_bell(&self.ring), bell, 50 * NS_PER_MS);
    }
    return 0;
}
