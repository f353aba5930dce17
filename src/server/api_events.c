/* Events: live as a stream, or as a list of what was. */
#include <errno.h>

#include "server/api.h"
#include "server/server.h"

int api_events(struct call *c, struct error *e) {
    bool wants_stream = http_list_has(http_field(&c->request->head, "accept"), "text/event-stream");
    if (!wants_stream) return fail(e, -ENOTCONN, "the list of events is not kept by this version");
    int r = streams_add(c->server->streams, c->request, e);
    return r < 0 ? r : CALL_DONE;
}
