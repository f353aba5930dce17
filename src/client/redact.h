/* Takes out of a text what names people, machines and cards: known strings (host, users, homes, serial numbers),
 * UUIDs by their shape, and credentials in addresses. UUIDs become a short hash, so that one can still be told from
 * another. Counts what it took, by kind. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

enum { REDACT_RULES_MAX = 200 };

struct redact {
    struct redact_rule {
        char needle[128];
        const char *kind; /* "serial number": also what stands in its place, as <serial number> */
    } rules[REDACT_RULES_MAX];
    size_t rule_count;
    struct redact_count {
        const char *kind;
        unsigned hits;
    } counts[16];
    size_t count_count;
};

/* Needles shorter than three bytes are not taken: they would hit everything. */
void redact_add(struct redact *r, const char *needle, const char *kind);

void redact_text(struct redact *r, const char *text, struct buf *out);

/* "8 UUIDs, 2 host names" */
void redact_summary(const struct redact *r, struct buf *out);
