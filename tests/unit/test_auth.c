#include "server/auth.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/test.h"
#include "tests/unit/scratch.h"

static char dir[64], path[100];
static struct state *state;
static struct auth *auth;
static char session_secret[SECRETS_TEXT], token_text[RULES_TOKEN], member_token[RULES_TOKEN];

enum { NOW = 1800000000, OWNER = 4242 };

static void add_token(struct sql *db, int64_t user, const char *name, enum auth_role role, int64_t expires,
                      char ret[RULES_TOKEN]) {
    struct token t = {.user = user, .role = role, .created = NOW, .expires = expires};
    struct error e;
    snprintf(t.name, sizeof t.name, "%s", name);
    memcpy(ret, TOKEN_PREFIX, 4);
    secrets_make(ret + 4);
    secrets_hash("token", ret, t.hash);
    assert_int_equal(store_add_token(db, &t, &e), 0);
}

static int fill(struct sql *db, void *ctx, struct error *e) {
    struct account admin = {.name = "admin", .role = ROLE_ADMIN, .uid = -1, .created = NOW};
    struct account member = {.name = "mia", .role = ROLE_MEMBER, .uid = -1, .created = NOW};
    struct session s = {.created = NOW, .seen = NOW};
    int64_t ended;
    assert_int_equal(store_add_account(db, &admin, e), 0);
    assert_int_equal(store_add_account(db, &member, e), 0);
    s.user = admin.id;
    secrets_make(session_secret);
    secrets_hash("session", session_secret, s.hash);
    assert_int_equal(store_add_session(db, &s, &ended, e), 0);
    add_token(db, admin.id, "short", ROLE_ADMIN, NOW + 10, token_text);
    add_token(db, member.id, "high", ROLE_ADMIN, 0, member_token); /* more than its maker may: must not count */
    return 0;
}

static int fresh(void **s) {
    struct error e;
    scratch_make(dir, "/tmp");
    snprintf(path, sizeof path, "%s/state.db", dir);
    if (secrets_start(&e) < 0 || state_open(path, &state, &e) < 0 || state_run(state, fill, NULL, &e) < 0) return -1;
    const struct auth_setup setup = {.state = state, .owner = OWNER, .base_path = "/", .public_url = ""};
    return auth_new(&setup, &auth, &e);
}

static int clean(void **s) {
    auth_free(auth);
    state_close(state);
    scratch_remove(dir);
    return 0;
}

static char cookie[100];
static struct auth_ask browser(void) {
    snprintf(cookie, sizeof cookie, "gpumgr_session_7000=%s", session_secret);
    return (struct auth_ask){
        .cookie = cookie, .host = "127.0.0.1:7000", .is_loopback = true, .address = "127.0.0.1", .is_mutating = false};
}

static void sessions_slide_and_end(void **s) {
    struct auth_ask ask = browser();
    struct caller c;
    struct error e;
    assert_int_equal(auth_identify(auth, &ask, NOW + AUTH_SESSION_IDLE_S, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_ADMIN);
    assert_string_equal(c.name, "admin");
    assert_true(rules_is_secret(c.csrf) && strcmp(c.csrf, session_secret) != 0);
    assert_int_equal(auth_identify(auth, &ask, NOW + 2 * AUTH_SESSION_IDLE_S, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_ADMIN);
    assert_int_equal(auth_identify(auth, &ask, NOW + 3 * AUTH_SESSION_IDLE_S + 1, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_NOBODY);
    ask.is_tls = true; /* the other cookie name: this one was set on a plain connection */
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_NOBODY);
}

static void dropped_sessions_and_accounts_are_nobody(void **s) {
    struct auth_ask ask = browser();
    struct caller c;
    struct error e;
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    struct account a = *auth_account(auth, c.user);
    a.is_disabled = true;
    auth_put_account(auth, &a);
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_NOBODY);
    a.is_disabled = false;
    auth_put_account(auth, &a);
    auth_drop_account(auth, a.id);
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_NOBODY);
    size_t n;
    auth_tokens(auth, &n);
    assert_int_equal(n, 1); /* mia's */
}

static void tokens_have_an_end_and_no_more_than_their_maker(void **s) {
    char header[100];
    struct auth_ask ask = {.authorization = header, .address = "10.0.0.1"};
    struct caller c;
    struct error e;
    snprintf(header, sizeof header, "Bearer %s", token_text);
    assert_int_equal(auth_identify(auth, &ask, NOW + 9, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_ADMIN);
    assert_int_equal(auth_identify(auth, &ask, NOW + 10, &c, &e), AUTH_UNAUTHENTICATED);
    assert_int_equal(c.role, ROLE_NOBODY);
    snprintf(header, sizeof header, "Bearer %s", member_token);
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_MEMBER);
    snprintf(header, sizeof header, "Bearer %s", session_secret); /* a session is no token */
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_UNAUTHENTICATED);
    snprintf(header, sizeof header, "Bearer gpm_%s", session_secret);
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_UNAUTHENTICATED);
    snprintf(header, sizeof header, "Bearer");
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_UNAUTHENTICATED);
    snprintf(header, sizeof header, "Basic dTpw"); /* a proxy's, not ours */
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_NOBODY);
}

