#include "server/marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void marks_list_done(struct marks_list *l) {
    for (size_t i = 0; i < l->count; i++) {
        free(l->of[i]->of);
        free(l->of[i]);
    }
    free(l->of);
    *l = (struct marks_list){0};
}

struct marks *marks_of(struct marks_list *l, const char *node, const char *boot_id) {
    struct marks *m = NULL;
    for (size_t i = 0; i < l->count && !m; i++)
        if (strcmp(l->of[i]->node, node) == 0) m = l->of[i];
    if (!m) {
        m = calloc(1, sizeof *m);
        struct marks **more = realloc(l->of, (l->count + 1) * sizeof(void *));
        if (!m || !more) abort();
        l->of = more;
        l->of[l->count++] = m;
        snprintf(m->node, sizeof m->node, "%s", node);
    }
    if (strcmp(m->boot_id, boot_id) != 0) {
        free(m->of);
        struct marks fresh = {0};
        snprintf(fresh.node, sizeof fresh.node, "%s", node);
        snprintf(fresh.boot_id, sizeof fresh.boot_id, "%s", boot_id);
        *m = fresh;
    }
    return m;
}

struct mark *marks_device(struct marks *m, const char *uuid) {
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->of[i].uuid, uuid) == 0) return &m->of[i];
    if (m->count >= WIRE_DEVICES_MAX) return NULL;
    struct mark *more = realloc(m->of, (m->count + 1) * sizeof *more);
    if (!more) abort();
    m->of = more;
    struct mark *mark = &m->of[m->count++];
    *mark = (struct mark){0};
    snprintf(mark->uuid, sizeof mark->uuid, "%s", uuid);
    return mark;
}

/* ---- as text: a line a mark; names have no line breaks, and stand last ---- */

static void put_line(struct buf *b, const char *word, long long number, const char *name) {
    buf_printf(b, "%s %lld %s\n", word, number, name);
}

void marks_encode(const struct marks_list *l, struct buf *b) {
    buf_puts(b, "marks 1\n");
    for (size_t i = 0; i < l->count; i++) {
        const struct marks *m = l->of[i];
        if (strpbrk(m->node, "\n") || strpbrk(m->boot_id, "\n ")) continue;
        buf_printf(b, "node %s %s\n", m->boot_id, m->node);
        if (m->host) put_line(b, "host", m->host, "");
        if (m->task) put_line(b, "task", m->task, "");
        for (int s = 0; s < WIRE_SOURCES_MAX; s++)
            if (m->event[s]) buf_printf(b, "event %lld %d\n", (long long)m->event[s], s);
        for (size_t d = 0; d < m->count; d++)
            if (m->of[d].mark && !strchr(m->of[d].uuid, '\n')) put_line(b, "gpu", m->of[d].mark, m->of[d].uuid);
    }
}

static int take_node(struct marks_list *l, const char *rest, struct marks **at, struct error *e) {
    char boot_id[40];
    size_t n = strcspn(rest, " ");
    if (!rest[n] || n >= sizeof boot_id || strlen(rest + n + 1) >= sizeof(*at)->node || l->count >= MARKS_NODES_MAX)
        return fail(e, -EBADMSG, "marks: a node's line that makes no sense");
    memcpy(boot_id, rest, n);
    boot_id[n] = 0;
    *at = marks_of(l, rest + n + 1, boot_id);
    return 0;
}

static int take_mark(struct marks *m, const char *word, const char *rest, struct error *e) {
    char *end;
    errno = 0;
    long long mark = strtoll(rest, &end, 10);
    if (errno || end == rest || *end != ' ' || mark <= 0) return fail(e, -EBADMSG, "marks: no number");
    const char *name = end + 1;
    if (strcmp(word, "host") == 0) {
        m->host = mark;
    } else if (strcmp(word, "task") == 0) {
        m->task = mark;
    } else if (strcmp(word, "event") == 0) {
        long source = strtol(name, &end, 10);
        if (end == name || *end || source < 0 || source >= WIRE_SOURCES_MAX)
            return fail(e, -EBADMSG, "marks: no such source as %.20s", name);
        m->event[source] = mark;
    } else if (strcmp(word, "gpu") == 0) {
        struct mark *d = *name && strlen(name) < sizeof d->uuid ? marks_device(m, name) : NULL;
        if (!d) return fail(e, -EBADMSG, "marks: a GPU's line that makes no sense");
        d->mark = mark;
    } else {
        return fail(e, -EBADMSG, "marks: a line that begins with %.20s", word);
    }
    return 0;
}

static int take_line(struct marks_list *l, char *line, struct marks **at, struct error *e) {
    char *rest = strchr(line, ' ');
    if (!rest) return fail(e, -EBADMSG, "marks: a line without a value");
    *rest++ = 0;
    if (strcmp(line, "node") == 0) return take_node(l, rest, at, e);
    return *at ? take_mark(*at, line, rest, e) : fail(e, -EBADMSG, "marks: a mark before its node");
}

static int take_lines(struct marks_list *l, const char *text, size_t len, struct error *e) {
    struct marks *at = NULL;
    const char *end = text + len;
    bool is_first = true;
    while (text < end) {
        char line[256];
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = stop ? (size_t)(stop - text) : sizeof line;
        if (n >= sizeof line || memchr(text, 0, n)) return fail(e, -EBADMSG, "marks: a line that is too long or cut");
        memcpy(line, text, n);
        line[n] = 0;
        text = stop + 1;
        if (is_first && strcmp(line, "marks 1") != 0) return fail(e, -EBADMSG, "marks: another version");
        int r = is_first ? 0 : take_line(l, line, &at, e);
        if (r < 0) return r;
        is_first = false;
    }
    return 0;
}

int marks_decode(struct marks_list *ret, const char *text, size_t len, struct error *e) {
    struct marks_list l = {0};
    int r = take_lines(&l, text, len, e);
    if (r < 0) {
        marks_list_done(&l);
        return r;
    }
    marks_list_done(ret);
    *ret = l;
    return 0;
}
