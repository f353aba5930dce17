/* Listening by TCP on every address that a host's name has. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct event_base;
struct evconnlistener;
struct sockaddr;

/* Called for each; it owns the listener, and sets its callback. */
typedef void (*listen_fn)(void *ctx, struct evconnlistener *l, const struct sockaddr *address);

/* address: HOST:PORT or [V6]:PORT, * for all. */
int listen_tcp(struct event_base *base, const char *address, listen_fn each, void *ctx, struct error *e) MUST_CHECK;
bool listen_is_loopback(const struct sockaddr *address);
