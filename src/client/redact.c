#include "client/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void redact_add(struct redact *r, const char *needle, const char *kind) {
    size_t n = strlen(needle);
    if (n < 3 || n >= sizeof r->rules[0].needle || r->rule_count == REDACT_RULES_MAX) return;
    struct redact_rule *rule = &r->rules[r->rule_count++];
    memcpy(rule->needle, needle, n + 1);
    rule->kind = kind;
}

static void count(struct redact *r, const char *kind) {
    size_t i = 0;
    while (i < r->count_count && strcmp(r->counts[i].kind, kind) != 0) i++;
    if (i == sizeof r->counts / sizeof r->counts[0]) return;
    if (i == r->count_count) r->counts[r->count_count++] = (struct redact_count){.kind = kind};
    r->counts[i].hits++;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* A name inside a longer word is another word. */
static size_t rule_at(const struct redact_rule *rule, const char *text, const char *at) {
    size_t n = strlen(rule->needle);
    if (strncmp(at, rule->needle, n) != 0) return 0;
    if (at > text && is_word(at[-1]) && is_word(*rule->needle)) return 0;
    return is_word(at[n]) && is_word(rule->needle[n - 1]) ? 0 : n;
}

static size_t uuid_at(const char *at) {
    if (strncmp(at, "GPU-", 4) != 0 && strncmp(at, "MIG-", 4) != 0) return 0;
    size_t n = 4 + strspn(at + 4, "0123456789abcdefABCDEF-");
    return n >= 16 ? n : 0;
}

static unsigned hash_of(const char *s, size_t n) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h;
}

/* scheme://user:secret@host: everything up to the @. */
static size_t credentials_at(const char *text, const char *at) {
    if (at - text < 3 || strncmp(at - 3, "://", 3) != 0) return 0;
    size_t n = strcspn(at, "/@\" \n");
    return at[n] == '@' ? n : 0;
}

/* /home/NAME: also of people that no rule knows. */
static size_t home_at(const char *at) {
    if (strncmp(at, "/home/", 6) != 0) return 0;
    size_t n = strcspn(at + 6, "/\" \n:,");
    return n ? 6 + n : 0;
}

static size_t replace_at(struct redact *r, const char *text, const char *at, struct buf *out) {
    size_t n = uuid_at(at);
    if (n) {
        buf_printf(out, "%.4s%08x", at, hash_of(at, n));
        count(r, "UUID");
        return n;
    }
    const char *kind = "credential";
    n = credentials_at(text, at);
    for (size_t i = 0; !n && i < r->rule_count; i++) {
        n = rule_at(&r->rules[i], text, at);
        kind = r->rules[i].kind;
    }
    if (!n) {
        n = home_at(at);
        kind = "home path";
    }
    if (!n) return 0;
    buf_printf(out, "<%s>", kind);
    count(r, kind);
    return n;
}

void redact_text(struct redact *r, const char *text, struct buf *out) {
    buf_puts(out, "");
    for (const char *at = text; *at;) {
        size_t n = replace_at(r, text, at, out);
        if (!n) buf_putc(out, *at++);
        at += n;
    }
}

void redact_summary(const struct redact *r, struct buf *out) {
    buf_puts(out, "");
    for (size_t i = 0; i < r->count_count; i++)
        buf_printf(out, "%s%u %s%s", i ? ", " : "", r->counts[i].hits, r->counts[i].kind,
                   r->counts[i].hits == 1 ? "" : "s");
    if (!r->count_count) buf_puts(out, "nothing had to be taken out");
}
