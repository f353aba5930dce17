#include "server/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/accounts.h"
#include "server/api.h"
#include "server/pages.h"
#include "server/server.h"

#define BODY_SMALL 4096 /* bytes of a body that are read of anybody */

/* clang-format off */
const struct route routes[] = {
    {HTTP_GET, "/healthz",             LOCAL_OPEN, api_health,  "Whether the server runs", "`{\"status\":\"ok\"}`"},
    {HTTP_GET, "/readyz",              LOCAL_OPEN, api_ready,   "Whether it has readings to show", "200 when a node has sent its first readings, else 503"},
    {HTTP_GET, "/metrics",             LOCAL_OPEN, api_exposition, "Everything that is known now, for Prometheus", "Prometheus text; with `exporter.dcgm_names` also under the names of dcgm-exporter"},
    {HTTP_GET, "/api/v1/openapi.json", OPEN,       api_openapi, "This API as an OpenAPI document", "OpenAPI 3.1"},
    {HTTP_GET, "/api/v1/metrics",      MEMBER,     api_metrics, "The catalogue of metrics", "`{\"metrics\":[{name, unit, kind, keep, scale, help, scope}]}`"},
    {HTTP_GET,    "/api/v1/gpus",          MEMBER, api_gpus,       "All GPUs as they are now", "`{\"time\", \"gpus\": [GPU]}`; a GPU is `{index, uuid, model, state, state_reason?, state_since?, pci?, metrics, processes?: [PROCESS], xids: [{code, count, last, severity, what, advice}], guard?: {mode, lever, why?, limit?, baseline?, unit?, target?, reason?}, instances, node, age_s?}`, much as `gpumgr status --json` has it; `metrics` has those of the catalogue that are known; a PROCESS is `{pid, user?, command?, container?, start?, kinds, memory_bytes?, sm_ratio?, memory_ratio?, encoder_ratio?, decoder_ratio?, gpu_instance?, compute_instance?}`"},
    {HTTP_GET,    "/api/v1/gpus/{uuid}",   MEMBER, api_gpu,        "One GPU, with its inventory", "the GPU with `inventory`"},
    {HTTP_GET,    "/api/v1/gpus/{uuid}/jobs", MEMBER, api_gpu_jobs, "Jobs that held a GPU in a span of time", "`{from, to, is_whole, jobs: [{id, element, attempt, name, user, state, parent, granted, started, ended, gpus, share_bytes, gpu_utilization_ratio, memory_peak_bytes}]}`, one for each run: first those that go on, then the newest; `is_whole` is false where older ones were left out", .query = api_gpu_jobs_query},
    {HTTP_POST,   "/api/v1/gpus/{uuid}/guard", ADMIN, api_guard,   "Set, confirm or take back a limit or target by hand", "202 when the card's guard has it", .body = api_guard_body, .body_max = 4096},
    {HTTP_GET,    "/api/v1/nodes",         MEMBER, api_nodes,      "All machines", "`{\"time\", \"nodes\": [{name, state, last_seen, driver, version, boot_id, gpus, host, totals, placement?: {is_provisionable, why_not, usable_gpus, tasks, free_bytes, largest_free_bytes, float_s?, hits, misses, hit_rate}}]}`"},
    {HTTP_GET,    "/api/v1/nodes/{name}",  MEMBER, api_node,       "One machine", "the node"},
    {HTTP_DELETE, "/api/v1/nodes/{name}",  ADMIN,  api_node_forget, "Forget a machine that is gone, until it comes back", "204; 409 for one that is not gone"},
    {HTTP_GET,    "/api/v1/history",       MEMBER, api_history,    "Readings over time, as finely as the width asks for", "`{\"from\", \"to\", \"resolution\", \"step_s\", \"read\", \"series\": [{of, metric, resolution, step_s, time, mean, min?, max?}]}`; readings themselves have no min and max, a gap is a null", .query = api_history_query},
    {HTTP_GET,    "/api/v1/events",        MEMBER, api_events,     "With `Accept: text/event-stream` the live stream, else what happened, the newest first", "`{\"events\": [{id?, time, severity, kind, text, code?, pid?, node, gpu, gpu_index?}], \"next\"}`; as a stream `snapshot`, then `delta` and `event`", .query = api_events_query},
    {HTTP_GET,    "/api/v1/tasks",         MEMBER, api_tasks,      "GPU tasks, running and ended, the newest first", "`{\"tasks\": [{id, node, pid, gpu, gpus, gpu_instance, compute_instance, user, uid, kind, container, container_id, image, pod, slurm_job, unit, job, job_name, command, opened, start, end, end_is_exact, start_is_exact, source, deadline_s, period_s, float_s, expected_s, state, hit, periods, periods_hit, gpu_seconds, energy_joules, memory_bytes, memory_peak_bytes}], \"next\"}`; what is not known is null", .query = api_tasks_query},
    {HTTP_GET,    "/api/v1/containers",    MEMBER, api_containers, "Containers with GPU tasks or deadlines; with `gpu` all that engines have, stopped ones too", "with `gpu` `{time, containers: [{node, id, name, image, engine, state, user, account, is_ours, deadline, ui, job, created, started, ended, exit_code, error, restart, gpus: [{uuid, index, name}], all_gpus, tasks, memory_bytes, may}], problems: [{node, text}]}`, where `may` is what the caller may do with it; else `{\"time\", \"containers\": [{id, node, name, image, engine, state, tenant, priority, created, deadline_s, period_s, periods, periods_hit, running, ended, hits, misses, hit_rate, float_s, least_float_s, last_miss, slack, gpu_seconds, energy_joules, memory_bytes, labels, gpus, left_s}]}`; `slack` is how many tasks had which share of the deadline left", .query = api_containers_query},
    {HTTP_GET,    "/api/v1/containers/{id}", MEMBER, api_container, "One container and its newest tasks", "the container with `tasks`", .query = api_container_query},
    {HTTP_POST,   "/api/v1/containers",    MEMBER, api_container_add, "Add a container from an image that the machine has; it runs as your Unix user there", "201 and `{id, name}`, when it runs", .query = api_container_node_query, .body = api_container_body, .is_document = true},
    {HTTP_PUT,    "/api/v1/containers/{id}", MEMBER, api_container_edit, "Make a container anew with a change: one's own, or whoever may use the engine", "`{changes: [{key, from, to}], restarts, id, name}`; the old one is kept until the new one has started, and put back if it does not", .query = api_container_edit_query, .body = api_container_body, .is_document = true},
    {HTTP_DELETE, "/api/v1/containers/{id}", MEMBER, api_container_remove, "Remove a container: one's own, or as an administrator", "`{id, name}`", .query = api_container_node_query},
    {HTTP_GET,    "/api/v1/containers/{id}/spec", MEMBER, api_container_spec, "A container as it could be added again: one's own", "the fields that adding takes", .query = api_container_node_query},
    {HTTP_GET,    "/api/v1/containers/{id}/log", MEMBER, api_container_log, "What it wrote: one's own, or as an administrator", "text; with `follow` a stream", .query = api_container_log_query},
    {HTTP_POST,   "/api/v1/containers/{id}/start", MEMBER, api_container_start, "Start a container", "`{id, name}`", .query = api_container_start_query},
    {HTTP_POST,   "/api/v1/containers/{id}/stop", MEMBER, api_container_stop, "Stop it: TERM, and KILL after ten seconds", "`{id, name}`", .query = api_container_node_query},
    {HTTP_POST,   "/api/v1/containers/{id}/restart", MEMBER, api_container_restart, "Both", "`{id, name}`", .query = api_container_node_query},
    {HTTP_GET,    "/api/v1/containers/{id}/shell", MEMBER, api_container_shell, "A shell in it, by WebSocket: one's own", "101; binary messages are keys and what the terminal shows, a text is its size as `{rows, columns}`", .query = api_shell_query},
    {HTTP_POST,   "/api/v1/containers/{id}/ui", MEMBER, api_container_ui, "Open its own page (label `gpumgr.ui`): one's own", "`{\"url\", \"path\"}`: an address that works once, as for jobs", .query = api_container_node_query},
    {HTTP_GET,    "/api/v1/images",        MEMBER, api_images,     "Images that a machine has", "`[{name, size_bytes, created}]`", .query = api_container_node_query},
    {HTTP_GET,    "/api/v1/jobs",          MEMBER, api_jobs,       "Jobs, the newest first", "`{\"jobs\": [JOB], \"next\"}`; a JOB is `{id, element, values, state, state_text, stage, user, uid, account, origin, parent, node, ASK, submitted, granted, started, ended, attempt, again, pid, gpu_uuids, gpu_indices, gpu_names, exit_code, signal, reason, text, elements?, place, why, starts_at, sooner, untold, insight, gpu_seconds, energy_joules, gpu_utilization_ratio, memory_peak_bytes, memory_now_bytes, cpu_seconds, cpu_ratio, host_now_bytes, host_peak_bytes, disk_read_bytes, disk_written_bytes, log_bytes}`, where an ASK is what was handed in: `{name, command, image, mounts, cwd, gpus, scope, memory_bytes, share_bytes, over, priority, finish_by, time_limit_s, retries, after, array, sweep, labels, pty, ui, repeat, service}`; what is not known is null; figures of one that runs are a few seconds old, `*_now_bytes` and `disk_*` are told only then", .query = api_jobs_query},
    {HTTP_POST,   "/api/v1/jobs",          MEMBER, api_job_submit, "Hand in a job, or several", "201 and `{id, count}`: the first number and how many follow it, all stored; with `dry_run` 200 and the plan. Of several all are taken or none. With a header `Idempotency-Key` (1 to 64 printable characters) the same call may be made again when its answer was lost: jobs that one handed in by that key before are not taken twice, and the answer is theirs", .query = api_submit_query, .body = api_job_body, .is_document = true},
    {HTTP_GET,    "/api/v1/jobs/{id}",     MEMBER, api_job,        "One job and its runs", "the JOB with `runs`: one for each attempt, with `again` where another one followed; `stage` is another one when something about it has changed", .query = api_job_query},
    {HTTP_POST,   "/api/v1/jobs/{id}/ui",  MEMBER, api_job_ui, "Open the job's own UI: one's own, or as an administrator", "`{\"url\", \"path\"}`: an address that works once, within a minute, and then for the browser that used it", .query = api_ui_query},
    {HTTP_DELETE, "/api/v1/jobs/{id}",     MEMBER, api_job_cancel, "End a job, or take it out of the queue: one's own, or as an administrator", "the JOB; one that runs ends soon after", .query = api_cancel_query},
    {HTTP_POST,   "/api/v1/jobs/{id}/hold", MEMBER, api_job_hold,  "Keep a job that waits from starting", "the JOB"},
    {HTTP_POST,   "/api/v1/jobs/{id}/release", MEMBER, api_job_release, "Let it go", "the JOB"},
    {HTTP_POST,   "/api/v1/jobs/{id}/priority", MEMBER, api_job_priority, "Move a job", "the JOB", .body = api_priority_body, .body_max = 4096},
    {HTTP_POST,   "/api/v1/jobs/{id}/rerun", MEMBER, api_job_rerun, "Hand the same job in again", "201 and `{id, count}`"},
    {HTTP_GET,    "/api/v1/jobs/{id}/log", MEMBER, api_job_log,    "What it wrote: one's own, or as an administrator", "text, with X-Log-Offset, X-Log-Total and X-Log-Over (1: no more will come); with `follow` a stream", .query = api_log_query},
    {HTTP_GET,    "/api/v1/jobs/{id}/curves", MEMBER, api_job_curves, "What a run of a job has used over its time, of CPU, memory and disk", "`{id, attempt, started, ended, step_s, time, cpu_cores, memory_bytes, disk_read_bytes_per_second, disk_written_bytes_per_second}`: lists of the same length, at most 240 points about `step_s` apart, which doubles as the run gets longer; rates are means since the point before, memory is the most since then. Empty for a run of a few seconds, null where something is not known", .query = api_curves_query},
    {HTTP_GET,    "/api/v1/repeats",       MEMBER, api_repeats,    "Repeating jobs; one is made by handing in a job with `repeat`", "`{\"repeats\": [REPEAT]}`; a REPEAT is `{id, state, problem, user, uid, account, node, made, cron, interval, zone, late_s, overlap, next: [{at, local}], open_jobs, slots: [{at, local, outcome, by_hand, count, job}], ASK}`; state: on, paused, over, in trouble; outcome: the state of its job, or missed, skipped, paused; slots: the newest first"},
    {HTTP_GET,    "/api/v1/repeats/{id}",  MEMBER, api_repeat,     "One repeating job, with more of its past", "the REPEAT"},
    {HTTP_DELETE, "/api/v1/repeats/{id}",  MEMBER, api_repeat_remove, "Take it away: one's own, or as an administrator; a job of it that runs goes on", "204"},
    {HTTP_PUT,    "/api/v1/repeats/{id}",  MEMBER, api_repeat_edit, "Change one's own: what is not said stays, null takes a key away. Times that are decided stay as they are; the new rule begins now", "`{id, dry_run, changes: [{key, from, to}], seals, times: {cron, interval, zone, late_s, overlap, next: [{at, local}]}, job}`; `seals`: what it runs changes, so it is sealed anew, for the account that asks, with the environment of that; `job`, with `dry_run`: the whole job as it would be handed in. 429 while one of its times is being decided. A header `Idempotency-Key` as with jobs", .query = api_edit_query, .body = api_job_body, .is_document = true},
    {HTTP_POST,   "/api/v1/repeats/{id}/pause", MEMBER, api_repeat_pause, "Make no more jobs of it", "the REPEAT"},
    {HTTP_POST,   "/api/v1/repeats/{id}/resume", MEMBER, api_repeat_resume, "Go on with the next time", "the REPEAT"},
    {HTTP_POST,   "/api/v1/repeats/{id}/run", MEMBER, api_repeat_run, "Make a job of it now, beside its times", "201 and the REPEAT with `job`; 409 where its overlap is skip and a job of it is not over"},
    {HTTP_GET,    "/api/v1/repeat-times",  MEMBER, api_repeat_times, "The next five times of an expression, before it is handed in", "`{cron, interval, zone, late_s, overlap, next: [{at, local}]}`", .query = api_repeat_times_query},
    {HTTP_GET,    "/api/v1/services",      MEMBER, api_services,   "Services: jobs that stay up. One is handed in as a job with the key `service`", "`{time, services: [SERVICE]}`; a SERVICE is `{id, name, state, text, user, uid, account, node, made, revision, next_revision, job, next_job, old_job, restarts, healthy_since, starts_at, starting_since, starting_until, failures, probe, image, gpus, priority, service, checks: [{time, job, ok, took_s}], check_text}`; state: starting, waiting, healthy, unhealthy, backing off, yielded, suspended, ended, given up, being removed"},
    {HTTP_GET,    "/api/v1/services/{id}", MEMBER, api_service,    "One service, by its number or its name", "the SERVICE with `revisions: [{number, made, by, job}]` and `jobs: [JOB]`"},
    {HTTP_GET,    "/api/v1/services/{id}/spec", MEMBER, api_service_spec, "What it is made of, as it can be handed in again: one's own, or as an administrator", "a job with all its keys", .query = api_service_spec_query},
    {HTTP_POST,   "/api/v1/services/{id}/suspend", MEMBER, api_service_suspend, "End its runs and keep it: one's own, or as an administrator, as all of these", "the SERVICE"},
    {HTTP_POST,   "/api/v1/services/{id}/resume", MEMBER, api_service_resume, "Start one again that is suspended, has ended or was given up", "the SERVICE"},
    {HTTP_POST,   "/api/v1/services/{id}/restart", MEMBER, api_service_restart, "End its run and start another", "the SERVICE"},
    {HTTP_DELETE, "/api/v1/services/{id}", MEMBER, api_service_remove, "End its runs and forget it", "the SERVICE; it is gone when they have ended"},
    {HTTP_GET,    "/api/v1/queue",         MEMBER, api_queue,      "Who waits and why, who runs, which GPUs are free, what is planned", "`{time, waiting: [JOB], waiting_count, running: [JOB], gpus: [{uuid, index, name, node, held_by, verdict, verdict_text, user, pid, memory_bytes, memory_total_bytes, since, idle_since, outside, ends, cordon, cordoned_by}], plan: [{gpu, from, to, job, kind}], pass_s}`; `pass_s` is how long the last look at the whole queue took", .query = api_queue_query},
    {HTTP_GET,    "/api/v1/report",        MEMBER, api_report,     "GPU hours held against used, waits and energy, by user, of jobs that have ended and of those that run, up to now", "`{from, to, sentence, total: SUMS, users: [{user, SUMS}]}`; SUMS: `gpu_hours_held, gpu_hours_used, idle_ratio, energy_joules, runs, running, failed, wait_s_mean`; `runs` and `wait_s_mean` are of those that have ended", .query = api_report_query},
    {HTTP_GET,    "/api/v1/reservations",  MEMBER, api_reservations, "GPUs that are kept for somebody, and when", "`{time, hours_left, reservations: [RESERVATION], windows: [{id, from, to}]}`; a RESERVATION is `{id, user, group, node, gpu_uuids, gpu_indices, begins, for_s, every, zone, until, note, made_by, made, state, next, may_cancel}`; `state` is ahead, now, unused (given to everybody until its user comes) or over", .query = api_reservations_query},
    {HTTP_POST,   "/api/v1/reservations",  MEMBER, api_reserve,    "Reserve GPUs, once or again and again: as an administrator, or within `reserve.user_gpu_hours` for oneself", "201 and the RESERVATION; 409 where somebody else has one of them then. A header `Idempotency-Key` as with jobs", .body = api_reserve_body, .body_max = 4096},
    {HTTP_GET,    "/api/v1/reservations/{id}", MEMBER, api_reservation, "One reservation", "the RESERVATION"},
    {HTTP_PUT,    "/api/v1/reservations/{id}", MEMBER, api_reserve_edit, "Change a reservation: one's own, or as an administrator; what is not said stays. One that has begun becomes longer or shorter, or begins later", "`{dry_run, changes: [{key, from, to}], reservation: RESERVATION}`; 409 where somebody else has one of the GPUs then. A header `Idempotency-Key` as with jobs", .query = api_edit_query, .body = api_reserve_edit_body, .body_max = 4096},
    {HTTP_DELETE, "/api/v1/reservations/{id}", MEMBER, api_reserve_cancel, "Take a reservation back: one's own, or as an administrator", "204"},
    {HTTP_PUT,    "/api/v1/gpus/{uuid}/cordon", ADMIN, api_cordon, "Take a GPU out of service: nothing new starts on it", "204", .body = api_cordon_body, .body_max = 4096},
    {HTTP_DELETE, "/api/v1/gpus/{uuid}/cordon", ADMIN, api_uncordon, "Put it back", "204"},
    {HTTP_GET,    "/api/v1/groups",        MEMBER, api_groups,     "Named sets of GPUs and machines", "`{\"groups\": [{name, label?, members, changed}]}`"},
    {HTTP_GET,    "/api/v1/groups/{name}", MEMBER, api_group,      "One group", "the group"},
    {HTTP_PUT,    "/api/v1/groups/{name}", ADMIN,  api_group_put,  "Make or replace a group", "200, or 201 for a new one, and the group", .body = api_group_body},
    {HTTP_DELETE, "/api/v1/groups/{name}", ADMIN,  api_group_drop, "Remove a group", "204"},
    {HTTP_GET,    "/api/v1/config",        ADMIN,  api_config,     "The settings in force", "`{\"settings\": [{name, value, from, help}]}`; secrets are hidden"},
    {HTTP_GET,    "/api/v1/notifications", MEMBER, api_notifications, "Who is told, how that goes, and what is open", "`{channels: [{name, is_configured, waiting, sent, failed, dropped, last_sent, last_failed, trouble}], open: [{subject, title, text, severity, since, is_told}]}`"},
    {HTTP_POST,   "/api/v1/notifications/test", ADMIN, api_notifications_test, "Send a message by every way, to see whether it arrives", "202"},
    {HTTP_GET,    "/api/v1/session",       OPEN,   accounts_session,     "Who is signed in", "`{user: {name, role, unix, has_password} or null, csrf, version, host}`"},
    {HTTP_POST,   "/api/v1/session",       OPEN,   accounts_sign_in,     "Sign in, by a one-time link or a password", "204 and the session's cookie", .body = accounts_sign_in_body, .body_max = 4096},
    {HTTP_DELETE, "/api/v1/session",       MEMBER, accounts_sign_out,    "Sign out", "204"},
    {HTTP_POST,   "/api/v1/links",         MEMBER, accounts_link,        "Make a one-time sign-in link", "201 and `{user, role, url_path, url, expires}`", .body = accounts_link_body, .body_max = 4096},
    {HTTP_GET,    "/api/v1/tokens",        MEMBER, accounts_tokens,      "Tokens of one's programs", "`{tokens: [{id, name, user, role, created, expires, last_used}]}`", .query = accounts_all_query},
    {HTTP_POST,   "/api/v1/tokens",        MEMBER, accounts_token_make,  "Make a token, to be sent as `Authorization: Bearer`", "201 and `{id, name, user, role, expires, token}`; the token is not shown again", .body = accounts_token_body, .body_max = 4096},
    {HTTP_DELETE, "/api/v1/tokens/{id}",   MEMBER, accounts_token_end,   "Revoke a token", "204"},
    {HTTP_GET,    "/api/v1/sessions",      MEMBER, accounts_sessions,    "Where one is signed in", "`{sessions: [{id, user, created, last_seen, address, agent, is_current}]}`", .query = accounts_all_query},
    {HTTP_DELETE, "/api/v1/sessions/{id}", MEMBER, accounts_session_end, "End a session", "204"},
    {HTTP_GET,    "/api/v1/users",         ADMIN,  accounts_users,       "Accounts", "`{users: [{name, role, uid, disabled, has_password, created}]}`"},
    {HTTP_GET,    "/api/v1/users/{name}",  ADMIN,  accounts_user,        "One account", "`{name, role, uid, disabled, has_password, created}`"},
    {HTTP_PUT,    "/api/v1/users/{name}",  ADMIN,  accounts_user_put,    "Make or change an account", "200, or 201 for a new one, and the account", .body = accounts_user_body, .body_max = 4096},
    {HTTP_DELETE, "/api/v1/users/{name}",  ADMIN,  accounts_user_drop,   "Remove an account, with its sessions and tokens", "204"},
    {HTTP_PUT,    "/api/v1/users/{name}/password", MEMBER, accounts_password, "Set or remove a password: one's own, or as an administrator", "204; other sessions of the account end", .body = accounts_password_body, .body_max = 4096},
    {HTTP_GET,    "/api/v1/audit",         ADMIN,  accounts_audit,       "Mutating calls, the newest first", "`{audit: [{id, time, user, means, address, method, path, status}], next}`; status 0: under way, or the server was killed meanwhile", .query = accounts_audit_query},
};
/* clang-format on */
const size_t route_count = ARRAY_LEN(routes);

