/* sim_queue.c: the simulator's ring, heap and ready queue, see sim_queue.h. */
#include "sim_queue.h"

bool pto_sim_ring_grow(pto_sim_ring *ring)
{
    int64_t grown = ring->capacity == 0 ? 256 : 2 * ring->capacity;
    pto_sim_node *nodes = malloc((size_t)grown * sizeof *nodes);
    pto_sim_more *more = ring->keeps_more ? malloc((size_t)grown * sizeof *more) : NULL;
    if (nodes == NULL || (ring->keeps_more && more == NULL)) {
        free(nodes);
        free(more);
        return false;
    }
    for (int64_t node = ring->first; node < ring->next; node++) {
        nodes[node & (grown - 1)] = *pto_sim_at(ring, node);
        if (more != NULL)
            more[node & (grown - 1)] = pto_sim_more_of(ring, node);
    }
    free(ring->nodes);
    free(ring->more);
    ring->more = more;
    ring->nodes = nodes;
    ring->capacity = grown;
    return true;
}

bool pto_sim_heap_push(pto_sim_heap *heap, pto_sim_entry entry)
{
    if (!PTO_RESERVE(heap->data, heap->capacity, heap->n + 1))
        return false;
    heap->n++;
    PTO_SIFT_UP(heap->data, heap->n, entry, pto_sim_before);
    return true;
}

pto_sim_entry pto_sim_heap_pop(pto_sim_heap *heap)
{
    pto_sim_entry top = heap->data[0], moved = heap->data[--heap->n];
    PTO_SIFT_DOWN(heap->data, heap->n, moved, pto_sim_before);
    return top;
}

/* ---- ready tasks by rank, class by class ---- */

static bool rank_push(pto_sim_turn *turn, pto_sim_rank rank)
{
    if (!PTO_RESERVE(turn->data, turn->capacity, turn->n + 1))
        return false;
    turn->n++;
    PTO_SIFT_UP(turn->data, turn->n, rank, pto_sim_rank_before);
    return true;
}

static void rank_pop(pto_sim_turn *turn)
{
    pto_sim_rank moved = turn->data[--turn->n];
    PTO_SIFT_DOWN(turn->data, turn->n, moved, pto_sim_rank_before);
}

/* The first class whose number is at least this. */
static int64_t class_from(const pto_sim_turns *turns, int64_t number)
{
    int64_t low = 0, high = turns->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (turns->classes[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool turns_push(pto_sim_turns *turns, pto_sim_rank rank, int64_t number)
{
    int64_t at = class_from(turns, number);
    if (at == turns->n || turns->classes[at].number != number) {
        if (!PTO_RESERVE(turns->classes, turns->capacity, turns->n + 1))
            return false;
        memmove(turns->classes + at + 1, turns->classes + at, (size_t)(turns->n++ - at) * sizeof *turns->classes);
        turns->classes[at] = (pto_sim_turn){.number = number};
    }
    return rank_push(&turns->classes[at], rank);
}

/* The class whose turn it is, NULL: nothing is ready. */
static pto_sim_turn *turns_next(const pto_sim_turns *turns)
{
    pto_sim_turn *best = NULL;
    int64_t begin = class_from(turns, turns->served + 1);
    for (int64_t i = 0; i < turns->n; i++) {
        pto_sim_turn *turn = &turns->classes[begin + i < turns->n ? begin + i : begin + i - turns->n];
        if (turn->n > 0 && (best == NULL || turn->data[0].priority > best->data[0].priority))
            best = turn;
    }
    return best;
}

/* ---- ready tasks ---- */

bool pto_sim_ready_init(pto_sim_ready *ready, bool is_ranked)
{
    *ready = (pto_sim_ready){.first = -1, .last = -1};
    if (!is_ranked)
        return true;
    ready->turns = calloc(1, sizeof *ready->turns);
    if (ready->turns == NULL)
        return false;
    ready->turns->served = -1;
    return true;
}

void pto_sim_ready_free(pto_sim_ready *ready)
{
    free(ready->late.data);
    if (ready->turns == NULL)
        return;
    for (int64_t i = 0; i < ready->turns->n; i++)
        free(ready->turns->classes[i].data);
    free(ready->turns->classes);
    free(ready->turns);
}

static pto_sim_entry entry_of(const pto_sim_ring *ring, int64_t node)
{
    return (pto_sim_entry){pto_sim_at(ring, node)->ready, node};
}

bool pto_sim_ready_push_apart(pto_sim_ready *ready, const pto_sim_ring *ring, int64_t node)
{
    if (ready->turns == NULL)
        return pto_sim_heap_push(&ready->late, entry_of(ring, node));
    pto_sim_more more = pto_sim_more_of(ring, node);
    return turns_push(ready->turns, (pto_sim_rank){more.priority, pto_sim_at(ring, node)->ready, node}, more.turn);
}

pto_sim_rank pto_sim_ready_head(const pto_sim_ready *ready, const pto_sim_ring *ring)
{
    if (ready->turns != NULL) {
        const pto_sim_turn *turn = turns_next(ready->turns);
        return turn == NULL ? (pto_sim_rank){.node = -1} : turn->data[0];
    }
    int64_t node = ready->first;
    if (ready->late.n > 0 && (node < 0 || pto_sim_before(ready->late.data[0], entry_of(ring, node))))
        return (pto_sim_rank){0, ready->late.data[0].key, ready->late.data[0].id};
    return (pto_sim_rank){0, node < 0 ? 0 : pto_sim_at(ring, node)->ready, node};
}

int64_t pto_sim_ready_pop_apart(pto_sim_ready *ready, const pto_sim_ring *ring)
{
    if (ready->turns != NULL) {
        pto_sim_turn *turn = turns_next(ready->turns);
        if (turn == NULL)
            return -1;
        ready->turns->served = turn->number;
        int64_t node = turn->data[0].node;
        rank_pop(turn);
        return node;
    }
    int64_t node = ready->first;
    if (node < 0 || pto_sim_before(ready->late.data[0], entry_of(ring, node)))
        return pto_sim_heap_pop(&ready->late).id;
    ready->first = pto_sim_at(ring, node)->next;
    return node;
}
