/* The functions of the route table. Each answers one route: see call.h for what it may return. */
#pragma once

#include "server/call.h"

/* api_basic.c */
int api_health(struct call *c, struct error *e);
int api_ready(struct call *c, struct error *e);
int api_openapi(struct call *c, struct error *e);
int api_metrics(struct call *c, struct error *e);