/* ---- finding ---- */

/* Compares a path with a pattern, segment by segment. What stands for {name} is put into params. */
static bool matches(const char *pattern, const char *path, const char **params, struct buf *room) {
    size_t at[CALL_PARAMS_MAX], count = 0;
    buf_clear(room);
    while (*pattern && *path) {
        size_t p = strcspn(pattern + 1, "/") + 1, n = strcspn(path + 1, "/") + 1;
        if (*pattern != '/' || *path != '/') return false;
        if (pattern[1] == '{') {
            if (n == 1 || count == CALL_PARAMS_MAX) return false;
            at[count++] = room->len;
            buf_add(room, path + 1, n - 1);
            buf_putc(room, 0);
        } else if (p != n || memcmp(pattern, path, n) != 0) {
            return false;
        }
        pattern += p;
        path += n;
    }
    if (*pattern || *path) return false;
    for (size_t i = 0; i < count; i++) params[i] = room->s + at[i];
    return true;
}

const struct route *route_find(enum http_method method, const char *path, const char *params[CALL_PARAMS_MAX],
                               struct buf *room, struct buf *allowed) {
    if (method == HTTP_HEAD) method = HTTP_GET;
    buf_clear(allowed);
    for (size_t i = 0; i < route_count; i++) {
        if (!matches(routes[i].pattern, path, params, room)) continue;
        if (routes[i].method == method) return &routes[i];
        buf_printf(allowed, "%s%s", allowed->len ? ", " : "", http_method_name(routes[i].method));
        if (routes[i].method == HTTP_GET) buf_puts(allowed, ", HEAD");
    }
    return NULL;
}

