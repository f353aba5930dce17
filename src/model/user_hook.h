/* Whether a user's own web hook may be sent: the server sends it, from where the server is. Pure. */
#pragma once

#include "base/error.h"

/* setting: tell.user_webhooks. "yes", "no", or beginnings of URLs with commas. */
int user_hook_check_setting(const char *setting, struct error *e) MUST_CHECK;
/* 0, or -EPERM and a sentence. Of the beginnings one must be the URL's up to the end of a part of it: https://a.example is none of
 * https://a.example.org, of https://a.example@b.example and of https://a.example:8443. */
int user_hook_check(const char *setting, const char *url, struct error *e) MUST_CHECK;
