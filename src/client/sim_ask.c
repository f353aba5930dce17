/* `gpumgr sim list`, `fault` and `heal`: one question to the simulator. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/number.h"
#include "client/output.h"
#include "client/sim.h"
#include "sim/faults.h"
#include "sim/shm.h"

/* What all three take. */
struct asking {
    const char *sim_dir, *dir;
    bool json;
    struct flags flags;
    struct sim_place place;
};

static int parse(struct asking *a, int argc, char **argv, struct error *e) {
    a->dir = "";
    const struct flag own[] = {
        {.name = "sim-dir", .kind = FLAG_TEXT, .into = &a->sim_dir},
        {.name = "dir",     .kind = FLAG_TEXT, .into = &a->dir    },
        {.name = "json",    .kind = FLAG_YES,  .into = &a->json   },
    };
    return flags_parse(argc, argv, own, ARRAY_LEN(own), FLAGS_OWN, &a->flags, e);
}

static int find(struct asking *a, struct error *e) { return sim_find_running(a->sim_dir, a->dir, &a->place, e); }

/* ---- list ---- */

static void put_scaled(struct buf *b, const char *key, double value) {
    char text[64];
    number_text(value, 0.001, text, sizeof text);
    json_key(b, key);
    buf_puts(b, text);
}

static void put_gpu(struct buf *b, const struct shm_gpu *g) {
    static struct shm_procs procs;
    struct shm_state s;
    shm_read_state(g, &s);
    shm_read_procs(g, &procs);
    json_open(b, '{');
    json_pair_int(b, "index", g->card.index);
    json_pair_str(b, "uuid", g->card.uuid);
    json_pair_str(b, "model", g->card.name);
    json_pair_int(b, "temperature_celsius", s.temp_c);
    put_scaled(b, "power_watts", s.power_avg_mw / 1000.0);
    put_scaled(b, "power_limit_watts", s.limit_mw / 1000.0);
    put_scaled(b, "utilization_ratio", s.util_gpu / 100.0);
    json_pair_bool(b, "lost", s.lost);
    json_key(b, "tasks");
    json_open(b, '[');
    for (uint64_t i = 0; i < procs.count && i < SHM_PROCS_MAX; i++) {
        json_open(b, '{');
        json_pair_int(b, "pid", procs.proc[i].pid);
        json_pair_str(b, "name", procs.proc[i].name);
        json_key(b, "memory_bytes");
        json_uint(b, procs.proc[i].used_bytes);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_close(b, '}');
}

static int list_json(const char *dir, struct buf *b, struct error *e) {
    const struct shm_root *root;
    int r = shm_open_dir(dir, &root);
    if (r < 0) return fail_errno(e, -r, "%.100s", dir);
    json_open(b, '{');
    json_pair_str(b, "dir", dir);
    json_key(b, "gpus");
    json_open(b, '[');
    for (uint32_t i = 0; i < root->gpu_count; i++) put_gpu(b, shm_gpu(root, i));
    json_close(b, ']');
    json_close(b, '}');
    buf_putc(b, '\n');
    shm_close_dir(root);
    return 0;
}

int sim_list(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    AUTO(buf_done) struct buf b = {0};
    struct asking a = {0};
    struct error e;
    int r = parse(&a, argc, argv, &e);
    if (r == 0 && a.flags.wants_help) return sim_help(verb);
    if (r == 0) r = flags_no_words(&a.flags, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    r = find(&a, &e);
    if (r == 0) r = a.json ? list_json(a.place.dir, &b, &e) : sim_ask(a.place.dir, "list", &b, &e);
    return r < 0 ? command_fail(self, &e, EXIT_FAILED) : output_exit(&b);
}

/* ---- fault and heal ---- */

static int check_fault(const struct flags *f, struct error *e) {
    if (f->word_count < 2) return fail(e, -EINVAL, "fault: a GPU and a fault are needed; --help lists the faults");
    if (fault_by_name(f->words[1])) return 0;
    struct nearest near = {.typed = f->words[1]};
    for (size_t i = 0; i < fault_count; i++) nearest_offer(&near, faults[i].name);
    if (near.best)
        return fail(e, -EINVAL, "fault: no such fault as \"%.40s\"; did you mean %s?", f->words[1], near.best);
    return fail(e, -EINVAL, "fault: no such fault as \"%.40s\"; `gpumgr sim fault --help` lists them", f->words[1]);
}

static int ask_words(const struct command *self, struct asking *a, const char *verb) {
    AUTO(buf_done) struct buf line = {0}, said = {0};
    struct error e;
    int r = find(a, &e);
    if (r < 0) return command_fail(self, &e, EXIT_FAILED);
    buf_puts(&line, verb);
    for (size_t i = 0; i < a->flags.word_count; i++) buf_printf(&line, " %s", a->flags.words[i]);
    r = sim_ask(a->place.dir, line.s, &said, &e);
    if (r < 0) return command_fail(self, &e, r == -EINVAL ? EXIT_INPUT : EXIT_FAILED);
    return output_exit(&said);
}

int sim_fault(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    struct asking a = {0};
    struct error e;
    int r = parse(&a, argc, argv, &e);
    if (r == 0 && a.flags.wants_help) return sim_help(verb);
    if (r == 0) r = check_fault(&a.flags, &e);
    return r < 0 ? command_fail(self, &e, EXIT_INPUT) : ask_words(self, &a, "fault");
}

int sim_heal(const struct command *self, const struct sim_verb *verb, int argc, char **argv) {
    struct asking a = {0};
    struct error e;
    int r = parse(&a, argc, argv, &e);
    if (r == 0 && a.flags.wants_help) return sim_help(verb);
    if (r == 0 && a.flags.word_count > 1) r = fail(&e, -EINVAL, "heal: one GPU, or all");
    return r < 0 ? command_fail(self, &e, EXIT_INPUT) : ask_words(self, &a, "heal");
}
