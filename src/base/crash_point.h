/* Places at which a test may kill a process: before and after everything that must be durable, in the way of a job. Built
 * with -Dcrash_points=true every pass through one is counted, and GPUMGR_CRASH=PROCESS:N ends that process with SIGKILL at
 * the Nth ("node:3"); otherwise they compile to nothing. GPUMGR_CRASH=@FILE: what stands in the file, looked at in each, counts,
 * from when it was written; it is removed before the kill, so that whoever is started again goes on. */
#pragma once

#ifdef GPUMGR_CRASH_POINTS
void crash_point(void);
/* Who this process is, from here on; counting begins anew. */
void crash_point_as(const char *process);
#define CRASH_POINT() crash_point()
#define CRASH_POINT_AS(process) crash_point_as(process)
#else
#define CRASH_POINT() ((void)0)
#define CRASH_POINT_AS(process) ((void)0)
#endif
