// The macros of the native tests. A failed check prints itself and ends the program.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                   \
        }                                                                              \
    } while (0)

#define CHECK_EQUAL(left, right)                                                                               \
    do {                                                                                                       \
        const long long left_value = static_cast<long long>(left), right_value = static_cast<long long>(right); \
        if (left_value != right_value) {                                                                       \
            fprintf(stderr, "%s:%d: failed: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #left, left_value,  \
                    #right, right_value);                                                                      \
            abort();                                                                                           \
        }                                                                                                      \
    } while (0)

#define CHECK_NEAR(left, right, tolerance)                                                                \
    do {                                                                                                  \
        const double left_value = (left), right_value = (right);                                          \
        if (!(left_value - right_value <= (tolerance) && right_value - left_value <= (tolerance))) {      \
            fprintf(stderr, "%s:%d: failed: %s is %.9g, %s is %.9g\n", __FILE__, __LINE__, #left, left_value, \
                    #right, right_value);                                                                 \
            abort();                                                                                      \
        }                                                                                                 \
    } while (0)

#define RUN(law)                 \
    do {                         \
        printf("%s\n", #law);    \
        fflush(stdout);          \
        law();                   \
    } while (0)
