#include "model/zone.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/calendar.h"
#include "model/zone_rule.h"

#define HEAD 44
#define CHANGES_MAX 4000u
#define OFFSET_LEAST (-25 * 3600)
#define OFFSET_MOST (26 * 3600)

bool zone_name_is_good(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n >= ZONE_NAME_MAX || name[0] == '/' || name[0] == '.' || name[0] == '-') return false;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_+-", c);
        if (!is_word && (c != '/' || !name[i + 1] || name[i + 1] == '/')) return false;
    }
    return true;
}

void zone_done(struct zone *z) {
    free(z->at);
    free(z->offset_s);
    *z = (struct zone){0};
}

/* ---- the file ---- */

struct block {
    const uint8_t *times, *indices, *types, *end;
    uint32_t count, type_count, leaps;
};

static int64_t number(const uint8_t *p, int bytes) {
    uint64_t v = p[0] & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
    return (int64_t)v;
}

static uint32_t count_at(const uint8_t *head, int which) { return (uint32_t)number(head + 20 + 4 * which, 4); }

/* One head and its data, with times of so many bytes. False: the file is shorter than it says. */
static bool block_find(const uint8_t *at, size_t len, int wide, struct block *ret) {
    if (len < HEAD || memcmp(at, "TZif", 4) != 0) return false;
    uint64_t utc = count_at(at, 0), standard = count_at(at, 1), leaps = count_at(at, 2), times = count_at(at, 3),
             types = count_at(at, 4), letters = count_at(at, 5);
    uint64_t size = times * ((uint64_t)wide + 1) + types * 6 + letters + leaps * ((uint64_t)wide + 4) + standard + utc;
    if (size > len - HEAD) return false;
    const uint8_t *data = at + HEAD;
    *ret = (struct block){.times = data,
                          .indices = data + times * (uint64_t)wide,
                          .types = data + times * ((uint64_t)wide + 1),
                          .end = data + size,
                          .count = (uint32_t)times,
                          .type_count = (uint32_t)types,
                          .leaps = (uint32_t)leaps};
    return true;
}

static bool offset_get(const struct block *b, uint32_t type, int32_t *ret) {
    if (type >= b->type_count) return false;
    *ret = (int32_t)number(b->types + 6 * type, 4);
    return *ret >= OFFSET_LEAST && *ret <= OFFSET_MOST;
}

/* Changes of the name or of what is called summer time alone are left out. */
static bool table_take(const struct block *b, int wide, struct zone *z) {
    int32_t before;
    int64_t last = INT64_MIN;
    if (b->count > CHANGES_MAX || !offset_get(b, 0, &before)) return false;
    z->first_s = before;
    z->at = calloc(b->count + 1, sizeof *z->at);
    z->offset_s = calloc(b->count + 1, sizeof *z->offset_s);
    if (!z->at || !z->offset_s) abort();
    for (uint32_t i = 0; i < b->count; i++) {
        int64_t at = number(b->times + (size_t)wide * i, wide);
        int32_t now;
        if ((i && at <= last) || !offset_get(b, b->indices[i], &now)) return false;
        last = at;
        if (now == before) continue;
        z->at[z->count] = at;
        z->offset_s[z->count++] = before = now;
    }
    return true;
}

int zone_parse(const void *bytes, size_t len, struct zone *ret, struct error *e) {
    const uint8_t *all = bytes;
    struct block b;
    struct zone z = {0};
    int wide = 4;
    if (len > ZONE_FILE_MAX || !block_find(all, len, 4, &b)) return fail(e, -EINVAL, "not the data of a time zone");
    const uint8_t *end = all + len, *footer = NULL;
    if (all[4] >= '2') {
        wide = 8;
        if (!block_find(b.end, (size_t)(end - b.end), 8, &b))
            return fail(e, -EINVAL, "the data of a time zone, cut off");
        footer = b.end;
    }
    if (b.leaps) return fail(e, -EINVAL, "a time zone that counts leap seconds");
    bool is_good = table_take(&b, wide, &z);
    if (is_good && footer) is_good = zone_rule_parse(footer, (size_t)(end - footer), &z);
    if (!is_good) {
        zone_done(&z);
        return fail(e, -EINVAL, "the data of a time zone that makes no sense");
    }
    *ret = z;
    return 0;
}

/* ---- offsets ---- */

static size_t changes_until(const struct zone *z, int64_t unix_s) {
    size_t low = 0, high = z->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (z->at[middle] <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t zone_offset_s(const struct zone *z, int64_t unix_s) {
    size_t n = changes_until(z, unix_s);
    if (n == z->count && z->has_rule) return zone_rule_offset_s(z, unix_s);
    return n ? z->offset_s[n - 1] : z->first_s;
}

bool zone_next_change(const struct zone *z, int64_t after_s, int64_t *ret) {
    size_t n = changes_until(z, after_s);
    if (n < z->count) {
        *ret = z->at[n];
        return true;
    }
    return z->has_rule && zone_rule_next(z, after_s, ret);
}

int zone_moments(const struct zone *z, int64_t local_s, int64_t ret[2]) {
    int64_t from = local_s - OFFSET_MOST - 1, last = local_s - OFFSET_LEAST, gap = local_s;
    int found = 0;
    for (bool goes_on = true; goes_on && from <= last && found < 2;) {
        int32_t offset = zone_offset_s(z, from);
        int64_t until = INT64_MAX, moment = local_s - offset;
        goes_on = zone_next_change(z, from, &until);
        if (moment >= from && moment < until) ret[found++] = moment;
        if (goes_on && moment >= until && local_s - zone_offset_s(z, until) < until) gap = until;
        from = until;
    }
    if (!found) ret[0] = gap;
    return found;
}

void zone_text(const struct zone *z, int64_t unix_s, char ret[ZONE_TEXT]) {
    int32_t offset_s = zone_offset_s(z, unix_s), ahead_s = offset_s < 0 ? -offset_s : offset_s;
    int64_t local_s = unix_s + offset_s, days = calendar_div(local_s, 86400), of_day = local_s - days * 86400;
    struct calendar_date d = calendar_date(days);
    snprintf(ret, ZONE_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d%c%02d:%02d", (int)d.year, d.month, d.day,
             (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60), offset_s < 0 ? '-' : '+',
             ahead_s / 3600, ahead_s / 60 % 60);
}
