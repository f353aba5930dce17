#include "node/announce.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"
#include "model/control.h"

static void send_to(const char *path, const struct control_request *q) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path) return;
    memcpy(to.sun_path, path, strlen(path) + 1);
    AUTO(fd_done) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) return;
    (void)!send(fd, q, sizeof *q, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_to_all(const struct instance *where, unsigned workers, const struct control_request *q) {
    for (unsigned w = 0; w < workers; w++) {
        char path[256];
        instance_path(where, path, sizeof path, "sampler.%u.sock", w);
        send_to(path, q);
    }
}

void announce_hunt(const struct instance *where, unsigned workers, const struct announcement *what) {
    struct control_request q = {
        .magic = CONTROL_MAGIC,
        .verb = CONTROL_HUNT,
        .argument = {-1, what->for_ms, what->base_ms, what->pid, what->minor + 1}
    };
    send_to_all(where, workers, &q);
}

void announce_look(const struct instance *where, unsigned workers) {
    struct control_request q = {.magic = CONTROL_MAGIC, .verb = CONTROL_LOOK, .argument = {-1}};
    send_to_all(where, workers, &q);
}
