#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option *option_find(const struct option *table, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

/* The place of text in "a|b|c", or -1. */
static int choice_index(const char *choices, const char *text) {
    size_t len = strlen(text);
    int i = 0;
    for (const char *c = choices;; i++) {
        size_t n = strcspn(c, "|");
        if (n == len && strncmp(c, text, n) == 0) return i;
        if (!c[n]) return -1;
        c += n + 1;
    }
}

static void choice_text(const char *choices, int index, char *ret, size_t room) {
    const char *c = choices;
    for (; index > 0 && c[strcspn(c, "|")]; index--) c += strcspn(c, "|") + 1;
    snprintf(ret, room, "%.*s", (int)strcspn(c, "|"), c);
}

static bool is_number(const char *text, double *ret) {
    if (!*text || isspace((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (*end || errno || !isfinite(v)) return false;
    if (strpbrk(text, "xXpP")) return false;
    *ret = v;
    return true;
}

static bool is_port(const char *s) {
    if (!*s || strlen(s) > 5 || strspn(s, "0123456789") != strlen(s)) return false;
    return atoi(s) <= 65535;
}

/* Hexadecimal groups, perhaps a dotted tail and a %zone: the shape only. */
static bool is_v6(const char *s, size_t n) {
    size_t groups = strspn(s, "0123456789abcdefABCDEF:.");
    if (groups >= n) return memchr(s, ':', n) != NULL;
    if (groups == 0 || s[groups] != '%' || groups + 1 == n) return false;
    for (size_t i = groups + 1; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr(".-_", s[i])) return false;
    return true;
}

static bool is_address(const char *s) {
    const char *colon = strrchr(s, ':');
    if (!colon || !is_port(colon + 1)) return false;
    size_t host = (size_t)(colon - s);
    if (host == 0) return true;
    if (s[0] == '[') return host > 2 && s[host - 1] == ']' && is_v6(s + 1, host - 2);
    for (size_t i = 0; i < host; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr(".-_*", s[i])) return false;
    return true;
}

/* Indices, UUIDs, or "all": the shape only; whether such a GPU exists the driver must say. */
static bool is_gpus(const char *s) {
    if (strcmp(s, "all") == 0) return true;
    for (;;) {
        size_t n = strcspn(s, ",");
        if (n == 0 || n > 90) return false;
        bool digits = strspn(s, "0123456789") == n && n <= 4;
        bool uuid = (strncmp(s, "GPU-", 4) == 0 || strncmp(s, "MIG-", 4) == 0) && n > 4;
        for (size_t i = 0; uuid && i < n; i++) uuid = isalnum((unsigned char)s[i]) || strchr("-/", s[i]);
        if (!digits && !uuid) return false;
        if (!s[n]) return true;
        s += n + 1;
    }
}

static int refuse(const struct option *o, const char *text, struct error *e) {
    char range[128];
    option_range(o, range, sizeof range);
    return fail(e, -EINVAL, "%s: \"%.60s\" is not %s", o->name, text, range);
}

static int set_number(const struct option *o, void *into, const char *text, struct error *e) {
    double v;
    if (!is_number(text, &v) || v < o->min || v > o->max) return refuse(o, text, e);
    if (o->type == OPT_INT) {
        if (v != floor(v)) return refuse(o, text, e);
        *(int *)into = (int)v;
    } else {
        *(double *)into = v;
    }
    return 0;
}

static int set_text(const struct option *o, char *into, const char *text, struct error *e) {
    if (strlen(text) >= o->size) return fail(e, -EINVAL, "%s: longer than %zu bytes", o->name, o->size - 1);
    if (strpbrk(text, "\n\r")) return fail(e, -EINVAL, "%s: a line break inside the value", o->name);
    if (o->type == OPT_ADDRESS && !is_address(text)) return refuse(o, text, e);
    if (o->type == OPT_GPUS && !is_gpus(text)) return refuse(o, text, e);
    memcpy(into, text, strlen(text) + 1);
    return 0;
}

int option_set(const struct option *o, void *into, const char *text, struct error *e) {
    char *at = (char *)into + o->offset;
    int index;
    switch (o->type) {
    case OPT_TEXT:
    case OPT_PATH:
    case OPT_ADDRESS:
    case OPT_GPUS: return set_text(o, at, text, e);
    case OPT_CELSIUS:
        if (strcmp(text, "auto") == 0) {
            *(double *)(void *)at = NAN;
            return 0;
        }
        return set_number(o, at, text, e);
    case OPT_INT:
    case OPT_REAL: return set_number(o, at, text, e);
    case OPT_BOOL:
        index = choice_index("false|true|no|yes|off|on|0|1", text);
        if (index < 0) return refuse(o, text, e);
        *(bool *)at = index & 1;
        return 0;
    case OPT_CHOICE:
        index = choice_index(o->choices, text);
        if (index < 0) return refuse(o, text, e);
        *(int *)(void *)at = index;
        return 0;
    }
    return fail(e, -EINVAL, "%s: an option of unknown type", o->name);
}

bool option_takes(const struct option *o, enum json_type type) {
    switch (o->type) {
    case OPT_TEXT:
    case OPT_PATH:
    case OPT_ADDRESS:
    case OPT_CHOICE: return type == JSON_LEAF_STRING;
    case OPT_INT: return type == JSON_LEAF_INT;
    case OPT_REAL: return type == JSON_LEAF_INT || type == JSON_LEAF_REAL;
    case OPT_CELSIUS: return type == JSON_LEAF_INT || type == JSON_LEAF_REAL || type == JSON_LEAF_STRING;
    case OPT_BOOL: return type == JSON_LEAF_BOOL;
    case OPT_GPUS: return type == JSON_LEAF_STRING || type == JSON_LEAF_LIST || type == JSON_LEAF_INT;
    }
    return false;
}

void option_text(const struct option *o, const void *from, char *ret, size_t room) {
    const char *at = (const char *)from + o->offset;
    double v;
    switch (o->type) {
    case OPT_TEXT:
    case OPT_PATH:
    case OPT_ADDRESS:
    case OPT_GPUS: snprintf(ret, room, "%s", at); return;
    case OPT_INT: snprintf(ret, room, "%d", *(const int *)(const void *)at); return;
    case OPT_REAL:
    case OPT_CELSIUS:
        v = *(const double *)(const void *)at;
        if (isnan(v)) {
            snprintf(ret, room, "auto");
            return;
        }
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(ret, room, "%.*g", digits, v);
            if (strtod(ret, NULL) == v) return;
        }
        return;
    case OPT_BOOL: snprintf(ret, room, "%s", *(const bool *)at ? "true" : "false"); return;
    case OPT_CHOICE: choice_text(o->choices, *(const int *)(const void *)at, ret, room); return;
    }
}

void option_range(const struct option *o, char *ret, size_t room) {
    switch (o->type) {
    case OPT_TEXT: snprintf(ret, room, "a text"); return;
    case OPT_PATH: snprintf(ret, room, "a path"); return;
    case OPT_INT: snprintf(ret, room, "a whole number from %.15g to %.15g", o->min, o->max); return;
    case OPT_REAL: snprintf(ret, room, "a number from %.15g to %.15g", o->min, o->max); return;
    case OPT_CELSIUS: snprintf(ret, room, "a temperature from %.15g to %.15g, or auto", o->min, o->max); return;
    case OPT_BOOL: snprintf(ret, room, "true or false"); return;
    case OPT_CHOICE: snprintf(ret, room, "one of %s", o->choices); return;
    case OPT_ADDRESS: snprintf(ret, room, "ADDRESS:PORT"); return;
    case OPT_GPUS: snprintf(ret, room, "all, or GPU indices and UUIDs"); return;
    }
}

void option_variable(const struct option *o, char *ret, size_t room) {
    int n = snprintf(ret, room, "GPUMGR_%s", o->name);
    for (int i = 0; i < n && (size_t)i < room; i++) ret[i] = ret[i] == '.' ? '_' : (char)toupper((unsigned char)ret[i]);
}
