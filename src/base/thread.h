/* Threads that no signal wakes: signals are the main thread's. */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "base/error.h"

/* One that nobody joins. what: for the sentence, as in "a thread for tasks". */
int thread_start(void *(*fn)(void *arg), void *arg, size_t stack_bytes, const char *what, struct error *e) MUST_CHECK;
/* One that is to be joined. stack_bytes 0: as the system has it. */
int thread_join_later(pthread_t *ret, void *(*fn)(void *arg), void *arg, size_t stack_bytes, const char *what,
                      struct error *e) MUST_CHECK;
