#include "client/ustar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512 };

struct ustar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6], version[2];
    char user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct ustar_header) == BLOCK, "one block");

/* Of all bytes, the sum's own field counted as spaces. */
static void put_sum(struct ustar_header *h) {
    unsigned sum = 0;
    memset(h->sum, ' ', sizeof h->sum);
    for (size_t i = 0; i < sizeof *h; i++) sum += ((const unsigned char *)h)[i];
    snprintf(h->sum, sizeof h->sum - 1, "%06o", sum & 0777777u);
}

int ustar_add(struct buf *archive, const char *name, const void *bytes, size_t n, int64_t mtime_s, struct error *e) {
    struct ustar_header h = {
        .type = '0', .magic = "ustar", .version = {'0', '0'}
    };
    static const char zeros[BLOCK];
    if (strlen(name) >= sizeof h.name) return fail(e, -ENAMETOOLONG, "%s: too long a name for an archive", name);
    if (n > 077777777777u) return fail(e, -EFBIG, "%s: too large for an archive", name);
    memcpy(h.name, name, strlen(name));
    memcpy(h.mode, "0000644", 8);
    memcpy(h.uid, "0000000", 8);
    memcpy(h.gid, "0000000", 8);
    snprintf(h.size, sizeof h.size, "%011llo", (unsigned long long)n);
    snprintf(h.mtime, sizeof h.mtime, "%011llo", (unsigned long long)mtime_s & 077777777777u);
    put_sum(&h);
    buf_add(archive, &h, sizeof h);
    buf_add(archive, bytes, n);
    buf_add(archive, zeros, (BLOCK - n % BLOCK) % BLOCK);
    return 0;
}

void ustar_end(struct buf *archive) {
    static const char zeros[2 * BLOCK];
    buf_add(archive, zeros, sizeof zeros);
}
