#include "node/container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_scan.h"
#include "model/duration.h"

#define PRIORITY_MOST 1000
#define OURS "gpumgr."

bool container_is_id(const char *text) {
    return strspn(text, "0123456789abcdef") == ENGINE_ID_HEX && !text[ENGINE_ID_HEX];
}

/* How long the UTF-8 character at s is; 0: it is none. */
static size_t character(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool is_long = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool is_none = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return is_long || is_none ? 0 : n;
}

/* For terminals and pages: control characters and what is no UTF-8 become '?', and a cut is between characters. */
static void copy_text(char *ret, size_t room, const char *text) {
    size_t len = 0;
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t n = character(s);
        bool is_control = n == 1 ? *s < 0x20 || *s == 0x7f : n == 2 && *s == 0xc2 && s[1] < 0xa0;
        if (len + (n ? n : 1) >= room) break;
        if (!n || is_control)
            ret[len++] = '?';
        else
            memcpy(ret + len, s, n), len += n;
        s += n ? n : 1;
    }
    ret[len] = 0;
}

const char *engine_kind_name(enum engine_kind k) { return k == ENGINE_PODMAN ? "podman" : "docker"; }

const char *engine_state_name(enum engine_state s) {
    static const char *const names[] = {
        [ENGINE_UNKNOWN] = "unknown", [ENGINE_CREATED] = "created",       [ENGINE_RUNNING] = "running",
        [ENGINE_PAUSED] = "paused",   [ENGINE_RESTARTING] = "restarting", [ENGINE_EXITED] = "exited",
        [ENGINE_REMOVED] = "removed",
    };
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "unknown";
}

/* ---- labels ---- */

/* All that there are, ours and others', as lines, as long as there is room: for people who look for them. */
static void keep_label(struct container_said *s, const char *key, const char *value) {
    char line[JSON_SCAN_KEY + JSON_SCAN_TEXT + 2], clean[sizeof line];
    size_t used = strlen(s->labels);
    if (!*key || strchr(key, '=')) return;
    snprintf(line, sizeof line, "%s=%s", key, value);
    copy_text(clean, sizeof clean, line);
    if (used + strlen(clean) + 2 > sizeof s->labels) return;
    snprintf(s->labels + used, sizeof s->labels - used, "%s%s", used ? "\n" : "", clean);
}

bool engine_label_of(const char *labels, const char *key, char *ret, size_t room) {
    size_t n = strlen(key);
    ret[0] = 0;
    for (const char *at = labels; *at; at += strcspn(at, "\n"), at += *at != 0) {
        if (strncmp(at, key, n) != 0 || at[n] != '=') continue;
        snprintf(ret, room, "%.*s", (int)strcspn(at + n + 1, "\n"), at + n + 1);
        return true;
    }
    return false;
}

static void bad_label(struct engine_facts *f, const char *key, const char *why) {
    char text[320];
    if (f->bad_label[0]) return;
    snprintf(text, sizeof text, "label %s: %s", key, why);
    copy_text(f->bad_label, sizeof f->bad_label, text);
}

static void take_duration(struct engine_facts *f, const char *key, const char *value, int64_t *ret_ns) {
    struct error e;
    if (duration_parse(value, ret_ns, &e) < 0) bad_label(f, key, e.text);
}

static void take_priority(struct engine_facts *f, const char *key, const char *value) {
    char *end;
    size_t digits = strspn(value + (*value == '-'), "0123456789");
    long v = strtol(value, &end, 10);
    if (digits == 0 || *end || v < -PRIORITY_MOST || v > PRIORITY_MOST)
        bad_label(f, key, "not a whole number from -1000 to 1000");
    else
        f->priority = (int32_t)v;
}

