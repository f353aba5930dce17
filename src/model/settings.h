/* Every key that a person may set, in one struct and one table (settings.c). The table is the documentation: config
 * file, flags, environment, `gpumgr config` and the reference page walk it. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/options.h"

enum guard_mode { GUARD_AUTO, GUARD_OBSERVE, GUARD_OFF };
enum guard_drift { DRIFT_YIELD, DRIFT_ASSERT };
enum guard_stale { STALE_OWN, STALE_ALL };

struct settings {
    char dir[200], gpu_library[256], listen[128], gpus[1024], kmsg[256], sim_model[256], config[256], lock_dir[256],
        gpu_devices[256];
    char tls_cert[256], tls_key[256], server_user[64], base_path[128], trusted_proxies[512], public_url[256];
    int keep_days, rollup_days, gone_s;
    int wait_ms, workers, answer_ms, lost_ms, sim, log_level, guard_mode, grace_ms, drift, clear_stale;
    double hot_c, memory_c, margin_c, budget_w, slow_percent;
    bool sim_costs, print_link, listen_plain, dcgm_names, jobs_end_unknown;
    char tell_webhook[512], tell_slack[512], tell_smtp_url[256], tell_smtp_user[128], tell_smtp_password_file[256];
    char tell_smtp_ca_file[256], tell_user_webhooks[512];
    char tell_mail_from[128], tell_mail_to[512], tell_command[512];
    int tell_severity, tell_again_s, idle_s, miss_window_s;
    double busy_percent, full_percent;
    char engines_docker[512], engines_podman[512];
    int jobs_lost_s, jobs_keep_days, jobs_grace_s, jobs_user_gpus, jobs_policy, reserve_unused_min, watchmen_timeout_s;
    double jobs_fair_half_life_h, jobs_fair_wait_h, jobs_user_gpu_hours, reserve_user_gpu_hours, reserve_ahead_h,
        watchmen_keep_h;
    char watchmen_listen[128], watchmen_token[128];
    char ui_ports[24], ui_url[256];
    char jobs_users_file[256], jobs_run_as[64], jobs_mount_roots[512];
    bool jobs_notify_command;
    bool tell_is_users; /* no setting: whom this message goes to was said by a user */
    int jobs_stray, jobs_stray_end_s;
    int outside, outside_when, outside_warn_s, outside_end_s;
    char outside_except[1024];
    int jobs_log_max_mb, jobs_free_memory_mb, jobs_idle_warn_s, jobs_idle_end_s;
};

extern const struct option settings_table[];
extern const size_t settings_count;

/* All defaults, through the same setters as user input. */
void settings_init(struct settings *s);

/* What no single row can say: values that make no sense together. NULL when they do, else the row to blame and a
 * sentence with its range. */
const struct option *settings_clash(const struct settings *s, struct error *e);

/* The settings as lines of key=value, and back: how one program hands them to another. Decoding is as strict as the
 * table: what it does not know it refuses. */
void settings_encode(const struct settings *s, struct buf *out);
int settings_decode(struct settings *s, const char *text, struct error *e) MUST_CHECK;
