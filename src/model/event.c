#include "model/event.h"

#include "base/auto.h"

const char *event_severity_name(enum event_severity s) {
    static const char *const names[] = {"info", "warning", "error", "critical"};
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "unknown";
}
