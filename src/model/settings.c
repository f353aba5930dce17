#include "model/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/ui.h"
#include "model/user_hook.h"

#define AT(field) offsetof(struct settings, field), sizeof(((struct settings *)0)->field)

/* clang-format off */
const struct option settings_table[] = {
    {"dir",                  "",               "State, ring and sockets of this instance (empty: the default of root or of the user)", OPT_PATH, AT(dir)},
    {"config",               "",               "The configuration file (empty: gpumgr.json in dir, then /etc/gpumgr.json)", OPT_PATH, AT(config)},
    {"gpus",                 "all",            "Which GPUs to watch: all, or a list of indices and UUIDs", OPT_GPUS, AT(gpus)},
    {"wait_ms",              "1000",           "How long to wait between two readings of the fast metrics", OPT_INT, AT(wait_ms), 10, 60000},
    {"guard.hot_c",          "auto",           "Threshold temperature (auto: the card's own maximum less 3, else 83)", OPT_CELSIUS, AT(hot_c), 30, 110},
    {"guard.mode",           "auto",           "What may be done to a card: auto, observe (says what it would do, sets nothing), off", OPT_CHOICE, AT(guard_mode), .choices = "auto|observe|off"},
    {"guard.memory_c",       "auto",           "The same for the device memory (auto: its own maximum less 3; none where it has none)", OPT_CELSIUS, AT(memory_c), 30, 120},
    {"guard.margin_c",       "3",              "Degrees that must be left to the driver's thermal limit, where it tells them", OPT_REAL, AT(margin_c), 0, 40},
    {"guard.grace_ms",       "3000",           "A temperature that cannot be read for longer counts as hot", OPT_INT, AT(grace_ms), 500, 60000},
    {"guard.drift",          "yield",          "When someone else changes a limit: yield (it becomes the baseline) or assert (set it again)", OPT_CHOICE, AT(drift), .choices = "yield|assert"},
    {"guard.clear_stale",    "own",            "Which throttles to clear at start: own (those an earlier guard left), all (every card to its default)", OPT_CHOICE, AT(clear_stale), .choices = "own|all"},
    {"guard.budget_w",       "0",              "Power for all GPUs of the machine together, shared by demand, the less nice processes first; 0: no budget", OPT_REAL, AT(budget_w), 0, 1000000},
    {"guard.lock_dir",       "/dev/shm",       "Where guards of this machine keep the locks that make one guard a card", OPT_PATH, AT(lock_dir)},
    {"listen",               "127.0.0.1:7000", "Where the server listens for people and the API; beyond the loopback address with TLS or listen_plain", OPT_ADDRESS, AT(listen)},
    {"listen_plain",         "false",          "Plain HTTP beyond the loopback address is meant: a proxy or a closed network protects it", OPT_BOOL, AT(listen_plain)},
    {"tls.cert",             "",               "Certificate chain for HTTPS, a PEM file (empty: plain HTTP)", OPT_PATH, AT(tls_cert)},
    {"tls.key",              "",               "Its private key, a PEM file without a passphrase", OPT_PATH, AT(tls_key)},
    {"server.user",          "gpumgr",         "Who the server becomes when it is started as root; an unused number where there is no such user", OPT_TEXT, AT(server_user)},
    {"server.base_path",     "/",              "The path below which a proxy offers the pages and the API", OPT_TEXT, AT(base_path)},
    {"server.trusted_proxies", "",             "Addresses or networks (10.0.0.0/8) of proxies whose X-Forwarded-For and X-Forwarded-Proto count", OPT_TEXT, AT(trusted_proxies)},
    {"server.public_url",    "",               "The address people use, for links and checks (https://gpus.example.org/); empty: what they typed", OPT_TEXT, AT(public_url)},
    {"server.gone_s",        "60",             "A machine whose gpumgr has said nothing for so long is gone, and somebody is told", OPT_INT, AT(gone_s), 2, 86400},
    {"ui.ports",             "7100-7199",      "Ports for UIs of jobs and containers, one each, on the host of listen; opened when somebody opens one (empty: none is)", OPT_TEXT, AT(ui_ports)},
    {"ui.url",               "",               "How UIs are named where a proxy offers them, https://{ui}.example.org/: all at the first of ui.ports, told apart by name (empty: a port each)", OPT_TEXT, AT(ui_url)},
    {"server.print_link",    "false",          "Show the first sign-in link on standard error where that is no terminal, too: for containers; who reads that log can use it", OPT_BOOL, AT(print_link)},
    {"gpu_library",          "",               "The NVML library to open (empty: the driver's)", OPT_PATH, AT(gpu_library)},
    {"gpu_devices",          "/dev",           "Where the GPUs' device files lie: who opens one is a new process (empty: do not watch them)", OPT_PATH, AT(gpu_devices)},
    {"engines.docker",       "/var/run/docker.sock,/run/user/*/docker.sock", "Sockets of Docker Engines that name containers and their deadlines, with commas; a * is expanded (empty: none)", OPT_TEXT, AT(engines_docker)},
    {"engines.podman",       "/run/podman/podman.sock,/run/user/*/podman/podman.sock", "The same of Podman", OPT_TEXT, AT(engines_podman)},
    {"sim",                  "0",              "Simulated GPUs instead of real ones: how many", OPT_INT, AT(sim), 0, 64},
    {"sim_model",            "h200",           "Which cards to simulate, as a list like h200:4,a100:2", OPT_TEXT, AT(sim_model)},
    {"sim_costs",            "false",          "Simulated calls take as long as a real H200's", OPT_BOOL, AT(sim_costs)},
    {"sampler.workers",      "1",              "Processes that the GPUs are divided among", OPT_INT, AT(workers), 1, 16},
    {"sampler.answer_ms",    "2000",           "A GPU silent for longer is shown as not answering", OPT_INT, AT(answer_ms), 100, 60000},
    {"sampler.lost_ms",      "10000",          "A GPU silent for longer is shown as lost", OPT_INT, AT(lost_ms), 500, 600000},
    {"sampler.slow_percent", "0.064",          "Percent of one core that slow metrics of up to eight GPUs may cost together, per reading a second; more GPUs an eighth each", OPT_REAL, AT(slow_percent), 0.0005, 10},
    {"sampler.kmsg",         "/dev/kmsg",      "Kernel log to read XIDs from (empty: none)", OPT_PATH, AT(kmsg)},
    {"exporter.dcgm_names",  "false",          "On /metrics also the names, labels and units of dcgm-exporter, for dashboards that exist", OPT_BOOL, AT(dcgm_names)},
    {"tasks.idle_s",         "1800",           "A process that holds GPU memory and has not used its GPU for so long is reported; 0: none is", OPT_INT, AT(idle_s), 0, 31536000},
    {"jobs.users_file",      "",               "Which Unix user an account of the web or the API stands for, as lines \"ACCOUNT USER\" (empty: users in dir)", OPT_PATH, AT(jobs_users_file)},
    {"jobs.run_as",          "",               "Unix user for jobs of accounts that are not named there, never root (empty: such jobs are refused)", OPT_TEXT, AT(jobs_run_as)},
    {"jobs.mount_roots",     "/home,/data,/scratch", "Directories below which a job's container may mount, with commas, with the rights of its user", OPT_TEXT, AT(jobs_mount_roots)},
    {"jobs.log_max_mb",      "64",             "How much of a job's output is kept: the first quarter and the end", OPT_INT, AT(jobs_log_max_mb), 1, 1048576},
    {"jobs.free_memory_mb",  "64",             "A GPU with more memory in use than this (or 0.1 % of it) is not free", OPT_INT, AT(jobs_free_memory_mb), 0, 1048576},
    {"jobs.idle_warn_s",     "600",            "A job that does nothing with its GPUs for so long is spoken of", OPT_INT, AT(jobs_idle_warn_s), 1, 604800},
    {"jobs.idle_end_s",      "1800",           "And after so long it is ended, where it was submitted so", OPT_INT, AT(jobs_idle_end_s), 1, 604800},
    {"jobs.stray",           "warn",           "A job that uses a GPU which it was not given: warn (its owner, on his terminals), end (warned, later ended)", OPT_CHOICE, AT(jobs_stray), .choices = "warn|end"},
    {"jobs.stray_end_s",     "60",             "It is ended when it has done so for so long", OPT_INT, AT(jobs_stray_end_s), 5, 604800},
    {"jobs.notify_command",  "false",          "Whether a job's owner may have a command run at its start and end (notify command:...), as himself and on its machine", OPT_BOOL, AT(jobs_notify_command)},
    {"queue.outside",        "show",           "A process that uses a GPU outside the queue: show (it is seen and scheduled around), warn (its user, on his terminals), end (warned, later ended)", OPT_CHOICE, AT(outside), .choices = "show|warn|end"},
    {"queue.outside_when",   "wanted",         "When that is: wanted (a job waits for that GPU, or has it), always", OPT_CHOICE, AT(outside_when), .choices = "wanted|always"},
    {"queue.outside_warn_s", "60",             "Warned when it has been so for so long; after as long without anybody waiting that is taken back", OPT_INT, AT(outside_warn_s), 0, 604800},
    {"queue.outside_end_s",  "1800",           "And ended so long after the warning: TERM, then KILL after jobs.grace_s", OPT_INT, AT(outside_end_s), 1, 604800},
    {"queue.outside_except", "/usr/lib/xorg/Xorg,/usr/bin/Xorg,/usr/libexec/Xorg,/usr/bin/Xwayland,/usr/bin/gnome-shell,/usr/bin/kwin_x11,/usr/bin/kwin_wayland,/usr/bin/nvidia-cuda-mps-server", "Who is left alone: users by name and programs by their path, with commas. So are root's processes outside containers, and those that only draw", OPT_TEXT, AT(outside_except)},
    {"tasks.miss_window_s",  "60",             "After a missed deadline a machine is not offered more work for so long", OPT_INT, AT(miss_window_s), 0, 86400},
    {"tasks.busy_percent",   "95",             "A GPU busier than this has no time to give", OPT_REAL, AT(busy_percent), 1, 100},
    {"tasks.full_percent",   "95",             "A GPU whose memory is used beyond this has none to give", OPT_REAL, AT(full_percent), 1, 100},
    {"history.keep_days",    "7",              "How many days every reading is kept", OPT_INT, AT(keep_days), 1, 3660},
    {"history.rollup_days",  "366",            "How many days the least, mean and greatest of minutes and hours are kept, and events", OPT_INT, AT(rollup_days), 1, 36600},
    {"tell.severity",        "warning",        "Who is told: events that are at least so severe", OPT_CHOICE, AT(tell_severity), .choices = "info|warning|error|critical"},
    {"tell.again_s",         "600",            "The same thing is not told again sooner", OPT_INT, AT(tell_again_s), 1, 604800},
    {"tell.webhook",         "",               "URL that gets each message as JSON, in Alertmanager's form (empty: none)", OPT_TEXT, AT(tell_webhook)},
    {"tell.user_webhooks",   "yes",            "Web hooks that users name for their jobs: yes, no, or only where URLs begin so, with commas (https://hooks.example.org/gpu/,https://chat.example.org)", OPT_TEXT, AT(tell_user_webhooks)},
    {"tell.slack",           "",               "URL of an incoming webhook of Slack, Mattermost or the like (empty: none)", OPT_TEXT, AT(tell_slack)},
    {"tell.smtp_url",        "",               "Mail server, as smtp://host:25 or smtps://host:465 (empty: no mail)", OPT_TEXT, AT(tell_smtp_url)},
    {"tell.smtp_user",       "",               "Name to sign in there with (empty: without)", OPT_TEXT, AT(tell_smtp_user)},
    {"tell.smtp_password_file", "",            "File with its password, which the server's user must be able to read", OPT_PATH, AT(tell_smtp_password_file)},
    {"tell.smtp_ca_file",    "",               "Certificates of who vouches for that server, in PEM (empty: this machine's own)", OPT_PATH, AT(tell_smtp_ca_file)},
    {"tell.mail_from",       "",               "Sender of the mail (empty: the first receiver)", OPT_TEXT, AT(tell_mail_from)},
    {"tell.mail_to",         "",               "Receivers of the mail, with commas (empty: only jobs' owners get mail)", OPT_TEXT, AT(tell_mail_to)},
    {"tell.command",         "",               "Shell command to run for each message; JSON on its standard input, GPUMGR_* in its environment", OPT_TEXT, AT(tell_command)},
    {"jobs.keep_days",       "30",             "How many days jobs that are over are kept, with their logs", OPT_INT, AT(jobs_keep_days), 1, 3660},
    {"jobs.lost_s",          "900",            "A job that is to end while its machine is away is given up after so long, its exit unknown; 0: never", OPT_INT, AT(jobs_lost_s), 0, 2592000},
    {"jobs.end_unknown",     "false",          "Runs that a machine has and this server's queue never had are ended", OPT_BOOL, AT(jobs_end_unknown)},
    {"jobs.grace_s",         "10",             "A job that is told to end (TERM) is killed after so long", OPT_INT, AT(jobs_grace_s), 0, 3600},
    {"jobs.fair_half_life_h", "24",            "Hours after which GPU time that a user had counts half against him", OPT_REAL, AT(jobs_fair_half_life_h), 0.1, 8760},
    {"jobs.fair_wait_h",     "24",             "With the policy fair: hours after which a job goes before others of its priority, whatever its user had, as long as he holds no more than an even part of the GPUs; 0: never", OPT_REAL, AT(jobs_fair_wait_h), 0, 8760},
    {"jobs.policy",          "fair",           "Who starts first, within a priority: fair (deadlines, then users by what they had), fifo, backfill, edf, sjf; `gpumgr simulate` compares them", OPT_CHOICE, AT(jobs_policy), .choices = "fair|fifo|backfill|edf|sjf"},
    {"jobs.user_gpus",       "0",              "GPUs that one user may have at once; 0: as many as there are", OPT_INT, AT(jobs_user_gpus), 0, 4096},
    {"jobs.user_gpu_hours",  "0",              "GPU hours that one user may have in seven days; 0: as many as there are", OPT_REAL, AT(jobs_user_gpu_hours), 0, 1000000},
    {"reserve.unused_min",   "15",             "A reservation that stands unused for so long is everybody's until it is over, or its user comes; 0: never", OPT_INT, AT(reserve_unused_min), 0, 44640},
    {"reserve.user_gpu_hours", "0",            "GPU hours of the next seven days that a user may reserve for himself; 0: only administrators reserve", OPT_REAL, AT(reserve_user_gpu_hours), 0, 1000000},
    {"reserve.ahead_h",      "48",             "Hours before it begins from which a reservation keeps jobs off that may not be over by then", OPT_REAL, AT(reserve_ahead_h), 0, 744},
    {"watchmen.listen",      "",               "Where clients of watchmen are served, as 127.0.0.1:62333 (empty: nowhere)", OPT_TEXT, AT(watchmen_listen)},
    {"watchmen.token",       "",               "What such a client must send; none: nothing (empty: one is made and kept in DIR/server/watchmen.token)", OPT_TEXT, AT(watchmen_token)},
    {"watchmen.queue_timeout_s", "300",        "A watchmen client that is silent for longer is dropped, or has its GPUs", OPT_INT, AT(watchmen_timeout_s), 1, 86400},
    {"watchmen.keep_h",      "48",             "How many hours its page shows entries that are over", OPT_REAL, AT(watchmen_keep_h), 0, 8760},
    {"log.level",            "info",           "How much to log", OPT_CHOICE, AT(log_level), .choices = "debug|info|warn|error"},
};
/* clang-format on */
const size_t settings_count = ARRAY_LEN(settings_table);

