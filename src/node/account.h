/* Who a job runs as on this machine: the Unix user behind a number, and the one that an account of the server stands for. The
 * node's own file says that (jobs.users_file), never the server. May wait for a user database: not for the main thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/settings.h"
#include "node/seal.h"

/* The name of a user, or his number. */
void account_name(uint32_t uid, char *ret, size_t room);

/* Who an account is here. dir: of the instance; where nothing maps him: a sentence and -EPERM. */
int account_find(const struct settings *s, const char *dir, const char *account, bool is_admin, char *ret, size_t room,
                 struct error *e) MUST_CHECK;

/* Whether it still is that user, for what was sealed before: an account that was taken out of the file starts nothing any more. Asks
 * no user database. account "": somebody of the machine. */
int account_check(const struct settings *s, const char *dir, const char *account, const char *user, struct error *e)
    MUST_CHECK;

/* What a login of that user would find: ids, groups, home, a small environment. keep holds what *ret points into. */
int account_login(const char *user, const char *account, struct buf *keep, struct seal_context *ret, struct error *e)
    MUST_CHECK;
