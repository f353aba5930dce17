/* What is changed in the heads of requests and answers of a UI that is opened through the server, and which requests are let through. Pure.
 *
 * Browsers keep the ports of a host apart as origins, but not for cookies. So: cookies of gpumgr never reach a UI, nor can one set them;
 * cookies that a UI hides from scripts (HttpOnly) have the UI's own name before theirs, and reach that UI alone; requests that another
 * origin's page makes are refused, but for links that somebody follows. The UI sees itself at localhost with its own port, as it would in
 * front of its user on that machine: that is what the checks of notebooks and the like against foreign names are made for, and we have
 * made them here. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "net/http_pass.h"

#define PROXY_COOKIE_NAME 32

struct proxy_about {
    unsigned port;                  /* where the UI listens, as it sees it; 0: not known */
    char prefix[24];                /* of its hidden cookies: "gpumgr_7100_" */
    char cookie[PROXY_COOKIE_NAME]; /* the one that lets somebody in */
    const char *origin;             /* "http://host:7100": as the browser sees it */
    const char *address;            /* the browser's */
    bool is_own_host;               /* the origin is never used again for something else: its store may be kept */
};

/* Whether the browser says that this comes from the UI's own pages, or is a link that somebody followed. */
bool proxy_may_pass(const struct http_pass *p, const char *origin);

/* The request's head, as relay_pass wants it. */
void proxy_request(const struct http_pass *p, const struct proxy_about *about, struct buf *head);
/* The answer's, as relay's `response` wants it. */
void proxy_response(const struct http_pass *p, const struct proxy_about *about, struct buf *head);

/* Whether a cookie's name is one of gpumgr's. */
bool proxy_is_ours(const char *name, size_t n);
