#include "model/message.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/json.h"

#define NS 1000000000ll
#define DAY 86400ll

struct date {
    int year, month, day, hour, minute, second, weekday;
};

/* Days of the Gregorian calendar, counted in eras of 400 years that begin in March, so that leap days come last. */
static struct date date_of(int64_t s) {
    int64_t days = s / DAY - (s % DAY < 0), left = s - days * DAY;
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), march = (5 * of_year + 2) / 153;
    struct date d = {.day = (int)(of_year - (153 * march + 2) / 5 + 1),
                     .month = (int)(march < 10 ? march + 3 : march - 9)};
    d.year = (int)(year + era * 400 + (d.month <= 2));
    d.hour = (int)(left / 3600);
    d.minute = (int)(left / 60 % 60);
    d.second = (int)(left % 60);
    d.weekday = (int)(((days + 4) % 7 + 7) % 7);
    return d;
}

void message_time(int64_t real_ns, char ret[32]) {
    struct date d = date_of(real_ns / NS);
    snprintf(ret, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", d.year, d.month, d.day, d.hour, d.minute, d.second,
             (int)(real_ns / 1000000 % 1000));
}

/* Header lines of a mail: nothing that could begin another one. */
static void one_line(struct buf *out, const char *text) {
    for (; *text; text++) buf_putc(out, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
}

static void subject_of(struct buf *out, const struct message *m) {
    buf_puts(out, m->host);
    if (m->gpu_index >= 0) buf_printf(out, " GPU %d", m->gpu_index);
    if (m->gpu_index >= 0 && *m->gpu_model) buf_printf(out, " (%s)", m->gpu_model);
}

void message_headline(struct buf *out, const struct message *m) {
    if (m->is_test) buf_puts(out, "Test: ");
    if (m->is_over) buf_puts(out, "Over: ");
    if (m->job.id) {
        buf_printf(out, "%s: %s", m->host, m->about.text);
        return;
    }
    buf_printf(out, "%s: ", m->about.title);
    subject_of(out, m);
}

static void sentence(struct buf *out, const struct message *m) {
    buf_puts(out, m->about.text);
    if (m->about.silent > 1) buf_printf(out, " (%u times since it was last told)", m->about.silent);
}

static void labels(struct buf *out, const struct message *m) {
    char index[16];
    snprintf(index, sizeof index, "%d", m->gpu_index);
    json_open(out, '{');
    json_pair_str(out, "alertname", m->about.title);
    json_pair_str(out, "severity", event_severity_name((enum event_severity)m->about.severity));
    json_pair_str(out, "topic", m->about.topic);
    json_pair_str(out, "host", m->host);
    if (m->gpu_index >= 0) {
        json_pair_str(out, "gpu", index);
        json_pair_str(out, "uuid", strncmp(m->about.subject, "gpu:", 4) == 0 ? m->about.subject + 4 : m->about.subject);
        json_pair_str(out, "model", m->gpu_model);
    }
    if (m->job.id) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)m->job.id);
        json_pair_str(out, "job", number);
        json_pair_str(out, "event", m->job.event);
        json_pair_str(out, "name", m->job.name);
        json_pair_str(out, "user", m->job.user);
    } else if (m->about.code) {
        snprintf(index, sizeof index, "%d", m->about.code);
        json_pair_str(out, "code", index);
    }
    json_close(out, '}');
}

static void annotations(struct buf *out, const struct message *m) {
    AUTO(buf_done) struct buf headline = {0}, text = {0};
    message_headline(&headline, m);
    sentence(&text, m);
    json_open(out, '{');
    json_pair_str(out, "summary", headline.s);
    json_pair_str(out, "description", text.s);
    json_close(out, '}');
}

static void alert(struct buf *out, const struct message *m) {
    char began[32], ended[32] = "0001-01-01T00:00:00Z"; /* Alertmanager's way to say: not yet */
    message_time(m->about.opened_ns, began);
    if (m->is_over) message_time(m->real_ns, ended);
    json_open(out, '{');
    json_pair_str(out, "status", m->is_over ? "resolved" : "firing");
    json_key(out, "labels");
    labels(out, m);
    json_key(out, "annotations");
    annotations(out, m);
    json_pair_str(out, "startsAt", began);
    json_pair_str(out, "endsAt", ended);
    json_pair_str(out, "generatorURL", m->link);
    json_pair_str(out, "fingerprint", m->id);
    json_close(out, '}');
}

void message_webhook(struct buf *out, const struct message *m) {
    json_open(out, '{');
    json_pair_str(out, "version", "4");
    json_pair_str(out, "id", m->id);
    json_pair_str(out, "receiver", "gpumgr");
    json_pair_str(out, "status", m->is_over ? "resolved" : "firing");
    json_key(out, "alerts");
    json_open(out, '[');
    alert(out, m);
    json_close(out, ']');
    json_key(out, "groupLabels");
    json_open(out, '{');
    json_close(out, '}');
    json_key(out, "commonLabels");
    labels(out, m);
    json_key(out, "commonAnnotations");
    annotations(out, m);
    json_pair_str(out, "externalURL", m->link);
    json_pair_str(out, "groupKey", m->about.subject);
    json_pair_int(out, "truncatedAlerts", 0);
    json_pair_bool(out, "test", m->is_test);
    json_close(out, '}');
}

