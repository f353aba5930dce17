#include "model/cron.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "model/calendar.h"
#include "model/moment.h"

#define DAY_S 86400
#define DAYS_400_YEARS 146097 /* after which the calendar is the same again, weekdays too */

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };
static const struct field {
    const char *name;
    int least, most;
    const char *const *names;
    int names_count;
} fields[FIELDS] = {
    [MINUTE] = {"minute",           0, 59, NULL,        0                     },
    [HOUR] = {"hour",             0, 23, NULL,        0                     },
    [DAY] = {"day of the month", 1, 31, NULL,        0                     },
    [MONTH] = {"month",            1, 12, month_names, ARRAY_LEN(month_names)},
    [WEEKDAY] = {"day of the week",  0, 7,  day_names,   ARRAY_LEN(day_names)  },
};

static const struct {
    const char *name, *means;
} shorthands[] = {
    {"@hourly",   "0 * * * *"},
    {"@daily",    "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly",   "0 0 * * 0"},
    {"@monthly",  "0 0 1 * *"},
    {"@yearly",   "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

/* ---- reading ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* A number or a name; what follows it, or NULL. -1: it was none of the field's. */
static const char *value(const struct field *f, const char *at, int *ret) {
    *ret = -1;
    if (is_digit(*at)) {
        int v = 0;
        for (; is_digit(*at); at++) v = v < 1000 ? v * 10 + (*at - '0') : v;
        if (v >= f->least && v <= f->most) *ret = v;
        return at;
    }
    for (int i = 0; i < f->names_count; i++) {
        const char *n = f->names[i];
        if (lower(at[0]) != n[0] || lower(at[1]) != n[1] || lower(at[2]) != n[2]) continue;
        *ret = f->least + i;
        return at + 3;
    }
    return NULL;
}

/* *, 5, 1-5, each of which but the second may have a step: every so many of it. */
static int part(const struct field *f, const char *text, uint64_t *bits, struct error *e) {
    int from = f->least, to = f->most == 7 ? 6 : f->most, step = 1;
    bool is_range = true;
    const char *at = text;
    if (*at == '*') {
        at++;
    } else {
        at = value(f, at, &from);
        is_range = at && *at == '-';
        to = from;
        if (is_range) at = value(f, at + 1, &to);
        if (at && (from < 0 || to < 0))
            return fail(e, -EINVAL, "%s \"%.20s\" is not from %d to %d", f->name, text, f->least, f->most);
    }
    if (at && *at == '/') {
        int v = 0;
        const char *digits = at + 1;
        for (at = digits; is_digit(*at) && v < 1000; at++) v = v * 10 + (*at - '0');
        if (at == digits || v < 1 || v > f->most)
            return fail(e, -EINVAL, "%s \"%.20s\": a step is from 1 to %d", f->name, text, f->most);
        if (!is_range)
            return fail(e, -EINVAL, "%s \"%.20s\": a step needs a range, as in %d-%d/%d", f->name, text, from, f->most,
                        v);
        step = v;
    }
    if (!at || *at) return fail(e, -EINVAL, "%s \"%.20s\" cannot be read", f->name, text);
    if (from > to)
        return fail(e, -EINVAL, "%s \"%.20s\": its end comes before its beginning; give two, with a comma", f->name,
                    text);
    for (int i = from; i <= to; i += step) *bits |= 1ull << i;
    return 0;
}

static int field_parse(const struct field *f, char *text, uint64_t *bits, struct error *e) {
    for (char *at = text; at;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        int r = part(f, at, bits, e);
        if (r < 0) return r;
        at = comma ? comma + 1 : NULL;
    }
    return 0;
}

/* Cuts a text at its blanks. How many words; FIELDS + 1: more than that. */
static int split(char *text, char *ret[FIELDS]) {
    int n = 0;
    for (char *at = text; *(at += strspn(at, " \t"));) {
        if (n == FIELDS) return FIELDS + 1;
        ret[n++] = at;
        at += strcspn(at, " \t");
        if (*at) *at++ = 0;
    }
    return n;
}

static int fields_parse(char *text, struct cron *c, struct error *e) {
    char *word[FIELDS];
    uint64_t bits[FIELDS] = {0};
    int n = split(text, word);
    if (n > FIELDS)
        return fail(e, -EINVAL, "more than five fields (minute hour day month weekday); nothing repeats by the second");
    if (n < FIELDS) return fail(e, -EINVAL, "%d of five fields: minute hour day month weekday", n);
    bool stars[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        stars[i] = word[i][0] == '*';
        int r = field_parse(&fields[i], word[i], &bits[i], e);
        if (r < 0) return r;
    }
    if (bits[WEEKDAY] & 1ull << 7) bits[WEEKDAY] |= 1;
    *c = (struct cron){.minutes = bits[MINUTE],
                       .hours = (uint32_t)bits[HOUR],
                       .days = (uint32_t)bits[DAY],
                       .months = (uint32_t)bits[MONTH],
                       .weekdays = (uint32_t)(bits[WEEKDAY] & 0x7f),
                       .has_both = stars[DAY] || stars[WEEKDAY],
                       .is_elapsed = stars[MINUTE] || stars[HOUR]};
    return 0;
}

/* ---- days ---- */

static bool day_fits(const struct cron *c, const struct calendar_date *d, int64_t days) {
    if (!(c->months & 1u << d->month)) return false;
    bool by_date = c->days & 1u << d->day, by_week = c->weekdays & 1u << calendar_weekday(days);
    return c->has_both ? by_date && by_week : by_date || by_week;
}

/* The first day from this one on, at most so many later; -1: none. */
static int64_t day_find(const struct cron *c, int64_t days, int64_t most) {
    for (int64_t last = days + most; days <= last;) {
        struct calendar_date d = calendar_date(days);
        if (!(c->months & 1u << d.month)) { /* on to the next month */
            days += calendar_days_in(d.year, d.month) - d.day + 1;
            continue;
        }
        if (day_fits(c, &d, days)) return days;
        days++;
    }
    return -1;
}

/* The first local time from this one on; CRON_NEVER: none before 2200. */
static int64_t local_next(const struct cron *c, int64_t local_s) {
    int64_t minute = calendar_div(local_s + 59, 60), day = calendar_div(minute, 1440);
    int from = (int)(minute - day * 1440);
    for (; day * DAY_S < MOMENT_MOST_S + DAY_S; day++, from = 0) {
        int64_t next = day_find(c, day, MOMENT_MOST_S / DAY_S + 2 - day);
        if (next < 0) return CRON_NEVER;
        if (next != day) from = 0;
        day = next;
        for (int m = from; m < 1440; m++) {
            if (!(c->hours & 1u << (m / 60))) {
                m = m / 60 * 60 + 59;
                continue;
            }
            if (c->minutes & 1ull << (m % 60)) return day * DAY_S + m * 60LL;
        }
    }
    return CRON_NEVER;
}

int cron_parse(const char *text, struct cron *ret, struct error *e) {
    char copy[CRON_TEXT_MAX];
    struct cron c;
    struct error why;
    const char *means = text;
    for (size_t i = 0; i < ARRAY_LEN(shorthands); i++)
        if (strcmp(text, shorthands[i].name) == 0) means = shorthands[i].means;
    if (*means == '@')
        return fail(e, -EINVAL, "\"%.40s\": there is @hourly, @daily, @weekly, @monthly and @yearly", text);
    if (strlen(means) >= sizeof copy) return fail(e, -EINVAL, "\"%.40s...\" is too long for a cron expression", text);
    snprintf(copy, sizeof copy, "%s", means);
    int r = fields_parse(copy, &c, &why);
    if (r < 0) return fail(e, r, "\"%.80s\": %s", text, why.text);
    if (day_find(&c, 0, DAYS_400_YEARS) < 0)
        return fail(e, -EINVAL, "\"%.80s\" never comes: no year has such a day", text);
    *ret = c;
    return 0;
}

/* ---- moments ---- */

/* Between two changes of the clocks local time is the time that passes. */
static int64_t next_elapsed(const struct cron *c, const struct zone *z, int64_t after_s) {
    for (int64_t from = after_s + 1; from < MOMENT_MOST_S;) {
        int32_t offset_s = zone_offset_s(z, from);
        int64_t until, local_s = local_next(c, from + offset_s);
        if (!zone_next_change(z, from, &until)) until = INT64_MAX;
        if (local_s == CRON_NEVER && until == INT64_MAX) return CRON_NEVER;
        if (local_s != CRON_NEVER && local_s - offset_s < until) return local_s - offset_s;
        from = until;
    }
    return CRON_NEVER;
}

/* A later time of the day never comes before an earlier one: so the first that is later than the moment is the one. */
static int64_t next_of_day(const struct cron *c, const struct zone *z, int64_t after_s) {
    int64_t local_s = after_s + zone_offset_s(z, after_s), moments[2];
    local_s = calendar_div(local_s, 60) * 60;
    for (; (local_s = local_next(c, local_s)) != CRON_NEVER; local_s += 60) {
        (void)!zone_moments(z, local_s, moments);
        if (moments[0] > after_s) return moments[0];
    }
    return CRON_NEVER;
}

int64_t cron_next(const struct cron *c, const struct zone *z, int64_t after_s) {
    int64_t at = c->is_elapsed ? next_elapsed(c, z, after_s) : next_of_day(c, z, after_s);
    return at < MOMENT_MOST_S ? at : CRON_NEVER;
}
