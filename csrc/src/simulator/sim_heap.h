/* sim_heap.h: a binary heap of (time, id): the earliest time leaves first, of equal times the lowest id. The owner of a heap frees `data`. */
#ifndef PTO_SIM_HEAP_H
#define PTO_SIM_HEAP_H
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct pto_sim_entry {
    int64_t time;              /* cycles */
    int64_t id;                /* breaks ties */
} pto_sim_entry;

typedef struct pto_sim_heap {
    pto_sim_entry *data;
    int64_t n;
    int64_t capacity;
} pto_sim_heap;

static inline bool pto_sim_entry_before(pto_sim_entry a, pto_sim_entry b)
{
    return a.time < b.time || (a.time == b.time && a.id < b.id);
}

bool pto_sim_heap_push(pto_sim_heap *heap, pto_sim_entry entry);       /* false: no memory */
pto_sim_entry pto_sim_heap_pop(pto_sim_heap *heap);                    /* not of an empty heap */

#pragma GCC visibility pop

#endif