static void unix_users_are_whom_the_kernel_names(void **s) {
    struct auth_ask ask = {.is_unix = true, .address = "unix", .uid = 0};
    struct caller c;
    struct error e;
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_ADMIN);
    assert_string_equal(c.name, "root");
    ask.uid = OWNER;
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_ADMIN);
    ask.uid = 54321;
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_MEMBER);
    assert_string_equal(c.name, "uid-54321");
    /* an account whose name happens to be his is not his */
    auth_put_account(auth, &(struct account){.id = 90, .uid = -1, .role = ROLE_ADMIN, .name = "uid-54321"});
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_MEMBER);
    assert_string_equal(c.name, "uid-54321-54321");
    auth_put_account(auth, &(struct account){.id = 91, .uid = 54321, .role = ROLE_ADMIN, .name = "uid-54321-54321"});
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_ADMIN);
    /* the number went to somebody else */
    auth_put_account(auth, &(struct account){.id = 92, .uid = 54321, .role = ROLE_ADMIN, .name = "carol"});
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_GOOD);
    assert_int_equal(c.role, ROLE_MEMBER);
    auth_put_account(auth, &(struct account){.id = 93, .uid = 54321, .name = "uid-54321-54321", .is_disabled = true});
    assert_int_equal(auth_identify(auth, &ask, NOW, &c, &e), AUTH_FORBIDDEN);
}

static void what_each_may_do(void **s) {
    static const char json[] = "application/json", ours[] = "http://127.0.0.1:7000";
    const struct caller nobody = {0}, admin = {.role = ROLE_ADMIN, .means = BY_SESSION, .csrf = "right"},
                        member = {.role = ROLE_MEMBER, .means = BY_TOKEN},
                        peer = {.role = ROLE_ADMIN, .means = BY_PEER};
    const struct {
        const char *name;
        const struct caller *caller;
        enum auth_need need;
        bool is_mutating, is_loopback;
        const char *host, *origin, *csrf, *type;
        enum auth_verdict want;
    } rows[] = {
        {"anyone sees what is open",       &nobody, OPEN,       false, false, "x",              NULL,          NULL,    NULL,         AUTH_GOOD           },
        {"local is open at home",          &nobody, LOCAL_OPEN, false, true,  "127.0.0.1:7000", NULL,          NULL,    NULL,         AUTH_GOOD           },
        {"a rebound name is not home",     &nobody, LOCAL_OPEN, false, true,  "evil:7000",      NULL,          NULL,    NULL,
         AUTH_UNAUTHENTICATED                                                                                                                             },
        {"local is closed elsewhere",      &nobody, LOCAL_OPEN, false, false, "127.0.0.1:7000", NULL,          NULL,    NULL,
         AUTH_UNAUTHENTICATED                                                                                                                             },
        {"a token opens it",               &member, LOCAL_OPEN, false, false, "x",              NULL,          NULL,    NULL,         AUTH_GOOD           },
        {"members only",                   &nobody, MEMBER,     false, true,  "localhost",      NULL,          NULL,    NULL,         AUTH_UNAUTHENTICATED},
        {"a member is no admin",           &member, ADMIN,      true,  true,  "localhost",      NULL,          NULL,    json,         AUTH_FORBIDDEN      },
        {"a page with all it needs",       &admin,  ADMIN,      true,  true,  "127.0.0.1:7000", ours,          "right", json,         AUTH_GOOD           },
        {"no token of the page",           &admin,  ADMIN,      true,  true,  "127.0.0.1:7000", ours,          NULL,    json,         AUTH_CSRF           },
        {"the wrong one",                  &admin,  ADMIN,      true,  true,  "127.0.0.1:7000", ours,          "wrong", json,         AUTH_CSRF           },
        {"another's page",                 &admin,  ADMIN,      true,  true,  "127.0.0.1:7000", "http://evil", "right", json,         AUTH_CSRF           },
        {"no origin at all",               &admin,  ADMIN,      true,  true,  "127.0.0.1:7000", NULL,          "right", json,         AUTH_CSRF           },
        {"a form",                         &admin,  ADMIN,      true,  true,  "127.0.0.1:7000", ours,          "right", "text/plain", AUTH_BAD_REQUEST    },
        {"reading needs none",             &admin,  ADMIN,      false, true,  "127.0.0.1:7000", NULL,          NULL,    NULL,         AUTH_GOOD           },
        {"the Unix socket needs none",     &peer,   ADMIN,      true,  true,  "x",              NULL,          NULL,    json,         AUTH_GOOD           },
        {"signing in from another's page", &nobody, OPEN,       true,  true,  "127.0.0.1:7000", "http://evil", NULL,    json,
         AUTH_CSRF                                                                                                                                        },
        {"signing in from ours",           &nobody, OPEN,       true,  true,  "127.0.0.1:7000", ours,          NULL,    json,         AUTH_GOOD           },
        {"signing in by a program",        &nobody, OPEN,       true,  true,  "127.0.0.1:7000", NULL,          NULL,    json,         AUTH_GOOD           },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct auth_ask ask = {.host = rows[i].host,
                                     .origin = rows[i].origin,
                                     .csrf = rows[i].csrf,
                                     .content_type = rows[i].type,
                                     .is_mutating = rows[i].is_mutating,
                                     .has_body = rows[i].is_mutating,
                                     .is_loopback = rows[i].is_loopback};
        struct error e = {.text = ""};
        enum auth_verdict got = auth_permit(auth, &ask, rows[i].caller, rows[i].need, &e);
        if (got != rows[i].want) fail_msg("%s: %d (%s)", rows[i].name, got, e.text);
        if (got != AUTH_GOOD) assert_true(strlen(e.text) > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sessions_slide_and_end, fresh, clean),
        cmocka_unit_test_setup_teardown(dropped_sessions_and_accounts_are_nobody, fresh, clean),
        cmocka_unit_test_setup_teardown(tokens_have_an_end_and_no_more_than_their_maker, fresh, clean),
        cmocka_unit_test_setup_teardown(unix_users_are_whom_the_kernel_names, fresh, clean),
        cmocka_unit_test_setup_teardown(what_each_may_do, fresh, clean),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