/* ---- who may ---- */

/* On a listener that only this machine reaches, unless a proxy on it passes on what comes from elsewhere. */
static bool is_local(const struct http_request *r) {
    return r->peer.is_loopback && !http_field(&r->head, "x-forwarded-for") && !http_field(&r->head, "forwarded");
}

bool routes_take_gzip(const struct http_request *r) {
    return !r->peer.is_unix && !is_local(r) && http_list_has(http_field(&r->head, "accept-encoding"), "gzip");
}

static void ask_from(const struct server *s, const struct http_request *r, char *address, size_t room,
                     struct auth_ask *ret) {
    struct in6_addr origin = r->peer.address;
    bool is_tls = r->peer.is_tls;
    snprintf(address, room, "unix");
    if (!r->peer.is_unix) {
        proxies_origin(&s->proxies, &r->head, &origin, &is_tls);
        http_address_text(&origin, address, room);
    }
    *ret = (struct auth_ask){.cookie = http_field(&r->head, "cookie"),
                             .authorization = http_field(&r->head, "authorization"),
                             .host = http_field(&r->head, "host"),
                             .origin = http_field(&r->head, "origin"),
                             .fetch_site = http_field(&r->head, "sec-fetch-site"),
                             .csrf = http_field(&r->head, "x-csrf-token"),
                             .content_type = http_field(&r->head, "content-type"),
                             .address = address,
                             .is_mutating = r->head.method != HTTP_GET && r->head.method != HTTP_HEAD,
                             .has_body = r->body.len > 0,
                             .is_unix = r->peer.is_unix,
                             .is_loopback = is_local(r),
                             .is_tls = is_tls,
                             .uid = r->peer.uid};
}

