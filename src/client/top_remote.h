/* The GPUs of a server, through its API: what is there now, the last minutes, and then the stream of what changes. A
 * thread of its own listens, and begins again with growing pauses when the connection breaks. */
#pragma once

#include "client/top_feed.h"

struct top_server {
    const char *url;        /* http://host:7000 or https://..., with or without a path behind it */
    const char *token_file; /* NULL: none */
    const char *ca_file;    /* NULL: the system's */
};

/* -EINVAL with a sentence where the URL or the file is wrong; whether anybody answers is seen later. */
int top_feed_server(const struct top_server *where, struct top_feed **ret, char *name, size_t name_room,
                    struct error *e) MUST_CHECK;

/* The last minutes of these GPUs as the server of this machine has stored them, where there is one; else nothing. */
void top_past_local(const char *api_socket, const struct view *v, struct history *h);
