/* TLS for listeners: OpenSSL is known in tls.c and nowhere else. TLS 1.2 and later, the certificate chain and key from PEM
 * files; a new pair of files is taken by tls_reload without closing a connection. */
#pragma once

#include "base/error.h"

struct tls;
struct bufferevent;
struct event_base;

int tls_new(const char *cert_path, const char *key_path, struct tls **ret, struct error *e) MUST_CHECK;
void tls_free(struct tls *t); /* accepts NULL */

/* Reads the files again; on failure the old pair stays. */
int tls_reload(struct tls *t, struct error *e) MUST_CHECK;

/* The server's side of a connection that was accepted; owns fd. NULL: no memory (fd stays the caller's). */
struct bufferevent *tls_accept(struct tls *t, struct event_base *base, int fd);
