/* Places at which a test may kill a process: before and after everything that must be durable, in the way of a job. Built
 * with -Dcrash_points=true each has a number, every pass through one is counted, and GPUMGR_CRASH ends the process with SIGKILL:
 *
 *   node:3     in the node, at the third pass through any of them
 *   server=12  in the server, at the next pass through number 12; server=12/2,17: at the second, or the next through 17
 *   @FILE      what stands in the file, looked at in each pass, counts, from when it was written; it is removed before the kill,
 *              so that whoever is started again goes on, and FILE.died says which number it was
 *   list       prints the numbers, with file and line, and ends
 *
 * Otherwise they compile to nothing. System calls are such places, too, where a program is linked with tests/tools/crash_calls.c, in
 * threads that say so. */
#pragma once

#ifdef GPUMGR_CRASH_POINTS
#include <stdbool.h>

struct crash_site {
    const char *file, *what; /* what: a system call, or NULL */
    int line;
};
#define CRASH_SITE(name, call)                                                                                         \
    static const struct crash_site name                                                                                \
        __attribute__((section("crash_sites"), used, aligned(8))) = {__FILE__, call, __LINE__}

void crash_point(const struct crash_site *site);
/* Who this process is, from here on; counting begins anew. */
void crash_point_as(const char *process);
/* Whether the system calls of this thread count; no where nothing is said. */
void crash_point_calls(bool is_on);
bool crash_point_has_calls(void);

#define CRASH_POINT()                                                                                                  \
    do {                                                                                                               \
        CRASH_SITE(site_here, 0);                                                                                      \
        crash_point(&site_here);                                                                                       \
    } while (0)
#define CRASH_POINT_AS(process) crash_point_as(process)
#define CRASH_POINT_CALLS(is_on) crash_point_calls(is_on)
#else
#define CRASH_POINT() ((void)0)
#define CRASH_POINT_AS(process) ((void)0)
#define CRASH_POINT_CALLS(is_on) ((void)0)
#endif
