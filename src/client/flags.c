#include "client/flags.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "model/settings.h"

static char fold(char c) { return c == '-' || c == '.' ? '_' : c; }

static bool same_name(const char *typed, size_t len, const char *name) {
    if (strlen(name) != len) return false;
    for (size_t i = 0; i < len; i++)
        if (fold(typed[i]) != fold(name[i])) return false;
    return true;
}

static bool number_of(const char *text, double *ret) {
    char *end;
    if (!text || !*text) return false;
    double v = strtod(text, &end);
    if (*end || !isfinite(v)) return false;
    *ret = v;
    return true;
}

/* Where the parser stands: the word being looked at, and its value where it has one of its own. */
struct place {
    char **argv;
    int argc, at;
    const char *value; /* after '=', or NULL */
};

static const char *next_word(const struct place *p) { return p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL; }

static int take_value(struct place *p, const char *name, const char **ret, struct error *e) {
    if (!p->value) {
        p->value = next_word(p);
        if (!p->value) return fail(e, -EINVAL, "--%s needs a value", name);
        p->at++;
    }
    *ret = p->value;
    return 0;
}

static int take_number(const struct flag *f, const char *text, struct error *e) {
    double v;
    if (!number_of(text, &v) || v < f->min || v > f->max)
        return fail(e, -EINVAL, "--%s: \"%.60s\" is not a number from %.15g to %.15g", f->name, text, f->min, f->max);
    *(double *)f->into = v;
    return 0;
}

static int take_item(struct place *p, const struct flag *f, struct error *e) {
    struct flag_list *list = f->into;
    if (list->count == FLAG_LIST_MAX) return fail(e, -EINVAL, "--%s: given more than %d times", f->name, FLAG_LIST_MAX);
    int r = take_value(p, f->name, &list->of[list->count], e);
    if (r == 0) list->count++;
    return r;
}

static int take_own(struct place *p, const struct flag *f, struct error *e) {
    const char *text = NULL;
    double ignored;
    int r;
    if (f->given) *f->given = true;
    switch (f->kind) {
    case FLAG_YES:
        if (p->value) return fail(e, -EINVAL, "--%s takes no value", f->name);
        *(bool *)f->into = true;
        return 0;
    case FLAG_TEXT: return take_value(p, f->name, (const char **)f->into, e);
    case FLAG_LIST: return take_item(p, f, e);
    case FLAG_NUMBER: r = take_value(p, f->name, &text, e); return r < 0 ? r : take_number(f, text, e);
    case FLAG_MAYBE:
        if (!p->value && !number_of(next_word(p), &ignored)) return 0;
        r = take_value(p, f->name, &text, e);
        return r < 0 ? r : take_number(f, text, e);
    }
    return 0;
}

/* --sim_costs alone means yes; a word that reads as yes or no is its value. */
static bool is_yes_or_no(const char *text) {
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};
    for (size_t i = 0; text && i < ARRAY_LEN(words); i++)
        if (strcmp(text, words[i]) == 0) return true;
    return false;
}

static int take_setting(struct place *p, const struct option *o, struct flags *ret, struct error *e) {
    const char *text = "true";
    if (o->type != OPT_BOOL || p->value || is_yes_or_no(next_word(p))) {
        int r = take_value(p, o->name, &text, e);
        if (r < 0) return r;
    }
    if (ret->setting_count == FLAGS_SETTINGS_MAX) return fail(e, -EINVAL, "too many flags");
    ret->settings[ret->setting_count++] = (struct flag_setting){o, text};
    return 0;
}

static int unknown(const char *name, const struct flag *own, size_t own_count, bool settings, struct error *e) {
    struct nearest near = {.typed = name};
    for (size_t i = 0; i < own_count; i++) nearest_offer(&near, own[i].name);
    for (size_t i = 0; settings && i < settings_count; i++) nearest_offer(&near, settings_table[i].name);
    const struct option *o = near.best && settings ? option_find(settings_table, settings_count, near.best) : NULL;
    char range[128] = "";
    if (o) option_range(o, range, sizeof range);
    if (o) return fail(e, -EINVAL, "no such flag as --%.60s; did you mean --%s (%s)?", name, near.best, range);
    if (near.best) return fail(e, -EINVAL, "no such flag as --%.60s; did you mean --%s?", name, near.best);
    return fail(e, -EINVAL, "no such flag as --%.60s; --help lists them", name);
}

static int take_flag(struct place *p, const struct flag *own, size_t own_count, int mode, struct flags *ret,
                     struct error *e) {
    const char *name = p->argv[p->at] + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    p->value = equals ? equals + 1 : NULL;
    if (same_name(name, len, "help")) {
        ret->wants_help = true;
        return 0;
    }
    for (size_t i = 0; i < own_count; i++)
        if (same_name(name, len, own[i].name)) return take_own(p, &own[i], e);
    for (size_t i = 0; (mode & FLAGS_SETTINGS) && i < settings_count; i++)
        if (same_name(name, len, settings_table[i].name)) return take_setting(p, &settings_table[i], ret, e);
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)(len < 60 ? len : 60), name);
    return unknown(typed, own, own_count, mode & FLAGS_SETTINGS, e);
}

int flags_parse(int argc, char **argv, const struct flag *own, size_t own_count, int mode, struct flags *ret,
                struct error *e) {
    bool ended = false;
    *ret = (struct flags){0};
    for (struct place p = {.argv = argv, .argc = argc, .at = 1}; p.at < argc; p.at++) {
        const char *word = argv[p.at];
        if ((mode & FLAGS_COMMAND) && (word[0] != '-' || !word[1] || strcmp(word, "--") == 0)) {
            p.at += strcmp(word, "--") == 0;
            ret->command = argv + p.at;
            ret->command_count = (size_t)(argc - p.at);
            return 0;
        }
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (!ended && strcmp(word, "-h") == 0) {
            ret->wants_help = true;
        } else if (!ended && strncmp(word, "--", 2) == 0) {
            int r = take_flag(&p, own, own_count, mode, ret, e);
            if (r < 0) return r;
        } else if (!ended && word[0] == '-' && word[1]) {
            return fail(e, -EINVAL, "no such flag as %.60s; --help lists them", word);
        } else {
            if (ret->word_count == FLAGS_WORDS_MAX)
                return fail(e, -EINVAL, "more than %d words on the command line", FLAGS_WORDS_MAX);
            ret->words[ret->word_count++] = argv[p.at];
            ended |= (mode & FLAGS_STOP_AT_WORD) != 0;
        }
    }
    return 0;
}

int flags_no_words(const struct flags *f, struct error *e) {
    if (!f->word_count) return 0;
    return fail(e, -EINVAL, "what is \"%.60s\"? Flags begin with --; --help lists them", f->words[0]);
}
