/* HTTP/1.1 requests as bytes: pure, strict, and without a second opinion. What two programs could read in two ways (both
 * lengths, several lengths, folded or nameless fields, bare line breaks, an absolute target, a second Host) is refused, so
 * that no proxy in front of us can be made to disagree with us about where a request ends.
 *
 * A refusal is a negative errno and a sentence; http_status_of says which reply that is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define HTTP_HEAD_MAX 16384
#define HTTP_FIELDS_MAX 100
#define HTTP_LENGTH_MAX (1ll << 40) /* beyond this a length is nonsense; the limits of routes are far below */

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_OPTIONS, HTTP_METHODS };

struct http_field {
    const char *name, *value; /* the name in lower case; the value without blanks around it */
};

/* A request's head. All texts lie in the bytes that were parsed. */
struct http_head {
    enum http_method method;
    const char *path;  /* percent-decoded, begins with '/', valid UTF-8 without control characters */
    const char *query; /* still encoded; "" without one */
    int minor;         /* HTTP/1.minor: 0 or 1 */
    int64_t length;    /* of the body; 0 without one, -1: chunked */
    bool is_chunked, keeps_alive, expects_continue;
    unsigned count;
    struct http_field field[HTTP_FIELDS_MAX];
};

const char *http_method_name(enum http_method m);

/* Looks for the end of a head. *at is where the last look ended (0 at first) and is moved on, so that bytes are looked at
 * once. Returns the length with the empty line, 0 when more must come, -EINVAL, or -E2BIG beyond HTTP_HEAD_MAX. */
long http_head_find(const char *bytes, size_t len, size_t *at, struct error *e) MUST_CHECK;

/* Parses a whole head in place. -EINVAL: malformed; -E2BIG: too many fields; -EOPNOTSUPP: a method or transfer coding that
 * nobody here knows; -EPROTONOSUPPORT: another version; -EDOM: an expectation that cannot be met. */
int http_head_parse(char *bytes, size_t len, struct http_head *ret, struct error *e) MUST_CHECK;

/* Its parts, for heads that are passed on (net/http_pass.h): the lines from `line` up to the empty one at stop; a version; how long the
 * body is; all that the fields of a request mean for it. */
int http_fields_parse(char *line, char *stop, struct http_head *h, struct error *e) MUST_CHECK;
int http_version_parse(const char *text, struct http_head *h, struct error *e) MUST_CHECK;
int http_length_parse(struct http_head *h, struct error *e) MUST_CHECK;
int http_understand(struct http_head *h, struct error *e) MUST_CHECK;

/* A field's value, or NULL. name in lower case. Of several the first. */
const char *http_field(const struct http_head *h, const char *name);
/* How often it is there. */
unsigned http_field_count(const struct http_head *h, const char *name);
/* Whether a list of tokens (Connection, Accept-Encoding) has this one; parameters after ';' do not count, q=0 does. */
bool http_list_has(const char *list, const char *token);

/* The next name=value of a query, both decoded. *at: what is left. 1: there is one, 0: the end, -EINVAL: bad encoding. */
int http_query_next(const char **at, struct buf *name, struct buf *value, struct error *e) MUST_CHECK;

/* Percent-decodes; -EINVAL: not hexadecimal, a control character, or not UTF-8. `+` is a blank where is_query. */
int http_decode(const char *text, size_t len, bool is_query, struct buf *ret, struct error *e) MUST_CHECK;

/* A chunked body, as it comes in. Extensions and trailers are refused: nobody needs them, and they are where parsers
 * disagree. */
struct http_chunks {
    int state;
    int digits;
    uint64_t left;
};

/* Takes what it can; returns how many bytes that was. c->state == HTTP_CHUNKS_END afterwards: the body is whole.
 * -EFBIG: it would be larger than max. */
enum { HTTP_CHUNKS_END = 100 };
long http_chunks_take(struct http_chunks *c, const char *bytes, size_t len, size_t max, struct buf *body,
                      struct error *e) MUST_CHECK;

/* The reply that an errno asks for (400 when there is no better one), its phrase, and its stable word in an error. */
int http_status_of(int code);
const char *http_phrase(int status);
