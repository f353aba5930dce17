/* A GPU task: one process on one or several GPUs, from the moment the driver shows it to its exact end, and whether it
 * kept its deadline. Pure: the caller brings the times (boot clock: deadlines neither stop in suspend nor jump with the
 * wall clock), sets the timers and writes down what comes out.
 *
 * A deadline is relative to the task's start. At the deadline a running task turns overdue, which is a miss there and then;
 * at its end hit or miss and the float time (deadline less duration, negative after a miss) are fixed for good. With a
 * period, another task must begin in every period: struct task_period. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum task_state { TASK_RUNNING, TASK_OVERDUE, TASK_ENDED };
enum task_source {
    TASK_BY_LIST,
    TASK_BY_OPEN,
    TASK_BY_CONTAINER
}; /* what made us look: base rate, device file, Docker */
enum task_verdict { TASK_NO_DEADLINE, TASK_HIT, TASK_MISS, TASK_PENDING };

struct task_key {
    int32_t pid;
    uint64_t ticks; /* start time of the process, field 22 of /proc/PID/stat: pids are used again */
};

struct task {
    struct task_key key;
    uint8_t state, source, verdict, is_warned;
    int64_t opened_ns;   /* device file opened; 0: not seen */
    int64_t start_ns;    /* the driver showed it */
    int64_t end_ns;      /* 0: runs */
    int64_t deadline_ns; /* duration it may take; 0: none */
    int64_t float_ns;    /* final at its end; while it runs: what is left */
    int64_t expected_ns; /* predicted duration; 0: unknown */
};

/* How long tasks of this kind took: the newest of them, in a ring. All zero is empty. */
#define TASK_PAST 32
struct task_past {
    uint32_t count; /* ever */
    int64_t took_ns[TASK_PAST];
};

void task_past_add(struct task_past *p, int64_t took_ns);

/* How long a task will take that has run for so long: the median of those that took longer. 0: nothing to go by
 * (fewer than three, or it has outlasted them all). */
int64_t task_past_expect(const struct task_past *p, int64_t elapsed_ns);

void task_begin(struct task *t, struct task_key key, int64_t opened_ns, int64_t start_ns, int64_t deadline_ns,
                enum task_source source, const struct task_past *past);

/* A deadline that became known, or another one, while it runs (names come late): judged anew from its start. */
void task_set_deadline(struct task *t, int64_t deadline_ns, int64_t now_ns);

enum task_news {
    TASK_NOTHING,
    TASK_WILL_MISS, /* said once, before the deadline */
    TASK_MISSED,    /* the deadline has passed, it still runs */
};

/* Time passed. To be called at task_wake_ns, or later. */
enum task_news task_tick(struct task *t, const struct task_past *past, int64_t now_ns);

/* When task_tick has something to say at the latest; INT64_MAX: never. */
int64_t task_wake_ns(const struct task *t, const struct task_past *past);

/* The process is gone. The miss of an overdue task was counted already: see *ret_is_new. */
enum task_verdict task_end(struct task *t, int64_t end_ns, bool *ret_is_new);

int64_t task_left_ns(const struct task *t, int64_t now_ns);

/* A container whose tasks repeat: one after the other, each to begin within a period of the one before. A tenth of the period
 * is allowed for, 50 ms at least: programs that sleep between two runs come a little later each time. Those that begin within
 * half a period of the last counted one are part of it. A task that overruns keeps the next from beginning: that period is
 * missed, too. All zero is one that nothing is expected of. */
struct task_period {
    int64_t period_ns; /* 0: none */
    int64_t begun_ns;  /* when the last one began; 0: nobody is expected */
    int64_t due_ns;    /* by then the next must have begun */
    uint32_t judged, kept;
    bool is_said; /* that none came; until one does */
};

void task_period_set(struct task_period *p, int64_t period_ns);
void task_period_begin(struct task_period *p, int64_t start_ns);
/* The container has ended or stands still: nobody is expected until one begins. */
void task_period_stop(struct task_period *p);
/* When task_period_tick has something to say at the latest; INT64_MAX: never. */
int64_t task_period_wake_ns(const struct task_period *p);
/* Time passed. True: a period is over in which none began; said once, until one begins. */
bool task_period_tick(struct task_period *p, int64_t now_ns);

const char *task_state_name(enum task_state s);
const char *task_source_name(enum task_source s);
