/* gpusim's socket: who is connected, what they asked, what they are owed. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "sim/children.h"
#include "sim/kmsg.h"
#include "sim/machine.h"
#include "sim/wire.h"

enum { CONNECTIONS_MAX = 1024 };

struct connection {
    int fd; /* 0: free */
    uint32_t pid, uid;
    struct task *task;
    uint64_t *types; /* event mask of each GPU, once subscribed */
};

struct server {
    int listen_fd, epoll_fd;
    char path[4200];
    struct connection conn[CONNECTIONS_MAX];
    struct machine *machine;
    struct children *children;
    struct kmsg *kmsg;
};

/* Listens on $dir/sock, watched by epoll_fd: events carry (id << 8) | tag of the descriptors it owns. */
enum { SERVER_LISTEN = 1, SERVER_CLIENT = 2 };
int server_open(struct server *s, const char *dir, int epoll_fd, struct error *e) MUST_CHECK;
void server_close(struct server *s);

void server_accept(struct server *s);
void server_receive(struct server *s, uint32_t id);

/* Tells finished tasks, and lets them go. */
void server_settle(struct server *s);
