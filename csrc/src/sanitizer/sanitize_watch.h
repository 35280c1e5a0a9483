/* sanitize_watch.h: one task while it runs watched, and the report of its misuse. */
#ifndef PTO_SANITIZE_WATCH_H
#define PTO_SANITIZE_WATCH_H
#include "state.h"

#pragma GCC visibility push(hidden)

/* One task while it runs watched. */
typedef struct pto_watch {
    pto_worker *worker;
    pto_sanitizer *s;
    const pto_record *record;
    const pto_kernel *kernel;
    const pto_arg *args;
    const int64_t *scalars;
    int64_t task, n_args;
    uint32_t at;
    pto_shadow *shadows[PTO_MAX_ARGS];
} pto_watch;

int32_t pto_misused(const pto_watch *w, int32_t kind, int64_t arg, int64_t row, int64_t col, int64_t n);   /* 1 */

static inline bool pto_writes(const pto_arg *arg)
{
    return (arg->flags & PTO_WRITE) != 0;
}

static inline bool pto_reads(const pto_arg *arg)
{
    return (arg->flags & PTO_READ) != 0;
}

static inline bool pto_holds(const char *element, int32_t elem_bytes, int pattern)
{
    for (int32_t i = 0; i < elem_bytes; i++)
        if ((uint8_t)element[i] != pattern)
            return false;
    return true;
}

#pragma GCC visibility pop

#endif
