#include "model/interval.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/buf.h"
#include "model/calendar.h"
#include "model/moment.h"

#define DAY_S 86400
#define COUNT_MOST 1000000000
#define YEARS_MOST 100

/* ---- reading ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* P1Y2M3W4DT5H6M7S: units in this order, each at most once, whole numbers. */
static int duration_take(const char *text, struct interval *v, struct error *e) {
    static const struct {
        char letter;
        bool is_time;
        int64_t months, days, seconds;
    } units[] = {
        {'Y', false, 12, 0, 0   },
        {'M', false, 1,  0, 0   },
        {'W', false, 0,  7, 0   },
        {'D', false, 0,  1, 0   },
        {'H', true,  0,  0, 3600},
        {'M', true,  0,  0, 60  },
        {'S', true,  0,  0, 1   },
    };
    const char *at = text + 1;
    bool is_time = false, is_good = *at != 0;
    size_t next = 0;
    while (*at && is_good) {
        int64_t n = 0;
        if (*at == 'T' && !is_time) {
            is_time = true;
            is_good = *++at != 0;
            continue;
        }
        is_good = is_digit(*at);
        for (; is_digit(*at); at++) n = n < COUNT_MOST ? n * 10 + (*at - '0') : n;
        while (next < ARRAY_LEN(units) && (units[next].letter != *at || units[next].is_time != is_time)) next++;
        if (next == ARRAY_LEN(units) || !*at) is_good = false;
        if (!is_good) break;
        v->months += n * units[next].months;
        v->days += n * units[next].days;
        v->seconds += n * units[next].seconds;
        next++;
        at++;
    }
    if (!is_good) return fail(e, -EINVAL, "\"%.40s\" is no duration, as in PT12H, P1D or P1M; numbers are whole", text);
    if (v->months > YEARS_MOST * 12LL || v->days > YEARS_MOST * 366LL || v->seconds > YEARS_MOST * 366LL * DAY_S)
        return fail(e, -EINVAL, "\"%.40s\" is longer than %d years", text, YEARS_MOST);
    return 0;
}

/* Digits in pairs with a mark between them, where there is none: 0300 is 03:00. How many were read. */
static size_t pairs_take(const char *text, char mark, struct buf *to) {
    size_t n = strspn(text, "0123456789");
    if (n % 2 || n > 6) return 0;
    for (size_t i = 0; i < n; i += 2) buf_printf(to, "%s%.2s", i ? (char[]){mark, 0} : "", text + i);
    return n;
}

/* ISO 8601 has a short form, 20261115T030000+0100, and a date alone is the beginning of that day. */
static void anchor_spread(const char *text, struct buf *to) {
    if (strspn(text, "0123456789") == 8) {
        buf_printf(to, "%.4s-%.2s-%.2s", text, text + 4, text + 6);
        text += 8;
        if (*text == 'T') {
            buf_putc(to, *text++);
            text += pairs_take(text, ':', to);
        }
        if (*text == '+' || *text == '-') {
            buf_putc(to, *text++);
            text += pairs_take(text, ':', to);
        }
    }
    buf_puts(to, text);
    if (to->len == 10 && strspn(to->s, "0123456789-") == 10) buf_puts(to, "T00:00:00");
}

/* With an offset a moment, without one a local time. */
static int anchor_take(const char *given, int64_t *ret_s, bool *ret_is_local, int32_t *ret_offset_s, struct error *e) {
    AUTO(buf_done) struct buf spread = {0};
    char with_zone[80];
    int64_t ns, here_ns;
    if (strlen(given) > sizeof with_zone / 2) return fail(e, -EINVAL, "\"%.40s...\" is no point in time", given);
    anchor_spread(given, &spread);
    const char *text = spread.len ? spread.s : "";
    const char *ahead = strlen(text) > 10 ? strpbrk(text + 10, "Zz+-") : NULL; /* behind the date, which has - in it */
    *ret_is_local = !ahead;
    snprintf(with_zone, sizeof with_zone, "%s%s", text, *ret_is_local ? "Z" : "");
    int r = moment_parse(with_zone, &ns, e);
    if (r < 0) return fail(e, -EINVAL, "\"%.60s\" is no point in time, as in 2026-11-15T18:30:00Z", given);
    *ret_s = ns / 1000000000;
    *ret_offset_s = 0;
    if (!ahead) return 0;
    /* the same clock time, as if it were UTC: the difference is its offset */
    snprintf(with_zone, sizeof with_zone, "%.*sZ", (int)(ahead - text), text);
    r = moment_parse(with_zone, &here_ns, e);
    if (r < 0) return r;
    *ret_offset_s = (int32_t)((here_ns - ns) / 1000000000);
    return 0;
}

static int count_take(const char *text, int64_t *ret, struct error *e) {
    int64_t n = 0;
    const char *at = text + 1;
    if (*text == 'R' && (!*at || strcmp(at, "-1") == 0)) {
        *ret = 0;
        return 0;
    }
    for (; *text == 'R' && is_digit(*at); at++) n = n < COUNT_MOST ? n * 10 + (*at - '0') : n;
    if (*text != 'R' || *at) return fail(e, -EINVAL, "it begins with R, or with R and how often, as in R5/");
    if (n < 1 || n > COUNT_MOST) return fail(e, -EINVAL, "how often is from 1 to %d", COUNT_MOST);
    *ret = n;
    return 0;
}

