#include "client/job_id.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int job_id_parse(const char *word, struct job_id *ret, struct error *e) {
    size_t n = strspn(word, "0123456789"), m = word[n] == '.' ? strspn(word + n + 1, "0123456789") : 0;
    bool is_plain = n && !word[n], is_element = n && m && !word[n + 1 + m];
    if ((!is_plain && !is_element) || n > 15 || m > 15 || atoll(word) < 1)
        return fail(e, -EINVAL, "\"%.40s\" is not the number of a job, as in 17, or 17.3 for number 3 of an array",
                    word);
    *ret = (struct job_id){.job = atoll(word), .element = is_element ? atoll(word + n + 1) : -1};
    return 0;
}

void job_id_text(const struct job_id *id, char ret[JOB_ID_TEXT]) {
    if (id->element < 0)
        snprintf(ret, JOB_ID_TEXT, "%lld", (long long)id->job);
    else
        snprintf(ret, JOB_ID_TEXT, "%lld.%lld", (long long)id->job, (long long)id->element);
}
