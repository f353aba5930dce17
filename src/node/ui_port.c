#include "node/ui_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/file.h"
#include "model/ui.h"

/* Below the ports that the kernel gives to whoever connects somewhere. */
#define PICK_FROM 20000u
#define PICK_COUNT 12000u
#define PICK_TRIES 64

static bool is_free(unsigned port) {
    const int one = 1;
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    AUTO(fd_done) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return true; /* let the job find out */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 || errno != EADDRINUSE;
}

static unsigned pick(void) {
    for (int i = 0; i < PICK_TRIES; i++) {
        unsigned r = 0;
        if (getrandom(&r, sizeof r, 0) != sizeof r) continue;
        unsigned port = PICK_FROM + r % PICK_COUNT;
        if (is_free(port)) return port;
    }
    return 0;
}

unsigned ui_port_of(const char *dir) {
    AUTO(buf_done) struct buf text = {0};
    char path[400];
    snprintf(path, sizeof path, "%s/ui", dir);
    if (file_read(path, 64, &text, NULL) < 0) return 0;
    long port = strtol(text.s, NULL, 10);
    return port > 0 && port < 65536 ? (unsigned)port : 0;
}

int ui_port_begin(const char *dir, const struct job_spec *s, unsigned *ret, struct error *e) {
    struct ui u;
    char path[400], text[16];
    *ret = 0;
    if (!s->ui || !*s->ui) return 0;
    int r = ui_parse(s->ui, &u, e);
    if (r < 0) return r;
    bool is_ours = !s->image[0]; /* a container's ports are its own */
    unsigned port = u.port ? u.port : is_ours ? ui_port_of(dir) : UI_PORT_INSIDE;
    if (u.port && is_ours && !is_free(port))
        return fail(e, -EADDRINUSE, "ui: port %u is taken already on this machine; auto picks one that is free", port);
    if (!port) port = pick();
    if (!port) return fail(e, -EADDRINUSE, "ui: no port was found that is free");
    snprintf(path, sizeof path, "%s/ui", dir);
    int n = snprintf(text, sizeof text, "%u\n", port);
    r = file_write(path, 0600, text, (size_t)n, false, e);
    if (r >= 0) *ret = port;
    return r;
}
