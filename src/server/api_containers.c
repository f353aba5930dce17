/* Containers by the API: which there are, adding, changing, starting, stopping, removing. The server passes on who asks
 * and what; the node decides and acts, and its sentence is the answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/json_slice.h"
#include "model/container_spec_json.h"
#include "model/duration.h"
#include "model/ui.h"
#include "server/api.h"
#include "server/proxy.h"
#include "server/server.h"

#define NODE_FIELD                                                                                                     \
    { "node", FIELD_TEXT, false, "On which machine; needed where there are several" }

const struct route_field api_container_node_query[] = {NODE_FIELD, {0}};
const struct route_field api_container_start_query[] = {
    NODE_FIELD, {"shared", FIELD_BOOL, false, "On GPUs that somebody else has, too"},
     {0  }
};
const struct route_field api_container_edit_query[] = {
    NODE_FIELD, {"dry_run", FIELD_BOOL, false, "Nothing is changed: says what would be"},
     {0   }
};
const struct route_field api_container_log_query[] = {
    NODE_FIELD,
    {"tail", FIELD_NUMBER, false, "The last so many lines: 200 where it is not given, 2000 at most"},
    {"follow", FIELD_BOOL, false, "As a stream of events: `log` with {text}, then `end`"},
    {0     }
};
/* For the reference page; model/container_spec_json reads the document and names what is wrong with it. */
const struct route_field api_container_body[] = {
    {"image",                   FIELD_TEXT, false, "An image that the machine has"},
    {"name",                    FIELD_TEXT, false, "What it is called"},
    {"command",                         FIELD_LIST, false, "Command and arguments, or one text for the image's shell; the image's own if none"},
    {"env",FIELD_TEXT, false, "An object of variables"},
    {"mounts",      FIELD_LIST, false, "`SOURCE:TARGET[:ro]`, below jobs.mount_roots and with your rights"},
    {"labels",                 FIELD_TEXT, false, "An object of texts"},
    {"gpus",                    FIELD_NUMBER, false, "How many free GPUs, or \"all\"; none where it is not given"},
    {"gpu_ids",                         FIELD_LIST, false, "Just these, by index or UUID"},
    {"shared",                    FIELD_BOOL, false, "On GPUs that somebody else has, too"},
    {"cwd", FIELD_TEXT, false, "Where its command runs"},
    {"deadline",                  FIELD_TEXT, false, "How long each of its GPU tasks may take, as `30s`"},
    {"period",                    FIELD_TEXT, false, "In each of which a task must begin"},
    {"ui",                         FIELD_TEXT, false, "`PORT[/PATH]` of a page of its own"},
    {"restart",FIELD_TEXT, false, "no, on-failure, on-failure:N, always or unless-stopped"},
    {0    }
};

/* ---- asking one node ---- */

int api_container_node(const struct call *c, struct live_node **ret, struct error *e) {
    const struct live *l = &c->server->live;
    const char *name = call_query(c, "node");
    struct live_node *only = NULL;
    unsigned linked = 0;
    if (name) {
        *ret = live_find_node(l, name);
        return *ret ? 0 : fail(e, -ENOENT, "no machine %.60s is known", name);
    }
    for (size_t i = 0; i < l->count; i++)
        if (l->node[i]->link && ++linked) only = l->node[i];
    if (linked == 0) return fail(e, -ENOTCONN, "no machine is connected");
    if (linked > 1) return fail(e, -EINVAL, "node: there are several machines: say which");
    *ret = only;
    return 0;
}

int api_container_call(const struct call *c, enum container_verb verb, struct wire_container_call *ret,
                       struct error *e) {
    *ret = (struct wire_container_call){.verb = (uint8_t)verb, .is_admin = c->who.role == ROLE_ADMIN};
    snprintf(ret->account, sizeof ret->account, "%s", c->who.user ? c->who.name : "");
    if (!c->param[0]) return 0;
    if (strlen(c->param[0]) >= sizeof ret->of) return fail(e, -ENOENT, "no container of this id or name is known");
    snprintf(ret->of, sizeof ret->of, "%s", c->param[0]);
    return 0;
}

static void answered(void *ctx, int result, const struct wire_container_answer *a, const char *sentence) {
    struct call *c = ctx;
    struct error e = {0};
    if (result < 0) fail(&e, result, "%s", sentence);
    if (result >= 0 && a->len) {
        buf_add(&c->out, a->body, a->len);
        buf_putc(&c->out, '\n');
    }
    call_end(c, result < 0 ? result : c->ctx ? 201 : 0, &e);
}

static int pass_on(struct call *c, struct wire_container_call *call, struct error *e) {
    struct live_node *n;
    int r = api_container_node(c, &n, e);
    if (r >= 0) r = containers_ask(c->server->containers, n, call, answered, c, e);
    return r < 0 ? r : CALL_LATER;
}

static int act(struct call *c, enum container_verb verb, struct error *e) {
    struct wire_container_call call;
    int r = api_container_call(c, verb, &call, e);
    if (r < 0) return r;
    if (verb == CONTAINER_VERB_START) call.is_shared = call_query_is_true(c, "shared");
    return pass_on(c, &call, e);
}