static bool may_call(struct call *c) {
    static const struct {
        int status;
        const char *code;
    } rows[] = {
        [AUTH_UNAUTHENTICATED] = {401, "unauthenticated"},
        [AUTH_FORBIDDEN] = {403, "forbidden"      },
        [AUTH_CSRF] = {403, "csrf"           },
        [AUTH_BAD_REQUEST] = {400, "bad_request"    },
    };
    struct error e = {0};
    struct auth_ask ask;
    int64_t now_s = clock_real_ns() / NS_PER_S;
    ask_from(c->server, c->request, c->address, sizeof c->address, &ask);
    c->is_mutating = ask.is_mutating;
    c->is_tls = ask.is_tls;
    enum auth_verdict v = auth_identify(c->server->auth, &ask, now_s, &c->who, &e);
    if (v == AUTH_GOOD) v = auth_permit(c->server->auth, &ask, &c->who, c->route->need, &e);
    if (v == AUTH_GOOD) return true;
    call_refuse(c, rows[v].status, rows[v].code, e.text);
    return false;
}

bool routes_may_read(void *ctx, const struct http_request *r) {
    struct server *s = ctx;
    struct auth_ask ask;
    struct caller who = {0};
    struct error e;
    char address[48];
    ask_from(s, r, address, sizeof address, &ask);
    return auth_identify(s->auth, &ask, clock_real_ns() / NS_PER_S, &who, &e) == AUTH_GOOD && who.role != ROLE_NOBODY;
}