static int parts_take(const char *count, const char *first, const char *second, struct interval *v, struct error *e) {
    int r = count_take(count, &v->count, e);
    if (r < 0) return r;
    if (*first == 'P' && *second == 'P') return fail(e, -EINVAL, "it needs a beginning or an end");
    v->is_to_end = *first == 'P';
    const char *anchor = v->is_to_end ? second : first, *other = v->is_to_end ? first : second;
    r = anchor_take(anchor, &v->anchor_s, &v->is_local, &v->offset_s, e);
    if (r < 0) return r;
    if (*other == 'P') return duration_take(other, v, e);
    int64_t end_s = 0;
    int32_t offset_s = 0;
    bool is_local = false;
    r = anchor_take(other, &end_s, &is_local, &offset_s, e);
    if (r < 0) return r;
    if (is_local != v->is_local) return fail(e, -EINVAL, "its beginning and its end have offsets, or neither has");
    if (end_s <= v->anchor_s) return fail(e, -EINVAL, "its end comes before its beginning");
    v->seconds = end_s - v->anchor_s;
    return 0;
}

int interval_parse(const char *text, struct interval *ret, struct error *e) {
    char copy[INTERVAL_TEXT_MAX];
    struct interval v = {0};
    struct error why;
    if (strlen(text) >= sizeof copy) return fail(e, -EINVAL, "\"%.40s...\" is too long for an interval", text);
    snprintf(copy, sizeof copy, "%s", text);
    char *first = strchr(copy, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    if (!second || strchr(second + 1, '/'))
        return fail(e, -EINVAL, "\"%.80s\" is no repeating interval, as in R/2026-11-15T03:00:00+01:00/PT12H", text);
    *first++ = 0;
    *second++ = 0;
    int r = parts_take(copy, first, second, &v, &why);
    if (r < 0) return fail(e, r, "\"%.80s\": %s", text, why.text);
    if (!v.months && !v.days && v.seconds < 60)
        return fail(e, -EINVAL, "\"%.80s\": nothing repeats more often than once a minute", text);
    *ret = v;
    return 0;
}

/* ---- times ---- */

static int64_t months_later(int64_t days, int64_t months) {
    struct calendar_date d = calendar_date(days);
    int64_t month = d.year * 12 + d.month - 1 + months, year = calendar_div(month, 12);
    int of_year = (int)(month - year * 12) + 1, most = calendar_days_in(year, of_year);
    return calendar_days(year, of_year, d.day < most ? d.day : most);
}

/* The moment of a local time where the calendar is that of a zone, or of the offset that the anchor has. */
static int64_t moment_of(const struct interval *v, const struct zone *z, int64_t local_s) {
    int64_t moments[2];
    if (!z) return local_s - v->offset_s;
    (void)!zone_moments(z, local_s, moments);
    return moments[0];
}

/* So many steps from the anchor, which may be negative. */
static int64_t step(const struct interval *v, const struct zone *z, int64_t n) {
    if (!v->is_local && (n == 0 || (!v->months && !v->days))) return v->anchor_s + n * v->seconds;
    int64_t local_s = v->anchor_s;
    if (!v->is_local) local_s += z ? zone_offset_s(z, v->anchor_s) : v->offset_s;
    int64_t day = calendar_div(local_s, DAY_S), of_day = local_s - day * DAY_S;
    day = months_later(day, n * v->months) + n * v->days;
    return moment_of(v, z, day * DAY_S + of_day) + n * v->seconds;
}

int64_t interval_next(const struct interval *v, const struct zone *z, int64_t after_s) {
    int64_t least_s = v->months * 28 * DAY_S + v->days * 22 * 3600 + v->seconds; /* the shortest that a step can be */
    int64_t low = 0, high;
    if (after_s >= MOMENT_MOST_S) return INTERVAL_NEVER;
    if (after_s < -DAY_S) after_s = -DAY_S; /* nothing begins before 1970 */
    if (v->is_to_end) {
        int64_t left = (v->anchor_s - after_s) / least_s + 3;
        low = v->count && v->count < left ? -v->count : -left;
        high = -1;
        if (v->anchor_s < after_s - 2 * DAY_S || step(v, z, high) <= after_s) return INTERVAL_NEVER;
    } else {
        int64_t passed = after_s - v->anchor_s;
        high = passed < 0 ? 4 : passed / least_s + 4;
        while (step(v, z, high) <= after_s) high += 4 + 2 * DAY_S / least_s; /* a zone may lie days beside its anchor */
        if (v->count && high > v->count - 1) high = v->count - 1;
        if (step(v, z, high) <= after_s) return INTERVAL_NEVER;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (step(v, z, middle) > after_s)
            high = middle;
        else
            low = middle + 1;
    }
    int64_t at = step(v, z, low);
    return at < MOMENT_MOST_S ? at : INTERVAL_NEVER;
}
