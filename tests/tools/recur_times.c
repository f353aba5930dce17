/* Times that come again, for tests/system/test_recur.py: a line in is KIND TAB TEXT TAB ZONEFILE TAB AFTER TAB UNTIL (Unix
 * seconds; an empty ZONEFILE: no zone), a line out its times after AFTER up to UNTIL, or "! SENTENCE". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/file.h"
#include "model/recur.h"

static int times(char *line, struct error *e) {
    char *part[5] = {line};
    for (int i = 1; i < 5; i++) {
        part[i] = strchr(part[i - 1], '\t');
        if (!part[i]) return fail(e, -1, "five parts");
        *part[i]++ = 0;
    }
    AUTO(buf_done) struct buf file = {0};
    AUTO(zone_done) struct zone zone = {0};
    struct recur r;
    bool is_cron = strcmp(part[0], "cron") == 0;
    int result = recur_parse(is_cron ? part[1] : "", is_cron ? "" : part[1], &r, e);
    if (result >= 0 && *part[2]) result = file_read(part[2], ZONE_FILE_MAX, &file, e);
    if (result >= 0 && *part[2]) result = zone_parse(file.s, file.len, &zone, e);
    if (result < 0) return result;
    int64_t at = strtoll(part[3], NULL, 10), until = strtoll(part[4], NULL, 10);
    while ((at = recur_next(&r, *part[2] ? &zone : NULL, at)) <= until && at != RECUR_NEVER) printf("%" PRId64 " ", at);
    printf("\n");
    return 0;
}

int main(void) {
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        struct error e;
        line[strcspn(line, "\n")] = 0;
        if (times(line, &e) < 0) printf("! %s\n", e.text);
    }
    return 0;
}
