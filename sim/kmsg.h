/* A kernel log of our own: a file of /dev/kmsg records, so that who follows the real one can follow this. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "sim/shm_card.h"

struct kmsg {
    int fd;
    uint64_t sequence;
};

int kmsg_open(struct kmsg *k, const char *dir, struct error *e) MUST_CHECK;
void kmsg_close(struct kmsg *k);

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus." pid 0: unknown. */
void kmsg_xid(struct kmsg *k, const struct shm_card *c, uint32_t code, uint32_t pid, const char *name,
              const char *rest);
void kmsg_line(struct kmsg *k, int priority, const char *text);
