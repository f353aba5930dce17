#include "model/event.h"

const char *event_severity_name(enum event_severity s) {
    static const char *const names[] = {"info", "warning", "error", "critical"};
    return names[s];
}
