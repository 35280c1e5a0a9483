/* sim_heap.c: the heap of sim_heap.h. */
#include "sim_heap.h"

#include "../collections/array.h"
#include "../collections/binary_heap.h"

bool pto_sim_heap_push(pto_sim_heap *heap, pto_sim_entry entry)
{
    if (!PTO_RESERVE(heap->data, heap->capacity, heap->n + 1))
        return false;
    heap->n++;
    PTO_SIFT_UP(heap->data, heap->n, entry, pto_sim_entry_before);
    return true;
}

pto_sim_entry pto_sim_heap_pop(pto_sim_heap *heap)
{
    pto_sim_entry top = heap->data[0], moved = heap->data[--heap->n];
    PTO_SIFT_DOWN(heap->data, heap->n, moved, pto_sim_entry_before);
    return top;
}
