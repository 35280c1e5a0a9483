/* deque.h: the ready nodes of a worker: Chase and Lev's deque with a fixed array (Dynamic circular work-stealing deque, 2005). Its owner
   pushes and pops at the bottom, others steal at the top, so that they stay out of each other's way. What finds no room goes to a list of
   the pool. In a header because both loops over tasks have it inline. */
#ifndef PTO_DEQUE_H
#define PTO_DEQUE_H
#include "wait.h"

static inline uint32_t pto_deque_pop(pto_worker *worker)
{
    int64_t bottom = atomic_load_explicit(&worker->bottom, memory_order_relaxed);
    if (bottom <= atomic_load_explicit(&worker->top, memory_order_relaxed))
        return PTO_NO_NODE;
    atomic_store(&worker->bottom, --bottom);
    int64_t top = atomic_load(&worker->top);
    uint32_t node = PTO_NO_NODE;
    if (top <= bottom) {
        node = atomic_load_explicit(&worker->slots[bottom & (PTO_DEQUE_SIZE - 1)], memory_order_relaxed);
        if (top < bottom)
            return node;
        if (!atomic_compare_exchange_strong(&worker->top, &top, top + 1))
            node = PTO_NO_NODE;        /* a thief has the last one */
    }
    atomic_store_explicit(&worker->bottom, bottom + 1, memory_order_relaxed);
    return node;
}

static inline uint32_t pto_deque_steal(pto_worker *victim)
{
    int64_t top = atomic_load(&victim->top);
    if (top >= atomic_load(&victim->bottom))
        return PTO_NO_NODE;
    uint32_t node = atomic_load_explicit(&victim->slots[top & (PTO_DEQUE_SIZE - 1)], memory_order_relaxed);
    return atomic_compare_exchange_strong(&victim->top, &top, top + 1) ? node : PTO_NO_NODE;
}

static inline uint32_t pto_overflow_take(pto_pool *pool)
{
    if (atomic_load_explicit(&pool->n_overflow, memory_order_relaxed) == 0)
        return PTO_NO_NODE;
    uint32_t node = PTO_NO_NODE;
    pthread_mutex_lock(&pool->overflow_lock);
    int64_t n = atomic_load(&pool->n_overflow);
    if (n > 0) {
        node = pool->overflow[n - 1];
        atomic_store(&pool->n_overflow, n - 1);
    }
    pthread_mutex_unlock(&pool->overflow_lock);
    return node;
}

/* Nodes that the owner pushes together: others see none of them before pto_deque_publish. All 0: none yet. */
typedef struct pto_pushes {
    int64_t n, bottom, room;
} pto_pushes;

static inline void pto_deque_push(pto_worker *worker, pto_pushes *pushes, uint32_t node)
{
    pto_pool *pool = worker->pool;
    if (pushes->n++ == 0) {
        pushes->bottom = atomic_load_explicit(&worker->bottom, memory_order_relaxed);
        pushes->room = PTO_DEQUE_SIZE - (pushes->bottom - atomic_load_explicit(&worker->top, memory_order_acquire));
    }
    if (pushes->room-- > 0) {
        atomic_store_explicit(&worker->slots[pushes->bottom++ & (PTO_DEQUE_SIZE - 1)], node, memory_order_relaxed);
        return;
    }
    pthread_mutex_lock(&pool->overflow_lock);
    int64_t n = atomic_load(&pool->n_overflow);
    pool->overflow[n] = node;
    atomic_store(&pool->n_overflow, n + 1);
    pthread_mutex_unlock(&pool->overflow_lock);
}

static inline void pto_deque_publish(pto_worker *worker, const pto_pushes *pushes)
{
    if (pushes->n > 0) {
        atomic_store(&worker->bottom, pushes->bottom);
        pto_pool_wake(worker->pool, pushes->n);
    }
}

#endif
