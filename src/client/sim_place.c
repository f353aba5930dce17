#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instance.h"
#include "client/sim.h"
#include "sim/client.h"
#include "sim/models.h"

bool sim_is_running(const char *dir) {
    int fd = client_open(dir);
    if (fd < 0) return false;
    client_close(fd);
    return true;
}

void sim_find(const char *sim_dir, const char *dir, struct sim_place *ret) {
    const char *set = getenv("GPUSIM_DIR"), *home = getenv("GPUMGR_DIR");
    struct instance i;
    struct error e;
    *ret = (struct sim_place){0};
    if (sim_dir || (set && *set)) {
        snprintf(ret->dir, sizeof ret->dir, "%s", sim_dir ? sim_dir : set);
        return;
    }
    if (instance_find(*dir || !home ? dir : home, &i, &e) == 0) {
        instance_path(&i, ret->dir, sizeof ret->dir, "sim");
        ret->of_instance = sim_is_running(ret->dir);
        if (ret->of_instance) return;
    }
    shm_default_dir(ret->dir, sizeof ret->dir);
}

int sim_find_running(const char *sim_dir, const char *dir, struct sim_place *ret, struct error *e) {
    sim_find(sim_dir, dir, ret);
    if (sim_is_running(ret->dir)) return 0;
    return fail(e, -ESRCH, "no simulator runs in %.100s; `gpumgr sim start` or `gpumgr up --sim 8` starts one",
                ret->dir);
}

int sim_ask(const char *dir, const char *line, struct buf *ret, struct error *e) {
    struct wire_request q = {.verb = VERB_COMMAND};
    static struct wire_reply reply;
    if (strlen(line) >= sizeof q.command) return fail(e, -EINVAL, "more words than the simulator takes");
    memcpy(q.command, line, strlen(line) + 1);
    int r = client_once(dir, &q, &reply);
    if (r < 0) return fail_errno(e, -r, "the simulator in %.100s", dir);
    if (reply.code) {
        reply.text[strcspn(reply.text, "\n")] = 0;
        return fail(e, -EINVAL, "%s", reply.text);
    }
    buf_puts(ret, reply.text);
    return 0;
}

static int unknown_model(const char *key, struct error *e) {
    char known[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < model_count && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", models[i].key);
    return fail(e, -EINVAL, "sim_model: \"%.40s\" is not one of %s", key, known);
}

int sim_check_models(const char *list, struct error *e) {
    char text[256];
    snprintf(text, sizeof text, "%s", list);
    char *rest = text;
    for (char *item; (item = strsep(&rest, ","));) {
        char *colon = strchr(item, ':'), *end;
        if (colon) *colon = 0;
        if (!model_by_key(item)) return unknown_model(item, e);
        long count = colon ? strtol(colon + 1, &end, 10) : 1;
        if (colon && (end == colon + 1 || *end || count < 1 || count > SHM_GPUS_MAX))
            return fail(e, -EINVAL, "sim_model: %s:%.20s: the count is not a whole number from 1 to %d", item,
                        colon + 1, SHM_GPUS_MAX);
    }
    return 0;
}

static void add_card(const struct model *m, int32_t index, struct view *ret) {
    struct inventory *i = &view_add(ret)->inventory;
    i->index = index;
    i->parent = -1;
    snprintf(i->name, sizeof i->name, "%s", m->name);
    i->temp_slowdown_c = m->slowdown_c;
    i->temp_gpu_max_c = m->gpu_max_c;
    i->temp_memory_max_c = m->mem_max_c;
    i->limit_min_mw = (int32_t)(m->limit_min_w * 1000);
    i->limit_default_mw = (int32_t)(m->limit_default_w * 1000);
    if (m->limit_max_w > m->limit_min_w) i->control |= CONTROL_POWER;
}

void sim_view(const char *list, int count, struct view *ret) {
    const struct model *of[SHM_GPUS_MAX];
    char text[256];
    int n = 0;
    snprintf(text, sizeof text, "%s", list);
    char *rest = text;
    for (char *item; (item = strsep(&rest, ","));) {
        char *colon = strchr(item, ':');
        if (colon) *colon = 0;
        const struct model *m = model_by_key(item);
        for (int k = colon ? atoi(colon + 1) : 1; m && k > 0 && n < SHM_GPUS_MAX; k--) of[n++] = m;
    }
    for (int i = 0; n && i < count; i++) add_card(of[i % n], i, ret); /* the list over and over */
}

int sim_begin(const struct command *self, const struct sim_verb *verb, int argc, char **argv, enum flags_mode mode,
              const char *needs, struct flags *flags, struct sim_place *ret) {
    const char *sim_dir = NULL, *dir = "";
    const struct flag own[] = {
        {.name = "sim-dir", .kind = FLAG_TEXT, .into = &sim_dir},
        {.name = "dir",     .kind = FLAG_TEXT, .into = &dir    },
    };
    struct error e;
    int r = flags_parse(argc, argv, own, ARRAY_LEN(own), mode, flags, &e);
    if (r == 0 && flags->wants_help) return sim_help(verb);
    if (r == 0 && mode == FLAGS_OWN) r = flags_no_words(flags, &e);
    if (r == 0 && mode == FLAGS_STOP_AT_WORD && !flags->word_count) r = fail(&e, -EINVAL, "%s", needs);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = sim_find_running(sim_dir, dir, ret, &e);
    return r < 0 ? command_fail(self, &e, r == -EINVAL ? EXIT_INPUT : EXIT_FAILED) : SIM_GOES_ON;
}
