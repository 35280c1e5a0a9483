/* heap.c: ready nodes by priority, of equal ones the lowest first: a binary heap behind a lock that spins, for it is held for so short. */
#include "heap.h"

#include <sched.h>

#include "../collections/binary_heap.h"
#include "wait.h"

#define PTO_SPINS 200

static void lock(pto_heap *heap)
{
    for (int32_t spins = 0; atomic_exchange_explicit(&heap->is_locked, 1, memory_order_acquire) != 0; spins++) {
        if (spins < PTO_SPINS)
            pto_pause(1);
        else
            sched_yield();             /* who holds it may not be running */
    }
}

static void unlock(pto_heap *heap)
{
    atomic_store_explicit(&heap->is_locked, 0, memory_order_release);
}

static inline bool goes_first(pto_ready a, pto_ready b)
{
    return a.priority != b.priority ? a.priority > b.priority : a.node < b.node;
}

void pto_heap_clear(pto_heap *heap, pto_ready *rows)
{
    atomic_store(&heap->is_locked, 0);
    atomic_store(&heap->n, 0);
    heap->rows = rows;
}

void pto_heap_push(pto_pool *pool, pto_heap *heap, const pto_batch *batch)
{
    uint32_t node = batch->first;
    lock(heap);
    int64_t n = atomic_load_explicit(&heap->n, memory_order_relaxed);
    for (int64_t i = 0; i < batch->n; i++) {
        if (i > 0)
            node = atomic_load_explicit(&pool->below[node], memory_order_relaxed);
        pto_ready ready = {pool->graph->nodes[node].kernel < 0 ? INT64_MAX : pool->priority[pool->node_task[node]], node};
        n++;
        PTO_SIFT_UP(heap->rows, n, ready, goes_first);
    }
    atomic_store(&heap->n, n);
    unlock(heap);
}

uint32_t pto_heap_pop(pto_heap *heap)
{
    if (atomic_load_explicit(&heap->n, memory_order_relaxed) == 0)
        return PTO_NO_NODE;
    lock(heap);
    int64_t n = atomic_load_explicit(&heap->n, memory_order_relaxed) - 1;
    uint32_t top = PTO_NO_NODE;
    if (n >= 0) {
        pto_ready last = heap->rows[n];
        top = heap->rows[0].node;
        PTO_SIFT_DOWN(heap->rows, n, last, goes_first);
        atomic_store(&heap->n, n);
    }
    unlock(heap);
    return top;
}
