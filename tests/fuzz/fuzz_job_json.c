/* A job file, from anybody: refused with a sentence, or records that can be written as JSON and read again as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/job_after.h"
#include "model/job_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void need(bool is_true) {
    if (!is_true) abort();
}

static void one(void *ctx, const void *record, size_t len) {
    AUTO(buf_done) struct buf json = {0}, again = {0}, after = {0}, numbered = {0};
    struct job_spec s;
    struct error e = {0};
    ++*(int *)ctx;
    need(job_decode(record, len, &s, &e) == 0);
    job_json_members(&json, &s);
    buf_clear(&json);
    s.after = job_after_numbers(&s, 1000000, &after); /* with the numbers that those of the same file got */
    job_encode(&s, &numbered);
    job_json_spec(&json, &s);
    need(job_json_record(json.s, json.len, 1, &again, &e) == 0);
    need(again.len == numbered.len && memcmp(again.s, numbered.s, again.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct error e = {0};
    int seen = 0, r = job_json_records((const char *)bytes, n, 1000000, one, &seen, &e);
    need(r < 0 ? e.text[0] != 0 && seen == 0 : r == seen && seen > 0);
    return 0;
}
