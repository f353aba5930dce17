/* What the files of `gpumgr containers` share: one question to this machine's node, which knows who asks by the kernel's word. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "client/flags.h"
#include "model/wire_container_call.h"

/* Waits for the answer; its body goes to ret. A refusal is an error with the node's own sentence. */
int containers_ask(const char *dir, const struct wire_container_call *call, struct buf *ret,
                   struct wire_container_answer *ret_answer, struct error *e) MUST_CHECK;

/* A log that is followed (FOLLOW), or a shell: until it ends, with the shell's exit code. */
int containers_session(const char *dir, const struct wire_container_call *call, int *ret_code, struct error *e)
    MUST_CHECK;

/* Flags of `add` and `edit`, and the JSON that the API has for them. */
struct containers_flags {
    const char *image, *name, *gpus, *gpu, *cwd, *deadline, *period, *ui, *restart;
    struct flag_list env, label, mount;
    bool is_shared;
};
enum { CONTAINERS_FLAGS = 13 };
void containers_flags_rows(struct containers_flags *f, struct flag *rows, size_t *count);
/* old: the description as it is, of which lists with names (env, labels) keep what is not given; or NULL. */
int containers_flags_json(const struct containers_flags *f, char *const *command, size_t words, const struct buf *old,
                          struct buf *ret, struct error *e) MUST_CHECK;

/* The list as a table for people. */
int containers_table(const struct buf *list, struct buf *out, struct error *e) MUST_CHECK;
int containers_images(const struct buf *list, struct buf *out, struct error *e) MUST_CHECK;
/* What a change would change, a line each. */
int containers_changes(const struct buf *answer, struct buf *out, struct error *e) MUST_CHECK;
