#include "server/crypto.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CRYPTO_HASH == crypto_generichash_BYTES, "the hash has its usual length");
_Static_assert(CRYPTO_PASSWORD >= crypto_pwhash_STRBYTES, "what is kept of a password fits");
_Static_assert(CRYPTO_SECRET == sodium_base64_ENCODED_LEN(32, sodium_base64_VARIANT_URLSAFE_NO_PADDING),
               "256 bits as text");

int crypto_start(struct error *e) {
    if (sodium_init() < 0) return fail(e, -EIO, "the cryptographic library does not start");
    return 0;
}

void crypto_random(void *ret, size_t n) { randombytes_buf(ret, n); }

static void as_text(const uint8_t bytes[32], char ret[CRYPTO_SECRET]) {
    sodium_bin2base64(ret, CRYPTO_SECRET, bytes, 32, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void crypto_secret(char ret[CRYPTO_SECRET]) {
    uint8_t bytes[32];
    randombytes_buf(bytes, sizeof bytes);
    as_text(bytes, ret);
    sodium_memzero(bytes, sizeof bytes);
}

/* The use is the key of the hash: keys up to 64 bytes are taken as they are, shorter than 16 are not. */
void crypto_hash(const char *use, const char *secret, uint8_t ret[CRYPTO_HASH]) {
    uint8_t key[32] = "gpumgr:";
    size_t n = strlen(use);
    if (n > sizeof key - 8) abort();
    memcpy(key + 7, use, n);
    if (crypto_generichash(ret, CRYPTO_HASH, (const uint8_t *)secret, strlen(secret), key, sizeof key) != 0) abort();
}

void crypto_hash_text(const char *use, const char *secret, char ret[CRYPTO_SECRET]) {
    uint8_t hash[CRYPTO_HASH];
    crypto_hash(use, secret, hash);
    as_text(hash, ret);
}

bool crypto_equal(const void *a, const void *b, size_t n) { return sodium_memcmp(a, b, n) == 0; }

bool crypto_same_text(const char *a, const char *b) {
    uint8_t x[CRYPTO_HASH], y[CRYPTO_HASH];
    crypto_hash("compare", a, x);
    crypto_hash("compare", b, y);
    return crypto_equal(x, y, sizeof x);
}

int crypto_password_keep(const char *password, char ret[CRYPTO_PASSWORD], struct error *e) {
    memset(ret, 0, CRYPTO_PASSWORD);
    if (crypto_pwhash_str_alg(ret, password, strlen(password), crypto_pwhash_OPSLIMIT_INTERACTIVE,
                              crypto_pwhash_MEMLIMIT_INTERACTIVE, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return fail(e, -ENOMEM, "there is no memory to hash a password");
    return 0;
}

bool crypto_password_fits(const char *kept, const char *password) {
    return crypto_pwhash_str_verify(kept, password, strlen(password)) == 0;
}

void crypto_forget(void *p, size_t n) { sodium_memzero(p, n); }
