/* sim_by_hand.h: what tests of the simulator by hand share: records of a few tasks, one simulation, its columns against numbers. */
#ifndef PTO_SIM_BY_HAND_H
#define PTO_SIM_BY_HAND_H
#include "check.h"

static inline pto_record *record_new(int32_t keep)
{
    return pto_record_new(&(pto_record_options){.keep = keep});
}

static inline int64_t add(pto_record *record, pto_task task, int64_t after)
{
    pto_sink *sink = pto_record_sink(record);
    task.n_after = after >= 0;
    task.after = &after;
    return sink->submit(sink, &task);
}

static pto_sim *last;

/* The status of feeding, else of finishing. */
static inline int32_t simulate(const pto_record *record, pto_sim_options options, pto_sim_result *out)
{
    pto_sim_free(last);
    options.keep_trace = 1;
    last = pto_sim_new(&options);
    CHECK(last != NULL);
    int32_t fed = pto_sim_feed(last, record), finished = pto_sim_finish(last, out);
    return fed != PTO_OK ? fed : finished;
}

#define SIMULATE(record, result, ...) CHECK_EQ(simulate(record, (pto_sim_options){__VA_ARGS__}, result), PTO_OK)
#define POOLS(...) .pool_size = (int64_t[]){__VA_ARGS__}, .n_pools = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define IS(found, ...) check_values(#found, found, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline void check_values(const char *name, const int64_t *found, const int64_t *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (found[i] != expected[i] && check_failures++ < 5)
            printf("    %s[%zu] is %lld, expected %lld\n", name, i, (long long)found[i], (long long)expected[i]);
}

static inline void is_held(const pto_sim_result *r, int64_t task, uint8_t held, int64_t by)
{
    CHECK_EQ(r->held[task], held);
    CHECK_EQ(r->held_by[task], by);
}

#endif
