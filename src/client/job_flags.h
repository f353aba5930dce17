/* The flags of a job, one table for `run` and `submit`. They become the JSON that a job file and the API have (see
 * model/job_json.h), so that there is one place that knows what a job may ask for; the sentence of what is wrong names the
 * flag all the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "client/flags.h"

enum { JOB_FLAGS_MAX = 48 };

struct job_flags {
    struct flag_list given[JOB_FLAGS_MAX]; /* by place in the table */
    bool is_pty;
    bool is_partial;  /* what it does not say comes from elsewhere: a command, too */
    const char *file; /* --file, or NULL */
};

/* Rows for flags_parse, appended to `rows` from *count on; the values lie in f. */
void job_flags_rows(struct job_flags *f, struct flag *rows, size_t *count);

/* One object of JSON. command: after the flags, may be none. cwd: where the caller stands, for --cwd with a relative path.
 * shell: what --pty runs when there is no command. */
struct job_flags_here {
    const char *cwd, *shell;
    int64_t now_ns;
};
int job_flags_json(const struct job_flags *f, char *const *command, size_t words, const struct job_flags_here *here,
                   struct buf *ret, struct error *e) MUST_CHECK;

/* With --file: what flags and command say, above each job of the file's text. A variable or a label is one more; anything else
 * is instead of what the file says. */
int job_flags_over(const struct job_flags *f, char *const *command, size_t words, const struct job_flags_here *here,
                   struct buf *file, struct error *e) MUST_CHECK;

/* A sentence that begins with a key of the JSON ("memory: ...") begins with its flag afterwards ("--memory: ..."). */
void job_flags_rename(const struct job_flags *f, struct error *e);

/* Of flags, in the order in which they are shown; each command names those that it takes. */
#define JOB_HELP_GPUS                                                                                                  \
    "  --gpus N             so many GPUs of one machine, all at once (1)\n"                                            \
    "  --gpu LIST           exactly these, by index or UUID: 0,3 or 0-3; 0:1 is a MIG instance\n"                      \
    "  --of LIST            any of these\n"                                                                            \
    "  --memory SIZE        each GPU has at least so much: 40GiB\n"                                                    \
    "  --share SIZE         so much of one GPU's memory; others may have the rest of it\n"                             \
    "  --over WHAT=DO       when it takes more than its share of memory, or leaves its GPUs idle: memory=end,\n"       \
    "                       memory=warn, idle=end, idle=warn; may be given again\n"                                    \
    "  --priority N         from -100 to 100, larger goes first (0)\n"
#define JOB_HELP_ONCE                                                                                                  \
    "  --deadline TIME      to be finished within: 2h, 1h30m\n"                                                        \
    "  --finish-by MOMENT   to be finished by: 18:30, \"tomorrow 08:00\", \"2026-11-16 08:00\"\n"                      \
    "  --after JOBS         once these have ended well: 17,18; 17:any however it ended\n"
#define JOB_HELP_LIMITS                                                                                                \
    "  --time-limit TIME    ended after running so long; also tells the queue when its GPUs will be free\n"            \
    "  --retries N          tried again so often when it fails (0)\n"                                                  \
    "  --array RANGE        one run for each number, in GPUMGR_ARRAY_INDEX and for {index}: 1-100, 1-100%8 eight\n"    \
    "                       at once\n"                                                                                 \
    "  --sweep NAME=LIST    one run for each value, in the variable NAME and for {NAME}: lr=1e-3,1e-4; given again,\n" \
    "                       every combination\n"                                                                       \
    "  --name NAME          what it is called (made of the command)\n"
#define JOB_HELP_RUN                                                                                                   \
    "  --label KEY=VALUE    for your own lists; may be given again\n"                                                  \
    "  --env NAME=VALUE     set above your own environment, which it gets; may be given again\n"                       \
    "  --cwd DIR            where it runs (here)\n"                                                                    \
    "  --image IMAGE        in a container of this image, as you\n"                                                    \
    "  --mount FROM:TO      a directory of yours in the container, FROM:TO:ro read-only; may be given again\n"         \
    "  --ui PORT[/PATH]     where its own UI is, as in 8888/lab; auto picks a port and tells it in GPUMGR_UI_PORT\n"   \
    "  --notify WHERE       of start, end and failure: terminal, mail:ADDRESS, webhook:URL, command:TEXT; may be\n"    \
    "                       given again\n"
#define JOB_HELP_REPEAT                                                                                                \
    "  --cron EXPRESSION    it comes again: minute, hour, day, month, weekday, as in \"0 3 * * mon-fri\", or @daily "  \
    "and\n"                                                                                                            \
    "                       the like; what is made is a repeat (`gpumgr repeat`)\n"                                    \
    "  --interval INTERVAL  the same by ISO 8601: R/2026-11-15T03:00:00+01:00/PT12H, R5/2026-11-15T03:00/P1M\n"        \
    "  --zone ZONE          whose clocks count: Europe/Berlin (the server's own)\n"                                    \
    "  --late TIME          a time that nobody could keep is made good for so long, and missed after it (10m)\n"       \
    "  --overlap POLICY     when the job before is not over: skip, queue behind it, or cancel it (skip)\n"
#define JOB_HELP_FILE                                                                                                  \
    "  --pty                with a terminal of its own; without a command, your shell\n"                               \
    "  --file FILE          the job, or several, as JSON (docs/jobs.md), - for standard input; flags that are given\n" \
    "                       besides count for each of them, instead of what the file says; in it \"after\" may name\n" \
    "                       another job of the file\n"
