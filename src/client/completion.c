/* `gpumgr completion`: for a shell, all that can be typed. */
#include "client/completion.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"
#include "client/job_table.h"
#include "client/output.h"
#include "client/server_ask.h"
#include "client/settings_load.h"

/* ---- help texts ---- */

/* "  --name", at the beginning of a line, and nothing else. */
static const char *next_line(const char *at) {
    static const char mark[] = "\n  --";
    const char *found = strstr(at, mark);
    return found ? found + strlen(mark) - 2 : NULL;
}

static bool is_value(const char *word, size_t n) {
    bool has_letter = false;
    for (size_t i = 0; i < n; i++) {
        if (islower((unsigned char)word[i])) return false;
        has_letter |= isupper((unsigned char)word[i]) != 0;
    }
    return has_letter;
}

bool completion_next(const char **at, struct completion_flag *ret) {
    const char *line = next_line(*at);
    if (!line) return false;
    *ret = (struct completion_flag){0};
    size_t n = strcspn(line, " =\n");
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)n, line);
    const char *rest = line + n;
    if (*rest == ' ' && rest[1] != ' ') { /* one blank: what follows is the value, two: the description */
        const char *word = rest + 1;
        ret->value_may_lack = *word == '[';
        word += ret->value_may_lack;
        n = strcspn(word, " ]\n");
        if (is_value(word, n)) snprintf(ret->value, sizeof ret->value, "%.*s", (int)n, word);
        if (*ret->value) rest = word + n + (ret->value_may_lack && word[n] == ']');
    }
    rest += strspn(rest, " ");
    snprintf(ret->text, sizeof ret->text, "%.*s", (int)strcspn(rest, "\n"), rest);
    *at = line + strcspn(line, "\n");
    return true;
}

/* ---- bash ---- */

static bool takes_command(const struct command *c) { return c == &command_run || c == &command_submit; }

