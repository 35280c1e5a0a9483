/* ranges.h: the nodes that are ready at the start: each worker has a range of pool->start, packed as begin << 32 | end, claims blocks from
   its front and steals the back halves of others. In a header because both loops over tasks have it inline. */
#ifndef PTO_RANGES_H
#define PTO_RANGES_H
#include "wait.h"

#pragma GCC visibility push(hidden)

#define PTO_MAX_BLOCK 32               /* ready nodes claimed at once */

/* The first node of its range, and a block of those behind it, or PTO_NO_NODE.
   Invariant of the loop: whoever exchanges the range has its first n nodes for itself alone. */
static inline uint32_t pto_worker_claim(pto_worker *worker)
{
    uint64_t range = atomic_load_explicit(&worker->range, memory_order_acquire);
    for (;;) {
        uint32_t begin = (uint32_t)(range >> 32), end = (uint32_t)range;
        if (begin >= end)
            return PTO_NO_NODE;
        uint32_t n = (end - begin + 7) / 8;    /* smaller towards the end, for balance */
        n = n > PTO_MAX_BLOCK ? PTO_MAX_BLOCK : n;
        if (atomic_compare_exchange_weak(&worker->range, &range, (uint64_t)(begin + n) << 32 | end)) {
            worker->block = begin + 1;
            worker->block_end = begin + n;
            return worker->pool->start[begin];
        }
    }
}

/* Take the back half of a range. A range value never comes back with other nodes behind it, so comparing is enough. */
static inline bool pto_worker_steal_range(pto_worker *worker, pto_worker *victim)
{
    uint64_t range = atomic_load(&victim->range);
    for (;;) {
        uint32_t begin = (uint32_t)(range >> 32), end = (uint32_t)range;
        if (begin >= end)
            return false;
        uint32_t middle = begin + (end - begin) / 2;
        if (atomic_compare_exchange_weak(&victim->range, &range, (uint64_t)begin << 32 | middle)) {
            atomic_store(&worker->range, (uint64_t)middle << 32 | end);
            pto_pool_wake(worker->pool, (int64_t)end - middle - 1);
            return true;
        }
    }
}

#pragma GCC visibility pop

#endif
