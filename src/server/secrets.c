#include "server/secrets.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SECRETS_HASH == crypto_generichash_BYTES, "the hash has its usual length");
_Static_assert(SECRETS_PASSWORD >= crypto_pwhash_STRBYTES, "what is kept of a password fits");
_Static_assert(SECRETS_TEXT == sodium_base64_ENCODED_LEN(32, sodium_base64_VARIANT_URLSAFE_NO_PADDING),
               "256 bits as text");

int secrets_start(struct error *e) {
    if (sodium_init() < 0) return fail(e, -EIO, "the cryptographic library does not start");
    return 0;
}

void secrets_random(void *ret, size_t n) { randombytes_buf(ret, n); }

static void as_text(const uint8_t bytes[32], char ret[SECRETS_TEXT]) {
    sodium_bin2base64(ret, SECRETS_TEXT, bytes, 32, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void secrets_make(char ret[SECRETS_TEXT]) {
    uint8_t bytes[32];
    randombytes_buf(bytes, sizeof bytes);
    as_text(bytes, ret);
    sodium_memzero(bytes, sizeof bytes);
}

/* The use is the key of the hash: keys up to 64 bytes are taken as they are, shorter than 16 are not. */
void secrets_hash(const char *use, const char *secret, uint8_t ret[SECRETS_HASH]) {
    uint8_t key[32] = "gpumgr:";
    size_t n = strlen(use);
    if (n > sizeof key - 8) abort();
    memcpy(key + 7, use, n);
    if (crypto_generichash(ret, SECRETS_HASH, (const uint8_t *)secret, strlen(secret), key, sizeof key) != 0) abort();
}

void secrets_hash_text(const char *use, const char *secret, char ret[SECRETS_TEXT]) {
    uint8_t hash[SECRETS_HASH];
    secrets_hash(use, secret, hash);
    as_text(hash, ret);
}

bool secrets_equal(const void *a, const void *b, size_t n) { return sodium_memcmp(a, b, n) == 0; }

bool secrets_same_text(const char *a, const char *b) {
    uint8_t x[SECRETS_HASH], y[SECRETS_HASH];
    secrets_hash("compare", a, x);
    secrets_hash("compare", b, y);
    return secrets_equal(x, y, sizeof x);
}

int secrets_password_keep(const char *password, char ret[SECRETS_PASSWORD], struct error *e) {
    memset(ret, 0, SECRETS_PASSWORD);
    if (crypto_pwhash_str_alg(ret, password, strlen(password), crypto_pwhash_OPSLIMIT_INTERACTIVE,
                              crypto_pwhash_MEMLIMIT_INTERACTIVE, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return fail(e, -ENOMEM, "there is no memory to hash a password");
    return 0;
}

bool secrets_password_fits(const char *kept, const char *password) {
    return crypto_pwhash_str_verify(kept, password, strlen(password)) == 0;
}

/* The same cost as secrets_password_keep's; a hash that is all zeros, for which nobody knows a password. */
const char *secrets_no_password(void) {
    return "$argon2id$v=19$m=65536,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
}

void secrets_forget(void *p, size_t n) { sodium_memzero(p, n); }
