#include "server/proxy_page.h"

static void put_text(struct buf *b, const char *text) {
    for (; *text; text++) {
        const char *as = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (as)
            buf_puts(b, as);
        else
            buf_putc(b, *text);
    }
}

void proxy_page(const char *title, const char *sentence, bool is_again, struct buf *fields, struct buf *body) {
    buf_puts(fields,
             "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
             "Referrer-Policy: no-referrer\r\n");
    if (is_again) buf_puts(fields, "Retry-After: 2\r\nRefresh: 2\r\n");
    buf_puts(
        body,
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content=\"width=device-width\"><meta name=color-scheme content=\"light dark\"><title>");
    put_text(body, title);
    buf_puts(body,
             "</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem}"
             "h1{font-size:1.3rem;font-weight:600}</style><main><h1>");
    put_text(body, title);
    buf_puts(body, "</h1><p>");
    put_text(body, sentence);
    buf_puts(body, is_again ? "</p><p>This page tries again by itself, or <a href=\"\">now</a>.</p></main></html>\n"
                            : "</p><p><a href=\"\">Try again</a></p></main></html>\n");
}
