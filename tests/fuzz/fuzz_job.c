/* A job's record, from a peer or a file: taken, it says the same again byte for byte, and so does each of its elements. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void need(bool is_true) {
    if (!is_true) abort();
}

static void element(const struct job_spec *s, unsigned i) {
    AUTO(buf_done) struct buf b = {0};
    struct job_spec one;
    struct error e = {0};
    unsigned count, at_once;
    int64_t number = job_element_number(s, i);
    need(number >= 0 && job_element_find(s, number) == i);
    if (job_element(s, i, &b, &e) < 0) { /* grown too large, or a command that is empty now */
        need(e.text[0] != 0);
        return;
    }
    need(job_decode(b.s, b.len, &one, &e) == 0);
    need(job_elements(&one, &count, &at_once, &e) == 0 && count == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    AUTO(buf_done) struct buf again = {0};
    struct job_spec s;
    struct error e = {0};
    char name[JOB_NAME_MAX];
    unsigned count = 0, at_once = 0;
    if (job_decode(bytes, n, &s, &e) < 0) {
        need(e.text[0] != 0);
        return 0;
    }
    job_encode(&s, &again);
    need(again.len == n && memcmp(again.s, bytes, n) == 0);
    job_name_make(&s, name);
    need(name[0] && strlen(name) < JOB_NAME_MAX);
    need(job_elements(&s, &count, &at_once, &e) == 0 && count >= 1 && count <= JOB_ELEMENTS_MAX);
    need(job_element_number(&s, count) == -1);
    element(&s, 0);
    element(&s, count / 2);
    element(&s, count - 1);
    return 0;
}
