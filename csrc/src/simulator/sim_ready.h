/* sim_ready.h: the ready tasks of a queue, in the order in which executors take them.

   The task with the highest priority goes first, of equal ones the task that became ready first, then the lowest node. With interleaving,
   classes of lanes take turns among the tasks of the highest priority. Ownership: a queue owns its pto_sim_ready, which owns its memory;
   nodes are pto_sim's. Units: times in cycles. */
#ifndef PTO_SIM_READY_H
#define PTO_SIM_READY_H
#include "sim_heap.h"
#include "sim_nodes.h"

#pragma GCC visibility push(hidden)

typedef struct pto_sim_rank {
    int64_t priority;
    int64_t ready;
    int64_t node;              /* -1: none */
} pto_sim_rank;

static inline bool pto_sim_rank_before(pto_sim_rank a, pto_sim_rank b)
{
    if (a.priority != b.priority)
        return a.priority > b.priority;
    return a.ready < b.ready || (a.ready == b.ready && a.node < b.node);
}

/* A heap of the ready tasks of one class. */
typedef struct pto_sim_class {
    int64_t number;
    pto_sim_rank *data;
    int64_t n;
    int64_t capacity;
} pto_sim_class;

/* Classes that have had a ready task here, ascending by number. Of the tasks with the highest priority, the first one of the class
   goes that comes next, round and round, after the one served last. Without interleaving there is one class. */
typedef struct pto_sim_classes {
    pto_sim_class *rows;
    int64_t n;
    int64_t capacity;
    int64_t served;            /* the number of the class served last, -1: none */
} pto_sim_classes;

/* Where neither priority nor turns matter: by (ready time, node). Time never runs back, so nearly all arrive in order and form a
   list; only a task that becomes ready at the same time as a later one goes through the heap. */
typedef struct pto_sim_ready {
    int64_t first, last;       /* nodes, -1: none */
    pto_sim_heap late;
    pto_sim_classes *classes;   /* owned; NULL: the list and the heap */
} pto_sim_ready;

bool pto_sim_ready_init(pto_sim_ready *ready, bool is_ranked);      /* false: no memory */
void pto_sim_ready_free(pto_sim_ready *ready);
bool pto_sim_ready_push_apart(pto_sim_ready *ready, const pto_sim_nodes *nodes, int64_t node);     /* not behind the list */
int64_t pto_sim_ready_pop_apart(pto_sim_ready *ready, const pto_sim_nodes *nodes);
pto_sim_rank pto_sim_ready_head(const pto_sim_ready *ready, const pto_sim_nodes *nodes);      /* what pop would return */

static inline bool pto_sim_ready_push(pto_sim_ready *ready, const pto_sim_nodes *nodes, int64_t node)
{
    pto_sim_node *n = pto_sim_at(nodes, node);
    n->next = -1;
    if (ready->classes != NULL)
        return pto_sim_ready_push_apart(ready, nodes, node);
    if (ready->first < 0) {
        ready->first = ready->last = node;
        return true;
    }
    pto_sim_node *last = pto_sim_at(nodes, ready->last);
    if (n->ready == last->ready && node < ready->last)
        return pto_sim_ready_push_apart(ready, nodes, node);
    last->next = node;
    ready->last = node;
    return true;
}

static inline int64_t pto_sim_ready_pop(pto_sim_ready *ready, const pto_sim_nodes *nodes)    /* -1: none */
{
    if (ready->classes != NULL || ready->late.n > 0)
        return pto_sim_ready_pop_apart(ready, nodes);
    int64_t node = ready->first;
    if (node >= 0)
        ready->first = pto_sim_at(nodes, node)->next;
    return node;
}

#pragma GCC visibility pop

#endif
