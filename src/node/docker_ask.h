/* Questions to a Docker Engine over its Unix socket, one connection each, waited for: for processes that have nothing else to
 * do. The engine's answers are bounded; what it refuses comes back as its own sentence. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* The engine that containers of jobs and of people are at: the first of engines.docker. Others are listened to, but anybody may have
 * one: nothing is done with what they name. */
int docker_first(const char *engines, char *ret, size_t room, struct error *e) MUST_CHECK;

/* method and target as in HTTP; body: JSON, or NULL. Returns the status; answer gets the body. */
int docker_ask(const char *socket, const char *method, const char *target, const char *body, int timeout_s,
               struct buf *answer, struct error *e) MUST_CHECK;

/* The sentence in an answer that is an error, or "status N". */
void docker_complaint(const struct buf *answer, int status, char *ret, size_t room);

/* Attaches to a container's output: a connection on which it comes in frames. rest: what came with the head. */
int docker_attach(const char *socket, const char *name, struct buf *rest, struct error *e) MUST_CHECK;

/* Asks for a connection that is not HTTP any more after the head, which is read and nothing beyond it: a program's terminal. */
int docker_hijack(const char *socket, const char *target, const char *body, struct error *e) MUST_CHECK;

/* An answer that goes on for as long as there is something to say: its body, until the end. -EEXIST: not any more (409). */
int docker_follow(const char *socket, const char *target, struct error *e) MUST_CHECK;