int api_container_start(struct call *c, struct error *e) { return act(c, CONTAINER_VERB_START, e); }
int api_container_stop(struct call *c, struct error *e) { return act(c, CONTAINER_VERB_STOP, e); }
int api_container_restart(struct call *c, struct error *e) { return act(c, CONTAINER_VERB_RESTART, e); }
int api_container_remove(struct call *c, struct error *e) { return act(c, CONTAINER_VERB_REMOVE, e); }
int api_container_spec(struct call *c, struct error *e) { return act(c, CONTAINER_VERB_SPEC, e); }
int api_images(struct call *c, struct error *e) { return act(c, CONTAINER_VERB_IMAGES, e); }

static int with_record(struct call *c, enum container_verb verb, struct error *e) {
    AUTO(buf_done) struct buf record = {0};
    struct wire_container_call call;
    const struct buf *body = &c->request->body;
    if (!body->len) return fail(e, -EINVAL, "a container's description is missing: give it as the body, in JSON");
    int r = api_container_call(c, verb, &call, e);
    if (r >= 0) r = container_spec_from_json(body->s, body->len, &record, e);
    if (r < 0) return r;
    call.record = (const uint8_t *)record.s;
    call.record_len = record.len;
    return pass_on(c, &call, e);
}

int api_container_add(struct call *c, struct error *e) {
    c->ctx = c; /* something new: 201 */
    return with_record(c, CONTAINER_VERB_ADD, e);
}

int api_container_edit(struct call *c, struct error *e) {
    bool is_dry = call_query_is_true(c, "dry_run");
    return with_record(c, is_dry ? CONTAINER_VERB_TRY : CONTAINER_VERB_EDIT, e);
}

struct listing;
/* One question of a call, to one machine. */
struct part {
    struct call *call;
    struct listing *of; /* NULL: the only question */
    char node[64];
};

static struct part *part_new(struct call *c, struct listing *of, const char *node) {
    struct part *p = malloc(sizeof *p);
    if (!p) abort();
    *p = (struct part){.call = c, .of = of};
    snprintf(p->node, sizeof p->node, "%s", node);
    return p;
}

static void nothing(void *ctx, const struct json_scan_value *v) {}

/* ---- its own page: the node says where it is, and whether he may ---- */

static void text_of(struct json_slice object, const char *key, char *ret, size_t room) {
    AUTO(buf_done) struct buf b = {0};
    json_slice_text(json_slice_get(object, key), &b);
    snprintf(ret, room, "%s", b.s ? b.s : "");
}

static int open_ui(struct call *c, const struct wire_container_answer *a, const char *node, struct error *e) {
    AUTO(buf_done) struct buf body = {0};
    struct proxy_target t = {.open.kind = WIRE_STREAM_CONTAINER};
    char ui[300];
    if (a && a->len) buf_add(&body, a->body, a->len);
    if (!body.len || json_scan(body.s, body.len, nothing, NULL, e) < 0)
        return fail(e, -EPROTO, "the machine's answer makes no sense");
    const struct json_slice all = {body.s, body.len};
    text_of(all, "id", t.open.container, sizeof t.open.container);
    text_of(all, "name", t.title, sizeof t.title);
    text_of(all, "owner", t.owner, sizeof t.owner);
    text_of(all, "ui", ui, sizeof ui);
    snprintf(t.node, sizeof t.node, "%s", node);
    int r = ui_parse(ui, &t.ui, e);
    t.open.port = (uint16_t)t.ui.port;
    return r < 0 ? r : api_ui_open(c, &t, e);
}

static void ui_came(void *ctx, int result, const struct wire_container_answer *a, const char *sentence) {
    struct part *p = ctx;
    struct call *c = p->call;
    struct error e = {0};
    if (result < 0) fail(&e, result, "%s", sentence);
    if (result >= 0 && c->request) result = open_ui(c, a, p->node, &e);
    free(p);
    call_end(c, result < 0 ? result : 0, &e);
}

int api_container_ui(struct call *c, struct error *e) {
    struct wire_container_call call;
    struct live_node *n = NULL;
    int r = api_container_call(c, CONTAINER_VERB_UI, &call, e);
    if (r >= 0) r = api_container_node(c, &n, e);
    if (r < 0) return r;
    struct part *p = part_new(c, NULL, n->name);
    r = containers_ask(c->server->containers, n, &call, ui_came, p, e);
    if (r >= 0) return CALL_LATER;
    free(p);
    return r;
}

/* ---- the list: every machine is asked ---- */

struct listing {
    struct call *call;
    size_t waiting;
    struct buf rows, problems;
};

static bool has_row(const struct buf *rows, const char *id) {
    char text[90];
    snprintf(text, sizeof text, "\"id\":\"%s\"", id);
    return rows->s && strstr(rows->s, text);
}

