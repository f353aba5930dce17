/* Records as /dev/kmsg prints them: priority,sequence,microseconds,flags;text. */
#include "sim/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/shm.h"

int kmsg_open(struct kmsg *k, const char *dir, struct error *e) {
    char path[4096];
    snprintf(path, sizeof path, "%s/" SHM_KMSG, dir);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return fail_errno(e, errno, "open %s", path);
    *k = (struct kmsg){.fd = fd, .sequence = 1};
    return 0;
}

void kmsg_close(struct kmsg *k) {
    if (k->fd > 0) close(k->fd);
    k->fd = -1;
}

void kmsg_line(struct kmsg *k, int priority, const char *text) {
    char record[1024];
    int n = snprintf(record, sizeof record, "%d,%llu,%lld,-;%s\n", priority, (unsigned long long)k->sequence++,
                     (long long)(clock_boot_ns() / NS_PER_US), text);
    if (n >= (int)sizeof record) n = sizeof record - 1;
    /* One write a record, so that a reader never sees half of one. A full tmpfs loses the line, as a full ring does. */
    ssize_t wrote = write(k->fd, record, (size_t)n);
    (void)wrote;
}

void kmsg_xid(struct kmsg *k, const struct shm_card *c, uint32_t code, uint32_t pid, const char *name,
              const char *rest) {
    enum { KERN_ERR = 3 };
    char who[96] = "pid='<unknown>', name=<unknown>", text[512];
    if (pid) snprintf(who, sizeof who, "pid=%u, name=%s", pid, *name ? name : "<unknown>");
    snprintf(text, sizeof text, "NVRM: Xid (PCI:%04x:%02x:%02x): %u, %s%s%s", c->pci_domain, c->pci_bus, c->pci_device,
             code, who, rest ? ", " : "", rest ? rest : "");
    kmsg_line(k, KERN_ERR, text);
}
