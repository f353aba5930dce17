#include "node/log_messages.h"

#include <string.h>

#include "node/container.h"

#define PIECE 16384u /* what an engine takes for a message of a line without an end */

static void begin(struct log_messages *m) {
    m->stamp_len = 0;
    m->is_text = m->is_left_out = false;
    m->at_ns = 0;
    m->length = 0;
}

static void put(struct log_messages *m, const char *bytes, size_t n, struct buf *ret) {
    m->length += n;
    if (m->is_left_out || !n) return;
    if (m->skip_bytes) {
        size_t some = n < m->skip_bytes ? n : m->skip_bytes;
        m->skip_bytes -= some;
        bytes += some;
        n -= some;
    }
    buf_add(ret, bytes, n);
    m->has_news |= n > 0;
}

/* What stands before the first blank, where it is a time; else it is the container's own word. */
static void judge(struct log_messages *m, struct buf *ret) {
    unsigned n = m->stamp_len;
    m->is_text = true;
    if (n && m->stamp[n - 1] == ' ') {
        m->stamp[n - 1] = 0;
        m->at_ns = container_time_ns(m->stamp);
        m->stamp[n - 1] = ' ';
    }
    if (m->at_ns <= 0) {
        m->skip_bytes = 0;
        put(m, m->stamp, n, ret);
        return;
    }
    if (m->at_ns == m->newest_ns && m->skip) {
        m->skip--;
        m->is_left_out = true;
        return;
    }
    m->same = m->at_ns == m->newest_ns ? m->same + 1 : m->at_ns > m->newest_ns ? 1 : m->same;
    if (m->at_ns != m->newest_ns) m->skip_bytes = 0; /* the one that was cut off is not there any more */
    if (m->at_ns > m->newest_ns) m->newest_ns = m->at_ns;
}

/* Of one message. */
static void take(struct log_messages *m, const char *bytes, size_t n, struct buf *ret) {
    size_t at = 0;
    while (at < n && !m->is_text) {
        char c = m->stamp[m->stamp_len++] = bytes[at++];
        if (c == ' ' || c == '\n' || m->stamp_len == sizeof m->stamp) judge(m, ret);
    }
    put(m, bytes + at, n - at, ret);
}

static size_t take_framed(struct log_messages *m, const char *bytes, size_t n, struct buf *ret) {
    if (m->have < sizeof m->frame) {
        m->frame[m->have++] = (uint8_t)*bytes;
        if (m->have < sizeof m->frame) return 1;
        m->left = (uint32_t)m->frame[4] << 24 | (uint32_t)m->frame[5] << 16 | (uint32_t)m->frame[6] << 8 | m->frame[7];
        begin(m);
        if (!m->left) m->have = 0;
        return 1;
    }
    size_t some = n < m->left ? n : m->left;
    take(m, bytes, some, ret);
    m->left -= (uint32_t)some;
    if (m->left) return some;
    if (!m->is_text) judge(m, ret);
    m->have = 0;
    return some;
}

static size_t take_line(struct log_messages *m, const char *bytes, size_t n, struct buf *ret) {
    size_t most = m->is_text ? PIECE - m->length : 1; /* a time is read byte by byte: nobody knows yet where it ends */
    if (n > most) n = most;
    const char *end = memchr(bytes, '\n', n);
    if (end) n = (size_t)(end - bytes) + 1;
    take(m, bytes, n, ret);
    if (end || m->length >= PIECE) begin(m);
    return n;
}

void log_messages_take(struct log_messages *m, const char *bytes, size_t n, struct buf *ret) {
    for (size_t at = 0; at < n;)
        at += m->is_tty ? take_line(m, bytes + at, n - at, ret) : take_framed(m, bytes + at, n - at, ret);
}

void log_messages_again(struct log_messages *m) {
    bool is_cut = m->is_text && m->at_ns > 0 && m->at_ns == m->newest_ns && !m->is_left_out && (m->is_tty || m->left);
    m->skip_bytes = is_cut ? m->length : 0;
    if (is_cut) m->same--;
    m->skip = m->same;
    m->has_news = false;
    m->have = 0;
    m->left = 0;
    begin(m);
}
