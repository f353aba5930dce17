#include "net/tls.h"

#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tls {
    SSL_CTX *ctx;
    char cert[256], key[256];
};

/* OpenSSL's newest word on what went wrong; its queue is emptied. */
static const char *why(void) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return reason ? reason : "it cannot be used";
}

static int no_passphrase(char *buf, int size, int is_write, void *ctx) { return -1; }

static int load(const struct tls *t, SSL_CTX **ret, struct error *e) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx) return fail(e, -ENOMEM, "TLS: %s", why());
    int r = 0;
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase); /* nobody is there to be asked */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);   /* idle connections hold no buffers */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION))
        r = fail(e, -EIO, "TLS: %s", why());
    else if (SSL_CTX_use_certificate_chain_file(ctx, t->cert) != 1)
        r = fail(e, -EINVAL, "tls.cert %s: %s", t->cert, why());
    else if (SSL_CTX_use_PrivateKey_file(ctx, t->key, SSL_FILETYPE_PEM) != 1)
        r = fail(e, -EINVAL, "tls.key %s: %s", t->key, why());
    else if (SSL_CTX_check_private_key(ctx) != 1)
        r = fail(e, -EINVAL, "tls.key %s does not belong to the certificate in %s", t->key, t->cert);
    if (r < 0) {
        SSL_CTX_free(ctx);
        return r;
    }
    *ret = ctx;
    return 0;
}

int tls_new(const char *cert_path, const char *key_path, struct tls **ret, struct error *e) {
    struct tls *t = calloc(1, sizeof *t);
    if (!t) return fail(e, -ENOMEM, "TLS: no memory");
    snprintf(t->cert, sizeof t->cert, "%s", cert_path);
    snprintf(t->key, sizeof t->key, "%s", key_path);
    int r = load(t, &t->ctx, e);
    if (r < 0) {
        tls_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void tls_free(struct tls *t) {
    if (!t) return;
    SSL_CTX_free(t->ctx);
    free(t);
}

int tls_reload(struct tls *t, struct error *e) {
    SSL_CTX *fresh = NULL;
    int r = load(t, &fresh, e);
    if (r < 0) return r;
    SSL_CTX_free(t->ctx); /* connections hold their own reference */
    t->ctx = fresh;
    return 0;
}

struct bufferevent *tls_accept(struct tls *t, struct event_base *base, int fd) {
    SSL *ssl = SSL_new(t->ctx);
    if (!ssl) return NULL;
    struct bufferevent *b =
        bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (!b) {
        SSL_free(ssl);
        return NULL;
    }
    bufferevent_openssl_set_allow_dirty_shutdown(b, 1);
    return b;
}