/* ---- what is not the API: the page and its files ---- */

static void send_asset(struct http_request *r, const struct page_asset *a) {
    const char *seen = http_field(&r->head, "if-none-match");
    bool is_packed = a->gzip && http_list_has(http_field(&r->head, "accept-encoding"), "gzip");
    http_add_field(r, "ETag", "%s", a->etag);
    http_add_field(r, "Cache-Control", "%s", a->is_forever ? "public, max-age=31536000, immutable" : "no-cache");
    if (a->gzip) http_add_field(r, "Vary", "Accept-Encoding");
    if (seen && strcmp(seen, a->etag) == 0) {
        http_reply(r, 304, NULL, NULL, 0);
        return;
    }
    if (is_packed) http_add_field(r, "Content-Encoding", "gzip");
    http_reply(r, 200, a->type, is_packed ? a->gzip : a->body, is_packed ? a->gzip_size : a->size);
}

/* Any path that a person may have in the address bar is the one page: its script knows the rest. */
static void send_page(struct server *s, struct http_request *r, const char *path) {
    const struct page_asset *a = pages_find(path + 1);
    if (a) {
        send_asset(r, a);
        return;
    }
    /* A file that is not there is not the page; a machine's name in the address may well have dots. */
    bool is_file = (strchr(path, '.') && !strchr(path + 1, '/')) || strncmp(path, "/assets/", 8) == 0;
    if (is_file || strncmp(path, "/api", 4) == 0) {
        call_refuse_request(r, 404, "not_found", "there is nothing at this address");
        return;
    }
    AUTO(buf_done) struct buf page = {0};
    pages_index(s->base_path, &page);
    http_add_field(r, "Cache-Control", "no-cache");
    http_reply(r, 200, "text/html; charset=utf-8", page.s, page.len);
}

