/* A small page for those who look at the watchmen port with a browser; the dashboard shows the same and more. */
#include <stdio.h>
#include <string.h>

#include "server/server.h"
#include "server/watchmen_own.h"

const char watchmen_style[] =
    "body{font:14px system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3em .6em;"
    "border-bottom:1px solid #ddd}h2{margin-top:1.6em}small{color:#666}";

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
                "<title>GPU queue</title><link rel=stylesheet href=/style.css>");
    if (refreshes) buf_puts(b, "<meta http-equiv=refresh content=60>");
}

void watchmen_ask_token(struct buf *b) {
    put_head(b, false);
    buf_puts(b, "<h1>GPU queue</h1><form><label>Token <input name=token type=password autofocus></label> "
                "<button>Show</button></form>");
}

static void put_cells(struct buf *b, const int *of, int count) {
    buf_puts(b, "<td>");
    for (int i = 0; i < count; i++) buf_printf(b, "%s%d", i ? ", " : "", of[i]);
    buf_puts(b, "</td>");
}

static void put_entries(struct watchmen *w, struct buf *b, bool is_over) {
    int place = 0;
    buf_puts(b, "<table><tr><th>Queue Num<th>Status<th>ID<th>Mode<th>GPU Scope<th>Request GPU Num<th>Available GPUs"
                "<th>Register Time<th>Last Request Time</tr>");
    for (size_t i = 0; i < w->count; i++) {
        const struct watchmen_entry *e = w->entry[i];
        char registered[32], asked[32];
        if (!e->job || watchmen_is_over(e) != is_over) continue;
        watchmen_time(e->registered_ns, registered, sizeof registered);
        watchmen_time(e->asked_ns, asked, sizeof asked);
        buf_printf(b, "<tr><td>%d</td><td>%s</td><td>", is_over ? -1 : place++, watchmen_words[e->status]);
        put_escaped(b, e->id);
        buf_printf(b, "</td><td>%s</td>", e->is_schedule ? "schedule" : "queue");
        put_cells(b, e->gpu, e->gpus);
        buf_printf(b, "<td>%d</td>", e->wanted);
        put_cells(b, e->got, e->given);
        buf_printf(b, "<td>%s</td><td>%s</td></tr>", registered, asked);
    }
    buf_puts(b, "</table>");
}

static void put_gpus(struct watchmen *w, struct buf *b) {
    const struct live_node *n = live_find_node(&w->server->live, watchmen_node(w));
    buf_puts(b, "<table><tr><th>No.<th>Name<th>Free<th>Process</tr>");
    for (uint16_t i = 0; n && i < n->devices; i++) {
        const struct live_device *d = &n->device[i];
        if (!d->is_known || live_is_instance(d)) continue;
        buf_printf(b, "<tr><td>%d</td><td>", d->is.index);
        put_escaped(b, d->is.name);
        bool is_free = queue_gpu_now(w->server->queue, n->name, d->is.index) == QUEUE_GPU_FREE;
        buf_printf(b, "</td><td>%s</td><td>", is_free ? "yes" : "no");
        for (uint32_t p = 0; p < d->process_count; p++) {
            buf_puts(b, p ? ", " : "");
            put_escaped(b, d->process[p].user);
            buf_printf(b, ": %u", d->process[p].of.pid);
        }
        buf_puts(b, "</td></tr>");
    }
    buf_puts(b, "</table>");
}

void watchmen_page(struct watchmen *w, struct buf *b) {
    watchmen_refresh(w);
    put_head(b, true);
    buf_puts(b, "<h1>GPU queue</h1><p><small>");
    put_escaped(b, watchmen_node(w));
    buf_puts(b, "</small></p><h2>GPUs</h2>");
    put_gpus(w, b);
    buf_puts(b, "<h2>Working Queue</h2>");
    put_entries(w, b, false);
    buf_puts(b, "<h2>Finished Queue</h2>");
    put_entries(w, b, true);
}
