/* The table that the API is: router, authorisation, the OpenAPI document and docs/api.md walk it. A route is one function
 * and one row. */
#pragma once

#include <stddef.h>

#include "net/http_parse.h"
#include "server/call.h"

enum field_type { FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_LIST };

/* A parameter of the query or a field of the body; a table of them ends with a row without a name. */
struct route_field {
    const char *name;
    enum field_type type;
    bool is_required;
    const char *help;
};

struct route {
    enum http_method method;
    const char *pattern; /* "/api/v1/gpus/{uuid}" */
    enum auth_need need;
    int (*handle)(struct call *c, struct error *e);
    const char *summary;
    const char *reply; /* what comes back, in a sentence */
    const struct route_field *query, *body;
    size_t body_max;  /* 0: HTTP_BODY_MAX where there is a body */
    bool is_document; /* the handler reads the body itself: `body` is for the reference only */
};

extern const struct route routes[];
extern const size_t route_count;

/* Finds the route of a method and a path (below the base path). NULL: none; then *allowed is a list for the header
 * Allow where other methods have this path, else empty. The path's parameters are put into params, which point into `room`. */
const struct route *route_find(enum http_method method, const char *path, const char *params[CALL_PARAMS_MAX],
                               struct buf *room, struct buf *allowed);

/* The service for net/http_server: finds, authorises, calls, answers. */
struct server;
void routes_service(struct server *s, struct http_service *ret);

/* Whether whoever sent this request is still signed in. ctx: the server. */
bool routes_may_read(void *ctx, const struct http_request *r);

/* Whether an answer should be packed: not for those on this machine, where the way costs less than the packing. */
bool routes_take_gzip(const struct http_request *r);

/* What is written from the table. */
void routes_openapi(const char *base_path, struct buf *b);
void routes_page(struct buf *b);