/* ---- the way of a request ---- */

/* The path below the base path, or NULL: it is not below it. */
static const char *below(const struct server *s, const struct http_request *r) {
    size_t n = strlen(s->base_path) - 1; /* its last slash begins what is below */
    if (strncmp(r->head.path, s->base_path, n + 1) == 0) return r->head.path + n;
    return r->peer.is_unix ? r->head.path : NULL; /* there is no proxy there, and our commands know of no base path */
}

/* Who is signed in has his line before he changes anything. */
static int audit_begun(struct call *c, struct error *e) {
    if (!c->is_mutating || !*c->who.name || c->route->need == OPEN) return 0; /* a sign-in's is who he becomes */
    c->audit = auth_audit_begin(c->server->auth, &c->who, c->address, http_method_name(c->request->head.method),
                                c->request->head.path, clock_real_ns() / NS_PER_S);
    return c->audit ? 0 : fail(e, -EAGAIN, "the server has more to write than its disk takes; try again in a moment");
}

static void run(struct call *c) {
    struct error e = {0};
    if (!may_call(c)) {
        call_free(c);
        return;
    }
    int r = audit_begun(c, &e);
    if (r >= 0) r = call_read_query(c, &e);
    if (r >= 0) r = call_read_body(c, &e);
    if (r >= 0) r = c->route->handle(c, &e);
    if (r == CALL_LATER) return;
    if (r == CALL_DONE)
        call_free(c);
    else
        call_end(c, r, &e);
}

