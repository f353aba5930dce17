/* Prints the reference pages from the tables that the program itself walks: `reference metrics`, `reference config`.
 * script/docs writes them to docs/; a page that is edited by hand is a test failure. */
#include <stdio.h>
#include <string.h>

#include "model/host_metrics.h"
#include "model/metrics.h"
#include "model/settings.h"

static void print_metric(const struct metric *m) {
    char step[32] = "";
    if (m->scale > 0) snprintf(step, sizeof step, "%g", m->scale);
    printf("| `%s` | %s | %s | %s | %s%s%s | %s |\n", m->name, metric_unit_name(m->unit), metric_kind_name(m->kind),
           step, *m->dcgm ? "`" : "", m->dcgm, *m->dcgm ? "`" : "", m->help);
}

static void print_metrics(void) {
    puts("# Metrics\n\n"
         "From `src/model/metrics.def`. A metric that a GPU does not have, or that did not come, is absent: never "
         "zero.\n"
         "Names and units are the same everywhere: `gpumgr status --json`, the ring, and whatever reads them.\n\n"
         "| metric | unit | kind | step | DCGM's name | meaning |\n|---|---|---|---|---|---|");
    for (int i = 0; i < METRIC_COUNT; i++) print_metric(&metrics[i]);
    puts("\nStep: what one unit of the driver's own reading is worth; readings are whole numbers of it. Empty: any "
         "number.\n"
         "XIDs are also counted by code: `xids` in `gpumgr status --json`.\n\n"
         "## The machine itself\n\n"
         "From `src/model/host_metrics.def`; read once a second.\n\n"
         "| metric | unit | kind | step | DCGM's name | meaning |\n|---|---|---|---|---|---|");
    for (int i = 0; i < HOST_METRIC_COUNT; i++) print_metric(&host_metrics[i]);
}

static void print_config(void) {
    puts("# Configuration\n\n"
         "From `src/model/settings.c`. A key may stand in the JSON file (`guard.hot_c` as `{\"guard\": {\"hot_c\": "
         "80}}`), in a\n"
         "variable, or in a flag; the flag wins over the variable, the variable over the file. `gpumgr config` prints "
         "the\n"
         "effective values and where each came from.\n\n"
         "| key | flag | variable | default | allowed | meaning |\n|---|---|---|---|---|---|");
    for (size_t i = 0; i < settings_count; i++) {
        const struct option *o = &settings_table[i];
        char range[128], variable[80];
        option_range(o, range, sizeof range);
        option_variable(o, variable, sizeof variable);
        for (char *p = range; (p = strchr(p, '|')); p++) *p = ','; /* a bar would end the cell */
        printf("| `%s` | `--%s` | `%s` | %s%s%s | %s | %s |\n", o->name, o->name, variable, *o->preset ? "`" : "",
               *o->preset ? o->preset : "empty", *o->preset ? "`" : "", range, o->help);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*print)(void);
    } pages[] = {
        {"metrics", print_metrics},
        {"config",  print_config }
    };
    for (size_t i = 0; argc == 2 && i < ARRAY_LEN(pages); i++)
        if (strcmp(argv[1], pages[i].name) == 0) return pages[i].print(), 0;
    fputs("usage: reference metrics|config\n", stderr);
    return 2;
}
