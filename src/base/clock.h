/* Time, always in nanoseconds as int64: `clock_boot_ns` goes on through suspend and never steps (deadlines, ages),
 * `clock_real_ns` is what people read. The pure rooms take time as an argument and never ask. */
#pragma once

#include <stdint.h>

#define NS_PER_US 1000ll
#define NS_PER_MS 1000000ll
#define NS_PER_S 1000000000ll

int64_t clock_boot_ns(void);
int64_t clock_real_ns(void);
int64_t clock_thread_cpu_ns(void);
int64_t clock_process_cpu_ns(void);

/* This thread goes before others when it has something to do: for threads whose point is the moment, and that take next to
 * no time. Only root may ask; without it goes as well. */
void clock_be_prompt(void);

/* Sleeps until the boot clock shows at_ns; signals do not cut it short. */
void clock_sleep_until(int64_t at_ns);