static void serve(void *ctx, struct http_request *r) {
    struct server *s = ctx;
    const char *path = below(s, r);
    if (!path) {
        bool is_base = strncmp(r->head.path, s->base_path, strlen(s->base_path) - 1) == 0 &&
                       strlen(r->head.path) == strlen(s->base_path) - 1;
        if (is_base) http_add_field(r, "Location", "%s", s->base_path);
        call_refuse_request(r, is_base ? 308 : 404, is_base ? "moved" : "not_found",
                            "the pages are below the server's base path");
        return;
    }
    AUTO(buf_done) struct buf room = {0}, allowed = {0};
    const char *params[CALL_PARAMS_MAX] = {0};
    const struct route *route = route_find(r->head.method, path, params, &room, &allowed);
    bool is_read = r->head.method == HTTP_GET || r->head.method == HTTP_HEAD;
    if (route) {
        struct call *c = call_new(s, r, route);
        memcpy(c->param, params, sizeof params);
        c->room = TAKE_STRUCT(room);
        run(c);
    } else if (allowed.len) {
        http_add_field(r, "Allow", "%s", allowed.s);
        call_refuse_request(r, 405, "method_not_allowed", "this address has no such method");
    } else if (is_read) {
        send_page(s, r, path);
    } else {
        call_refuse_request(r, 404, "not_found", "there is nothing at this address");
    }
}

