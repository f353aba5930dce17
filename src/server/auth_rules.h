/* What of a request's text counts as what: cookies, tokens, origins, names. Pure: values in, values out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "server/secrets.h"

#define TOKEN_PREFIX "gpm_"

enum {
    RULES_TOKEN = sizeof TOKEN_PREFIX - 1 + SECRETS_TEXT, /* a program's token as text */
    RULES_NAME = 64,                                      /* an account's name with its NUL */
    RULES_PASSWORD_MIN = 8,
    RULES_PASSWORD_MAX = 256
};

/* The n-th value of that name (from 0) in a Cookie header. False: there is none, or it does not fit. A browser sends
 * several when paths nest. */
bool rules_cookie(const char *header, const char *name, int n, char *ret, size_t room);

/* What the session's cookie is called: browsers hold a prefix to its promise (__Host-: TLS, this host, all of it). They do not
 * tell the ports of a host apart, so the port is in the name: two servers on one machine are two sessions. host: as the
 * browser sent it; NULL: unknown. */
#define RULES_COOKIE_NAME 40
void rules_cookie_name(bool is_tls, const char *base_path, const char *host, char ret[RULES_COOKIE_NAME]);

/* Whether an Authorization header is meant for us: a proxy in front may ask for a password of its own (Basic). */
bool rules_is_bearer(const char *header);
/* The token of an Authorization header. False: it is no Bearer token. */
bool rules_bearer(const char *header, char *ret, size_t room);

/* 43 characters of A-Za-z0-9_-: what secrets_make makes. */
bool rules_is_secret(const char *s);
bool rules_is_token(const char *s);

/* Whether a page of this server sent the request. Origin is compared with scheme and Host, or with public_url where it
 * is set; Sec-Fetch-Site, which no page can forge, is believed first. With neither header the answer is no. */
struct rules_origin {
    const char *origin, *fetch_site, *host; /* NULL: not sent */
    const char *public_url;                 /* "" or NULL: none */
    bool is_tls;
};
bool rules_is_same_origin(const struct rules_origin *o);

/* localhost, 127.x, ::1, with or without a port: a name that an attacker's DNS cannot hold. */
bool rules_is_local_host(const char *host);

/* "application/json", with or without a charset. */
bool rules_is_json(const char *content_type);

/* Names of accounts, tokens: one sentence when it will not do. */
int rules_check_name(const char *what, const char *name, struct error *e) MUST_CHECK;
int rules_check_label(const char *what, const char *label, struct error *e) MUST_CHECK;
int rules_check_password(const char *password, struct error *e) MUST_CHECK;

/* An account's name from a Unix user's: characters that names may not have become '_'. */
void rules_unix_name(const char *unix_name, char ret[RULES_NAME]);

/* The name that a Unix user's account has when another account has his: "admin-1000". */
void rules_numbered_name(const char *name, int64_t uid, char ret[RULES_NAME]);
/* Whether an account of this name may be that Unix user's. */
bool rules_is_name_of(const char *account, const char *name, int64_t uid);
