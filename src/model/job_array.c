/* Many runs of one job: an array counts ("1-100:2%8", at most eight at once), a sweep combines values. Numbers of an array
 * rise, so that each is there once and one can be found without a list of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/job.h"

#define NUMBER_MOST 999999999LL
#define ARRAY_TEXT_MOST 4096

static const char form[] = "as in 1-100, 1-100%8, 0,3,7 or 0-90:10";

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* What follows the number, or NULL where there is none. */
static const char *number_at(const char *text, int64_t *ret) {
    int64_t v = 0;
    if (!is_digit(*text)) return NULL;
    for (; is_digit(*text); text++) {
        v = v * 10 + (*text - '0');
        if (v > NUMBER_MOST) return NULL;
    }
    *ret = v;
    return text;
}

struct range {
    int64_t from, to, step;
};

static int64_t range_count(const struct range *r) { return (r->to - r->from) / r->step + 1; }

/* "A", "A-B" or "A-B:S". What follows it, or NULL. */
static const char *range_at(const char *text, struct range *ret) {
    *ret = (struct range){.step = 1};
    const char *at = number_at(text, &ret->from);
    ret->to = ret->from;
    if (at && *at == '-') {
        at = number_at(at + 1, &ret->to);
        if (at && *at == ':') at = number_at(at + 1, &ret->step);
    }
    return at && ret->to >= ret->from && ret->step > 0 ? at : NULL;
}

static int array_bad(const char *text, struct error *e) {
    return fail(e, -EINVAL, "array: \"%.60s\" is not a list of numbers, %s", text, form);
}

static int array_count(const char *text, int64_t *ret_count, unsigned *ret_at_once, struct error *e) {
    int64_t count = 0, last = -1, at_once = 0;
    const char *at = text;
    struct range r;
    if (strlen(text) > ARRAY_TEXT_MOST) return fail(e, -EINVAL, "array: longer than %d bytes", ARRAY_TEXT_MOST);
    while (*at && *at != '%') {
        at = range_at(at, &r);
        if (!at || (*at && *at != ',' && *at != '%') || (*at == ',' && !is_digit(at[1]))) return array_bad(text, e);
        if (r.from <= last)
            return fail(e, -EINVAL, "array: %lld comes after %lld; write the numbers in rising order, each once",
                        (long long)r.from, (long long)last);
        last = r.from + (range_count(&r) - 1) * r.step;
        count += range_count(&r);
        if (count > JOB_ELEMENTS_MAX)
            return fail(e, -EINVAL, "array: \"%.60s\" has more than %u elements", text, JOB_ELEMENTS_MAX);
        if (*at == ',') at++;
    }
    if (*at == '%') {
        at = number_at(at + 1, &at_once);
        if (!at || *at || at_once == 0) return array_bad(text, e);
    }
    *ret_count = count;
    *ret_at_once = at_once > JOB_ELEMENTS_MAX ? JOB_ELEMENTS_MAX : (unsigned)at_once;
    return 0;
}

/* ---- sweeps: "KEY=VALUE,VALUE" ---- */

static size_t key_len(const char *word) { return strcspn(word, "="); }

static unsigned value_count(const char *word) {
    unsigned n = 1;
    for (const char *at = word + key_len(word); *at; at++) n += *at == ',';
    return n;
}

/* Value i of a word, and its length. */
static const char *value_at(const char *word, unsigned i, size_t *ret_len) {
    const char *at = word + key_len(word) + 1;
    for (; i > 0; i--) at += strcspn(at, ",") + 1;
    *ret_len = strcspn(at, ",");
    return at;
}

static bool is_name(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i && is_digit(c))) return false;
    }
    return n > 0 && n < 64;
}

static int sweep_word(const struct job_words *sweep, const char *word, struct error *e) {
    size_t n = key_len(word), len;
    if (!is_name(word, n) || !word[n])
        return fail(e, -EINVAL, "sweep: \"%.60s\" is not NAME=VALUE,VALUE, as in lr=1e-3,1e-4", word);
    if ((n == 5 && strncmp(word, "index", n) == 0) || strncmp(word, "GPUMGR_", 7) == 0 ||
        strncmp(word, "CUDA_", 5) == 0 || strncmp(word, "NVIDIA_", 7) == 0)
        return fail(e, -EINVAL, "sweep: %.*s is set by the queue for each run; take another name", (int)n, word);
    for (unsigned i = value_count(word); i-- > 0;) {
        value_at(word, i, &len);
        if (len == 0) return fail(e, -EINVAL, "sweep: %.*s has an empty value", (int)n, word);
    }
    for (const char *other = word; (other = job_word_next(sweep, other));)
        if (key_len(other) == n && strncmp(word, other, n) == 0)
            return fail(e, -EINVAL, "sweep: %.*s is there twice", (int)n, word);
    return 0;
}

static int sweep_count(const struct job_words *sweep, int64_t *ret, struct error *e) {
    int64_t count = 1;
    if (sweep->count > 32) return fail(e, -EINVAL, "sweep: more than 32 names");
    for (const char *w = NULL; (w = job_word_next(sweep, w));) {
        count *= value_count(w);
        if (count > JOB_ELEMENTS_MAX) return fail(e, -EINVAL, "sweep: more than %u combinations", JOB_ELEMENTS_MAX);
        int r = sweep_word(sweep, w, e);
        if (r < 0) return r;
    }
    *ret = count;
    return 0;
}

