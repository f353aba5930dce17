#include "node/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "model/wire_code.h"

#define VERSION 1
#define KEY_BYTES crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES crypto_aead_xchacha20poly1305_ietf_ABYTES

static uint8_t key[KEY_BYTES];

/* ---- the key ---- */

static int make_key(const char *dir, const char *path, struct error *e) {
    randombytes_buf(key, sizeof key);
    int r = file_write(path, 0600, key, sizeof key, true, e);
    if (r < 0) return r;
    AUTO(fd_done) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0) return fail_errno(e, errno, "%s", dir);
    return 0;
}

int seal_open_key(const char *dir, struct error *e) {
    char path[256];
    struct stat st;
    AUTO(buf_done) struct buf text = {0};
    if (sodium_init() < 0) return fail(e, -EIO, "libsodium does not start");
    snprintf(path, sizeof path, "%s/node.key", dir);
    if (lstat(path, &st) < 0) {
        if (errno != ENOENT) return fail_errno(e, errno, "%s", path);
        return make_key(dir, path, e);
    }
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return fail(e, -EPERM, "%s: must be a file of ours that nobody else may read", path);
    int r = file_read(path, sizeof key, &text, e);
    if (r < 0) return r;
    if (text.len != sizeof key) return fail(e, -EINVAL, "%s: is not a key of %zu bytes", path, sizeof key);
    memcpy(key, text.s, sizeof key);
    return 0;
}

void seal_mark(const char *name, char ret[SEAL_MARK]) {
    uint8_t hash[(SEAL_MARK - 1) / 2];
    crypto_generichash(hash, sizeof hash, (const uint8_t *)name, strlen(name), key, sizeof key);
    sodium_bin2hex(ret, SEAL_MARK, hash, sizeof hash);
}

/* ---- seals ---- */

const char *seal_account(const struct seal_context *c) {
    return strncmp(c->origin, SEAL_ACCOUNT, strlen(SEAL_ACCOUNT)) == 0 ? c->origin + strlen(SEAL_ACCOUNT) : "";
}

static void put_bound(struct buf *b, uint32_t uid, const char *user, const void *record, size_t len) {
    out_u8(b, VERSION);
    out_u32(b, uid);
    out_text(b, user);
    out_u32(b, (uint32_t)len);
    buf_add(b, record, len);
}

static void put_words(struct buf *b, const struct job_words *w) {
    out_u32(b, w->count);
    out_u32(b, (uint32_t)w->len);
    buf_add(b, w->s, w->len);
}

void seal_make(const struct seal_context *c, const void *record, size_t len, struct buf *b) {
    AUTO(buf_done) struct buf bound = {0};
    AUTO(buf_done) struct buf plain = {0};
    uint8_t nonce[NONCE_BYTES], id[16];
    unsigned long long n;
    put_bound(&bound, c->uid, c->user, record, len);
    randombytes_buf(id, sizeof id);
    randombytes_buf(nonce, sizeof nonce);
    buf_add(&plain, id, sizeof id);
    out_u32(&plain, c->uid);
    out_u32(&plain, c->gid);
    out_u32(&plain, c->umask);
    out_text(&plain, c->origin);
    out_text(&plain, c->cwd);
    out_u32(&plain, c->groups);
    buf_add(&plain, c->group, 4ul * c->groups);
    put_words(&plain, &c->environment);
    out_u8(b, VERSION);
    buf_add(b, nonce, sizeof nonce);
    buf_reserve(b, plain.len + TAG_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt((uint8_t *)b->s + b->len, &n, (const uint8_t *)plain.s, plain.len,
                                               (const uint8_t *)bound.s, bound.len, NULL, nonce, key);
    b->len += (size_t)n;
    sodium_memzero(plain.s, plain.len);
}

/* A text whose end is put in its place: the plaintext is ours to change. */
static const char *text_in(struct wire_in *in) {
    size_t n = in_u16(in);
    const uint8_t *p = in_take(in, n);
    if (!p || memchr(p, 0, n)) {
        in->is_bad = true;
        return "";
    }
    char *start = (char *)(uintptr_t)p - 1; /* over the length's second byte */
    memmove(start, p, n);
    start[n] = 0;
    return start;
}

static struct job_words words_in(struct wire_in *in) {
    struct job_words w = {.count = in_u32(in)};
    w.len = in_u32(in);
    w.s = (const char *)in_take(in, w.len);
    if (!w.s || (w.len && w.s[w.len - 1])) {
        in->is_bad = true;
        return (struct job_words){.s = ""};
    }
    return w;
}

static bool read_context(struct buf *plain, struct seal_context *c) {
    struct wire_in in = {.at = (const uint8_t *)plain->s, .end = (const uint8_t *)plain->s + plain->len};
    (void)in_take(&in, 16);
    c->uid = in_u32(&in);
    c->gid = in_u32(&in);
    c->umask = in_u32(&in);
    c->origin = text_in(&in);
    c->cwd = text_in(&in);
    c->groups = in_u32(&in);
    if (c->groups > SEAL_GROUPS) return false;
    c->group = in_take(&in, 4ul * c->groups);
    c->environment = words_in(&in);
    return !in.is_bad && in.at == in.end;
}

int seal_break(const struct wire_sealed *s, struct buf *plain, struct seal_context *ret, struct error *e) {
    AUTO(buf_done) struct buf bound = {0};
    unsigned long long n;
    if (s->seal_len < 1 + NONCE_BYTES + TAG_BYTES || s->seal_len > WIRE_SEAL_MAX || s->seal[0] != VERSION)
        return fail(e, -EPERM, "the job's seal does not fit");
    const uint8_t *nonce = s->seal + 1, *box = nonce + NONCE_BYTES;
    size_t box_len = s->seal_len - 1 - NONCE_BYTES;
    put_bound(&bound, s->uid, s->user, s->record, s->record_len);
    buf_clear(plain);
    buf_reserve(plain, box_len + 1);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt((uint8_t *)plain->s, &n, NULL, box, box_len,
                                                   (const uint8_t *)bound.s, bound.len, nonce, key) != 0)
        return fail(e, -EPERM, "the job's seal does not fit");
    plain->len = (size_t)n;
    *ret = (struct seal_context){.user = s->user};
    if (!read_context(plain, ret) || ret->uid != s->uid) return fail(e, -EPERM, "the job's seal makes no sense");
    return 0;
}