void container_label(struct engine_facts *f, const char *key, const char *value) {
    if (strncmp(key, OURS, strlen(OURS)) != 0) return;
    if (strcmp(key, "gpumgr.deadline") == 0) take_duration(f, key, value, &f->deadline_ns);
    if (strcmp(key, "gpumgr.period") == 0) take_duration(f, key, value, &f->period_ns);
    if (strcmp(key, "gpumgr.priority") == 0) take_priority(f, key, value);
    if (strcmp(key, "gpumgr.tenant") == 0) copy_text(f->tenant, sizeof f->tenant, value);
}

/* ---- single members ---- */

int64_t container_time_ns(const char *text) {
    struct tm t = {0};
    int n = 0, hours = 0, minutes = 0, used = 0;
    char sign = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec,
               &n) != 6 ||
        n != 19 || t.tm_year < 1971 || t.tm_year > 2200)
        return 0;
    int64_t part = 0, step = NS_PER_S / 10;
    const char *at = text + n;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++, step /= 10) part += (*at - '0') * step;
    bool is_utc = strcmp(at, "Z") == 0;
    if (!is_utc &&
        (sscanf(at, "%c%2d:%2d%n", &sign, &hours, &minutes, &used) != 3 || used != 6 || (sign != '+' && sign != '-')))
        return 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    int64_t offset = (int64_t)(hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
    return ((int64_t)timegm(&t) - offset) * NS_PER_S + part;
}

static uint8_t state_of(const char *text) {
    static const struct {
        const char *text;
        enum engine_state state;
    } rows[] = {
        {"created",     ENGINE_CREATED   },
        {"configured",  ENGINE_CREATED   },
        {"initialized", ENGINE_CREATED   },
        {"running",     ENGINE_RUNNING   },
        {"paused",      ENGINE_PAUSED    },
        {"restarting",  ENGINE_RESTARTING},
        {"removing",    ENGINE_EXITED    },
        {"stopping",    ENGINE_RUNNING   },
        {"stopped",     ENGINE_EXITED    },
        {"exited",      ENGINE_EXITED    },
        {"dead",        ENGINE_EXITED    },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(text, rows[i].text) == 0) return rows[i].state;
    return ENGINE_UNKNOWN;
}

static void take_id(struct engine_facts *f, const struct json_scan_value *v) {
    if (v->type == JSON_SCAN_STRING && container_is_id(v->text)) memcpy(f->id, v->text, sizeof f->id);
}

static void take_name(struct engine_facts *f, const char *text) {
    copy_text(f->name, sizeof f->name, text + (*text == '/'));
}

static void said_clear(struct container_said *s) { *s = (struct container_said){.facts.priority = ENGINE_NO_PRIORITY}; }

/* ---- events ---- */

static enum container_action action_of(const char *text) {
    static const struct {
        const char *text;
        enum container_action action;
    } rows[] = {
        {"create",  CONTAINER_CREATED },
        {"start",   CONTAINER_STARTED },
        {"restart", CONTAINER_STARTED },
        {"pause",   CONTAINER_PAUSED  },
        {"unpause", CONTAINER_UNPAUSED},
        {"die",     CONTAINER_ENDED   },
        {"died",    CONTAINER_ENDED   },
        {"destroy", CONTAINER_REMOVED },
        {"remove",  CONTAINER_REMOVED },
        {"rename",  CONTAINER_RENAMED },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(text, rows[i].text) == 0) return rows[i].action;
    return CONTAINER_OTHER;
}

struct event {
    struct container_said *said;
    enum container_action action;
    bool is_container;
};

/* An event's attributes are the labels, and among them image and name. */
static void event_value(void *ctx, const struct json_scan_value *v) {
    struct event *ev = ctx;
    struct engine_facts *f = &ev->said->facts;
    if (v->type != JSON_SCAN_STRING || v->is_cut) return;
    if (json_scan_is(v, 1, "Type")) ev->is_container = strcmp(v->text, "container") == 0;
    if (json_scan_is(v, 1, "Action")) ev->action = action_of(v->text);
    if (json_scan_is(v, 2, "Actor", "ID")) take_id(f, v);
    if (v->depth != 3 || strcmp(v->key[0], "Actor") != 0 || strcmp(v->key[1], "Attributes") != 0) return;
    if (strcmp(v->key[2], "name") == 0) take_name(f, v->text);
    if (strcmp(v->key[2], "image") == 0) copy_text(f->image, sizeof f->image, v->text);
    ev->said->has_labels |= strncmp(v->key[2], OURS, strlen(OURS)) == 0;
    container_label(f, v->key[2], v->text);
}

