/* What the server's parts share: one per process, made by main.c and handed to every route. All of it belongs to the
 * loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/instance.h"
#include "model/settings.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/proxy.h"
#include "server/auth.h"
#include "server/containers.h"
#include "server/exporter.h"
#include "server/groups.h"
#include "server/link.h"
#include "server/live.h"
#include "server/privilege.h"
#include "server/proxy.h"
#include "server/queue.h"
#include "server/recorder.h"
#include "server/repeat.h"
#include "server/roster.h"
#include "server/services.h"
#include "server/state.h"
#include "server/stream.h"
#include "server/tell.h"
#include "server/watchmen.h"

struct server {
    struct settings settings;
    const char *settings_path;
    struct instance instance;
    char host[64];          /* this machine's name */
    char base_path[128];    /* begins and ends with a slash */
    struct proxies proxies; /* whose word about a request's origin counts */
    struct privilege privilege;
    struct state *state;
    struct auth *auth;
    struct groups groups;
    struct marks_list marks;
    struct live live;
    struct roster *roster;
    struct recorder *recorder;
    struct links *links;
    struct containers *containers;
    struct queue *queue;
    struct repeats *repeats;
    struct services *services;
    struct watchmen *watchmen; /* NULL: that port is off */
    struct streams *streams;
    struct proxy *proxy; /* UIs of jobs and containers */
    struct tell *tell;
    struct exporter exporter;
    struct loop *loop;
    struct http_server *http;
    struct tls *tls;
    bool is_stopping, has_first_link; /* has_first_link: signin.c */
};

/* Something that the server itself found out about a machine: stored, shown and told as if the machine had said it. */
void server_event(struct server *s, const char *node, const char *kind, enum event_severity severity, const char *text);
