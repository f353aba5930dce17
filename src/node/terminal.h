/* Words for somebody at his terminals: that of a process, and those that belong to a user. Only root may write to others'. Never
 * waits: a terminal that is stopped or full gets nothing. Reads /dev/pts and utmp, so not for a thread that must be prompt. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How many terminals took all of it. uid UINT32_MAX: just the terminal of the process; pid 0: just those of the user.
 * ticks: of the process's start; another one of that number has no say. */
unsigned terminal_write(uint32_t uid, int32_t pid, uint64_t ticks, const char *text);
/* What a user asked to be told: on those of his that take messages (mesg y). */
unsigned terminal_tell(uint32_t uid, const char *text);

/* What is written: one line of its own, a bell, and nothing of text that a terminal would obey. Returns its length. */
size_t terminal_line(const char *text, char *ret, size_t room);
