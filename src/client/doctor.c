/* `gpumgr doctor`: is everything well, and if not, what to do. Changes nothing; --bundle writes one new file. */
#include <stdio.h>
#include <string.h>

#include "client/begin.h"
#include "client/bundle.h"
#include "client/command.h"
#include "client/doctor.h"
#include "client/output.h"

enum { WIDE = 160 }; /* in a file nobody has to fit a terminal */

static void print_text(const struct doctor *d, struct buf *b) {
    struct screen s = screen_look();
    report_print(&d->report, s.has_colour, b);
    doctor_print_gpus(d, s.is_terminal ? s.width : WIDE, b);
    buf_printf(b, "\n%s\n",
               report_is_good(&d->report) ? "All is well." : "Something needs attention: see the lines marked LOOK.");
}

static int examine(const struct command *self, const struct loaded *l, bool json, const char *bundle) {
    AUTO(doctor_done) struct doctor d = {.loaded = *l};
    AUTO(buf_done) struct buf b = {0};
    struct error e;
    if (bundle && bundle_check(bundle, &e) < 0) return command_fail(self, &e, EXIT_INPUT);
    doctor_examine(&d);
    if (json)
        doctor_json(&d, &b);
    else
        print_text(&d, &b);
    if (bundle) {
        AUTO(buf_done) struct buf said = {0};
        int r = bundle_write(bundle, &d, &said, &e);
        if (r < 0) return command_fail(self, &e, EXIT_FAILED);
        if (json)
            output_note(said.s);
        else
            buf_printf(&b, "%s\n", said.s);
    }
    int code = output_exit(&b);
    return code != EXIT_DONE ? code : report_is_good(&d.report) ? EXIT_DONE : EXIT_FAILED;
}

static int run(const struct command *self, int argc, char **argv) {
    bool json = false;
    const char *bundle = NULL;
    const struct flag own[] = {
        {.name = "json",   .kind = FLAG_YES,  .into = &json  },
        {.name = "bundle", .kind = FLAG_TEXT, .into = &bundle},
    };
    struct loaded loaded = {0};
    int code = command_begin(self, argc, argv, own, ARRAY_LEN(own), LOAD_LOOSE, &loaded);
    if (code != COMMAND_GOES_ON) return code;
    return examine(self, &loaded, json, bundle);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Find out whether everything is well, what is supported and what is not",
    .run = run,
    .help = "usage: gpumgr doctor [--json] [--bundle FILE.tar] [--dir DIR] [--gpu-library PATH]\n"
            "\n"
            "Looks at driver, permissions, the running instance, the kernel log and every GPU: what it can be\n"
            "asked, what each call costs, how a guard would act on it. Lines marked LOOK come with advice.\n"
            "Exit code 0 when all is well, 1 when something needs attention. Changes nothing.\n"
            "\n"
            "  --json             the same as one object\n"
            "  --bundle FILE.tar  also write a support archive; serial numbers, UUIDs, host, user and home\n"
            "                     names are taken out of it. An existing file is not overwritten.\n"
            "\n"
            "example: gpumgr doctor --bundle support.tar\n",
};