void settings_init(struct settings *s) {
    struct error e;
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < settings_count; i++)
        if (option_set(&settings_table[i], s, settings_table[i].preset, &e) < 0) abort();
}

static const struct option *row_of(const char *name) { return option_find(settings_table, settings_count, name); }

/* Values that are handed to a library or to another program as they are. */
static const struct option *clash_of_urls(const struct settings *s, struct error *e) {
    const struct {
        const char *name, *value, *schemes[2];
    } urls[] = {
        {"tell.webhook",  s->tell_webhook,  {"http://", "https://"}},
        {"tell.slack",    s->tell_slack,    {"http://", "https://"}},
        {"tell.smtp_url", s->tell_smtp_url, {"smtp://", "smtps://"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        bool fits = false;
        for (int k = 0; k < 2; k++) {
            size_t n = strlen(urls[i].schemes[k]);
            fits |= strncmp(urls[i].value, urls[i].schemes[k], n) == 0 && urls[i].value[n] > ' ';
        }
        if (!*urls[i].value || fits) continue;
        fail(e, -EINVAL, "%s: not a URL that begins with %s or %s", urls[i].name, urls[i].schemes[0],
             urls[i].schemes[1]);
        return row_of(urls[i].name);
    }
    return NULL;
}

static const struct option *clash_of_hooks(const struct settings *s, struct error *e) {
    if (user_hook_check_setting(s->tell_user_webhooks, e) >= 0) return NULL;
    fail_in(e, -EINVAL, "tell.user_webhooks");
    return row_of("tell.user_webhooks");
}

static const struct option *clash_of_mail(const struct settings *s, struct error *e) {
    const char *to = s->tell_mail_to, *from = s->tell_mail_from;
    if (*s->tell_smtp_url && !(*to ? strchr(to, '@') : strchr(from, '@'))) {
        fail(e, -EINVAL,
             "tell.mail_to: mail needs a receiver like admin@example.org, or a sender (tell.mail_from) where only "
             "owners "
             "of jobs get some, and \"%.60s\" is none",
             to);
        return row_of("tell.mail_to");
    }
    if (*s->tell_smtp_user && !*s->tell_smtp_password_file) {
        fail(e, -EINVAL, "tell.smtp_password_file: tell.smtp_user needs the file that holds its password");
        return row_of("tell.smtp_password_file");
    }
    return NULL;
}

/* By its looks: names are not asked for here. */
static bool is_loopback(const char *address) {
    static const char *const starts[] = {"127.", "localhost:", "[::1]:"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (strncmp(address, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

static const struct option *clash_of_listen(const struct settings *s, struct error *e) {
    if (!*s->tls_cert != !*s->tls_key) {
        const char *missing = *s->tls_cert ? "tls.key" : "tls.cert";
        fail(e, -EINVAL, "%s: HTTPS needs both tls.cert and tls.key", missing);
        return row_of(missing);
    }
    if (!is_loopback(s->listen) && !*s->tls_cert && !s->listen_plain) {
        fail(e, -EINVAL,
             "listen: %s is not the loopback address: give tls.cert and tls.key, or set listen_plain if plain HTTP is "
             "meant",
             s->listen);
        return row_of("listen");
    }
    const char *odd =
        s->base_path + strspn(s->base_path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/");
    if (*odd || strstr(s->base_path, "//") || strstr(s->base_path, "..")) {
        fail(e, -EINVAL, "server.base_path: %.60s is not a path like /gpus/ of letters, digits and -_.~", s->base_path);
        return row_of("server.base_path");
    }
    return NULL;
}

static const struct option *clash_of_uis(const struct settings *s, struct error *e) {
    AUTO(buf_done) struct buf unused = {0};
    unsigned first, last;
    if (ui_ports(s->ui_ports, &first, &last, e) < 0) return row_of("ui.ports");
    return *s->ui_url && ui_origin(s->ui_url, "job-1", &unused, e) < 0 ? row_of("ui.url") : NULL;
}

const struct option *settings_clash(const struct settings *s, struct error *e) {
    const struct option *o = row_of("sampler.lost_ms");
    if (s->lost_ms < s->answer_ms) {
        fail(e, -EINVAL, "sampler.lost_ms: %d is not a whole number from sampler.answer_ms (%d) to %.15g", s->lost_ms,
             s->answer_ms, o->max);
        return o;
    }
    o = clash_of_urls(s, e);
    if (!o) o = clash_of_hooks(s, e);
    if (!o) o = clash_of_mail(s, e);
    if (!o) o = clash_of_uis(s, e);
    return o ? o : clash_of_listen(s, e);
}

void settings_encode(const struct settings *s, struct buf *out) {
    char text[1100];
    for (size_t i = 0; i < settings_count; i++) {
        option_text(&settings_table[i], s, text, sizeof text);
        buf_printf(out, "%s=%s\n", settings_table[i].name, text);
    }
}

int settings_decode(struct settings *s, const char *text, struct error *e) {
    struct settings fresh;
    settings_init(&fresh);
    while (*text) {
        char line[1200], *eq;
        size_t n = strcspn(text, "\n");
        if (n >= sizeof line) return fail(e, -EINVAL, "settings: a line of %zu bytes", n);
        memcpy(line, text, n);
        line[n] = 0;
        text += n + (text[n] == '\n');
        if (!(eq = strchr(line, '='))) return fail(e, -EINVAL, "settings: \"%.60s\" is not key=value", line);
        *eq = 0;
        const struct option *o = option_find(settings_table, settings_count, line);
        if (!o) return fail(e, -EINVAL, "settings: no such key as \"%.60s\"", line);
        int r = option_set(o, &fresh, eq + 1, e);
        if (r < 0) return r;
    }
    if (settings_clash(&fresh, e)) return -EINVAL;
    *s = fresh;
    return 0;
}
