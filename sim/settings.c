/* One row a setting: the ability it needs, and the function that applies it. */
#include "sim/settings.h"

#include <stdbool.h>
#include <string.h>

enum { LOCK_TDP = 0xffffff01, LOCK_UNLIMITED = 0xffffff02 }; /* NVML's symbolic clock limits */

struct target {
    struct plant *plant;
    struct board *board;
    const struct shm_card *card;
};

static int set_power(struct target *t, const int64_t *v) {
    if (v[0] < t->card->power_min_mw || v[0] > t->card->power_max_mw) return CODE_INVALID;
    t->plant->set.limit_w = (double)v[0] / 1000;
    return CODE_OK;
}

static bool clock_limit(const struct shm_card *c, int64_t v, uint32_t *ret) {
    if (v == LOCK_TDP || v == LOCK_UNLIMITED)
        *ret = v == LOCK_TDP ? c->app_gr_default_mhz : c->gr_max_mhz;
    else if (v < 0 || v > 100000)
        return false;
    else
        *ret = (uint32_t)v;
    return true;
}

static int lock_clocks(struct target *t, const int64_t *v) {
    uint32_t lo, hi, lowest = t->card->gr_min_mhz;
    if (!clock_limit(t->card, v[0], &lo) || !clock_limit(t->card, v[1], &hi) || lo > hi || hi == 0) return CODE_INVALID;
    t->plant->set.lock_gr_min_mhz = lo < lowest ? lowest : lo > t->card->gr_max_mhz ? t->card->gr_max_mhz : lo;
    t->plant->set.lock_gr_max_mhz = hi < lowest ? lowest : hi;
    return CODE_OK;
}

static int unlock_clocks(struct target *t, const int64_t *v) {
    (void)v;
    t->plant->set.lock_gr_min_mhz = t->plant->set.lock_gr_max_mhz = 0;
    return CODE_OK;
}

static int lock_memory(struct target *t, const int64_t *v) {
    uint32_t least = t->card->clocks[t->card->mem_clock_count - 1].mem_mhz;
    if (v[0] < 0 || v[1] < v[0] || v[1] < least) return CODE_INVALID;
    t->plant->set.lock_mem_min_mhz = v[0] > t->card->mem_max_mhz ? t->card->mem_max_mhz : (uint32_t)v[0];
    t->plant->set.lock_mem_max_mhz = v[1] > t->card->mem_max_mhz ? t->card->mem_max_mhz : (uint32_t)v[1];
    return CODE_OK;
}

static int unlock_memory(struct target *t, const int64_t *v) {
    (void)v;
    t->plant->set.lock_mem_min_mhz = t->plant->set.lock_mem_max_mhz = 0;
    return CODE_OK;
}

static int set_app_clocks(struct target *t, const int64_t *v) {
    if (v[0] < 0 || v[0] > UINT32_MAX) return CODE_INVALID;
    const struct shm_clocks *list = card_clocks(t->card, (uint32_t)v[0]);
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (list->gr_mhz[i] != v[1]) continue;
        t->plant->set.app_mem_mhz = (uint32_t)v[0];
        t->plant->set.app_gr_mhz = (uint32_t)v[1];
        return CODE_OK;
    }
    return CODE_INVALID;
}

static int reset_app_clocks(struct target *t, const int64_t *v) {
    (void)v;
    t->plant->set.app_mem_mhz = t->plant->set.app_gr_mhz = 0;
    return CODE_OK;
}

static bool is_fan(const struct target *t, int64_t i) { return i >= 0 && i < t->card->fan_count; }

static int set_fan(struct target *t, const int64_t *v) {
    if (!is_fan(t, v[0]) || v[1] < t->card->fan_min_pct || v[1] > t->card->fan_max_pct) return CODE_INVALID;
    t->plant->set.fan[v[0]].manual = true;
    t->plant->set.fan[v[0]].pct = (uint32_t)v[1];
    return CODE_OK;
}

static int release_fan(struct target *t, const int64_t *v) {
    if (!is_fan(t, v[0])) return CODE_INVALID;
    t->plant->set.fan[v[0]].manual = false;
    return CODE_OK;
}

static int set_fan_policy(struct target *t, const int64_t *v) {
    if (!is_fan(t, v[0]) || (v[1] != 0 && v[1] != 1)) return CODE_INVALID;
    if (v[1] && !t->plant->set.fan[v[0]].manual) t->plant->set.fan[v[0]].pct = (uint32_t)t->plant->fan_pct[v[0]];
    t->plant->set.fan[v[0]].manual = v[1];
    return CODE_OK;
}

