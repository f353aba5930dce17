/* cmocka with what it needs before it, and without two names of its that are in the way: `fail` is ours (base/error.h),
 * and `skip` would be counted as a failure (CONTRIBUTING.md). A test program includes this, the header it tests, and
 * ends with
 *
 *   int main(void) {
 *       const struct CMUnitTest tests[] = {cmocka_unit_test(a_test), ...};
 *       return cmocka_run_group_tests(tests, NULL, NULL);
 *   }
 *
 * One group a program: its TAP plan must be the only one. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* uses the ones above without including them */

#undef fail
#undef skip

/* Names the row that failed; cmocka's own calls the `fail` that is gone. */
#undef fail_msg
#define fail_msg(...)                                                                                                  \
    do {                                                                                                               \
        print_error(__VA_ARGS__);                                                                                      \
        print_error("\n");                                                                                             \
        _fail(__FILE__, __LINE__);                                                                                     \
    } while (0)