int container_event(const char *json, size_t len, enum container_action *ret_action, struct container_said *ret,
                    struct error *e) {
    struct container_said said;
    struct event ev = {.said = &said};
    said_clear(&said);
    int r = json_scan(json, len, event_value, &ev, e);
    if (r < 0) return r;
    if (!ev.is_container || !said.facts.id[0]) return fail(e, -EINVAL, "not an event of a container");
    *ret_action = ev.action;
    *ret = said;
    return 0;
}

/* ---- one container ---- */

static void add_device(struct container_said *s, const char *path) {
    if (s->device_count == CONTAINER_DEVICES_MAX || path[0] != '/' || strlen(path) >= sizeof s->device[0]) return;
    snprintf(s->device[s->device_count++], sizeof s->device[0], "%s", path);
}

static void device_value(struct container_said *s, const struct json_scan_value *v) {
    if (json_scan_is(v, 2, "HostConfig", "Privileged") && v->type == JSON_SCAN_TRUE) s->facts.has_own_devices = true;
    if (json_scan_is(v, 3, "HostConfig", "Devices", "") && v->type == JSON_SCAN_OBJECT) s->facts.has_own_devices = true;
    if (json_scan_is(v, 3, "HostConfig", "DeviceRequests", "") && v->type == JSON_SCAN_OBJECT)
        s->facts.has_own_devices = true;
    if (json_scan_is(v, 4, "HostConfig", "Devices", "", "PathInContainer") && v->type == JSON_SCAN_STRING && !v->is_cut)
        add_device(s, v->text);
}

static void inspect_value(void *ctx, const struct json_scan_value *v) {
    struct container_said *s = ctx;
    struct engine_facts *f = &s->facts;
    device_value(s, v);
    if (json_scan_is(v, 2, "State", "Pid") && v->type == JSON_SCAN_NUMBER) {
        long pid = strtol(v->text, NULL, 10);
        f->pid = pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
    }
    if (json_scan_is(v, 2, "Config", "Labels"))
        s->has_labels = v->type == JSON_SCAN_OBJECT || v->type == JSON_SCAN_NULL;
    if (v->type != JSON_SCAN_STRING || v->is_cut) return;
    if (json_scan_is(v, 1, "Id")) take_id(f, v);
    if (json_scan_is(v, 1, "Name")) take_name(f, v->text);
    if (json_scan_is(v, 1, "Created")) f->created_real_ns = container_time_ns(v->text);
    if (json_scan_is(v, 2, "State", "Status")) f->state = state_of(v->text);
    if (json_scan_is(v, 2, "Config", "Image")) copy_text(f->image, sizeof f->image, v->text);
    if (v->depth != 3 || strcmp(v->key[0], "Config") != 0 || strcmp(v->key[1], "Labels") != 0) return;
    container_label(f, v->key[2], v->text);
    keep_label(s, v->key[2], v->text);
}

int container_inspect(const char *json, size_t len, struct container_said *ret, struct error *e) {
    struct container_said said;
    said_clear(&said);
    int r = json_scan(json, len, inspect_value, &said, e);
    if (r < 0) return r;
    if (!said.facts.id[0]) return fail(e, -EINVAL, "a description without a container's id");
    said.has_devices = true;
    *ret = said;
    return 0;
}

/* ---- the list ---- */

struct listing {
    struct container_said said;
    container_fn each;
    void *ctx;
    int rows;
    bool is_list;
};

