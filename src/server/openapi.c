/* The route table as an OpenAPI document and as the reference page: neither is written by hand. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/routes.h"

static const char *const needs[] = {
    [OPEN] = "everybody",
    [LOCAL_OPEN] = "everybody on the loopback address and on the Unix socket; elsewhere who is signed in",
    [MEMBER] = "who is signed in",
    [ADMIN] = "administrators",
};

static const char *const type_names[] = {
    [FIELD_TEXT] = "string", [FIELD_NUMBER] = "number", [FIELD_BOOL] = "boolean", [FIELD_LIST] = "array"};

/* The next {name} of a pattern; false at its end. */
static bool next_param(const char **at, char *ret, size_t room) {
    const char *open = strchr(*at, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close) return false;
    snprintf(ret, room, "%.*s", (int)(close - open - 1), open + 1);
    *at = close + 1;
    return true;
}

/* ---- OpenAPI ---- */

/* The status of a good answer: its description begins with it where it is not 200. */
static void put_status(struct buf *b, const struct route *r) {
    char status[4] = "200";
    if (strspn(r->reply, "0123456789") == 3) memcpy(status, r->reply, 3);
    json_key(b, status);
}

static void put_schema(struct buf *b, enum field_type type) {
    json_open(b, '{');
    json_pair_str(b, "type", type_names[type]);
    if (type == FIELD_LIST) {
        json_key(b, "items");
        json_open(b, '{');
        json_pair_str(b, "type", "string");
        json_close(b, '}');
    }
    json_close(b, '}');
}

static void put_parameter(struct buf *b, const char *name, const char *in, bool is_required, const char *help,
                          enum field_type type) {
    json_open(b, '{');
    json_pair_str(b, "name", name);
    json_pair_str(b, "in", in);
    json_pair_bool(b, "required", is_required);
    if (help) json_pair_str(b, "description", help);
    json_key(b, "schema");
    put_schema(b, type);
    json_close(b, '}');
}

static void put_parameters(struct buf *b, const struct route *r) {
    char name[32];
    const char *at = r->pattern;
    json_key(b, "parameters");
    json_open(b, '[');
    while (next_param(&at, name, sizeof name)) put_parameter(b, name, "path", true, NULL, FIELD_TEXT);
    for (const struct route_field *f = r->query; f && f->name; f++)
        put_parameter(b, f->name, "query", f->is_required, f->help, f->type);
    json_close(b, ']');
}

static void put_body(struct buf *b, const struct route *r) {
    if (!r->body) return;
    json_key(b, "requestBody");
    json_open(b, '{');
    json_key(b, "content");
    json_open(b, '{');
    json_key(b, "application/json");
    json_open(b, '{');
    json_key(b, "schema");
    json_open(b, '{');
    json_pair_str(b, "type", "object");
    json_pair_bool(b, "additionalProperties", false);
    json_key(b, "properties");
    json_open(b, '{');
    for (const struct route_field *f = r->body; f->name; f++) {
        json_key(b, f->name);
        put_schema(b, f->type);
        b->len--; /* its description goes into the same object */
        json_pair_str(b, "description", f->help);
        json_close(b, '}');
    }
    json_close(b, '}');
    json_key(b, "required");
    json_open(b, '[');
    for (const struct route_field *f = r->body; f->name; f++)
        if (f->is_required) json_str(b, f->name);
    for (int depth = 0; depth < 4; depth++) json_close(b, depth ? '}' : ']');
    json_close(b, '}');
}

