/* The functions of the route table. Each answers one route: see call.h for what it may return. */
#pragma once

#include "model/wire_container_call.h"
#include "server/call.h"
#include "server/live.h"
#include "server/routes.h"

/* api_basic.c */
int api_health(struct call *c, struct error *e);
int api_ready(struct call *c, struct error *e);
int api_openapi(struct call *c, struct error *e);
int api_metrics(struct call *c, struct error *e);

/* api_live.c */
int api_gpus(struct call *c, struct error *e);
int api_gpu(struct call *c, struct error *e);
int api_nodes(struct call *c, struct error *e);
int api_node(struct call *c, struct error *e);
int api_node_forget(struct call *c, struct error *e);

/* api_history.c */
extern const struct route_field api_history_query[];
int api_history(struct call *c, struct error *e);

/* api_events.c */
extern const struct route_field api_events_query[];
int api_events(struct call *c, struct error *e);

/* api_tasks.c */
extern const struct route_field api_tasks_query[], api_containers_query[], api_container_query[];
int api_tasks(struct call *c, struct error *e);
int api_containers(struct call *c, struct error *e);
int api_container(struct call *c, struct error *e);

/* api_containers.c */
extern const struct route_field api_container_node_query[], api_container_start_query[], api_container_edit_query[],
    api_container_log_query[], api_container_body[];
int api_containers_gpu(struct call *c, struct error *e);
int api_images(struct call *c, struct error *e);
int api_container_add(struct call *c, struct error *e);
int api_container_edit(struct call *c, struct error *e);
int api_container_spec(struct call *c, struct error *e);
int api_container_start(struct call *c, struct error *e);
int api_container_stop(struct call *c, struct error *e);
int api_container_restart(struct call *c, struct error *e);
int api_container_remove(struct call *c, struct error *e);
int api_container_ui(struct call *c, struct error *e);
/* The machine that a call is about. */
int api_container_node(const struct call *c, struct live_node **ret, struct error *e) MUST_CHECK;
int api_container_call(const struct call *c, enum container_verb verb, struct wire_container_call *ret, struct error *e)
    MUST_CHECK;

/* api_container_log.c */
int api_container_log(struct call *c, struct error *e);

/* api_shell.c */
extern const struct route_field api_shell_query[];
int api_container_shell(struct call *c, struct error *e);

/* api_reserve.c */
extern const struct route_field api_reservations_query[], api_reserve_body[], api_reserve_edit_body[];
int api_reservations(struct call *c, struct error *e);
int api_reservation(struct call *c, struct error *e);
int api_reserve(struct call *c, struct error *e);
int api_reserve_edit(struct call *c, struct error *e);
int api_reserve_cancel(struct call *c, struct error *e);

/* api_groups.c */
extern const struct route_field api_group_body[];
int api_groups(struct call *c, struct error *e);
int api_group(struct call *c, struct error *e);
int api_group_put(struct call *c, struct error *e);
int api_group_drop(struct call *c, struct error *e);

/* api_config.c */
int api_config(struct call *c, struct error *e);

/* api_guard.c */
extern const struct route_field api_guard_body[];
int api_guard(struct call *c, struct error *e);

/* api_tell.c */
int api_exposition(struct call *c, struct error *e);
int api_notifications(struct call *c, struct error *e);
int api_notifications_test(struct call *c, struct error *e);

/* api_ui.c */
extern const struct route_field api_ui_query[];
/* Opens one, and answers with its address. */
struct proxy_target;
int api_ui_open(struct call *c, const struct proxy_target *t, struct error *e) MUST_CHECK;
int api_job_ui(struct call *c, struct error *e);

/* api_jobs.c */
extern const struct route_field api_job_query[], api_jobs_query[], api_submit_query[], api_cancel_query[],
    api_job_body[], api_priority_body[];
struct queue_who;
struct queue_who api_who(const struct call *c); /* as the queue knows callers */
struct queue_who api_who_of(const struct auth *a, const struct caller *who);
int api_job_number(const char *text, int64_t *ret, struct error *e); /* -ENOENT: it is none */
int api_job_submit(struct call *c, struct error *e);
int api_jobs(struct call *c, struct error *e);
int api_job(struct call *c, struct error *e);
int api_job_curves(struct call *c, struct error *e);
int api_gpu_jobs(struct call *c, struct error *e);
extern const struct route_field api_curves_query[], api_gpu_jobs_query[];
int api_job_cancel(struct call *c, struct error *e);
int api_job_hold(struct call *c, struct error *e);
int api_job_release(struct call *c, struct error *e);
int api_job_priority(struct call *c, struct error *e);
int api_job_rerun(struct call *c, struct error *e);

/* api_repeats.c */
extern const struct route_field api_repeat_times_query[];
int api_repeats(struct call *c, struct error *e);
int api_repeat(struct call *c, struct error *e);
int api_repeat_pause(struct call *c, struct error *e);
int api_repeat_resume(struct call *c, struct error *e);
int api_repeat_run(struct call *c, struct error *e);
int api_repeat_remove(struct call *c, struct error *e);
int api_repeat_times(struct call *c, struct error *e);

/* api_repeat_edit.c */
extern const struct route_field api_edit_query[];
int api_repeat_edit(struct call *c, struct error *e);

/* api_log.c */
extern const struct route_field api_log_query[];
int api_job_log(struct call *c, struct error *e);

/* api_services.c */
extern const struct route_field api_service_spec_query[];
int api_services(struct call *c, struct error *e);
int api_service(struct call *c, struct error *e);
int api_service_spec(struct call *c, struct error *e);
int api_service_suspend(struct call *c, struct error *e);
int api_service_resume(struct call *c, struct error *e);
int api_service_restart(struct call *c, struct error *e);
int api_service_remove(struct call *c, struct error *e);

/* api_report.c */
extern const struct route_field api_report_query[];
int api_report(struct call *c, struct error *e);

/* api_queue.c */
extern const struct route_field api_queue_query[], api_cordon_body[];
int api_queue(struct call *c, struct error *e);
int api_cordon(struct call *c, struct error *e);
int api_uncordon(struct call *c, struct error *e);
