#include "model/xid.h"

#include <ctype.h>
#include <string.h>

/* clang-format off */
static const struct xid table[] = {
    {13,  EVENT_WARNING,  "graphics engine exception",               "usually a fault of the program; look there first", false},
    {31,  EVENT_WARNING,  "memory page fault",                       "usually a fault of the program (illegal address)", false},
    {32,  EVENT_WARNING,  "invalid or corrupted push buffer",        "look at the program, then at PCIe", false},
    {38,  EVENT_WARNING,  "driver firmware error",                   "update the driver", false},
    {43,  EVENT_WARNING,  "GPU stopped processing",                  "a fault of the program: it was ended", false},
    {45,  EVENT_INFO,     "preemptive cleanup",                      "a program was ended; see what came before", false},
    {46,  EVENT_CRITICAL, "GPU stopped responding",                  "drain the GPU and reset it", true},
    {48,  EVENT_CRITICAL, "double bit memory error",                 "drain the GPU and reset it; replace it if it comes back", true},
    {61,  EVENT_ERROR,    "internal microcontroller breakpoint",     "drain the GPU and reset it", true},
    {62,  EVENT_CRITICAL, "internal microcontroller halt",           "drain the GPU and reset it", true},
    {63,  EVENT_INFO,     "memory page retired or row remapped",     "takes effect with the next reset", false},
    {64,  EVENT_CRITICAL, "page retirement or row remap failed",     "replace the card", true},
    {68,  EVENT_WARNING,  "video decoder exception",                 "usually a fault of the program", false},
    {69,  EVENT_WARNING,  "graphics engine class error",             "usually a fault of the program", false},
    {74,  EVENT_CRITICAL, "NVLink error",                            "check the link and its bridge or baseboard; reset the GPU", true},
    {79,  EVENT_CRITICAL, "GPU has fallen off the bus",              "reboot; check power, seating and temperature", true},
    {92,  EVENT_WARNING,  "many corrected memory errors",            "watch it; plan a replacement if it goes on", false},
    {94,  EVENT_ERROR,    "contained memory error",                  "restart the program that was hit; reset the GPU when idle", false},
    {95,  EVENT_CRITICAL, "uncontained memory error",                "drain the GPU and reset it now", true},
    {109, EVENT_ERROR,    "context switch timeout",                  "drain the GPU and reset it", true},
    {110, EVENT_CRITICAL, "security fault",                          "reset the GPU", true},
    {119, EVENT_CRITICAL, "GSP firmware does not answer",            "drain the GPU and reset it, or reboot", true},
    {120, EVENT_CRITICAL, "GSP firmware error",                      "drain the GPU and reset it, or reboot", true},
    {136, EVENT_CRITICAL, "link training failed",                    "reset the GPU; check the baseboard", true},
    {140, EVENT_CRITICAL, "unrecovered memory error",                "drain the GPU and reset it", true},
    {143, EVENT_CRITICAL, "GPU initialisation failed",               "reboot", true},
    {154, EVENT_CRITICAL, "the driver asks for a recovery action",   "see gpu_recovery_action for which", true},
    {155, EVENT_CRITICAL, "NVLink firmware error",                   "reset the GPU", true},
    {158, EVENT_CRITICAL, "GPU fatal timeout",                       "reset the GPU", true},
};
/* clang-format on */

const struct xid *xid_find(uint64_t code) {
    static const struct xid unknown = {0, EVENT_ERROR, "error without an entry here", "look it up in NVIDIA's XID list",
                                       false};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code) return &table[i];
    return &unknown;
}

/* A cursor over a line that ends at its end. */
struct cursor {
    const char *at, *end;
};

static bool skip_past(struct cursor *c, const char *word) {
    size_t n = strlen(word);
    for (; c->at + n <= c->end; c->at++)
        if (memcmp(c->at, word, n) == 0) {
            c->at += n;
            return true;
        }
    return false;
}

static bool number(struct cursor *c, uint64_t *ret) {
    while (c->at < c->end && *c->at == ' ') c->at++;
    uint64_t v = 0;
    int digits = 0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at) && digits < 18; c->at++, digits++)
        v = v * 10 + (uint64_t)(*c->at - '0');
    *ret = v;
    return digits > 0;
}

static void word(struct cursor *c, const char *stop, char *ret, size_t room) {
    size_t n = 0;
    for (; c->at < c->end && !strchr(stop, *c->at) && (unsigned char)*c->at >= 0x20; c->at++)
        if (n + 1 < room) ret[n++] = *c->at;
    ret[n] = 0;
}

bool xid_parse(const char *line, size_t len, struct xid_line *ret) {
    struct cursor c = {line, line + len};
    struct xid_line x = {0};
    if (!skip_past(&c, "NVRM: Xid (PCI:")) return false;
    word(&c, ") ", x.pci, sizeof x.pci);
    if (!x.pci[0] || !skip_past(&c, "):") || !number(&c, &x.code) || x.code == 0) return false;
    struct cursor rest = c;
    uint64_t pid;
    if (skip_past(&rest, "pid=") && number(&rest, &pid) && pid <= INT32_MAX) x.pid = (int32_t)pid;
    rest = c;
    if (skip_past(&rest, "name=")) word(&rest, ", \n", x.process, sizeof x.process);
    *ret = x;
    return true;
}

/* Both as "domain:bus:device" without leading zeros of the domain, case and function aside. */
bool xid_is_at(const char *pci_line, const char *pci_driver) {
    while (*pci_line == '0') pci_line++;
    while (*pci_driver == '0') pci_driver++;
    for (;; pci_line++, pci_driver++) {
        bool line_ends = !*pci_line || *pci_line == '.', driver_ends = !*pci_driver || *pci_driver == '.';
        if (line_ends || driver_ends) return line_ends && driver_ends;
        if (tolower((unsigned char)*pci_line) != tolower((unsigned char)*pci_driver)) return false;
    }
}

bool xid_take(struct xid_count *c, uint64_t code, enum xid_source source, int64_t now_real_ns) {
    uint32_t i = 0;
    while (i < c->count && c->of[i].code != code) i++;
    if (i == c->count) {
        if (c->count < XID_CODES_MAX) c->count++;
        if (i == XID_CODES_MAX) i = XID_CODES_MAX - 1; /* more codes than anyone has seen: the last place is shared */
        if (c->of[i].code != code) memset(&c->of[i], 0, sizeof c->of[i]);
        c->of[i].code = code;
    }
    c->of[i].seen[source]++;
    if (c->of[i].seen[source] <= c->of[i].total) return false;
    c->of[i].total = c->of[i].seen[source];
    c->of[i].last_real_ns = now_real_ns;
    return true;
}

uint64_t xid_total(const struct xid_count *c) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < c->count; i++) n += c->of[i].total;
    return n;
}