static void put_operation(struct buf *b, const struct route *r) {
    char method[8];
    snprintf(method, sizeof method, "%s", http_method_name(r->method));
    for (char *s = method; *s; s++) *s = (char)(*s | 0x20);
    json_key(b, method);
    json_open(b, '{');
    json_pair_str(b, "summary", r->summary);
    json_key(b, "description");
    char text[160];
    snprintf(text, sizeof text, "For %s.", needs[r->need]);
    json_str(b, text);
    put_parameters(b, r);
    put_body(b, r);
    json_key(b, "responses");
    json_open(b, '{');
    put_status(b, r);
    json_open(b, '{');
    json_pair_str(b, "description", r->reply);
    json_close(b, '}');
    json_key(b, "default");
    json_open(b, '{');
    json_pair_str(b, "$ref", "#/components/responses/error");
    json_close(b, '}');
    json_close(b, '}');
    json_key(b, "security");
    json_open(b, '[');
    if (r->need != OPEN) {
        buf_puts(b, "{\"session\":[]},{\"token\":[]}");
        if (r->need == LOCAL_OPEN) buf_puts(b, ",{}");
    }
    json_close(b, ']');
    json_close(b, '}');
}

static bool is_first_of_path(size_t at) {
    for (size_t i = 0; i < at; i++)
        if (strcmp(routes[i].pattern, routes[at].pattern) == 0) return false;
    return true;
}

void routes_openapi(const char *base_path, struct buf *b) {
    json_open(b, '{');
    json_pair_str(b, "openapi", "3.1.0");
    buf_puts(b, ",\"info\":{\"title\":\"gpumgr\",\"version\":\"v1\"},\"servers\":[{\"url\":");
    json_str(b, base_path);
    buf_puts(b, "}],\"components\":{\"securitySchemes\":{\"session\":{\"type\":\"apiKey\",\"in\":\"cookie\",\"name\":"
                "\"gpumgr_session_7000\",\"description\":\"The name ends in the port of the server's "
                "address\"},\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}},\"responses\":{\"error\":{"
                "\"description\":\"What was wrong: a stable code and a sentence\",\"content\":{\"application/json\":{"
                "\"schema\":{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\",\"properties\":{"
                "\"code\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"}}}}}}}}}}");
    json_key(b, "paths");
    json_open(b, '{');
    for (size_t i = 0; i < route_count; i++) {
        if (!is_first_of_path(i)) continue;
        json_key(b, routes[i].pattern);
        json_open(b, '{');
        for (size_t j = i; j < route_count; j++)
            if (strcmp(routes[j].pattern, routes[i].pattern) == 0) put_operation(b, &routes[j]);
        json_close(b, '}');
    }
    json_close(b, '}');
    json_close(b, '}');
    buf_putc(b, '\n');
}

/* ---- the reference page ---- */

static void page_fields(struct buf *b, const char *what, const struct route_field *f) {
    for (; f && f->name; f++)
        buf_printf(b, "- %s `%s` (%s%s): %s\n", what, f->name, type_names[f->type], f->is_required ? ", required" : "",
                   f->help);
}

void routes_page(struct buf *b) {
    buf_puts(
        b, "# The API\n\n"
           "From the route table in `src/server/routes.c`; the server tells the same at `/api/v1/openapi.json`. All\n"
           "addresses are below `server.base_path`. The caller is known by the session's cookie, by a program's token\n"
           "(`Authorization: Bearer ...`), or, on the Unix socket `DIR/run/server/api.sock`, by who he is on this "
           "machine.\n"
           "Bodies are JSON objects; a field or parameter that is not listed here is refused. A key with a question "
           "mark is\n"
           "not in every answer. Every error is\n"
           "`{\"error\":{\"code\":\"...\",\"message\":\"one sentence\"}}`; the codes: `bad_request`, `bad_json`,\n"
           "`too_large`, `unauthenticated`, `forbidden`, `csrf`, `not_found`, `method_not_allowed`, `conflict`,\n"
           "`rate_limited`, `timeout`, `unavailable`, `internal`.\n");
    for (size_t i = 0; i < route_count; i++) {
        const struct route *r = &routes[i];
        buf_printf(b, "\n## %s %s\n\n%s. For %s.\n\n", http_method_name(r->method), r->pattern, r->summary,
                   needs[r->need]);
        page_fields(b, "query", r->query);
        page_fields(b, "body", r->body);
        buf_printf(b, "- reply: %s\n", r->reply);
    }
}
