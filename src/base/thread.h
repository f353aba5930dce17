/* A thread that nobody joins and no signal wakes: signals are the main thread's. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* what: for the sentence, as in "a thread for tasks". */
int thread_start(void *(*fn)(void *arg), void *arg, size_t stack_bytes, const char *what, struct error *e) MUST_CHECK;
