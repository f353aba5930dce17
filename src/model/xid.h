/* XIDs, NVIDIA's error numbers: what each means and what to do, how the kernel log tells them, and counting them once
 * although two sources report them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"

struct xid {
    uint32_t code;
    enum event_severity severity;
    const char *what, *advice;
    bool is_fault; /* the card is not to be used before it was reset or replaced */
};

/* Never NULL: an unknown code gets words of its own. */
const struct xid *xid_find(uint64_t code);

/* One line of the kernel log, as /dev/kmsg gives it (with or without its prefix). */
struct xid_line {
    char pci[16]; /* "0000:3b:00" */
    uint64_t code;
    int32_t pid;      /* 0: not said */
    char process[32]; /* may be empty */
};
bool xid_parse(const char *line, size_t len, struct xid_line *ret);

/* Whether a driver's bus id ("00000000:3B:00.0") is the place a log line names. */
bool xid_is_at(const char *pci_line, const char *pci_driver);

/* Counts of one GPU, per code and source. The driver's events and the kernel log tell the same errors, each with gaps:
 * the larger count of the two is what happened. */
#define XID_CODES_MAX 16
enum xid_source { XID_FROM_DRIVER, XID_FROM_LOG, XID_SOURCES };

struct xid_count {
    uint32_t count; /* codes seen */
    struct {
        uint64_t code, seen[XID_SOURCES], total;
        int64_t last_real_ns;
    } of[XID_CODES_MAX];
};

/* True when this is news, false when the other source had told it already. */
bool xid_take(struct xid_count *c, uint64_t code, enum xid_source source, int64_t now_real_ns);
uint64_t xid_total(const struct xid_count *c);
