/* One process as /proc tells it. May block (see names.h): not for the main thread. */
#pragma once

#include <stdint.h>

struct person {
    uint32_t uid; /* UINT32_MAX: not known */
    int64_t start_boot_ns;
    char comm[32];
    char *user, *command; /* owned; NULL: not known */
};

void person_read(struct person *p, const char *proc, uint32_t pid);
void person_done(struct person *p);

/* The name of a user; NULL: he has none. May block even longer: whoever knows may be on another machine. */
char *person_user(uint32_t uid);

/* The parsers, for tests. Each takes the file's text and leaves what it does not find. */
void person_parse_stat(struct person *p, const char *text, long ticks_per_s);
void person_parse_status(struct person *p, const char *text);

/* Arguments with NULs between them as one line for people: control characters shown as '?', cut at a whole character. */
void person_join(char *text, int64_t len, int64_t room);
