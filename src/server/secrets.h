/* What must not be made at home: random secrets, their hashes, passwords, comparisons that take the same time whatever
 * they find. libsodium is known in secrets.c only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    SECRETS_HASH = 32,     /* bytes of a hash */
    SECRETS_TEXT = 44,     /* a secret as text: 256 bits in 43 characters of A-Za-z0-9_- and a NUL */
    SECRETS_PASSWORD = 128 /* room for what is stored of a password */
};

/* Once, before threads. */
int secrets_start(struct error *e) MUST_CHECK;

void secrets_random(void *ret, size_t n);
void secrets_make(char ret[SECRETS_TEXT]);

/* What is kept of a secret. `use` keeps hashes of one kind from being any other's: "session", "link", "token". */
void secrets_hash(const char *use, const char *secret, uint8_t ret[SECRETS_HASH]);
void secrets_hash_text(const char *use, const char *secret, char ret[SECRETS_TEXT]);
bool secrets_equal(const void *a, const void *b, size_t n);
/* Texts of any length: what is compared is their hashes. */
bool secrets_same_text(const char *a, const char *b);

/* Argon2id, 64 MiB and tens of milliseconds: never on a loop. */
int secrets_password_keep(const char *password, char ret[SECRETS_PASSWORD], struct error *e) MUST_CHECK;
bool secrets_password_fits(const char *kept, const char *password);
/* Stands for an account that has none: costs as much, and no password fits it. */
const char *secrets_no_password(void);

/* Overwrites what is no longer needed; not optimised away. */
void secrets_forget(void *p, size_t n);
