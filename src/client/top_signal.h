/* A signal to the very process that a person saw and confirmed: never to another that has its pid by now. */
#pragma once

#include "base/error.h"
#include "client/top_processes.h"

int top_signal_send(const struct top_process *p, int number, struct error *e) MUST_CHECK;