static int set_persistence(struct target *t, const int64_t *v) {
    if (v[0] != 0 && v[0] != 1) return CODE_INVALID;
    t->board->persistence = (uint32_t)v[0];
    return CODE_OK;
}

static int set_ecc(struct target *t, const int64_t *v) {
    if (v[0] != 0 && v[0] != 1) return CODE_INVALID;
    t->board->ecc_pending = (uint32_t)v[0];
    return CODE_OK;
}

static int clear_ecc(struct target *t, const int64_t *v) {
    if (v[0] != 0 && v[0] != 1) return CODE_INVALID;
    memset(t->board->ecc_corrected[v[0]], 0, sizeof t->board->ecc_corrected[0]);
    memset(t->board->ecc_uncorrected[v[0]], 0, sizeof t->board->ecc_uncorrected[0]);
    return CODE_OK;
}

static int set_compute_mode(struct target *t, const int64_t *v) {
    if (v[0] != 0 && v[0] != 2 && v[0] != 3) return CODE_INVALID;
    t->board->compute_mode = (uint32_t)v[0];
    return CODE_OK;
}

static int set_acoustic(struct target *t, const int64_t *v) {
    if (t->card->acoustic_max_c == 0) return CODE_NOT_SUPPORTED;
    if (v[0] < t->card->acoustic_min_c || v[0] > t->card->acoustic_max_c) return CODE_INVALID;
    t->plant->set.acoustic_c = (double)v[0];
    return CODE_OK;
}

static int set_restriction(struct target *t, const int64_t *v) {
    if (v[0] == 1) return CODE_NOT_SUPPORTED; /* automatic boost: before any of these cards */
    if (v[0] != 0 || (v[1] != 0 && v[1] != 1)) return CODE_INVALID;
    t->board->app_clocks_open = v[1] == 0;
    return CODE_OK;
}

static const struct {
    uint64_t needs;
    int (*apply)(struct target *t, const int64_t *v);
} settings[SET_COUNT] = {
    [SET_POWER_LIMIT] = {CAN(POWER_SET),         set_power       },
    [SET_LOCKED_CLOCKS] = {CAN(LOCKED_CLOCKS),     lock_clocks     },
    [SET_LOCKED_CLOCKS_RESET] = {CAN(LOCKED_CLOCKS),     unlock_clocks   },
    [SET_MEM_LOCKED_CLOCKS] = {CAN(MEM_LOCKED_CLOCKS), lock_memory     },
    [SET_MEM_LOCKED_CLOCKS_RESET] = {CAN(MEM_LOCKED_CLOCKS), unlock_memory   },
    [SET_APP_CLOCKS] = {CAN(APP_CLOCKS),        set_app_clocks  },
    [SET_APP_CLOCKS_RESET] = {CAN(APP_CLOCKS),        reset_app_clocks},
    [SET_FAN] = {CAN(FAN_SET),           set_fan         },
    [SET_FAN_DEFAULT] = {CAN(FAN_SET),           release_fan     },
    [SET_FAN_POLICY] = {CAN(FAN_SET),           set_fan_policy  },
    [SET_PERSISTENCE] = {CAN(PERSISTENCE),       set_persistence },
    [SET_ECC] = {CAN(ECC),               set_ecc         },
    [SET_ECC_CLEAR] = {CAN(ECC),               clear_ecc       },
    [SET_COMPUTE_MODE] = {CAN(COMPUTE_MODE),      set_compute_mode},
    [SET_ACOUSTIC] = {CAN(THRESHOLDS),        set_acoustic    },
    [SET_API_RESTRICTION] = {CAN(APP_CLOCKS),        set_restriction },
};

int settings_apply(struct machine *m, uint32_t gpu, const struct wire_set *set) {
    if (gpu >= m->gpu_count || set->setting >= SET_COUNT || !settings[set->setting].apply) return CODE_INVALID;
    if (m->driver != SHM_DRIVER_UP) return CODE_DRIVER_DOWN;
    if (m->board[gpu].lost) return CODE_LOST;
    if (~m->card[gpu].abilities & settings[set->setting].needs) return CODE_NOT_SUPPORTED;
    struct target t = {&m->plant[gpu], &m->board[gpu], &m->card[gpu]};
    return settings[set->setting].apply(&t, set->value);
}

bool settings_are_free(const struct machine *m, uint32_t gpu, const struct wire_set *set) {
    bool is_app_clocks = set->setting == SET_APP_CLOCKS || set->setting == SET_APP_CLOCKS_RESET;
    return is_app_clocks && gpu < m->gpu_count && m->board[gpu].app_clocks_open;
}
