/* check.h: the least a C test needs: CHECK counts and reports, TEST names, a seeded generator, one summary line. */
#ifndef PTO_CHECK_H
#define PTO_CHECK_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "pto_wsp.h"

static int check_failures;

/* Reports the first few failures of a test in full; a loop over random cases would drown the reader otherwise. */
#define CHECK(condition) \
    do { \
        if (!(condition) && check_failures++ < 5) \
            printf("    %s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    } while (0)

#define CHECK_EQ(found, expected) \
    do { \
        int64_t found_ = (int64_t)(found), expected_ = (int64_t)(expected); \
        if (found_ != expected_ && check_failures++ < 5) \
            printf("    %s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #found, (long long)found_, \
                   (long long)expected_); \
    } while (0)

typedef struct check_test {
    const char *name;
    void (*run)(void);
} check_test;

#define TEST(name) {#name, name}

static uint64_t check_random_state = 88172645463325252u;

/* PTO_TEST_SEED=7 draws other cases. */
static inline int run_tests(const check_test *tests, size_t n)
{
    const char *seed = getenv("PTO_TEST_SEED");
    int n_failed = 0;
    check_random_state ^= seed == NULL ? 0 : strtoull(seed, NULL, 10) * UINT64_C(0x9E3779B97F4A7C15);
    check_random_state += check_random_state == 0;
    for (size_t i = 0; i < n; i++) {
        check_failures = 0;
        tests[i].run();
        printf("%s %s\n", check_failures ? "FAIL" : "ok  ", tests[i].name);
        n_failed += check_failures != 0;
    }
    return n_failed != 0;
}

static inline void span_of(const pto_arg *arg, const char **first, const char **last)
{
    *first = *last = arg->data;
    for (int k = 0; k < PTO_RANK; k++) {
        int64_t bytes = (arg->extent[k] - 1) * arg->stride[k] * arg->elem_bytes;
        *(bytes < 0 ? first : last) += bytes;
    }
    *last += arg->elem_bytes;
}

/* Has an argument read, not write, where one before it may write the same bytes: a task whose outputs overlap is refused. */
static inline void write_apart(pto_arg *args, int32_t n)
{
    for (int32_t b = 1; b < n; b++)
        for (int32_t a = 0; a < b && (args[b].flags & PTO_WRITE); a++) {
            const char *first[2], *last[2];
            span_of(&args[a], &first[0], &last[0]);
            span_of(&args[b], &first[1], &last[1]);
            if ((args[a].flags & PTO_WRITE) && args[a].buffer == args[b].buffer && first[0] < last[1] && first[1] < last[0])
                args[b].flags = (args[b].flags & ~PTO_WRITE) | PTO_READ;
        }
}

#define RUN_TESTS(tests) run_tests(tests, sizeof(tests) / sizeof *(tests))

static inline int64_t pick(int64_t lo, int64_t hi)      /* lo .. hi, both included */
{
    check_random_state ^= check_random_state << 13;
    check_random_state ^= check_random_state >> 7;
    check_random_state ^= check_random_state << 17;
    return lo + (int64_t)(check_random_state % (uint64_t)(hi - lo + 1));
}

/* The most memory that this process has had so far. */
static inline int64_t resident_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Sanitizers cost a factor of ten; the tests draw fewer cases then. */
#ifdef PTO_TEST_SLOW
#define CASES(n) ((n) / 10 + 1)
#else
#define CASES(n) (n)
#endif

#endif