int job_elements(const struct job_spec *s, unsigned *ret_count, unsigned *ret_at_once, struct error *e) {
    int64_t count = 0, combinations = 1;
    unsigned at_once = 0;
    int r = array_count(s->array, &count, &at_once, e);
    if (r >= 0) r = sweep_count(&s->sweep, &combinations, e);
    if (r < 0) return r;
    if (s->sweep.count && count) return fail(e, -EINVAL, "array: it does not go with a sweep; of it only %%N does");
    if (!s->sweep.count && s->array[0] && !count) return array_bad(s->array, e);
    *ret_count = (unsigned)(s->array[0] && !s->sweep.count ? count : combinations);
    *ret_at_once = at_once;
    return 0;
}

/* ---- elements ---- */

int64_t job_element_number(const struct job_spec *s, unsigned i) {
    struct range r;
    int64_t left = i, count = 0;
    if (s->sweep.count || !s->array[0]) {
        if (sweep_count(&s->sweep, &count, NULL) < 0 || left >= count) return -1;
        return s->sweep.count ? left + 1 : 0;
    }
    for (const char *at = s->array; (at = range_at(at, &r)); at++) {
        if (left < range_count(&r)) return r.from + left * r.step;
        left -= range_count(&r);
        if (*at != ',') break;
    }
    return -1;
}

int64_t job_element_find(const struct job_spec *s, int64_t number) {
    struct range r;
    int64_t before = 0, count = 0;
    if (s->sweep.count || !s->array[0]) {
        int64_t i = s->sweep.count ? number - 1 : number;
        return i >= 0 && sweep_count(&s->sweep, &count, NULL) >= 0 && i < count ? i : -1;
    }
    for (const char *at = s->array; (at = range_at(at, &r)); at++) {
        if (number >= r.from && number <= r.to)
            return (number - r.from) % r.step == 0 ? before + (number - r.from) / r.step : -1;
        before += range_count(&r);
        if (*at != ',') break;
    }
    return -1;
}

/* Which value of word w has element i: the last word's change fastest. */
static unsigned value_of(const struct job_words *sweep, const char *word, unsigned i) {
    for (const char *w = word; (w = job_word_next(sweep, w));) i /= value_count(w);
    return i % value_count(word);
}

/* The value that {name} stands for, or NULL. */
static const char *meaning(const struct job_spec *s, unsigned i, const char *name, size_t n, size_t *ret_len) {
    for (const char *w = NULL; (w = job_word_next(&s->sweep, w));)
        if (key_len(w) == n && strncmp(w, name, n) == 0) return value_at(w, value_of(&s->sweep, w, i), ret_len);
    return NULL;
}

static void put_command_word(const struct job_spec *s, unsigned i, const char *number, const char *word,
                             struct buf *b) {
    while (*word) {
        size_t n = strcspn(word, "{"), len = 0;
        buf_add(b, word, n);
        word += n;
        if (!*word) break;
        n = strcspn(word + 1, "{}");
        bool is_index = n == 5 && strncmp(word + 1, "index", n) == 0;
        const char *value = word[n + 1] != '}' ? NULL : is_index ? number : meaning(s, i, word + 1, n, &len);
        if (value) {
            buf_add(b, value, is_index ? strlen(number) : len);
            word += n + 2;
        } else {
            buf_putc(b, *word++);
        }
    }
    buf_putc(b, 0);
}

void job_element_values(const struct job_spec *s, unsigned i, struct buf *b) {
    size_t len;
    for (const char *w = NULL; (w = job_word_next(&s->sweep, w));) {
        const char *value = value_at(w, value_of(&s->sweep, w, i), &len);
        buf_add(b, w, key_len(w) + 1);
        buf_add(b, value, len);
        buf_putc(b, 0);
    }
}

static void put_env(const struct job_spec *s, unsigned i, const char *number, struct buf *b) {
    size_t len;
    for (const char *v = NULL; (v = job_word_next(&s->env, v));)
        if (strncmp(v, "GPUMGR_ARRAY_INDEX=", 19) != 0 && !meaning(s, i, v, key_len(v), &len)) job_word_put(b, v);
    buf_puts(b, "GPUMGR_ARRAY_INDEX=");
    job_word_put(b, number);
    job_element_values(s, i, b);
}

int job_element(const struct job_spec *s, unsigned i, struct buf *b, struct error *e) {
    AUTO(buf_done) struct buf command = {0}, env = {0};
    struct job_spec one = *s;
    int64_t number = job_element_number(s, i);
    char text[24];
    if (number < 0) return fail(e, -ENOENT, "the job has no element %u", i);
    snprintf(text, sizeof text, "%lld", (long long)number);
    if (s->array[0] || s->sweep.count) {
        for (const char *w = NULL; (w = job_word_next(&s->command, w));) put_command_word(s, i, text, w, &command);
        put_env(s, i, text, &env);
        one.command = job_words_of(&command);
        one.env = job_words_of(&env);
        one.array = "";
        one.sweep = (struct job_words){0};
    }
    int r = job_check(&one, 0, e);
    if (r < 0) return fail_in(e, r, "element %s", text);
    job_encode(&one, b);
    return 0;
}
