/* The page for those who look at the watchmen port with a browser: its GPUs, its working and its finished queue, with a button
 * that lets a client out. No script: a form and a refresh do. The dashboard shows the same and more. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/server.h"
#include "server/watchmen_own.h"

#define MIB (1024.0 * 1024)

const char watchmen_style[] =
    ":root{color-scheme:light dark}body{font:14px system-ui,sans-serif;margin:0 auto 3em;max-width:80em;padding:0 1em}"
    "nav{display:flex;gap:1.5em;padding:1em 0;border-bottom:1px solid #8886;margin-bottom:1em}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3em .6em;border-bottom:1px solid #8886;"
    "white-space:nowrap}td.id{white-space:normal;overflow-wrap:anywhere;min-width:12em}h2{margin-top:1.6em}form{margin:"
    "0}";

static void put_escaped(struct buf *b, const char *text) {
    for (; *text; text++) switch (*text) {
        case '<': buf_puts(b, "&lt;"); break;
        case '>': buf_puts(b, "&gt;"); break;
        case '&': buf_puts(b, "&amp;"); break;
        case '"': buf_puts(b, "&quot;"); break;
        default: buf_putc(b, *text);
        }
}

static void put_head(struct buf *b, bool refreshes) {
    buf_puts(b, "<!doctype html><html lang=en><meta charset=utf-8>"
                "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
                "<title>Watchmen GPU Scheduler</title><link rel=stylesheet href=/style.css>");
    if (refreshes) buf_puts(b, "<meta http-equiv=refresh content=60>");
}

void watchmen_ask_token(struct buf *b) {
    put_head(b, false);
    buf_puts(b, "<h1>Watchmen GPU Scheduler</h1><form><label>Token <input name=token type=password autofocus></label> "
                "<button>Show</button></form>");
}

static void put_cells(struct buf *b, const int *of, int count) {
    buf_puts(b, "<td>");
    for (int i = 0; i < count; i++) buf_printf(b, "%s%d", i ? ", " : "", of[i]);
    buf_puts(b, "</td>");
}

static void put_cancel(const struct watchmen *w, struct buf *b, const struct watchmen_entry *e) {
    buf_printf(b, "<td><form method=post action=/cancel><input type=hidden name=form value=\"%s\">", w->form);
    buf_puts(b, "<input type=hidden name=id value=\"");
    put_escaped(b, e->id);
    buf_puts(b, "\"><button>Cancel</button></form></td>");
}

static void put_entries(struct watchmen *w, struct buf *b, bool is_over) {
    int place = 0;
    buf_puts(b, "<div class=wide><table><tr><th>Queue Num<th>Status<th>ID<th>Mode<th>GPU Scope<th>Request GPU Num"
                "<th>Available GPUs<th>Register Time<th>Last Request Time");
    buf_puts(b, is_over ? "</tr>" : "<th>Action</tr>");
    for (size_t i = 0; i < w->count; i++) {
        const struct watchmen_entry *e = w->entry[i];
        char registered[32], asked[32];
        if (!e->job || watchmen_is_over(e) != is_over) continue;
        watchmen_time(e->registered_ns, registered, sizeof registered);
        watchmen_time(e->asked_ns, asked, sizeof asked);
        buf_printf(b, "<tr><td>%d</td><td>%s</td><td class=id>", is_over ? -1 : place++, watchmen_words[e->status]);
        put_escaped(b, e->id);
        buf_printf(b, "</td><td>%s</td>", e->is_schedule ? "schedule" : "queue");
        put_cells(b, e->gpu, e->gpus);
        buf_printf(b, "<td>%d</td>", e->wanted);
        put_cells(b, e->got, e->given);
        buf_printf(b, "<td>%s</td><td>%s</td>", registered, asked);
        if (!is_over) put_cancel(w, b, e);
        buf_puts(b, "</tr>");
    }
    buf_puts(b, "</table></div>");
}

/* What was not read is a dash, never a zero. */
static void put_metric(struct buf *b, const struct live_device *d, int metric, double unit, const char *sign,
                       int64_t now_ns) {
    if (latest_has(&d->latest, metric, now_ns))
        buf_printf(b, "%lld%s", llround(d->latest.of[metric].value * unit), sign);
    else
        buf_puts(b, "\xe2\x80\x93");
}

static void put_process(struct buf *b, const struct wire_process *p) {
    put_escaped(b, p->user);
    buf_printf(b, ": %u", p->of.pid);
    if (p->of.memory_bytes != PROCESS_NO_MEMORY)
        buf_printf(b, " (%lld MiB)", llround((double)p->of.memory_bytes / MIB));
}

static void put_gpu(struct buf *b, const struct live_node *n, const struct live_device *d, bool is_free) {
    int64_t now_ns = live_node_now(n, clock_boot_ns());
    buf_printf(b, "<tr><td>%d</td><td>", d->is.index);
    put_escaped(b, d->is.name);
    buf_puts(b, "</td><td>");
    put_metric(b, d, METRIC_TEMP_CORE, 1, "", now_ns);
    buf_puts(b, "</td><td>");
    put_metric(b, d, METRIC_UTIL_GPU, 100, " %", now_ns);
    buf_puts(b, "</td><td>");
    put_metric(b, d, METRIC_MEMORY_USED, 1 / MIB, " / ", now_ns);
    put_metric(b, d, METRIC_MEMORY_TOTAL, 1 / MIB, " MiB", now_ns);
    buf_printf(b, "</td><td>%s</td><td>", is_free ? "yes" : "no");
    for (uint32_t p = 0; p < d->process_count; p++) {
        buf_puts(b, p ? ", " : "");
        put_process(b, &d->process[p]);
    }
    buf_puts(b, "</td></tr>");
}

static void put_gpus(struct watchmen *w, struct buf *b) {
    const struct live_node *n = live_find_node(&w->server->live, watchmen_node(w));
    buf_puts(b, "<div class=wide><table><tr><th>No.<th>Name<th>Temp (\xe2\x84\x83)<th>Util<th>Memory<th>Free"
                "<th>Process (User: PID (Memory))</tr>");
    for (int i = 0; n && i < n->devices; i++) {
        const struct live_device *d = watchmen_gpu(n, i);
        if (d) put_gpu(b, n, d, queue_gpu_now(w->server->queue, n->name, i) == QUEUE_GPU_FREE);
    }
    buf_puts(b, "</table></div>");
}

void watchmen_page(struct watchmen *w, struct buf *b) {
    char now[32];
    watchmen_refresh(w);
    watchmen_time(clock_real_ns(), now, sizeof now);
    put_head(b, true);
    buf_puts(b,
             "<nav><b>Watchmen GPU Scheduler</b><a href=#working>Working Queue</a><a href=#finished>Finished Queue</a>"
             "<a href=/>Update</a></nav><p>Host Name: ");
    put_escaped(b, watchmen_node(w));
    buf_printf(b, "<br>Query Time: %s</p>", now);
    put_gpus(w, b);
    buf_puts(b, "<h2 id=working>Working Queue</h2>");
    put_entries(w, b, false);
    buf_puts(b, "<h2 id=finished>Finished Queue</h2>");
    put_entries(w, b, true);
}