static size_t body_max(void *ctx, const struct http_request *r) {
    AUTO(buf_done) struct buf room = {0}, allowed = {0};
    const char *params[CALL_PARAMS_MAX], *path = below(ctx, r);
    if (r->head.length == 0) return 0;
    const struct route *route = path ? route_find(r->head.method, path, params, &room, &allowed) : NULL;
    if (!route || !route->body) return BODY_SMALL; /* enough to refuse it with a sentence */
    size_t most = route->body_max ? route->body_max : HTTP_BODY_MAX;
    /* nobody fills the memory before he has said who he is */
    return most > BODY_SMALL && !routes_may_read(ctx, r) ? BODY_SMALL : most;
}

static void refuse(void *ctx, struct http_request *r, int status, const char *sentence) {
    if (status == 405) http_add_field(r, "Allow", "GET, HEAD, POST, PUT, DELETE");
    call_refuse_request(r, status, call_code_of(status), sentence);
}

static bool is_proxy(void *ctx, const struct in6_addr *address) {
    const struct server *s = ctx;
    return proxies_trust(&s->proxies, address);
}

void routes_service(struct server *s, struct http_service *ret) {
    *ret =
        (struct http_service){.body_max = body_max, .serve = serve, .refuse = refuse, .is_proxy = is_proxy, .ctx = s};
}
