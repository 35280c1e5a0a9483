/* sim_queue.c: the simulator's ring, heap and ready queue, see sim_queue.h. */
#include "sim_queue.h"

bool pto_sim_ring_reserve(pto_sim_ring *ring)
{
    int64_t held = ring->next - ring->first;
    if (held < ring->capacity)
        return true;
    int64_t grown = ring->capacity == 0 ? 256 : 2 * ring->capacity;
    pto_sim_node *nodes = malloc((size_t)grown * sizeof *nodes);
    if (nodes == NULL)
        return false;
    for (int64_t node = ring->first; node < ring->next; node++)
        nodes[node & (grown - 1)] = *pto_sim_at(ring, node);
    free(ring->nodes);
    ring->nodes = nodes;
    ring->capacity = grown;
    return true;
}

bool pto_sim_heap_push(pto_sim_heap *heap, pto_sim_entry entry)
{
    if (!PTO_RESERVE(heap->data, heap->capacity, heap->n + 1))
        return false;
    int64_t at = heap->n++;
    while (at > 0 && pto_sim_before(entry, heap->data[(at - 1) / 2])) {
        heap->data[at] = heap->data[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->data[at] = entry;
    return true;
}

pto_sim_entry pto_sim_heap_pop(pto_sim_heap *heap)
{
    pto_sim_entry top = heap->data[0], moved = heap->data[--heap->n];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= heap->n)
            break;
        if (child + 1 < heap->n && pto_sim_before(heap->data[child + 1], heap->data[child]))
            child++;
        if (!pto_sim_before(heap->data[child], moved))
            break;
        heap->data[at] = heap->data[child];
        at = child;
    }
    heap->data[at] = moved;
    return top;
}

static pto_sim_entry entry_of(const pto_sim_ring *ring, int64_t node)
{
    return (pto_sim_entry){pto_sim_at(ring, node)->ready, node};
}

bool pto_sim_ready_push(pto_sim_ready *ready, const pto_sim_ring *ring, int64_t node)
{
    if (ready->first >= 0 && pto_sim_before(entry_of(ring, node), entry_of(ring, ready->last)))
        return pto_sim_heap_push(&ready->late, entry_of(ring, node));
    pto_sim_at(ring, node)->next = -1;
    if (ready->first >= 0)
        pto_sim_at(ring, ready->last)->next = node;
    else
        ready->first = node;
    ready->last = node;
    return true;
}

int64_t pto_sim_ready_pop(pto_sim_ready *ready, const pto_sim_ring *ring)
{
    int64_t node = ready->first;
    if (ready->late.n > 0 && (node < 0 || pto_sim_before(ready->late.data[0], entry_of(ring, node))))
        return pto_sim_heap_pop(&ready->late).id;
    if (node >= 0)
        ready->first = pto_sim_at(ring, node)->next;
    return node;
}
