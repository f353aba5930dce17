/* JSON in, as a walk over a text that lies in memory: every value is told once, with the keys that lead to it, and nothing is
 * built or allocated. For the node, which reads what container engines say, links libc only, and must not be made to
 * hold a tree by whoever answers. Accepts JSON as RFC 8259 has it, without a BOM; keys that come twice are both told.
 * Strings come decoded but not judged: they may hold bytes that are no UTF-8, and control characters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define JSON_SCAN_DEPTH 32 /* deeper is refused */
#define JSON_SCAN_KEYS 6   /* so many keys of the way are told */
#define JSON_SCAN_KEY 64   /* a longer key is told as its beginning: it equals no name of at most so many bytes */
#define JSON_SCAN_TEXT 512 /* longer strings are cut */

enum json_scan_type {
    JSON_SCAN_STRING,
    JSON_SCAN_NUMBER,
    JSON_SCAN_TRUE,
    JSON_SCAN_FALSE,
    JSON_SCAN_NULL,
    JSON_SCAN_OBJECT,
    JSON_SCAN_LIST
};

struct json_scan_value {
    enum json_scan_type type;        /* objects and lists are told when they begin, their values follow */
    unsigned depth;                  /* how many keys lead to it; 0: the whole */
    const char *key[JSON_SCAN_KEYS]; /* "" for a place in a list */
    const char *text;                /* a string decoded, a number as written; else "" */
    size_t len;
    bool is_cut;
};

typedef void (*json_scan_fn)(void *ctx, const struct json_scan_value *v);

/* What was told before an error stands: a caller that must not use half an answer takes it over only on success. */
int json_scan(const char *text, size_t len, json_scan_fn each, void *ctx, struct error *e) MUST_CHECK;

/* Whether exactly these keys lead to v: json_scan_is(v, 2, "Actor", "ID"). A "" stands for a place in a list. */
bool json_scan_is(const struct json_scan_value *v, unsigned depth, ...);