static void row_over(struct listing *l) {
    if (l->said.facts.id[0]) {
        l->each(l->ctx, &l->said);
        l->rows++;
    }
    said_clear(&l->said);
}

static void list_value(void *ctx, const struct json_scan_value *v) {
    struct listing *l = ctx;
    struct engine_facts *f = &l->said.facts;
    if (v->depth == 0) l->is_list = v->type == JSON_SCAN_LIST;
    if (json_scan_is(v, 1, "")) row_over(l); /* the next one begins */
    if (!l->is_list) return;
    if (json_scan_is(v, 2, "", "Labels")) l->said.has_labels = v->type == JSON_SCAN_OBJECT || v->type == JSON_SCAN_NULL;
    if (json_scan_is(v, 2, "", "Created") && v->type == JSON_SCAN_NUMBER) {
        long s = strtol(v->text, NULL, 10);
        f->created_real_ns = s > 0 && s < INT64_MAX / NS_PER_S ? s * NS_PER_S : 0;
    }
    if (v->type != JSON_SCAN_STRING || v->is_cut) return;
    if (json_scan_is(v, 2, "", "Id")) take_id(f, v);
    if (json_scan_is(v, 2, "", "Image")) copy_text(f->image, sizeof f->image, v->text);
    if (json_scan_is(v, 2, "", "State")) f->state = state_of(v->text);
    if (json_scan_is(v, 3, "", "Names", "") && !f->name[0]) take_name(f, v->text);
    if (v->depth != 3 || *v->key[0] || strcmp(v->key[1], "Labels") != 0) return;
    container_label(f, v->key[2], v->text);
    keep_label(&l->said, v->key[2], v->text);
}

static void nobody(void *ctx, const struct container_said *said) {}

int container_list(const char *json, size_t len, container_fn each, void *ctx, struct error *e) {
    /* Twice: half a list must not be taken for the whole. */
    for (int pass = 0; pass < 2; pass++) {
        struct listing l = {.each = pass ? each : nobody, .ctx = ctx};
        said_clear(&l.said);
        int r = json_scan(json, len, list_value, &l, e);
        if (r < 0) return r;
        if (!l.is_list) return fail(e, -EINVAL, "not a list of containers");
        row_over(&l);
        if (pass) return l.rows;
    }
    return 0;
}

/* ---- what is known ---- */

bool container_is_same(const struct engine_facts *a, const struct engine_facts *b) {
    return strcmp(a->id, b->id) == 0 && strcmp(a->name, b->name) == 0 && strcmp(a->image, b->image) == 0 &&
           strcmp(a->tenant, b->tenant) == 0 && strcmp(a->bad_label, b->bad_label) == 0 &&
           a->deadline_ns == b->deadline_ns && a->period_ns == b->period_ns &&
           a->created_real_ns == b->created_real_ns && a->started_boot_ns == b->started_boot_ns &&
           a->priority == b->priority && a->pid == b->pid && a->uid == b->uid && a->engine == b->engine &&
           a->state == b->state && a->has_own_devices == b->has_own_devices;
}

bool container_merge(struct engine_facts *known, const struct container_said *said) {
    const struct engine_facts before = *known;
    const struct engine_facts *f = &said->facts;
    memcpy(known->id, f->id, sizeof known->id);
    if (f->name[0]) memcpy(known->name, f->name, sizeof known->name);
    if (f->image[0]) memcpy(known->image, f->image, sizeof known->image);
    if (f->created_real_ns) known->created_real_ns = f->created_real_ns;
    if (f->state) known->state = f->state;
    if (said->has_labels) {
        memcpy(known->tenant, f->tenant, sizeof known->tenant);
        memcpy(known->bad_label, f->bad_label, sizeof known->bad_label);
        known->deadline_ns = f->deadline_ns;
        known->period_ns = f->period_ns;
        known->priority = f->priority;
    }
    if (said->has_devices) {
        known->has_own_devices = f->has_own_devices;
        known->pid = f->pid;
    }
    return !container_is_same(&before, known);
}