/* Slack reads &, < and > as markup. */
static void slack_text(struct buf *out, const char *s) {
    for (; *s; s++) {
        if (*s == '&')
            buf_puts(out, "&amp;");
        else if (*s == '<')
            buf_puts(out, "&lt;");
        else if (*s == '>')
            buf_puts(out, "&gt;");
        else
            buf_putc(out, *s);
    }
}

void message_slack(struct buf *out, const struct message *m) {
    static const char *const marks[] = {":information_source:", ":warning:", ":red_circle:", ":rotating_light:"};
    AUTO(buf_done) struct buf headline = {0}, body = {0}, text = {0};
    message_headline(&headline, m);
    sentence(&body, m);
    buf_printf(&text, "%s *", m->is_over ? ":white_check_mark:" : marks[m->about.severity & 3]);
    slack_text(&text, headline.s);
    buf_puts(&text, "*\n");
    slack_text(&text, body.s);
    if (*m->link) buf_printf(&text, "\n<%s|Open the dashboard>", m->link);
    json_open(out, '{');
    json_pair_str(out, "text", text.s);
    json_close(out, '}');
}

/* Bytes beyond ASCII are words of RFC 2047 in a header, each of whole characters and at most 75 long. */
static void header_text(struct buf *out, const char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    AUTO(buf_done) struct buf line = {0};
    bool is_plain = true;
    one_line(&line, text);
    for (const char *s = line.s ? line.s : ""; *s; s++) is_plain &= (unsigned char)*s < 0x80;
    if (is_plain) {
        buf_puts(out, line.s ? line.s : "");
        return;
    }
    for (const char *s = line.s; *s;) {
        unsigned char part[48] = {0};
        size_t n = 0;
        for (size_t len; *s && n + (len = json_utf8_len(s) ? json_utf8_len(s) : 1) <= 42; s += len, n += len)
            memcpy(part + n, json_utf8_len(s) ? s : "?", len);
        buf_puts(out, "=?utf-8?B?");
        for (size_t i = 0; i < n; i += 3) {
            uint32_t bits = (uint32_t)part[i] << 16 | (uint32_t)part[i + 1] << 8 | part[i + 2];
            for (size_t k = 0; k < 4; k++) buf_putc(out, i + k > n ? '=' : digits[bits >> (18 - 6 * k) & 63]);
        }
        buf_puts(out, *s ? "?=\r\n " : "?=");
    }
}

static void lines(struct buf *out, const char *text) {
    for (; *text; text++)
        if (*text == '\n')
            buf_puts(out, "\r\n");
        else
            buf_putc(out, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
}

void message_mail(struct buf *out, const struct message *m, const char *from, const char *to) {
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    AUTO(buf_done) struct buf headline = {0}, text = {0};
    char began[32];
    struct date d = date_of(m->real_ns / NS);
    message_headline(&headline, m);
    sentence(&text, m);
    message_time(m->about.opened_ns, began);
    buf_printf(out, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[d.weekday], d.day, months[d.month - 1], d.year,
               d.hour, d.minute, d.second);
    buf_printf(out, "From: %s\r\nTo: %s\r\nSubject: [gpumgr] ", from, to);
    header_text(out, headline.s);
    buf_printf(out, "\r\nMessage-ID: <%s@", m->id);
    one_line(out, m->host);
    buf_puts(
        out,
        ">\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n");
    buf_puts(out, "Auto-Submitted: auto-generated\r\n\r\n");
    if (m->job.id) {
        one_line(out, text.s);
        buf_puts(out, "\r\n\r\n");
        lines(out, m->job.more);
    } else {
        one_line(out, headline.s);
        buf_puts(out, "\r\n");
        one_line(out, text.s);
        buf_printf(out, "\r\n\r\nSeverity: %s\r\nSince: %s\r\n",
                   event_severity_name((enum event_severity)m->about.severity), began);
    }
    if (*m->link) buf_printf(out, "\r\n%s\r\n", m->link);
}

void message_pairs(const struct message *m, message_pair_fn each, void *ctx) {
    AUTO(buf_done) struct buf headline = {0};
    char began[32], at[32], number[16];
    message_headline(&headline, m);
    message_time(m->about.opened_ns, began);
    message_time(m->real_ns, at);
    each(ctx, "GPUMGR_STATUS", m->is_over ? "resolved" : "firing");
    each(ctx, "GPUMGR_SEVERITY", event_severity_name((enum event_severity)m->about.severity));
    each(ctx, "GPUMGR_HEADLINE", headline.s);
    each(ctx, "GPUMGR_TEXT", m->about.text);
    each(ctx, "GPUMGR_TOPIC", m->about.topic);
    each(ctx, "GPUMGR_HOST", m->host);
    snprintf(number, sizeof number, "%d", m->gpu_index);
    each(ctx, "GPUMGR_GPU", m->gpu_index >= 0 ? number : "");
    snprintf(number, sizeof number, "%d", m->about.code);
    each(ctx, "GPUMGR_CODE", number);
    each(ctx, "GPUMGR_SINCE", began);
    each(ctx, "GPUMGR_TIME", at);
    each(ctx, "GPUMGR_LINK", m->link);
    each(ctx, "GPUMGR_ID", m->id);
}
