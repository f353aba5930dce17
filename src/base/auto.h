/* The few compiler words that every file uses: cleanup by scope, results that must be looked at, table lengths. */
#pragma once

#define AUTO(done) __attribute__((cleanup(done)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define BIT(n) (1ull << (n))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Hands a value over and leaves the zero value, which every destructor accepts. */
#define TAKE_STRUCT(x)                                                                                                 \
    ({                                                                                                                 \
        __typeof__(x) took_ = (x);                                                                                     \
        (x) = (__typeof__(x)){0};                                                                                      \
        took_;                                                                                                         \
    })
