/* A seal binds a job's record, its uid and its user's name to what surrounded the submitter: whatever is changed, nothing fits; the
 * key is ours alone. */
#include "tests/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/file.h"
#include "node/seal.h"
#include "tests/unit/scratch.h"

static const struct seal_context somebody = {
    .uid = 1000,
    .gid = 1001,
    .umask = 027,
    .groups = 2,
    .group = (const uint8_t *)"\1\0\0\0\2\0\0",
    .user = "alice",
    .cwd = "/home/alice",
    .origin = "socket",
    .environment = {.s = "A=1\0B=", .len = 7, .count = 2},
};
static const char record[] = "the job";

struct place {
    char dir[64];
};
static void place_done(struct place *p) { scratch_remove(p->dir); }

static struct wire_sealed sealed(struct buf *seal) {
    seal_make(&somebody, record, sizeof record, seal);
    struct wire_sealed s = {.uid = 1000,
                            .user = "alice",
                            .record = (const uint8_t *)record,
                            .record_len = sizeof record,
                            .seal = (const uint8_t *)seal->s,
                            .seal_len = seal->len};
    return s;
}

static void comes_out_as_it_went_in(void **state) {
    AUTO(place_done) struct place at = {0};
    AUTO(buf_done) struct buf seal = {0}, plain = {0}, again = {0};
    struct seal_context c;
    struct error e;
    assert_int_equal(seal_open_key(scratch_make(at.dir, "/dev/shm"), &e), 0);
    struct wire_sealed s = sealed(&seal);
    if (seal_break(&s, &plain, &c, &e) < 0) fail_msg("%s", e.text);
    assert_true(c.uid == 1000 && c.gid == 1001 && c.umask == 027 && c.groups == 2 && c.group[4] == 2);
    assert_string_equal(c.user, "alice");
    assert_string_equal(c.cwd, "/home/alice");
    assert_string_equal(c.origin, "socket");
    assert_int_equal(c.environment.count, 2);
    assert_string_equal(job_word_next(&c.environment, job_word_next(&c.environment, NULL)), "B=");
    assert_null(memmem(seal.s, seal.len, "alice", 5)); /* nobody reads it */
    (void)sealed(&again);
    assert_true(memcmp(seal.s, again.s, seal.len) != 0); /* no two are alike */
}

static void any_change_is_refused(void **state) {
    AUTO(place_done) struct place at = {0};
    AUTO(buf_done) struct buf seal = {0}, plain = {0};
    struct seal_context c;
    struct error e;
    assert_int_equal(seal_open_key(scratch_make(at.dir, "/dev/shm"), &e), 0);
    const struct wire_sealed good = sealed(&seal);
    for (size_t i = 0; i < seal.len; i++) {
        seal.s[i] ^= 1;
        if (seal_break(&good, &plain, &c, &e) >= 0) fail_msg("byte %zu of the seal", i);
        seal.s[i] ^= 1;
    }
    for (size_t n = 0; n < seal.len; n++) {
        struct wire_sealed cut = good;
        cut.seal_len = n;
        if (seal_break(&cut, &plain, &c, &e) >= 0) fail_msg("%zu bytes of the seal", n);
    }
    struct wire_sealed other = good;
    other.uid = 0;
    assert_int_equal(seal_break(&other, &plain, &c, &e), -EPERM);
    assert_string_equal(e.text, "the job's seal does not fit");
    other = good;
    snprintf(other.user, sizeof other.user, "root");
    assert_int_equal(seal_break(&other, &plain, &c, &e), -EPERM);
    other = good;
    other.record_len--;
    assert_int_equal(seal_break(&other, &plain, &c, &e), -EPERM);
    other.record = (const uint8_t *)"the Job";
    other.record_len = good.record_len;
    assert_int_equal(seal_break(&other, &plain, &c, &e), -EPERM);
    assert_int_equal(seal_break(&good, &plain, &c, &e), 0);
}

static void the_key_is_ours_alone(void **state) {
    AUTO(place_done) struct place at = {0};
    AUTO(place_done) struct place elsewhere = {0};
    AUTO(buf_done) struct buf seal = {0}, plain = {0};
    struct seal_context c;
    struct error e;
    struct stat st;
    char path[128];
    const char *dir = scratch_make(at.dir, "/dev/shm");
    assert_int_equal(seal_open_key(dir, &e), 0);
    struct wire_sealed s = sealed(&seal);
    snprintf(path, sizeof path, "%s/node.key", dir);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == 32);
    assert_int_equal(seal_open_key(scratch_make(elsewhere.dir, "/dev/shm"), &e), 0);
    assert_int_equal(seal_break(&s, &plain, &c, &e), -EPERM); /* another machine's */
    assert_int_equal(seal_open_key(dir, &e), 0);
    assert_int_equal(seal_break(&s, &plain, &c, &e), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(seal_open_key(dir, &e), -EPERM);
    assert_int_equal(file_write(path, 0600, "short", 5, false, &e), 0);
    assert_int_equal(seal_open_key(dir, &e), -EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in),
        cmocka_unit_test(any_change_is_refused),
        cmocka_unit_test(the_key_is_ours_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