/* What other engines have is known by its tasks. Nothing can be done with it from here. */
static void put_seen(struct listing *l, const struct live_node *n, const struct live_container *c) {
    struct buf *b = &l->rows;
    char deadline[DURATION_TEXT];
    json_open(b, '{');
    json_pair_str(b, "node", n->name);
    json_pair_str(b, "id", c->of.id);
    json_pair_str(b, "name", *c->of.name ? c->of.name : c->of.id);
    json_pair_str(b, "image", c->of.image);
    json_pair_str(b, "engine", belonging_kind_name((enum belonging_kind)c->of.kind));
    json_pair_str(b, "state", wire_container_state_name((enum wire_container_state)c->of.state));
    json_key(b, "deadline");
    duration_text(c->of.deadline_ns, deadline);
    if (c->of.deadline_ns)
        json_str(b, deadline);
    else
        json_nil(b);
    json_key(b, "created");
    if (c->of.created_real_ns)
        json_num(b, (double)c->of.created_real_ns / NS_PER_S);
    else
        json_nil(b);
    static const char *const unknown[] = {"user",  "account",   "ui",    "job",    "started",
                                          "ended", "exit_code", "error", "restart"};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        json_key(b, unknown[i]);
        json_nil(b);
    }
    json_pair_bool(b, "is_ours", false);
    json_key(b, "gpus");
    buf_puts(b, "[]");
    json_pair_bool(b, "all_gpus", false);
    json_pair_int(b, "tasks", c->of.running);
    json_pair_int(b, "memory_bytes", (int64_t)c->of.memory_bytes);
    json_key(b, "may");
    buf_puts(b, "[]");
    json_close(b, '}');
}

static void listed(struct listing *l) {
    struct call *c = l->call;
    const struct live *live = &c->server->live;
    const struct error none = {0};
    for (size_t i = 0; i < live->count; i++)
        for (size_t k = 0; k < live->node[i]->tasks.containers; k++) {
            const struct live_container *one = live->node[i]->tasks.container[k];
            bool is_container = one->of.kind >= BELONGS_TO_CONTAINERD && one->of.kind <= BELONGS_TO_DOCKER;
            if (!one->ended_ns && is_container && !has_row(&l->rows, one->of.id)) put_seen(l, live->node[i], one);
        }
    json_open(&c->out, '{');
    json_pair_num(&c->out, "time", (double)(clock_real_ns() / NS_PER_MS) / 1000);
    json_key(&c->out, "containers");
    json_open(&c->out, '[');
    if (l->rows.len) buf_add(&c->out, l->rows.s, l->rows.len);
    json_close(&c->out, ']');
    json_key(&c->out, "problems");
    json_open(&c->out, '[');
    if (l->problems.len) buf_add(&c->out, l->problems.s, l->problems.len);
    json_close(&c->out, ']');
    json_close(&c->out, '}');
    buf_putc(&c->out, '\n');
    buf_done(&l->rows);
    buf_done(&l->problems);
    free(l);
    call_end(c, 0, &none);
}

/* Rows come as objects; each gets its machine's name. */
static int put_rows(struct listing *l, const char *node, const struct wire_container_answer *a, struct error *e) {
    struct json_slice key, row;
    AUTO(buf_done) struct buf text = {0};
    if (a && a->len) buf_add(&text, a->body, a->len);
    int r =
        text.len ? json_scan(text.s, text.len, nothing, NULL, e) : fail(e, -EPROTO, "the machine's answer is empty");
    if (r < 0) return r;
    for (size_t at = 0; json_slice_next((struct json_slice){text.s, text.len}, &at, &key, &row);) {
        if (row.len < 3 || row.s[0] != '{') continue;
        json_open(&l->rows, '{');
        json_pair_str(&l->rows, "node", node);
        json_slice_put((struct json_slice){row.s + 1, row.len - 1}, &l->rows);
    }
    return 0;
}

static void part_came(void *ctx, int result, const struct wire_container_answer *a, const char *sentence) {
    struct part *p = ctx;
    struct listing *l = p->of;
    struct error e = {0};
    if (result >= 0 && put_rows(l, p->node, a, &e) < 0) result = e.code, sentence = e.text;
    if (result < 0) {
        json_open(&l->problems, '{');
        json_pair_str(&l->problems, "node", p->node);
        json_pair_str(&l->problems, "text", sentence);
        json_close(&l->problems, '}');
    }
    free(p);
    if (--l->waiting == 0) listed(l);
}

int api_containers_gpu(struct call *c, struct error *e) {
    struct live *live = &c->server->live;
    struct wire_container_call call;
    struct listing *l = calloc(1, sizeof *l);
    if (!l) abort();
    *l = (struct listing){.call = c, .waiting = 1};
    if (api_container_call(c, CONTAINER_VERB_LIST, &call, e) < 0) return free(l), e->code;
    for (size_t i = 0; i < live->count; i++) {
        struct error why;
        struct part *p = part_new(c, l, live->node[i]->name);
        l->waiting++;
        if (!live->node[i]->link)
            part_came(p, -ENOTCONN, NULL, "this machine is not connected");
        else if (containers_ask(c->server->containers, live->node[i], &call, part_came, p, &why) < 0)
            part_came(p, why.code, NULL, why.text);
    }
    if (--l->waiting == 0) listed(l);
    return CALL_LATER;
}