static bool is_in(const char *names, const char *name) {
    size_t n = strlen(name);
    for (const char *at = names; at && (at = strstr(at, name)); at++)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

static const char *plain_words(const char *words, struct buf *b) {
    for (const char *at = words ? words : ""; *at;) {
        size_t n = strcspn(at, " ");
        if (!isupper((unsigned char)*at)) buf_printf(b, "%s%.*s", b->len ? " " : "", (int)n, at);
        at += n + strspn(at + n, " ");
    }
    return b->len ? b->s : "";
}

/* Flags with a value, sorted by what can be offered for it. */
static const char *const files[] = {"FILE", "DIR", "PATH"};

static bool is_file(const char *value) {
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (strcmp(value, files[i]) == 0) return true;
    return false;
}

static void bash_command(const struct command *c, struct buf *b) {
    AUTO(buf_done) struct buf flags = {0}, valued = {0}, paths = {0}, words = {0};
    struct completion_flag f;
    for (const char *at = c->help; completion_next(&at, &f);) {
        buf_printf(&flags, "%s%s", flags.len ? " " : "", f.name);
        if (!*f.value || f.value_may_lack) continue;
        struct buf *to = is_file(f.value) ? &paths : &valued;
        buf_printf(to, "%s%s", to->len ? "|" : "", f.name);
    }
    buf_printf(b, "    %s)\n        flags='%s'\n", c->name, flags.len ? flags.s : "--help");
    if (*plain_words(c->words, &words)) buf_printf(b, "        words='%s'\n", words.s);
    if (is_in(c->words, "JOB")) buf_puts(b, "        jobs=yes\n");
    if (takes_command(c)) buf_puts(b, "        runs=yes\n");
    if (valued.len) buf_printf(b, "        valued='%s'\n", valued.s);
    if (paths.len) buf_printf(b, "        paths='%s'\n", paths.s);
    buf_puts(b, "        ;;\n");
}

void completion_bash(struct buf *b) {
    buf_puts(b, "# bash completion for gpumgr, made by `gpumgr completion bash`\n"
                "_gpumgr() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} flags='' words='' jobs='' runs='' valued='' paths='' i\n"
                "    COMPREPLY=()\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        mapfile -t COMPREPLY < <(compgen -W '");
    for (size_t i = 0; i < commands_count; i++) buf_printf(b, "%s ", commands[i]->name);
    buf_puts(b, "help' -- \"$cur\")\n"
                "        return\n"
                "    fi\n"
                "    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < commands_count; i++) bash_command(commands[i], b);
    buf_puts(
        b,
        "    *) return ;;\n"
        "    esac\n"
        "    i=2\n"
        "    while [ -n \"$runs\" ] && [ \"$i\" -lt \"$COMP_CWORD\" ]; do # the job's own command begins where flags "
        "end\n"
        "        case ${COMP_WORDS[i]} in\n"
        "        --) i=$((i + 1)); break ;;\n"
        "        --*=*) ;;\n"
        "        --*) [[ \"|$valued|$paths|\" == *\"|${COMP_WORDS[i]}|\"* ]] && i=$((i + 1)) ;;\n"
        "        *) break ;;\n"
        "        esac\n"
        "        i=$((i + 1))\n"
        "    done\n"
        "    if [ -n \"$runs\" ] && { [ \"$i\" -lt \"$COMP_CWORD\" ] || [ \"${COMP_WORDS[i - 1]}\" = -- ]; }; then\n"
        "        if [ \"$i\" -eq \"$COMP_CWORD\" ]; then\n"
        "            mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
        "        else\n"
        "            compopt -o default 2>/dev/null\n"
        "        fi\n"
        "        return\n"
        "    fi\n"
        "    if [[ \"|$paths|\" == *\"|${COMP_WORDS[COMP_CWORD - 1]}|\"* ]]; then\n"
        "        compopt -o filenames 2>/dev/null\n"
        "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
        "        return\n"
        "    fi\n"
        "    [[ \"|$valued|\" == *\"|${COMP_WORDS[COMP_CWORD - 1]}|\"* ]] && return\n"
        "    if [[ $cur == -* ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$flags --help\" -- \"$cur\")\n"
        "    elif [ -n \"$jobs\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words $(\"${COMP_WORDS[0]}\" completion jobs 2>/dev/null)\" -- "
        "\"$cur\")\n"
        "    elif [ -n \"$words\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
        "    elif [ -n \"$runs\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
        "    fi\n"
        "}\n"
        "complete -F _gpumgr gpumgr\n");
}

/* ---- zsh ---- */

/* Within single quotes, and within a spec of _arguments, where brackets and colons mean something. */
static void zsh_text(const char *text, struct buf *b) {
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            buf_puts(b, "'\\''");
        else if (strchr("[]:\\", *c))
            buf_printf(b, "\\%c", *c);
        else
            buf_putc(b, *c);
    }
}

static void zsh_command(const struct command *c, struct buf *b) {
    AUTO(buf_done) struct buf words = {0};
    struct completion_flag f;
    buf_printf(b, "        %s)\n            _arguments -s -S", c->name);
    for (const char *at = c->help; completion_next(&at, &f);) {
        buf_printf(b, " \\\n                '*%s[", f.name);
        zsh_text(f.text, b);
        buf_putc(b, ']');
        if (*f.value) { /* one like FROM:TO has a colon of its own: what follows it would be called as a function */
            buf_puts(b, f.value_may_lack ? "::" : ":");
            zsh_text(f.value, b);
            buf_printf(b, ":%s", is_file(f.value) ? "_files" : "");
        }
        buf_putc(b, '\'');
    }
    buf_puts(b, " \\\n                '--help[say more]'");
    if (takes_command(c))
        buf_puts(b,
                 " \\\n                '(-)1:command: _command_names -e' \\\n                '*::arguments:_normal'");
    else if (is_in(c->words, "JOB"))
        buf_puts(b, " \\\n                '*:job:_gpumgr_jobs'");
    else if (*plain_words(c->words, &words))
        buf_printf(b, " \\\n                '1:what:(%s)'", words.s);
    buf_puts(b, "\n            ;;\n");
}

void completion_zsh(struct buf *b) {
    buf_puts(b, "#compdef gpumgr\n"
                "# zsh completion for gpumgr, made by `gpumgr completion zsh`\n"
                "_gpumgr_jobs() {\n"
                "    local -a ids\n"
                "    ids=(${(f)\"$(gpumgr completion jobs 2>/dev/null)\"})\n"
                "    compadd -a ids\n"
                "}\n"
                "_gpumgr() {\n"
                "    local context state line\n"
                "    local -a ours # not `commands`: that is the shell's own list of programs\n"
                "    ours=(\n");
    for (size_t i = 0; i < commands_count; i++) {
        buf_printf(b, "        '%s:", commands[i]->name);
        zsh_text(commands[i]->summary, b);
        buf_puts(b, "'\n");
    }
    buf_puts(b, "    )\n"
                "    _arguments -C '1:command:->command' '*::argument:->rest'\n"
                "    case $state in\n"
                "    command) _describe -t commands command ours ;;\n"
                "    rest)\n"
                "        case $words[1] in\n");
    for (size_t i = 0; i < commands_count; i++) zsh_command(commands[i], b);
    buf_puts(b, "        esac\n"
                "        ;;\n"
                "    esac\n"
                "}\n"
                "if [ \"$funcstack[1]\" = _gpumgr ]; then _gpumgr \"$@\"; else compdef _gpumgr gpumgr; fi\n");
}

/* ---- the command ---- */

/* Numbers of jobs, a line each, newest first. Where nobody answers there is nothing to complete, and nothing to say. */
static int list_jobs(const char *dir, struct buf *out) {
    AUTO(buf_done) struct buf answer = {0};
    struct json_tree *root;
    struct error ignored;
    if (server_ask(dir, "GET", "/api/v1/jobs?limit=50", NULL, &answer, &ignored) < 0 ||
        json_tree_parse(answer.s, answer.len, &root, &ignored) < 0)
        return EXIT_FAILED;
    const struct json_tree *jobs = json_tree_get(root, "jobs");
    for (size_t i = 0; i < json_tree_count(jobs); i++)
        buf_printf(out, "%.0f\n", job_number(json_tree_at(jobs, i), "id"));
    json_tree_free(root);
    return output_exit(out);
}

static int run(const struct command *self, int argc, char **argv) {
    AUTO(buf_done) struct buf out = {0};
    struct flags flags;
    struct loaded loaded = {0};
    struct error e;
    int r = flags_parse(argc, argv, NULL, 0, FLAGS_SETTINGS, &flags, &e);
    if (r == 0 && flags.wants_help) return command_help(self);
    const char *shell = r == 0 && flags.word_count == 1 ? flags.words[0] : "";
    bool is_jobs = strcmp(shell, "jobs") == 0;
    if (r == 0 && strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0 && !is_jobs)
        r = fail(&e, -EINVAL, "for which shell? `gpumgr completion bash` or `gpumgr completion zsh`");
    if (r == 0 && is_jobs) r = settings_load(&flags, LOAD_LOOSE, &loaded, &e);
    if (r < 0) return command_fail(self, &e, EXIT_INPUT);
    if (is_jobs) return list_jobs(loaded.values.dir, &out);
    if (strcmp(shell, "bash") == 0)
        completion_bash(&out);
    else
        completion_zsh(&out);
    return output_exit(&out);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Print what a shell needs to complete gpumgr's words",
    .run = run,
    .words = "bash zsh",
    .help =
        "usage: gpumgr completion bash|zsh\n"
        "\n"
        "A script for the shell: commands, their flags, and numbers of jobs. An installed gpumgr has it in its place\n"
        "already; else put this into ~/.bashrc or ~/.zshrc (there, behind compinit):\n"
        "\n"
        "example: eval \"$(gpumgr completion bash)\"\n",
};
